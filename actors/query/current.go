package query

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

const currentWaitMax = 5 * time.Second

// current shares the calls between those who ask.
type current struct {
	of     *persistence.Store
	ask    func(context.Context, key.Shard) error
	rounds wait.Rounds // of all shards that this node leads
}

// newCurrent returns nil for a standalone store: it always is current.
func newCurrent(ctx context.Context, store *persistence.Store, ask func(context.Context, key.Shard) error) *current {
	if ask == nil || store.Standalone() {
		return nil
	}
	c := &current{of: store, ask: ask}
	c.rounds.Context, c.rounds.WaitMax = ctx, currentWaitMax
	c.rounds.Ask = func(ctx context.Context) error {
		var led []key.Shard
		for sh := range key.Shard(store.Shards()) {
			if store.Epoch(sh) != 0 {
				led = append(led, sh)
			}
		}
		return askEach(ctx, led, func(ctx context.Context, sh key.Shard) error {
			err := ask(ctx, sh)
			if errors.Is(err, failure.ErrNotLeader) && store.Epoch(sh) == 0 {
				return nil // NB: one that moved away meanwhile concerns those who read it, and they look again
			}
			return err
		})
	}
	return c
}

func askEach(ctx context.Context, shards []key.Shard, ask func(context.Context, key.Shard) error) error {
	failed := make([]error, len(shards))
	var asked sync.WaitGroup
	for i, sh := range shards {
		asked.Go(func() { failed[i] = ask(ctx, sh) })
	}
	asked.Wait()
	for _, err := range failed {
		if err != nil {
			return notCurrent(err)
		}
	}
	return nil
}

// notCurrent is failure.ErrNotLeader when another node can read it, else failure.ErrUnavailable.
func notCurrent(err error) error {
	if kind := failure.Of(err).Kind; kind == failure.ErrNotLeader || kind == failure.ErrUnavailable {
		return err
	}
	return failure.Errorf(failure.ErrUnavailable, "%w", err)
}

// held are the replicas in which shards are read.
type held struct {
	shards   []key.Shard
	replicas []*replica.Group // nil: a standalone store
}

// await returns when everything that was acknowledged in some shards before the call is visible here.
func (c *current) await(ctx context.Context, shards []key.Shard) (h held, err error) {
	if h.shards = shards; c == nil {
		return h, nil
	}
	h.replicas = c.replicas(shards)
	epochs := c.epochs(shards)
	if slices.ContainsFunc(epochs, func(epoch uint64) bool { return epoch != 0 }) {
		err = c.rounds.Await(ctx)
	}
	// NB: a round has asked of what was led all the time.
	var others []key.Shard
	for i, epoch := range c.epochs(shards) {
		if epoch == 0 || epoch != epochs[i] {
			others = append(others, shards[i])
		}
	}
	if err == nil && len(others) > 0 {
		waiting, cancel := context.WithTimeout(ctx, currentWaitMax)
		defer cancel()
		err = askEach(waiting, others, c.ask)
	}
	if err != nil {
		return held{}, notCurrent(err)
	}
	if slices.Contains(h.replicas, nil) {
		return held{}, failure.Errorf(failure.ErrUnavailable, "a replica has come to this node only now")
	}
	return h, nil
}

// holds returns nil if a snapshot taken after await still had the rows of all replicas.
func (c *current) holds(h held) error {
	if c == nil || slices.Equal(h.replicas, c.replicas(h.shards)) {
		return nil
	}
	return failure.Errorf(failure.ErrUnavailable, "a replica was taken from this node")
}

func (c *current) replicas(shards []key.Shard) []*replica.Group {
	replicas := make([]*replica.Group, len(shards))
	for i, sh := range shards {
		replicas[i] = c.of.Replica(sh)
	}
	return replicas
}

func (c *current) epochs(shards []key.Shard) []uint64 {
	epochs := make([]uint64, len(shards))
	for i, sh := range shards {
		epochs[i] = c.of.Epoch(sh)
	}
	return epochs
}
