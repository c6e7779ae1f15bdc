package replica

import (
	"context"
	"fmt"

	"troupe/persistence/replica/internal/entry"
)

// A group is divided by an entry of its log, as CockroachDB's ranges are: each node that applies it writes the beginning of
// the new group in the same step, with the members and the rows of that moment, so that nothing is copied and all
// have the same. Nothing of the old group's epoch is on its way then, and the next one begins behind the entry: who
// writes with what it has read before is refused by both.
//
// A node that has a copy of the old group as it was before the entry has the new group in it. It takes part in that
// one once it has applied the entry, or got a later copy of the old one: until then the rows are the old group's
// ([Replacement]).

// Split gives the shards from at on to a group of their own with the same members, on the leader only. Meanwhile it takes
// no changes, and then in another epoch. After an error it may be divided nevertheless; [Group.Last] says so.
func (g *Group) Split(ctx context.Context, at uint16) error {
	switch {
	case g.Epoch() == 0:
		return ErrNotLed
	case at <= g.First() || at > g.Last():
		return fmt.Errorf("divide the group of shard %d at shard %d: it has those up to %d", g.First(), at, g.Last())
	}
	resume, err := g.Drain(ctx)
	defer resume()
	if err != nil {
		return err
	}
	asked := make(chan error, 1)
	g.do(func() {
		if g.leading == 0 {
			asked <- ErrNotLed
			return
		}
		asked <- g.raft.Propose(entry.Divide(at))
	})
	select {
	case err := <-asked:
		if err != nil {
			return fmt.Errorf("divide the group of shard %d: %w", g.o.Shard, err)
		}
	case <-g.stop:
		return ErrNotLed
	}
	ctx, cancel := context.WithTimeout(ctx, g.host.o.Tick)
	defer cancel()
	if err := g.awaitWhile(ctx, func() bool { return g.Last() >= at }); err != nil {
		return fmt.Errorf("divide the group of shard %d: %w", g.o.Shard, err)
	}
	return nil
}
