package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/raft/v3/raftpb"
)

// Member is a replica of the group.
type Member struct {
	Node string
	// Voter: it counts for majorities. Others get the log and never lead.
	Voter bool
}

// members are the nodes of a group, by their ids: raftpb.ConfState.
type members struct {
	Voters    []string `json:"voters,omitempty"`
	Learners  []string `json:"learners,omitempty"`
	Outgoing  []string `json:"outgoing,omitempty"`
	Next      []string `json:"next,omitempty"`
	AutoLeave bool     `json:"autoLeave,omitempty"`
}

func (m members) encode() []byte {
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("replica: encode members: %v", err)) // it has texts only
	}
	return encoded
}

func decodeMembers(encoded []byte) (m members, err error) {
	if err := json.Unmarshal(encoded, &m); err != nil {
		return m, fmt.Errorf("%w: its members cannot be read: %w", ErrDamaged, err)
	}
	return m, nil
}

func (m members) confState() *raftpb.ConfState {
	ids := func(nodes []string) (ids []uint64) {
		for _, n := range nodes {
			ids = append(ids, raftID(n))
		}
		return ids
	}
	return &raftpb.ConfState{
		Voters: ids(m.Voters), Learners: ids(m.Learners), VotersOutgoing: ids(m.Outgoing), LearnersNext: ids(m.Next), AutoLeave: new(m.AutoLeave),
	}
}

// all returns every node of the group, each once.
func (m members) all() []string {
	all := slices.Concat(m.Voters, m.Learners, m.Outgoing, m.Next)
	slices.Sort(all)
	return slices.Compact(all)
}

// name returns the node that Raft knows under a number.
func (m members) name(id uint64) string {
	for _, list := range [][]string{m.Voters, m.Learners, m.Outgoing, m.Next} {
		for _, n := range list {
			if raftID(n) == id {
				return n
			}
		}
	}
	return ""
}

// follow returns the members after a change, which may have added a node.
func (m members) follow(conf *raftpb.ConfState, added string) members {
	name := func(id uint64) string {
		if added != "" && raftID(added) == id {
			return added
		}
		return m.name(id)
	}
	names := func(ids []uint64) (nodes []string) {
		for _, id := range ids {
			nodes = append(nodes, name(id))
		}
		slices.SortFunc(nodes, strings.Compare)
		return nodes
	}
	return members{
		Voters: names(conf.GetVoters()), Learners: names(conf.GetLearners()), Outgoing: names(conf.GetVotersOutgoing()),
		Next: names(conf.GetLearnersNext()), AutoLeave: conf.GetAutoLeave(),
	}
}

// Bootstrap writes the beginning of a group of one node: this one, with the rows that the
// shard has now. It may be called again until the group has begun.
func Bootstrap(o Options, node string) error {
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return err
	}
	l, err := openLog(o.Store, o.LogPrefix, s)
	if err != nil {
		return err
	}
	hard, err := l.loadPair('h')
	if err != nil {
		return err
	}
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
	s, err := openState(o.Store, o.StatePrefix, o.Fatal)
	if err != nil {
		return false, err
	}
	had = s.at.applied != 0
	l, err := openLog(o.Store, o.LogPrefix, s)
	if err != nil {
		return false, err
	}
	hard, err := l.loadPair('h')
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
				s.apply(b, &applying{}, e)
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
	return had, found(&o, s, l, at, max(hard[0], at.term)+1, node)
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

// Members returns the replicas of the group as this node knows them.
func (g *Group) Members() (all []Member) {
	_, m := g.state.published()
	for _, n := range m.all() {
		all = append(all, Member{Node: n, Voter: slices.Contains(m.Voters, n)})
	}
	return all
}

// AddLearner has a node get the log without a vote. Like the next three, it works on the
// leader only, and returns when the change is confirmed by a majority. A voter keeps its vote.
func (g *Group) AddLearner(node string) error {
	if _, m := g.state.published(); slices.Contains(m.Voters, node) {
		return nil
	}
	return g.change(raftpb.ConfChangeAddLearnerNode, node)
}

// AddVoter gives a node a vote. It should have the log before: until then it counts for a
// majority that is harder to reach.
func (g *Group) AddVoter(node string) error { return g.change(raftpb.ConfChangeAddNode, node) }

// Demote takes a node's vote. It gets the log as before.
func (g *Group) Demote(node string) error { return g.change(raftpb.ConfChangeAddLearnerNode, node) }

// Remove takes a node out of the group.
func (g *Group) Remove(node string) error { return g.change(raftpb.ConfChangeRemoveNode, node) }

// changeContext stands in an entry about the members.
type changeContext struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// change makes a change of the members and waits for it. It asks again while Raft is busy with another one.
func (g *Group) change(kind raftpb.ConfChangeType, node string) error {
	about := changeContext{ID: uuid.NewString(), Node: node}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	cc := &raftpb.ConfChangeV2{Changes: []*raftpb.ConfChangeSingle{{Type: kind.Enum(), NodeId: new(raftID(node))}}, Context: text}
	done := make(chan struct{})
	g.mu.Lock()
	if g.mu.stopped {
		g.mu.Unlock()
		return ErrNotLed
	}
	g.mu.conf[about.ID] = done
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.mu.conf, about.ID)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*g.host.o.Tick)
	defer cancel()
	for {
		asked := make(chan error, 1)
		g.do(func() {
			if g.leading == 0 {
				asked <- ErrNotLed
				return
			}
			asked <- g.raft.ProposeConfChange(cc)
		})
		select {
		case err := <-asked:
			if errors.Is(err, ErrNotLed) {
				return err
			}
		case <-g.stop:
			return ErrNotLed
		}
		select {
		case <-done:
			return nil
		case <-g.stop:
			return ErrNotLed
		case <-ctx.Done():
			return fmt.Errorf("change the members of shard %d: %w", g.o.Shard, ctx.Err())
		case <-time.After(g.host.o.Tick):
		}
	}
}
