package workflow_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/workflow"
	_ "troupe/internal/fixedseed"
	"troupe/persistence/key"
)

// startFeed runs a router that has the workflow stock, too.
func startFeed(t testing.TB) *harness {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1))
	return h
}

// TestWhoWaitsMayBeRefused when there is nothing, which is when Waiting is asked.
func TestWhoWaitsMayBeRefused(t *testing.T) {
	h := startFeed(t)
	h.Make(boss, "stock", "")
	refused := errors.New("too many wait")
	req := changefeed.Request{Caller: member, Since: "0", Limit: 1, Wait: time.Second, Waiting: func() error { return refused }}
	page, err := h.Changes.Changes(t.Context(), &req)
	h.Must(err)
	req.Since = page.Next
	_, err = h.Changes.Changes(t.Context(), &req)
	assert.ErrorIs(t, err, refused)
}

// TestAReaderMissesNothing holds persistence/PROMISES.md, "P31": while events come at the same time, in pages of any size, over
// restarts. It takes each page twice now and then, as one does who is cut off.
func TestAReaderMissesNothing(t *testing.T) {
	h := startFeed(t)
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

// TestAPageIsShortWhenTooMuchIsPassedOver: its cursor goes on behind what it has looked at.
func TestAPageIsShortWhenTooMuchIsPassedOver(t *testing.T) {
	h := startFeed(t)
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

// page asks for a page that must come. Its zero limit is 1,000.
func (h *harness) page(req changefeed.Request) (texts []string, next string) {
	h.t.Helper()
	if req.Limit == 0 {
		req.Limit = 1000
	}
	if req.Caller == nil {
		req.Caller = member
	}
	page, err := h.Changes.Changes(h.t.Context(), &req)
	h.Must(err)
	for _, e := range page.Changes {
		name, _ := e.Text.Lookup("transitionEvent")
		texts = append(texts, fmt.Sprintf("%s %s %d %s", e.Workflow, e.Name, e.Sequence, name.Text()))
	}
	return texts, page.Next
}

// expect holds a page against its texts, in any order of instances but each in its own.
func (h *harness) expect(what string, got []string, want ...string) {
	h.t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	assert.True(h.t, slices.Equal(got, want), "%s: got %q, want %q", what, got, want)
}

// service is one with other bounds over the store of the router.
func (h *harness) service(o changefeed.Options) *changefeed.Service {
	o.Store, o.Catalog, o.Clock, o.Log = h.Store, h.Catalog, h.Clock, zerolog.New(&h.Log)
	o.Current = func(context.Context, []key.Shard) error { return nil }
	return changefeed.New(o)
}

// changesList is what cursors of changes are positions in.
var changesList = query.List{"changes"}

// storedChange is how a row is stored: id(16) sequence(uvarint) workflow.
func storedChange(r changefeed.Row) []byte {
	return append(binary.AppendUvarint(r.ID[:], r.Sequence), r.Workflow...)
}

func TestACursorOfChangesIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.SampledFrom([]key.FeedPlace{0, 1, 2, key.FeedPlaceAt(1_800_000_000_000), key.FeedPlaceAt(1_800_000_000_001) + 7, 1<<64 - 1})
		c := changefeed.Cursor(rapid.SliceOfN(places, 1, 20).Draw(t, "places"))
		got, err := changefeed.ParseCursor(c.String(), len(c))
		require.True(t, err == nil && slices.Equal(got, c), "got %v and %v, want %v", got, err, c)
		for _, shards := range []int{len(c) - 1, len(c) + 1} {
			_, err := changefeed.ParseCursor(c.String(), shards)
			require.ErrorIs(t, err, failure.ErrInvalid, "for %d shards", shards)
		}
	})
}

func TestACursorOfAnotherListIsRefused(t *testing.T) {
	for _, text := range []string{"", "0", "x", "AAAA", query.List{"history", "w", "i"}.Cursor([]byte{1}), changesList.Cursor(nil), changesList.Cursor([]byte{0x80}), changesList.Cursor([]byte{1, 3}), changesList.Cursor([]byte{1, 1, 1})} {
		_, err := changefeed.ParseCursor(text, 1)
		assert.ErrorIs(t, err, failure.ErrInvalid, text)
	}
}

// FuzzChangesCursor holds that whatever comes as the position of a cursor is refused, or means what it says.
func FuzzChangesCursor(f *testing.F) {
	f.Add([]byte{5, 0, 6})
	f.Add([]byte{0, 1, 0})
	f.Fuzz(func(t *testing.T, position []byte) {
		c, err := changefeed.ParseCursor(changesList.Cursor(position), 2)
		if err != nil {
			return
		}
		again, err := changefeed.ParseCursor(c.String(), 2)
		assert.True(t, err == nil && slices.Equal(again, c), "%x: got %v, and again %v with %v", position, c, again, err)
	})
}

// FuzzChangeRow holds that any bytes are refused as a row, or are the row that they say.
func FuzzChangeRow(f *testing.F) {
	row := changefeed.Row{ID: key.ID{1}, Sequence: 300, Workflow: "leave"}
	f.Add(append(make([]byte, 8), storedChange(row)...))
	f.Fuzz(func(t *testing.T, stored []byte) {
		key := key.Feed(nil, 3, 9)
		r, err := changefeed.ParseRow(key, stored)
		if err != nil {
			return
		}
		again, err := changefeed.ParseRow(key, append(make([]byte, 8), storedChange(r)...))
		assert.True(t, err == nil && again == r && r.Shard == 3 && r.Place == 9, "%x: got %v, and again %v with %v", stored, r, again, err)
	})
}
