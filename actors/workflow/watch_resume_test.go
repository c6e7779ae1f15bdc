package workflow_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/key"
)

// TestAWatcherThatComesBackMissesNothing holds persistence/PROMISES.md, "P31": its stream breaks at any event, in the process and over
// restarts, while entries are committed at the same time.
func TestAWatcherThatComesBackMissesNothing(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	r := rand.New(rand.NewPCG(31, 2))
	const instances = 8
	var ids []string
	for range instances {
		ids = append(ids, h.Make(boss, "stock", ""))
	}
	first := h.watch(watch.Request{Caller: member}, nil)
	place := first.next().ID
	first.end()
	seen := map[string]uint64{}
	for _, id := range ids {
		seen[id] = 1
	}
	take := func(got heard) {
		require.True(t, got.Kind == watch.Entry && got.Sequence <= seen[got.InstanceID]+1, "heard %s of %s behind entry %d", got, got.InstanceID, seen[got.InstanceID])
		seen[got.InstanceID] = max(seen[got.InstanceID], got.Sequence)
		place = got.ID
	}
	for range 4 {
		var writers sync.WaitGroup
		for g := range 4 {
			writers.Go(func() {
				for n := range 150 {
					h.MustSend(boss, "stock", ids[(g*3+n*5)%instances], "set", "")
				}
			})
		}
		quiet := make(chan struct{})
		go func() { writers.Wait(); close(quiet) }()
		for writing := true; writing; {
			e := h.listen(watch.Request{Caller: member, LastEventID: place})
			for most := r.IntN(90); most > 0 && writing; most-- {
				select {
				case got := <-e.events:
					take(got)
				case <-quiet:
					writing = false
				}
			}
			e.stop()
		}
		h.Restart()
	}
	e := h.listen(watch.Request{Caller: member, LastEventID: place})
	for _, id := range ids {
		for have := h.MustLook(boss, "stock", id).Sequence; seen[id] < have; {
			take(e.next())
		}
	}
	for _, id := range ids {
		assert.Equal(t, h.MustLook(boss, "stock", id).Sequence, seen[id], id)
	}
}

// TestADamagedInstanceIsLostAndDoesNotEndAStream: the others go on.
func TestADamagedInstanceIsLostAndDoesNotEndAStream(t *testing.T) {
	h := startWatched(t, workflow.Options{})
	first := h.watch(watch.Request{Caller: member}, nil)
	place := first.next().ID
	first.end()
	broken := h.Make(boss, "stock", "")
	whole := h.Make(boss, "stock", "")
	h.Restart()
	h.Spoil("stock", broken)
	e := h.listen(watch.Request{Caller: member, LastEventID: place})
	got := []string{e.next().String(), e.next().String()}
	assert.True(t, (got[0] == "lost" || got[1] == "lost") && (got[0] == "1 " || got[1] == "1 "), "heard %q, want a loss and the first entry of %s", got, whole)
	e.end()
	sh := h.Store.ShardOf(h.ID(whole))
	h.Overwrite(sh, key.Feed(nil, sh, 1), []byte("no row"))
	assert.ErrorIs(t, h.watch(watch.Request{Caller: member, LastEventID: place}, nil).ended(), persistence.ErrCorrupt)
}
