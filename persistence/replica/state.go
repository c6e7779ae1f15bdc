package replica

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"troupe/persistence/replica/internal/entry"
)

// state applies the log to the rows of the shard. What it does with an entry depends on the entries before and on
// nothing else.
type state struct {
	store       Store
	key, people []byte // of the position and of the members
	fatal       func(string)
	told        Follower // nil: nobody follows
	// configure has Raft take a change of the members.
	configure func(raftpb.ConfChangeI) *raftpb.ConfState
	first     uint16 // of the group's shards
	// beside returns the prefixes of the group that begins with another shard.
	beside func(shard uint16) (log, state []byte)

	// at and members are those of everything that is on its way into the rows. They belong to the round.
	at      position
	members members
	// everywhere is the last entry that all members have, as far as entries have said so. It belongs to the round.
	everywhere uint64

	mu      sync.Mutex
	shown   position      // that readers see
	group   members       // as of shown
	changed chan struct{} // closed when shown has grown

	stale     atomic.Uint64 // entries that were passed over
	installed atomic.Uint64 // copies of the shard that were put in place
}

func openState(store Store, prefix []byte, fatal func(string)) (*state, error) {
	s := newState(store, prefix, fatal)
	err := s.load()
	s.publish(s.at, s.members)
	return s, err
}

func newState(store Store, prefix []byte, fatal func(string)) *state {
	row := func(name byte) []byte { return append(prefix[:len(prefix):len(prefix)], name) }
	return &state{store: store, key: row('p'), people: row('m'), fatal: fatal, changed: make(chan struct{})}
}

func (s *state) loadPosition() error {
	stored, err := s.store.Load(s.key)
	if err != nil || stored == nil {
		return err
	}
	s.at, err = decodePosition(stored)
	return err
}

// load reads position and members from the store.
func (s *state) load() error {
	if err := s.loadPosition(); err != nil || s.at == (position{}) {
		return err
	}
	stored, err := s.store.Load(s.people)
	if err != nil {
		return err
	}
	s.members, err = decodeMembers(stored)
	return err
}

// publish makes known what readers see.
func (s *state) publish(at position, m members) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.group = at, m
	close(s.changed)
	s.changed = make(chan struct{})
}

// published returns how far readers see.
func (s *state) published() (position, members) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown, s.group
}

// position returns how far readers see, and a channel that is closed when it is further.
func (s *state) position() (position, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown, s.changed
}

// applying is entries on their way into the rows.
type applying struct {
	group   *Group
	m       *raftpb.Message
	at      position // behind them
	members members
	reprs   [][]byte  // what they change, when somebody follows
	ends    []outcome // of those that count, in their order
	splits  []span    // the groups that begin here
	answers []answer
	conf    []string // the changes of members among them, by id
}

// span is some shards in a row.
type span struct{ first, last uint16 }

// outcome is what an entry has brought about: writes, or the beginning of an epoch.
type outcome struct {
	begins          bool
	epoch, revision uint64
	term            uint64
}

// fill adds what entries change to a batch.
func (s *state) fill(b Batch, a *applying) {
	for _, e := range a.m.GetEntries() {
		if e.GetIndex() <= s.at.applied {
			continue
		}
		if e.GetTerm() != s.at.term { // NB: others without data are changes of the members that Raft has refused
			s.at = position{epoch: e.GetIndex(), term: e.GetTerm()}
			a.ends = append(a.ends, outcome{begins: true, epoch: s.at.epoch, term: s.at.term})
		}
		s.at.applied = e.GetIndex()
		switch {
		case e.GetType() != raftpb.EntryNormal:
			s.changeMembers(a, e)
			b.Set(s.people, s.members.encode())
		case len(e.GetData()) > 0:
			s.apply(b, a, e.GetIndex(), e.GetData())
		}
	}
	b.Set(s.key, s.at.encode())
	a.at, a.members = s.at, s.members
}

// touch writes the position as it is, so that a round with answers only has its turn among those that write.
func (s *state) touch(b Batch) {
	if s.at.applied > 0 {
		b.Set(s.key, s.at.encode())
	}
}

// apply carries out one entry of writes.
func (s *state) apply(b Batch, a *applying, index uint64, d []byte) {
	e, err := entry.Parse(d)
	if err != nil {
		s.fatal(fmt.Sprintf("entry %d of a shard's log %v", index, err))
	}
	switch e.Kind {
	case entry.Begins:
		s.at.epoch, s.at.revision = index, 0
		a.ends = append(a.ends, outcome{begins: true, epoch: s.at.epoch, term: s.at.term})
		return
	case entry.Divides:
		s.split(b, a, index, e.Shard)
		return
	}
	s.everywhere = max(s.everywhere, e.Everywhere)
	if e.Epoch != s.at.epoch || e.Revision != s.at.revision {
		s.stale.Add(1) // its epoch is over, or what it follows was lost: every node passes over it
		return
	}
	s.at.revision++
	a.ends = append(a.ends, outcome{epoch: e.Epoch, revision: e.Revision})
	err = e.Visit(func(set []byte) {
		b.Apply(set)
		if s.told != nil {
			a.reprs = append(a.reprs, set)
		}
	})
	if err != nil {
		s.fatal(fmt.Sprintf("entry %d of a shard's log cannot be read: %v", index, err))
	}
}

// split carries out an entry that divides the group, unless there is nothing to divide, or votes are moving.
func (s *state) split(b Batch, a *applying, index uint64, at uint16) {
	beyond := span{at, s.members.last(s.first)}
	if at <= s.first || at > beyond.last || len(s.members.Outgoing) > 0 {
		return
	}
	m, term := s.members, s.at.term
	log, rows := s.beside(at)
	m.Last = beyond.last
	begin(b, &raftLog{prefix: log}, newState(nil, rows, nil), position{applied: index, term: term}, term, m)
	s.members.Last = at - 1
	b.Set(s.people, s.members.encode())
	a.splits = append(a.splits, beyond)
}

// begin writes a group whose log begins behind a position.
func begin(b Batch, l *raftLog, s *state, at position, term uint64, m members) {
	l.restart(b, raftEntry{at.applied, at.term})
	l.setPair(b, 'h', term, 0)
	b.Set(s.key, at.encode())
	b.Set(s.people, m.encode())
}

// changeMembers carries out an entry about the members, here and in Raft.
func (s *state) changeMembers(a *applying, e *raftpb.Entry) {
	var change raftpb.ConfChangeI
	var err error
	if e.GetType() == raftpb.EntryConfChange {
		c := new(raftpb.ConfChange)
		err, change = proto.Unmarshal(e.GetData(), c), c
	} else {
		c := new(raftpb.ConfChangeV2)
		err, change = proto.Unmarshal(e.GetData(), c), c
	}
	if err != nil {
		s.fatal(fmt.Sprintf("entry %d of a shard's log, about its members, cannot be read: %v", e.GetIndex(), err))
	}
	var about changeContext
	if text := change.AsV2().GetContext(); len(text) > 0 {
		if err := json.Unmarshal(text, &about); err != nil {
			s.fatal(fmt.Sprintf("entry %d of a shard's log, about its members, cannot be read: %v", e.GetIndex(), err))
		}
	}
	s.members = s.members.follow(s.configure(change), about.Node)
	if about.ID != "" {
		a.conf = append(a.conf, about.ID)
	}
}
