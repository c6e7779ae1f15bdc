package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// Bootstrap writes the beginning of a group of one node: this one, with the rows that the shards up to last have now. It
// may be called again until the group has begun.
func Bootstrap(o Options, node string, last uint16) error {
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return err
	}
	l, err := openLog(o.Store, o.LogPrefix, s.published)
	if err != nil {
		return err
	}
	hard := l.mu.hard
	first := position{applied: foundedAt, term: foundedIn}
	if began := s.at != (position{}) || hard[0] != 0; began && (s.at != first || hard[0] != foundedIn) {
		return fmt.Errorf("shard %d is replicated already", o.Shard)
	}
	return o.Store.Write(Synced, func(b Batch) { begin(b, l, s, first, foundedIn, members{Voters: []string{node}, Last: last}) })
}

// A group begins behind this entry, in this term.
const foundedAt, foundedIn = 1, 1

// Recover makes a group of one node out of what this one has, whatever the others
// have: what only they had confirmed is lost. No group may be running. It reports whether this
// node had anything, and which is the group's last shard: one that has only begun to copy the group has a term and no
// rows, and gets the shards up to last.
func Recover(o Options, node string, last uint16) (had bool, reach uint16, err error) {
	if errors.Is(checkEngine(&o), ErrFirstEngine) {
		had, err = firstOf(&o).recover(&o, node)
		return had, o.Shard, err
	}
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return false, 0, err
	}
	s.first, s.beside = o.Shard, o.Beside
	had = s.at.applied != 0
	l, err := openLog(o.Store, o.LogPrefix, s.published)
	if err != nil {
		return false, 0, err
	}
	// NB: entries that were not applied may have been confirmed by others, so they count.
	for index := s.at.applied + 1; index <= l.mu.last; index++ {
		entries, err := l.Entries(index, index+1, 0)
		if err != nil {
			return false, 0, err
		}
		err = o.Store.Write(Lazy, func(b Batch) {
			e := entries[0]
			if e.GetTerm() != s.at.term {
				s.at = position{epoch: index, term: e.GetTerm()}
			}
			s.at.applied = index
			if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
				s.apply(b, &applying{}, index, e.GetData())
			}
			b.Set(s.key, s.at.encode())
		})
		if err != nil {
			return false, 0, err
		}
	}
	at := s.at
	at.applied = max(at.applied, foundedAt)
	at.term = max(at.term, foundedIn)
	if had {
		last = s.members.last(o.Shard)
	}
	return had, last, o.Store.Write(Synced, func(b Batch) {
		begin(b, l, s, at, max(l.mu.hard[0], at.term)+1, members{Voters: []string{node}, Last: last})
	})
}
