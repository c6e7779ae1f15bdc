package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Member is a replica of the group.
type Member struct {
	Node string
	// Voter: it counts for majorities. Others get the log and never lead.
	Voter bool
}

// Bootstrap writes the beginning of a group of one node: this one, with the rows that the
// shard has now. It may be called again until the group has begun.
func Bootstrap(o Options) error {
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return err
	}
	term, err := currentTerm(&o)
	if err != nil {
		return err
	}
	if at, began := (position{applied: foundedAt}), s.at != (position{}) || term != 0; began && (s.at != at || term != foundedIn) {
		return fmt.Errorf("shard %d is replicated already", o.Shard)
	}
	return found(&o, s, position{applied: foundedAt}, foundedIn)
}

// A group begins behind this entry, in this term.
const foundedAt, foundedIn = 1, 1

// Recover makes a group of one node out of what this one has, whatever the others
// have: what only they had confirmed is lost. No group may be running. It reports whether this
// node had anything: one that has only begun to copy the shard has a term and no rows.
func Recover(o Options) (had bool, err error) {
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return false, err
	}
	had = s.at.applied != 0
	log, err := openEntries(o.Store, o.LogPrefix, func() func() { return func() {} })
	if err != nil {
		return false, err
	}
	term, err := currentTerm(&o)
	if err != nil {
		return false, err
	}
	// NB: entries that were not applied may have been confirmed by others, so they count.
	last := log.mu.last
	for index := s.at.applied + 1; index <= last; index++ {
		var l raft.Log
		if err := log.GetLog(index, &l); err != nil {
			return false, err
		}
		if l.Type == raft.LogCommand {
			s.Apply(&l)
		}
	}
	at := s.at
	at.applied = max(at.applied, last, foundedAt)
	return had, found(&o, s, at, term+1)
}

// termKey is that of Raft's term among the votes.
const termKey = "CurrentTerm"

// currentTerm is Raft's, 0 when there is none.
func currentTerm(o *Options) (uint64, error) {
	term, err := newVotes(o.Store, o.LogPrefix, nil).GetUint64([]byte(termKey))
	if errors.Is(err, errNoVote) {
		err = nil
	}
	return term, err
}

// found makes this node the only member, and lets the log begin behind a position.
func found(o *Options, s *state, at position, term uint64) error {
	saved := newSnapshots(o.Store, o.StatePrefix, s)
	own := saved.create(raft.SnapshotVersionMax, at.applied, term, raft.Configuration{Servers: []raft.Server{
		{ID: raft.ServerID(o.Node), Address: raft.ServerAddress(o.Node)},
	}}, at.applied)
	votes := newVotes(o.Store, o.LogPrefix, nil)
	log := entries{prefix: append(o.LogPrefix[:len(o.LogPrefix):len(o.LogPrefix)], 'l')}
	return o.Store.Write(Synced, func(b Batch) {
		b.DeleteRange(log.key(0), log.end())
		b.Set(votes.key([]byte(termKey)), encodeUint64(term))
		b.Set(s.key, at.encode())
		b.Set(saved.key, own.encode())
	})
}

// Members returns the replicas of the group as this node knows them.
func (g *Group) Members() []Member {
	var members []Member
	for _, s := range g.servers() {
		members = append(members, Member{Node: string(s.ID), Voter: s.Suffrage == raft.Voter})
	}
	return members
}

func (g *Group) servers() []raft.Server {
	f := g.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

// AddLearner has a node get the log without a vote. Like the next three, it works on the
// leader only, and returns when the change is confirmed by a majority. A voter keeps its vote.
func (g *Group) AddLearner(node string) error {
	return g.confirm(func() raft.IndexFuture {
		return g.raft.AddNonvoter(raft.ServerID(node), raft.ServerAddress(node), 0, 2*g.o.Tick)
	})
}

// AddVoter gives a node a vote. It should have the log before: until then it counts for a
// majority that is harder to reach.
func (g *Group) AddVoter(node string) error {
	return g.confirm(func() raft.IndexFuture {
		return g.raft.AddVoter(raft.ServerID(node), raft.ServerAddress(node), 0, 2*g.o.Tick)
	})
}

// Demote takes a node's vote. It gets the log as before.
func (g *Group) Demote(node string) error {
	return g.confirm(func() raft.IndexFuture {
		return g.raft.DemoteVoter(raft.ServerID(node), 0, 2*g.o.Tick)
	})
}

// Remove takes a node out of the group.
func (g *Group) Remove(node string) error {
	return g.confirm(func() raft.IndexFuture {
		return g.raft.RemoveServer(raft.ServerID(node), 0, 2*g.o.Tick)
	})
}

// confirm makes a change of the members and waits for it.
//
// NB: Raft sends the entry of a change before it counts by the new members. A new voter that confirms
// the entry in between is not counted until it confirms another one. When the change needs its
// voice, and nobody writes, it would wait for ever; so an entry follows it.
func (g *Group) confirm(change func() raft.IndexFuture) error {
	g.mu.Lock()
	if g.mu.stopped {
		g.mu.Unlock()
		return ErrNotLed
	}
	g.done.Add(1)
	g.mu.Unlock()
	defer g.done.Done()
	done := make(chan error, 1)
	go func() { done <- change().Error() }()
	select {
	case err := <-done:
		return err
	case <-time.After(g.o.Tick):
	}
	g.raft.Barrier(g.o.Tick)
	return <-done
}
