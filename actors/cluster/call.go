package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence/key"
)

const askPause = 50 * time.Millisecond

const leaderMax = 10 * time.Second

// Ask is AskIn for Meta.
func Ask[I, O any](ctx context.Context, n *Node, path string, here func(context.Context, peer.NodeID, I) (O, error), in I) (O, error) {
	return AskIn(ctx, n, key.Meta, path, here, in)
}

// AskIn has the node that leads a shard carry something out, which Handle has it answer under the path. It waits 10 s
// for one that leads, or until ctx ends. What a node that fell silent has done is not known: then the error is
// failure.ErrOutcomeUnknown.
func AskIn[I, O any](ctx context.Context, n *Node, sh key.Shard, path string, here func(context.Context, peer.NodeID, I) (O, error), in I) (out O, err error) {
	waiting, cancel := context.WithTimeout(ctx, leaderMax)
	defer cancel()
	for {
		var leader peer.NodeID
		if leader, err = n.Leader(waiting, sh); err != nil {
			return out, err
		}
		if leader == n.self {
			out, err = here(ctx, n.self, in)
		} else {
			out, err = call[I, O](ctx, n, leader, path, in)
		}
		if !errors.Is(err, failure.ErrNotLeader) && !errors.Is(err, peer.ErrNotSent) { // NB: who does not know yet that the leader is gone asks again
			if errors.Is(err, failure.ErrUnavailable) && leader != n.self {
				err = &failure.Error{Kind: failure.ErrOutcomeUnknown, Cause: err}
			}
			return out, err
		}
		select {
		case <-time.After(askPause):
		case <-waiting.Done():
			return out, failure.Refuse(failure.ErrUnavailable, "no node leads %s: are most of its nodes running?", shown(sh))
		}
	}
}

// AskAll has every node of the cluster carry something out, which Handle has it answer under the path, and returns the
// answers. missing is how many nodes give none: they are down, fail, or need longer than askedMax.
func AskAll[I, O any](ctx context.Context, n *Node, path string, here func(context.Context, peer.NodeID, I) (O, error), in I) (answers []O, missing int) {
	ctx, cancel := context.WithTimeout(ctx, askedMax)
	defer cancel()
	others := n.known()
	each := make([]O, len(others)+1)
	faults := make([]error, len(each))
	var asked sync.WaitGroup
	for i, id := range others {
		if !n.isAlive(id) {
			faults[i] = failure.ErrUnavailable
			continue
		}
		asked.Go(func() { each[i], faults[i] = call[I, O](ctx, n, id, path, in) })
	}
	each[len(others)], faults[len(others)] = here(ctx, n.self, in)
	asked.Wait()
	for i, err := range faults {
		if err == nil {
			answers = append(answers, each[i])
		}
	}
	return answers, len(each) - len(answers)
}

// Leader returns the node that leads a shard, which may be this one. It waits until there is one, or returns
// failure.ErrUnavailable when ctx ends.
func (n *Node) Leader(ctx context.Context, sh key.Shard) (peer.NodeID, error) {
	for {
		isNew := n.whenNew()
		select {
		case <-n.gone: // nobody answers this node any more
			return "", failure.Errorf(failure.ErrUnavailable, "%w", errRemoved)
		default:
		}
		if id := n.leaderNow(sh); id != "" {
			return id, nil
		}
		select {
		case <-n.gone:
		case <-isNew:
		case <-time.After(askPause / 2):
		case <-ctx.Done():
			return "", failure.Refuse(failure.ErrUnavailable, "no node leads %s: are most of its nodes running?", shown(sh))
		}
	}
}

// Slots are parts of all instances, by the hash of their ids: First to Last of so many are in the shard that Leader
// leads.
type Slots struct {
	Leader         peer.NodeID
	First, Last, N int
}

// Locate says who leads an instance, as this node knows it now. It is false when that is not known, and for what is not the
// id of an instance.
func (n *Node) Locate(instance string) (s Slots, ok bool) {
	id, err := ulid.ParseStrict(instance)
	if err != nil {
		return s, false
	}
	sh := n.store.ShardOf(key.ID(id))
	s = Slots{Leader: n.leaderNow(sh), First: int(sh), Last: int(sh), N: int(n.store.Shards())}
	return s, s.Leader != ""
}

func (n *Node) leaderNow(sh key.Shard) peer.NodeID {
	if n.store.Epoch(sh) != 0 {
		return n.self
	}
	leader, led := n.leaderHeard(sh)
	g := n.store.Replica(sh)
	if g == nil || g.Applied() == 0 || leader != "" && (!led.replicas().has(n.self) || led.Last != key.Shard(g.Last())) { // NB: it knows no leader yet, is told of none any more, or has the group as it was before it was divided
		return leader
	}
	if id := peer.NodeID(g.Leader()); id != n.self { // NB: else its epoch has not begun
		return id
	}
	return ""
}

func shown(sh key.Shard) string {
	if sh == key.Meta {
		return "the cluster's own shard"
	}
	return fmt.Sprintf("shard %d", sh)
}

func (n *Node) index(ctx context.Context, _ peer.NodeID, sh key.Shard) (uint64, error) {
	at, err := n.store.ReadIndex(ctx, sh)
	return at, failure.OfStore(err)
}

// Current returns when this node's replica of a shard has everything that any node has acknowledged before the call. Every
// node has one of key.Meta; a numbered shard is read where it is led, and the error of any other node is
// failure.ErrNotLeader. failure.ErrUnavailable: nobody answers before ctx ends.
func (n *Node) Current(ctx context.Context, sh key.Shard) error {
	if sh != key.Meta {
		_, err := n.index(ctx, n.self, sh)
		return err
	}
	for {
		leader, err := n.Leader(ctx, sh)
		if err != nil {
			return err
		}
		var at uint64
		if leader == n.self {
			at, err = n.index(ctx, leader, sh)
		} else {
			at, err = call[key.Shard, uint64](ctx, n, leader, pathIndex, sh)
		}
		if err == nil {
			err = n.store.AwaitApplied(ctx, sh, at)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return failure.Errorf(failure.ErrUnavailable, "%w", err)
		}
	}
}
