package formportal

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/workflow/workflowtest"
	_ "troupe/internal/fixedseed"
	"troupe/persistence/key"
)

// TestCategories holds gateway/INTERFACE.md, "Categories", as a table.
func TestCategories(t *testing.T) {
	const start, other, end = `[{"nodeId":"a"}]`, `[{"nodeId":"b"}]`, `[{"nodeId":"c"}]`
	newID := func() string { return "id" }
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	begin := func(states string, done bool) form.Form {
		return form.Form{Kind: form.KindForm}.Begin([]byte(states), done, at(1000), newID)
	}
	next := func(f form.Form, states string, done bool, ms int64) form.Form {
		return f.Next([]byte(states), done, at(ms), newID)
	}
	draft := begin(start, false)
	moved := next(draft, other, false, 2000)
	done := next(moved, end, true, 3000)
	back := next(moved, start, false, 3000)
	left := next(done, other, false, 4000)
	const keep = 500 * time.Millisecond
	for _, c := range []struct {
		name string
		form form.Form
		now  int64
		want form.Category
	}{
		{"just made", draft, 1000, form.Current},
		{"made long ago", draft, 1e9, form.Current},
		{"submitted", moved, 2000, form.Submitted},
		{"submitted long ago and not completed", moved, 1e9, form.Submitted},
		{"completed now", done, 3000, form.Submitted},
		{"completed, as long ago as the retention", done, 3500, form.Submitted},
		{"completed, a millisecond longer", done, 3501, form.Archived},
		{"completed, and the clock was set back", done, 1, form.Submitted},
		{"sent back to the start", back, 1e9, form.Current},
		{"sent back and submitted again", next(back, other, false, 4000), 1e9, form.Submitted},
		{"completed again, from then on", next(left, end, true, 5000), 5500, form.Submitted},
		{"completed again, longer ago", next(left, end, true, 5000), 5501, form.Archived},
		{"left its end", left, 1e9, form.Submitted},
		{"left its end for the start", next(done, start, false, 4000), 1e9, form.Current},
		{"made at its end", begin(end, true), 1500, form.Submitted},
		{"made at its end long ago", begin(end, true), 1501, form.Archived},
	} {
		assert.Equal(t, c.want, c.form.CategoryAt(archivedBefore(at(c.now), keep)), c.name)
	}
}

// TestAListEnds with an error of its reader, with its caller, and with the portal.
func TestAListEnds(t *testing.T) {
	h := newHouse(t)
	h.create("john", "feedback", "")
	h.create("john", "leave-form", "leave")
	stop, seen := errors.New("stop"), 0
	req := &ListRequest{Caller: h.user("john"), Kind: form.KindForm}
	err := h.List(t.Context(), req, func(*Summary) error { seen++; return stop })
	assert.True(t, errors.Is(err, stop) && seen == 1, "got %v after %d", err, seen)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, h.List(ended, req, func(*Summary) error { return nil }), context.Canceled, "a caller who has gone")
	h.stop()
	assert.ErrorIs(t, h.List(t.Context(), req, nil), failure.ErrUnavailable, "after Stop")
	m := h.Metrics()
	assert.True(t, m.Open == 0 && m.Begun != 0, "metrics: %+v", m)
}

