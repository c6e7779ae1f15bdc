package watch_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/changefeed"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
)

// trim keeps so many rows of each shard, and 1 in 64 more.
func (h *harness) trim(rows int) {
	changefeed.New(changefeed.Options{Store: h.Store, Catalog: h.Catalog, Clock: h.Clock, Log: zerolog.Nop(), RowsMax: rows, KeptFor: time.Hour}).Trim()
}

// TestAQuietStreamMovesOn so that its place is never far from the present.
func TestAQuietStreamMovesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		quiet := h.watch(watch.Request{Caller: member}, nil)
		opened := quiet.next()
		quiet.beats.Store(true)
		for range 100 {
			h.Make(boss, "order", "")
		}
		var place string
		for n := range 20 {
			assert.Empty(t, place, "heartbeat %d has a place", n)
			clocktest.Advance(heartbeatEvery)
			place = quiet.next().ID
		}
		require.True(t, place != "" && place != opened.ID, "the place is %q, want a new one", place)
		quiet.end()
		h.trim(1)
		h.Restart()
		h.listen(watch.Request{Caller: member, LastEventID: place}).end()
		h.listen(watch.Request{Caller: member, LastEventID: opened.ID}).expect("from its beginning", "lost")
	})
}

// TestAWatchThatOpensWhileTheDiskHangsDoesNotPassOverACommit that is visible and not durable: it is in the cursor
// of the present, and its item is still to come.
func TestAWatchThatOpensWhileTheDiskHangsDoesNotPassOverACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		id := h.Make(boss, "stock", "")
		first := h.listen(watch.Request{Caller: member}) // the feed is there, and settled
		hanging := h.Disk.Hold()
		var sent sync.WaitGroup
		sent.Go(func() { h.MustSend(boss, "stock", id, "set", "") })
		<-hanging
		synctest.Wait()
		late := h.watch(watch.Request{Caller: member}, nil)
		synctest.Wait()
		if len(late.events) > 0 {
			t.Errorf("heard %s while a commit is on its way that its place is behind", <-late.events)
		}
		h.Disk.Release()
		sent.Wait()
		first.expect("who was there", "2 set")
		place := late.expect("who came late", "open")[0].ID
		h.MustSend(boss, "stock", id, "close", "")
		late.expect("what comes then", "3 close")
		h.listen(watch.Request{Caller: member, LastEventID: place}).expect("from its place", "3 close")
	})
}

// TestAWatcherThatComesBackMissesNothing holds persistence/PROMISES.md, "P31": its stream breaks at any event, in the process and over
// restarts, while entries are committed at the same time.
func TestAWatcherThatComesBackMissesNothing(t *testing.T) {
	h := start(t, workflow.Options{})
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
	h := start(t, workflow.Options{})
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
