package persistence

import (
	"context"
	"slices"

	"troupe/persistence/key"
)

// FollowShards has a follower told of everything that becomes visible in the numbered shards from
// now on, until the store is closed. A standalone store tells nobody.
func (s *Store) FollowShards(f ShardFollower) {
	if s.replicas == nil {
		return
	}
	s.replicas.following.Lock()
	defer s.replicas.following.Unlock()
	all := append(slices.Clone(*s.replicas.shardFollowers.Load()), f)
	s.replicas.shardFollowers.Store(&all)
}

// Follow has a follower of the shard Meta told of everything that becomes visible there from now on, until the store is closed; what it reads after
// Follow has returned is as new as that or newer. The keys that it gets are shared with others. A standalone store tells nobody.
func (s *Store) Follow(f Follower) {
	if s.replicas == nil {
		return
	}
	s.replicas.following.Lock()
	defer s.replicas.following.Unlock()
	s.replicas.followers = append(s.replicas.followers, f)
}

// FollowLeads has somebody told which shards this node leads, and of every change from now on,
// until the store is closed. A standalone store tells nobody.
func (s *Store) FollowLeads(l LeadershipObserver) {
	if s.replicas == nil {
		return
	}
	s.replicas.leads.Follow(l)
}

// BarrierIn tells waiter when everything appended before to a shard is durable and visible, and this node leads the shard still in the epoch.
func (s *Store) BarrierIn(sh key.Shard, epoch uint64, waiter Waiter) {
	w := s.newBatch(sh)
	w.epoch = epoch
	s.metrics.barriers.Add(1)
	s.Append(w, waiter)
}

// AwaitVisibleIn is [Store.AwaitVisible] for one shard, in the epoch of a writer there. With replicas it also says
// whether this node leads the shard still; else the error wraps ErrNotLed.
func (s *Store) AwaitVisibleIn(sh key.Shard, epoch uint64) error {
	if s.replicas == nil {
		return s.AwaitVisible()
	}
	done := make(outcome, 1)
	s.BarrierIn(sh, epoch, done)
	return <-done
}

// AwaitLed returns nil when this node leads a shard still, in an epoch: what it has read there was not overtaken by
// another node's writes when AwaitLed was called. A store alone leads for good. While this node cannot reach the
// others, or its disk takes nothing, nothing is known until ctx ends.
func (s *Store) AwaitLed(ctx context.Context, sh key.Shard, epoch uint64) error {
	if s.replicas == nil {
		return nil
	}
	done := make(outcome, 1) // it has room when nobody waits any more
	s.BarrierIn(sh, epoch, done)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadIndex returns how far a replica of a shard must be so that it contains everything that was acknowledged before
// the call. It is asked of the node that leads the shard; any other returns ErrNotLed. Anyone who asked waits with
// [Store.AwaitApplied] for its own replica to be there, and reads in that (Raft's dissertation, 6.4).
func (s *Store) ReadIndex(ctx context.Context, sh key.Shard) (uint64, error) {
	g := s.Replica(sh)
	if g == nil {
		return 0, NotLed(sh)
	}
	if err := s.AwaitLed(ctx, sh, g.Epoch()); err != nil {
		return 0, err
	}
	g.Tell()
	return g.Applied(), nil
}

// AwaitApplied returns when this node's replica of a shard contains an entry of its log.
func (s *Store) AwaitApplied(ctx context.Context, sh key.Shard, index uint64) error {
	g := s.Replica(sh)
	if g == nil {
		return ErrNotLed
	}
	return g.AwaitApplied(ctx, index)
}
