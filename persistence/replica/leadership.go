package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// followLeadership begins and ends epochs as Raft says. It alone calls the observer.
func (g *Group) followLeadership() {
	var told uint64 // the epoch that the observer was told of
	ended := func() {
		if told != 0 {
			g.end(told)
			g.refuseQueued(told)
			g.o.Observer.Ended(told)
			told = 0
		}
	}
	defer ended()
	leading := false
	for {
		select {
		case leading = <-g.leading:
			ended()
		case epoch := <-g.failed:
			if epoch != told {
				continue
			}
			ended()
		case <-g.stop:
			return
		}
		for leading && told == 0 && len(g.leading) == 0 {
			epoch, err := g.beginEpoch()
			if err == nil {
				told = epoch
				g.o.Observer.Led(epoch)
				break
			}
			g.o.Log.Debug().Err(err).Uint16("shard", g.o.Shard).Msg("an epoch did not begin")
			select {
			case <-time.After(g.o.Tick / 20):
			case <-g.stop:
				return
			}
		}
	}
}

// beginEpoch commits the entry of an epoch. Everything that was committed before is applied then.
func (g *Group) beginEpoch() (epoch uint64, err error) {
	f := g.raft.Apply([]byte{entryVersion, kindEpoch}, 0)
	if err := f.Error(); err != nil {
		return 0, err
	}
	epoch, _ = f.Response().(uint64)
	at, _ := g.state.position()
	if epoch == 0 || at.epoch != epoch {
		return 0, ErrNotLed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.epoch, g.mu.term, g.mu.revision = epoch, at.term, 0
	g.publishLocked()
	return epoch, nil
}

// Drain takes no more changes, and returns when those it has are answered. resume takes
// changes again, if this node leads still, in another epoch: anyone who saw meanwhile that this one is over
// has left it, and what is still on its way in it stands before everything of the next.
func (g *Group) Drain(ctx context.Context) (resume func(), err error) {
	g.mu.Lock()
	if g.mu.drained != nil {
		g.mu.Unlock()
		return func() {}, ErrNotLed
	}
	drained := make(chan struct{})
	g.mu.drained = drained
	g.publishLocked()
	g.checkDrainedLocked()
	g.mu.Unlock()
	resume = func() {
		g.mu.Lock()
		epoch := g.mu.epoch
		g.mu.epoch, g.mu.drained = 0, nil
		g.publishLocked()
		g.mu.Unlock()
		if epoch != 0 {
			g.fail(epoch)
		}
	}
	select {
	case <-drained:
	case <-ctx.Done():
	case <-g.stop:
		return resume, ErrNotLed
	}
	return resume, ctx.Err()
}

// HandOver gives the leadership to a node, or to the one that is least behind when node is
// empty: once that lacks next to nothing, it takes no more changes, waits until those it has are answered and
// the other has the whole log, and has it elected. After an error this node may lead still, and takes changes again.
//
// NB: Raft's own transfer can wait without an end for a node that gets no entries; then this one
// would lead for ever without taking a change (DESIGN.md says more).
func (g *Group) HandOver(ctx context.Context, node string) error {
	if g.Epoch() == 0 {
		return ErrNotLed
	}
	if node == "" {
		node = g.leastBehind()
	}
	term := g.raft.CurrentTerm()
	leads := func() bool { return g.raft.State() == raft.Leader && g.raft.CurrentTerm() == term }
	lacksMore := func(than uint64) func() bool {
		return func() bool { lacks, known := g.Behind(node); return leads() && (!known || lacks > than) }
	}
	near, stopNear := context.WithTimeout(ctx, g.o.Tick)
	defer stopNear()
	if err := g.awaitWhile(near, lacksMore(proposalsMax)); err != nil {
		return fmt.Errorf("hand over to node %q, which is far behind: %w", node, err)
	}
	resume, err := g.Drain(ctx)
	defer resume()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.o.Tick)
	defer cancel()
	if err := g.awaitWhile(ctx, lacksMore(0)); err != nil {
		return fmt.Errorf("hand over to node %q, which has not the whole log: %w", node, err)
	}
	if err := g.network.TimeoutNow(raft.ServerID(node), raft.ServerAddress(node), g.timeoutNow(), new(raft.TimeoutNowResponse)); err != nil {
		return fmt.Errorf("hand over to node %q: %w", node, err)
	}
	if err := g.awaitWhile(ctx, leads); err != nil {
		return fmt.Errorf("node %q was not elected: %w", node, err)
	}
	return nil
}

// leastBehind is the voter that lacks the fewest entries, "" when none has said what it has.
func (g *Group) leastBehind() (node string) {
	var fewest uint64
	for _, s := range g.servers() {
		lacks, known := g.Behind(string(s.ID))
		if s.Suffrage == raft.Voter && string(s.ID) != g.o.Node && known && (node == "" || lacks < fewest) {
			node, fewest = string(s.ID), lacks
		}
	}
	return node
}