// TestListsAgreeWithInstances: after any events, the lists of everybody say what
// the instances say, and nobody is shown what is not theirs.
func TestListsAgreeWithInstances(t *testing.T) {
	h := newHouse(t)
	type made struct{ who, workflow, id string }
	var all []made
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if len(all) == 0 || rapid.IntRange(0, 3).Draw(t, "create") == 0 {
				who := rapid.SampledFrom([]string{"john", "mary"}).Draw(t, "who")
				template := rapid.SampledFrom([]string{"leave-form", "approval-form", "feedback"}).Draw(t, "template")
				workflowID := map[string]string{"leave-form": "leave", "approval-form": "approval"}[template]
				id := h.create(who, template, workflowID)
				if workflowID == "" {
					workflowID = PlainWorkflow
				}
				all = append(all, made{who, workflowID, id})
				continue
			}
			f := rapid.SampledFrom(all[max(0, len(all)-5):]).Draw(t, "form")
			event := rapid.SampledFrom([]string{"submit", "note", "back", "approve", "sign", "undo", "end", "(submit)", "(draft)", "(restart)", "(time)"}).Draw(t, "event")
			switch event {
			case "(submit)":
				_, _ = h.submit(f.who, f.workflow, f.id, `{"days":1}`, "")
			case "(draft)":
				_, _ = h.save(f.who, f.workflow, f.id, `{}`)
			case "(restart)":
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					h.restart()
				}
			case "(time)":
				h.Pass(16 * 24 * time.Hour)
			default:
				_ = h.send("mary", f.workflow, f.id, event) // many are refused
			}
		}
		shown := map[string]*Summary{}
		category := map[string]form.Category{}
		for _, who := range []string{"john", "mary", "root", "eve"} {
			for c := form.Current; c <= form.Archived; c++ {
				list := h.list(who, form.KindForm, c)
				require.True(t, slices.IsSortedFunc(list, func(a, b *Summary) int { return cmp.Or(cmp.Compare(b.When, a.When), cmp.Compare(a.ID, b.ID)) }),
					"%s forms of %s are out of order", c, who)
				for _, s := range list {
					require.True(t, s.By == who && shown[s.ID] == nil, "%s is shown %+v", who, s)
					shown[s.ID], category[s.ID] = s, c
				}
			}
		}
		require.Len(t, shown, len(all), "forms are shown")
		for _, f := range all[max(0, len(all)-5):] {
			s, record := shown[f.id], h.record(f.who, f.workflow, f.id)
			var nodes []string
			for _, state := range record.States {
				nodes = append(nodes, state.NodeID)
			}
			status := strings.Join(nodes, ", ")
			current := map[string]bool{"draft": true, "a, x": true}[status]
			if f.workflow == PlainWorkflow && status == "draft" {
				status = ""
			}
			created, err := time.Parse(time.RFC3339Nano, record.History[0].TS)
			if err != nil || created.UnixMilli() != s.When || record.History[0].User != s.By || s.By != f.who {
				t.Fatalf("%s: made by %s at %d, history %+v", f.id, s.By, s.When, record.History[0])
			}
			require.True(t, s.Status == status && (category[f.id] == form.Current) == current, "%v %v %v %v", f.id, s.Status, category[f.id], nodes)
			require.Equal(t, category[f.id], h.view(f.who, f.workflow, f.id).Category, "%s: listed among", f.id)
			require.False(t, category[f.id] == form.Archived && !map[string]bool{"approved": true, "submitted": true, "c, y": true}[status], "%v %v", f.id, status)
		}
	})
	assert.GreaterOrEqual(t, len(all), 5, "only")
}

// TestAListReadsWhatItShows: what is in no list but one can be unreadable without
// harm to the others, so they have not read it.
func TestAListReadsWhatItShows(t *testing.T) {
	h := newHouse(t)
	made := func(send bool) string {
		id := h.create("john", "feedback", "")
		if send {
			h.Must(workflowtest.Second(h.submit("john", PlainWorkflow, id, `{}`, "")))
		}
		return id
	}
	old, late := made(true), made(false)
	h.Pass(31 * 24 * time.Hour)
	h.Must(workflowtest.Second(h.submit("john", PlainWorkflow, late, `{}`, "")))
	places := map[string]string{old: "form archived", late: "form submitted", made(true): "form submitted", made(false): "form current"}
	for id, want := range places {
		require.Equal(t, want, h.where("john", id), id)
	}
	for id, place := range places {
		var rowKey, before []byte
		h.EachRow(func(k key.Parts, text, value []byte) {
			if k.Table == "list" && k.ID == h.ID(id) && len(value) > 8 {
				rowKey, before = slices.Clone(text), slices.Clone(value)
			}
		})
		sh := h.Store.ShardOf(h.ID(id))
		h.Overwrite(sh, rowKey, []byte("not a row"))
		for c := form.Current; c <= form.Archived; c++ {
			err := h.List(t.Context(), &ListRequest{Caller: h.user("john"), Kind: form.KindForm, Category: c}, func(*Summary) error { return nil })
			// NB: what is older than the retention, and was completed since, is among what the archive looks at.
			may := id == late && c == form.Archived
			assert.False(t, !may && (err != nil) != ("form "+c.String() == place), "the list of %s forms, while a row of %q is damaged: %v", c, place, err)
		}
		h.Overwrite(sh, rowKey, before)
	}
}

// TestALongListInLittleMemory reads a list of many forms, and measures by how much the
// live heap is larger in between than before.
func TestALongListInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures memory")
	}
	h := newHouse(t)
	const forms, limit, makers = 5_000, 1 << 20, 200
	var wg sync.WaitGroup
	for range makers {
		wg.Go(func() {
			for range forms / makers {
				_, err := h.Create(t.Context(), h.creating("john", "feedback", "", ""))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	h.restart()
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	read := func(keep bool) (grown uint64) {
		before, count := live(), 0
		var kept []*Summary
		err := h.List(t.Context(), &ListRequest{Caller: h.user("john"), Kind: form.KindForm, Category: form.Current}, func(s *Summary) error {
			if keep {
				kept = append(kept, s)
			}
			if count++; count%1_250 == 0 {
				now := live()
				grown = max(grown, now-min(before, now))
			}
			return nil
		})
		if runtime.KeepAlive(kept); err != nil || count != forms {
			t.Fatalf("got %d forms, %v, want %d", count, err, forms)
		}
		return grown
	}
	read(false) // the store's caches fill up, once
	grown := read(false)
	assert.LessOrEqual(t, grown, uint64(limit), "the heap grew by %d KiB, want at most %d", grown>>10, limit>>10)
	if grown := read(true); grown < limit { // the control
		t.Errorf("all forms were kept, and the heap grew only by %d KiB", grown>>10)
	}
}
