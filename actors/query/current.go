package query

import (
	"context"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/rounds"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

const currentWaitMax = 5 * time.Second

// Many who ask share the calls.
type current struct {
	of     *persistence.Store
	rounds rounds.Rounds
}

// newCurrent returns nil for a store that stands alone: it always is current.
func newCurrent(ctx context.Context, o *Options) *current {
	if o.Current == nil || o.Store.Alone() {
		return nil
	}
	c := &current{of: o.Store}
	c.rounds.Context, c.rounds.WaitMax = ctx, currentWaitMax
	c.rounds.Ask = func(ctx context.Context) error {
		failed := make([]error, o.Store.Shards())
		var asked sync.WaitGroup
		for sh := range failed {
			asked.Go(func() { failed[sh] = o.Current(ctx, key.Shard(sh)) })
		}
		asked.Wait()
		for _, err := range failed {
			if err != nil {
				return notCurrent(err)
			}
		}
		return nil
	}
	return c
}

// notCurrent is failure.ErrElsewhere when another node can read it, else failure.ErrUnavailable.
func notCurrent(err error) error {
	if kind := failure.Of(err).Kind; kind == failure.ErrElsewhere || kind == failure.ErrUnavailable {
		return err
	}
	return failure.Errorf(failure.ErrUnavailable, "%w", err)
}

type held []*replica.Group

// await returns when everything that was acknowledged before the call is visible here, in every shard.
func (c *current) await(ctx context.Context) (held, error) {
	if c == nil {
		return nil, nil
	}
	replicas := c.replicas()
	if err := c.rounds.Await(ctx); err != nil {
		return nil, notCurrent(err)
	}
	if slices.Contains(replicas, nil) {
		return nil, failure.Errorf(failure.ErrUnavailable, "a replica has come to this node only now")
	}
	return replicas, nil
}

// holds returns nil if a snapshot taken after await still had the rows of all replicas.
func (c *current) holds(h held) error {
	if c == nil || slices.Equal(h, c.replicas()) {
		return nil
	}
	return failure.Errorf(failure.ErrUnavailable, "a replica was taken from this node")
}

func (c *current) replicas() held {
	h := make(held, c.of.Shards())
	for sh := range h {
		h[sh] = c.of.Replica(key.Shard(sh))
	}
	return h
}

// AwaitCurrent returns when everything that was acknowledged before the call is visible on this node, in a shard or in
// key.EveryShard; in a store that stands alone it always is. failure.ErrElsewhere: this node has not all shards yet,
// and another one has. failure.ErrUnavailable: it does not become so.
func (s *Service) AwaitCurrent(ctx context.Context, sh key.Shard) error {
	if s.current == nil || sh == key.EveryShard {
		_, err := s.current.await(ctx)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, currentWaitMax)
	defer cancel()
	if err := s.o.Current(ctx, sh); err != nil {
		return notCurrent(err)
	}
	return nil
}
