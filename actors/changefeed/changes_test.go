package changefeed_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/workflow"
	"troupe/persistence/key"
)

func (h *harness) log() zerolog.Logger { return zerolog.New(&h.Log) }

func isCurrent(context.Context, key.Shard) error { return nil }

func TestChangesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, workflow.Options{})
		id := h.Make(boss, "stock", `{"secret":true}`)
		_, now := h.page(changefeed.Request{})
		type answer struct {
			page *changefeed.Page
			err  error
		}
		waits := atomic.Int32{}
		ask := func(req changefeed.Request) chan answer {
			done := make(chan answer, 1)
			req.Limit, req.Waiting = 10, func() error { waits.Add(1); return nil }
			go func() {
				page, err := h.Changes.Changes(t.Context(), &req)
				done <- answer{page, err}
			}()
			return done
		}
		one := ask(changefeed.Request{Caller: member, Since: now, Wait: time.Minute})
		blind := ask(changefeed.Request{Caller: guest, Since: now, Wait: 20 * time.Second})
		synctest.Wait()
		assert.Equal(t, int32(2), waits.Load(), "wait, want 2")
		h.MustSend(boss, "stock", id, "set", "")
		if a := <-one; a.err != nil || len(a.page.Changes) != 1 || a.page.Changes[0].Sequence != 2 {
			t.Errorf("got %v and %v, want the second entry", a.page, a.err)
		}
		begun := time.Now()
		a := <-blind
		assert.True(t, a.err == nil && len(a.page.Changes) == 0 && a.page.Next != now, "%v %v", a.page, a.err)
		took := time.Since(begun)
		assert.True(t, took >= 19*time.Second && took <= 21*time.Second, "the empty page came after %s, want 20s", took)
		begun = time.Now()
		a = <-ask(changefeed.Request{Caller: member, Wait: time.Hour})
		assert.True(t, a.err == nil && time.Since(begun) == changefeed.WaitMax, "%v %v %v", a.err, time.Since(begun), changefeed.WaitMax)
		refused := errors.New("too many wait")
		_, err := h.Changes.Changes(t.Context(), &changefeed.Request{Caller: member, Limit: 1, Wait: time.Second, Waiting: func() error { return refused }})
		assert.ErrorIs(t, err, refused)
		last := ask(changefeed.Request{Caller: member, Wait: time.Minute})
		synctest.Wait()
		h.StopWatching()
		a = <-last
		assert.True(t, a.err == nil && len(a.page.Changes) == 0 && a.page.Next != "", "when it stops: got %v and %v, want an empty page", a.page, a.err)
	})
}

// TestAReaderMissesNothing holds persistence/PROMISES.md, "P31": while events come at the same time, in pages of any size, over
// restarts. It takes each page twice now and then, as one does who is cut off.
func TestAReaderMissesNothing(t *testing.T) {
	h := start(t, workflow.Options{})
	r := rand.New(rand.NewPCG(31, 1))
	const instances, rounds, each = 12, 4, 60
	var ids []string
	for range instances {
		ids = append(ids, h.Make(boss, "stock", ""))
	}
	seen := map[string]uint64{}
	since := "0"
	read := func() (n int) {
		page, err := h.Changes.Changes(t.Context(), &changefeed.Request{Caller: member, WorkflowID: "stock", Since: since, Limit: 1 + r.IntN(40)})
		h.Must(err)
		of := map[string]uint64{}
		for _, e := range page.Changes {
			last, ok := of[e.Name]
			require.True(t, (ok || e.Sequence <= seen[e.Name]+1) && (!ok || e.Sequence == last+1), "%v %v %v", e.Sequence, e.Name, seen[e.Name])
			of[e.Name] = e.Sequence
			end, _ := e.Text.Lookup("endState")
			require.Contains(t, string(e.States), string(end[1 : len(end)-1])[:3], "the states, %s", end)
		}
		if r.IntN(5) == 0 {
			return len(page.Changes) // cut off: the same again
		}
		for id, sequence := range of {
			seen[id] = sequence
		}
		since = page.Next
		return len(page.Changes)
	}
	for range rounds {
		var writers sync.WaitGroup
		var done atomic.Bool
		for g := range 4 {
			writers.Go(func() {
				for n := range each {
					h.MustSend(boss, "stock", ids[(g*each+n*7)%instances], "set", "")
				}
			})
		}
		go func() { writers.Wait(); done.Store(true) }()
		for !done.Load() {
			read()
		}
		h.Restart()
	}
	for quiet := 0; quiet < 20; {
		if quiet++; read() > 0 {
			quiet = 0
		}
	}
	for _, id := range ids {
		assert.Equal(t, h.MustLook(boss, "stock", id).Sequence, seen[id], id)
	}
}

