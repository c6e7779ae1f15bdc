package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/persistence/key"
)

// TestNobodyWaitsForAnEntryThatIsStuck: what has a bound ends at it, while a leader cannot know whether it
// leads still.
func TestNobodyWaitsForAnEntryThatIsStuck(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			if p.store.Epoch(key.Meta) == 0 {
				continue
			}
			p.isolate(true)
			const bound = 50 * time.Millisecond
			change := func(ctx context.Context) error { return p.change(ctx, func(*directory) error { return errUnchanged }) }
			for name, do := range map[string]func(context.Context) error{
				"a change": change,
				"a change behind another one": func(ctx context.Context) error {
					unbound, cancel := context.WithCancel(t.Context())
					other := make(chan error)
					go func() { other <- change(unbound) }()
					synctest.Wait()
					err := change(ctx)
					cancel()
					assert.Error(t, <-other)
					return err
				},
				"a read": func(ctx context.Context) error {
					_, err := p.index(ctx, p.self, key.Meta)
					return err
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), bound)
				begun := time.Now()
				err := do(ctx)
				assert.True(t, err != nil && !errors.Is(err, failure.ErrNotLeader) && time.Since(begun) == bound, "%v %v %v", name, time.Since(begun), err)
				cancel()
			}
			p.isolate(false)
		}
		w.await("three nodes again", func() bool { return w.whole(3) })
	})
}

func TestStopEndsWithItsContext(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a := w.first()
		w.await("one node", func() bool { return w.whole(1) })
		stuck := make(chan struct{})
		a.running.Go(func() { <-stuck })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, a.Stop(ctx), context.DeadlineExceeded)
		close(stuck)
	})
}

// TestALeaderThatIsGoneIsNotAsked: nothing was sent to it, so whoever asks meanwhile gets its answer from the
// next one.
func TestALeaderThatIsGoneIsNotAsked(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *world) {
		a, b, c := w.three()
		var leader peer.NodeID
		w.await("all know the leader", func() bool {
			leader = a.leaderNow(key.Meta)
			return leader != "" && b.leaderNow(key.Meta) == leader && c.leaderNow(key.Meta) == leader
		})
		gone := w.nodes[leader]
		gone.vanish() // NB: no time passes, so the others believe that it leads
		for _, p := range w.nodes {
			_, err := p.Invite(t.Context(), time.Hour)
			assert.NoError(t, err)
		}
		gone.stop(false)
	})
}

// TestNoClockMakesANodeFresh: one that is set back would, for as long as it was, if freshness were by its time
// of day. NB: the clock of a bubble has that alone.
func TestNoClockMakesANodeFresh(t *testing.T) {
	w := newWorld(t, 1)
	defer w.end()
	a := w.first()
	a.freshen(t.Context())
	at := a.fresh.Load()
	require.NotNil(t, at, "a node alone is not fresh")
	assert.NotEqual(t, at.Round(0), *at, "has no monotonic part")
}

// TestALoopOfTheNodeGoesOnAfterAPanic.
func TestALoopOfTheNodeGoesOnAfterAPanic(t *testing.T) {
	w := newWorld(t, 1)
	defer w.end()
	a, calls, twice := w.first(), 0, make(chan struct{})
	a.running.Go(func() {
		a.every(time.Millisecond, func(context.Context) {
			switch calls++; calls {
			case 1:
				panic("a round")
			case 2:
				close(twice)
			}
		})
	})
	<-twice
}
