package replica

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// AddLearner has a node get the log without a vote. Like the next three, it works on the
// leader only, and returns when the change is confirmed by a majority. A voter keeps its vote.
func (g *Group) AddLearner(node string) error {
	if _, m := g.state.published(); slices.Contains(m.Voters, node) {
		return nil
	}
	return g.change(node, change(raftpb.ConfChangeAddLearnerNode, node))
}

// AddVoter gives a node a vote. It should have the log before: until then it counts for a
// majority that is harder to reach.
func (g *Group) AddVoter(node string) error {
	return g.change(node, change(raftpb.ConfChangeAddNode, node))
}

// Demote takes a node's vote. It gets the log as before.
func (g *Group) Demote(node string) error {
	return g.change(node, change(raftpb.ConfChangeAddLearnerNode, node))
}

// Remove takes a node out of the group.
func (g *Group) Remove(node string) error {
	return g.change(node, change(raftpb.ConfChangeRemoveNode, node))
}

// Swap gives a node the vote of another one, which is taken out or, with learns, gets the log as before. Meanwhile each
// decision takes a majority of the voters before and one of those after (joint consensus).
func (g *Group) Swap(in, out string, learns bool) error {
	kind := raftpb.ConfChangeRemoveNode
	if learns {
		kind = raftpb.ConfChangeAddLearnerNode
	}
	if err := g.change(in, change(raftpb.ConfChangeAddNode, in), change(kind, out)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*g.host.o.Tick)
	defer cancel()
	return g.awaitWhile(ctx, func() bool { _, m := g.state.published(); return len(m.Outgoing) > 0 })
}

func change(kind raftpb.ConfChangeType, node string) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: new(raftID(node))}
}

// change makes changes of the members at once and waits for them; node is the one that may be new. It asks again while
// Raft is busy with another change, in the epoch in which it was called: who leads later decides by what is then.
func (g *Group) change(node string, changes ...*raftpb.ConfChangeSingle) error {
	about := changeContext{ID: rand.Text(), Node: node}
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	cc := &raftpb.ConfChangeV2{Changes: changes, Context: text}
	done := make(chan struct{})
	g.mu.Lock()
	epoch := g.mu.epoch
	if g.mu.stopped || epoch == 0 {
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
			g.mu.Lock()
			over := g.mu.epoch != epoch
			g.mu.Unlock()
			if over {
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
