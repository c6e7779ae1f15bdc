package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// Bootstrap writes the beginning of a group of one node: this one, with the rows that the
// shard has now. It may be called again until the group has begun.
func Bootstrap(o Options, node string) error {
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
	return found(&o, s, l, first, foundedIn, node)
}

// A group begins behind this entry, in this term.
const foundedAt, foundedIn = 1, 1

// Recover makes a group of one node out of what this one has, whatever the others
// have: what only they had confirmed is lost. No group may be running. It reports whether this
// node had anything: one that has only begun to copy the shard has a term and no rows.
func Recover(o Options, node string) (had bool, err error) {
	if errors.Is(checkEngine(&o), ErrFirstEngine) {
		return firstOf(&o).recover(&o, node)
	}
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return false, err
	}
	had = s.at.applied != 0
	l, err := openLog(o.Store, o.LogPrefix, s.published)
	if err != nil {
		return false, err
	}
	// NB: entries that were not applied may have been confirmed by others, so they count.
	for index := s.at.applied + 1; index <= l.mu.last; index++ {
		entries, err := l.Entries(index, index+1, 0)
		if err != nil {
			return false, err
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
			return false, err
		}
	}
	at := s.at
	at.applied = max(at.applied, foundedAt)
	at.term = max(at.term, foundedIn)
	return had, found(&o, s, l, at, max(l.mu.hard[0], at.term)+1, node)
}

// found makes this node the only member, and lets the log begin behind a position.
func found(o *Options, s *state, l *raftLog, at position, term uint64, node string) error {
	return o.Store.Write(Synced, func(b Batch) {
		l.restart(b, raftEntry{at.applied, at.term})
		l.setPair(b, 'h', term, 0)
		b.Set(s.key, at.encode())
		b.Set(s.people, members{Voters: []string{node}}.encode())
	})
}