const week = 7 * 24 * time.Hour

func TestAnOldFeedIsTrimmed(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.Make(boss, "stock", "")
	_, first := h.page(changefeed.Request{Since: "0"})
	latest := first
	send := func(n int) (cursors []string) {
		for range n {
			h.MustSend(boss, "stock", id, "set", "")
			_, latest = h.page(changefeed.Request{Since: latest})
			cursors = append(cursors, latest)
		}
		return cursors
	}
	cursors := send(200)
	h.service(changefeed.Options{RowsMax: 64, KeptFor: week}).Trim()
	want := func(what, since string, n int) {
		t.Helper()
		got, _ := h.page(changefeed.Request{Since: since})
		assert.Len(t, got, n, what)
	}
	gone := func(what, since string) {
		t.Helper()
		_, err := h.Changes.Changes(t.Context(), &changefeed.Request{Caller: member, Since: since, Limit: 1})
		assert.ErrorIs(t, err, failure.ErrGone, what)
	}
	want("the oldest that is kept", "0", 64)
	want("behind the last that is gone", cursors[200-64-1], 64)
	want("behind the first that is kept", cursors[200-64], 63)
	gone("behind one that is gone", cursors[200-64-2])
	gone("at the beginning", first)
	h.Restart()
	gone("after a restart", first)
	send(1)
	h.service(changefeed.Options{RowsMax: 64, KeptFor: week}).Trim()
	want("few more than the most stay", "0", 65)

	h.Pass(8 * 24 * time.Hour)
	send(3)
	h.service(changefeed.Options{RowsMax: 64, KeptFor: week}).Trim()
	want("after more than a week", "0", 3)
	gone("older than a week", cursors[199])
	h.Pass(8 * 24 * time.Hour)
	h.service(changefeed.Options{RowsMax: 64, KeptFor: week}).Trim()
	want("the last row stays", "0", 1)
	send(1)
	want("and then comes the next", "0", 2)
	assert.Equal(t, uint64(206), h.MustLook(boss, "stock", id).Sequence, "the history")
}

// TestAPageIsShortWhenTooMuchIsPassedOver: its cursor goes on behind what it has looked at.
func TestAPageIsShortWhenTooMuchIsPassedOver(t *testing.T) {
	h := start(t, workflow.Options{})
	w := h.Store.NewBatch(0)
	s := h.service(changefeed.Options{})
	for n := range 20_001 {
		w := h.Store.NewBatch(0)
		s.Announce(w, &changefeed.Row{Workflow: "another", ID: key.ID{1}, Sequence: uint64(n + 1)}, nil)
		h.Store.Append(w, ignore{})
	}
	h.Must(h.Store.Commit(w))
	id := h.Make(boss, "stock", "")
	got, next := h.page(changefeed.Request{Since: "0"})
	for n := 1; len(got) == 0; n++ {
		require.LessOrEqual(t, n, 2, "the third page is empty, too")
		got, next = h.page(changefeed.Request{Since: next, Wait: time.Second})
	}
	h.expect("behind many of another workflow", got, "stock "+id+" 1 ")
}

type ignore struct{}

func (ignore) Committed(error) {}
