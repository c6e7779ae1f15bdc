package workflow_test

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/actors/workflow"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// lineLetters are the lists of instances that are no forms: current, under way, done, by the time of that, and the mark of a shard.
const lineLetters = "ijklm"

func isOfInstance(k key.Parts) bool { return strings.IndexByte(lineLetters, k.Kind) >= 0 }

// lines are the keys of the rows of instances that are no forms, without the marks of shards.
func (h *harness) lines() map[string][]byte {
	h.t.Helper()
	rows := map[string][]byte{}
	h.EachRow(func(k key.Parts, key, value []byte) {
		if k.Table == "list" && isOfInstance(k) && k.Kind != 'm' {
			rows[string(key)] = slices.Clone(value)
		}
	})
	return rows
}

// checkLines is the invariant: each instance that is no form and that somebody has created has its row where its history says that it
// belongs, and there are no other rows.
func (h *harness) checkLines() {
	h.t.Helper()
	got := h.lines()
	take := func(list byte, by string, when int64, id key.ID) []byte {
		key := string(key.List(nil, h.Store.ShardOf(id), list, by, when, id))
		value := got[key]
		delete(got, key)
		return value
	}
	var workflows []string
	h.EachRow(func(k key.Parts, _, _ []byte) {
		if k.Table == "record" && !slices.Contains(workflows, k.Workflow) {
			workflows = append(workflows, k.Workflow)
		}
	})
	for _, workflowID := range workflows {
		for _, s := range h.Instances(workflowID) {
			var entries []struct {
				User string
				End  []string `json:"endState"`
			}
			h.Must(json.Unmarshal(s.Document.History(), &entries))
			by, left := entries[0].User, false
			if by == statemachine.System || len(s.Record.Attachment) > 0 {
				continue
			}
			for _, e := range entries { // NB: the creations of these tests stay in the initial nodes
				left = left || !slices.Equal(e.End, entries[0].End)
			}
			d, err := h.Catalog.Version(workflowID, s.Record.Version)
			h.Must(err)
			in, err := d.Restore(s.Name, s.Record)
			h.Must(err)
			list, made := byte('i'), s.Record.CreatedAt.UnixMilli()
			switch {
			case d.IsDone(&in) || in.IsEnded():
				list = 'k'
			case left:
				list = 'j'
			}
			row, err := form.ParseRow(take(list, by, made, s.ID))
			if !assert.NoError(h.t, err, "%s/%s: row in the list %c of %s", workflowID, s.Name, list, by) {
				continue
			}
			assert.True(h.t, row.By == by && row.WorkflowID == workflowID && row.Name == d.Name && row.Kind == form.KindInstance && (row.DoneAt != 0) == (list == 'k'),
				"%s/%s in the list %c: %+v", workflowID, s.Name, list, row)
			if list == 'k' {
				place := take('l', by, row.DoneAt, s.ID)
				assert.True(h.t, len(place) == 8 && binary.BigEndian.Uint64(place) == ^uint64(made), "%v %v %v", workflowID, s.Name, place)
			}
		}
	}
	for key := range got {
		h.t.Errorf("row %x is too many", key)
	}
}

// created is a page of what a user has created, by id, and how many there are.
func (h *harness) created(who *identity.Principal, category form.Category, more ...func(*form.PageRequest)) (ids []string, page *form.Page) {
	h.t.Helper()
	req := &form.PageRequest{
		ListRequest: form.ListRequest{Kind: form.KindForm, WithInstances: true, User: who.ID, Category: category}, Limit: 100, Count: true,
		Title: func(from *query.Reader, f form.Listed) (statemachine.Text, error) { return h.seen(from, who, f) },
	}
	for _, change := range more {
		change(req)
	}
	page, err := form.ReadPage(h.t.Context(), h.Queries, req)
	h.Must(err)
	for _, f := range page.Forms {
		ids = append(ids, f.InstanceID)
	}
	return ids, page
}

// seen is a title for an instance that a user may read.
func (h *harness) seen(from *query.Reader, who *identity.Principal, f form.Listed) (statemachine.Text, error) {
	id, _ := instanceid.Parse(f.InstanceID)
	in, err := query.LoadInstance(from, h.Catalog, h.Store.ShardOf(id), f.WorkflowID, id)
	if err != nil {
		return nil, err
	}
	rules, err := h.Catalog.Newest(f.WorkflowID)
	if err != nil || !rules.MayRead(statemachine.View{Instance: &in.State, Of: in.Of}, catalog.CallerOf(who), h.Clock()) {
		return nil, err
	}
	return statemachine.Plain("title of " + f.InstanceID), nil
}

// TestAPlainEventWritesNothingForLists compares what commits write for an instance that somebody has created with what they write for one that
// the service has created, which is in no list: the same, but for the first event that leaves the initial nodes, and the last one.
func TestAPlainEventWritesNothingForLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewSteadyDisk(), workflow.Options{Clock: time.Now})
		h.Publish(`
id: twin
schedules: {each: {cron: '* * * * *'}}
stateMachines:
  main:
    initial: draft
    states: {draft: {on: {submit: review, note: {}}}, review: {on: {approve: approved, back: draft, note: {}}}, approved: {type: final}}
`)
		clocktest.Advance(time.Minute)
		all := h.Instances("twin")
		require.NotEmpty(t, all, "the schedule has created nothing")
		ids := []string{h.Make(john, "twin", ""), all[0].Name}
		for _, asleep := range []bool{false, true} {
			for _, c := range []struct {
				event string
				moves bool
			}{{"note", false}, {"submit", !asleep}, {"back", false}, {"note", false}, {"submit", false}, {"note", false}, {"back", false}, {"note", false}} {
				var sizes [2]uint64
				for n, id := range ids {
					if asleep {
						h.sleepAll()
					}
					before := h.Store.Metrics().AppendedBytes
					h.MustSend(mary, "twin", id, c.event, "")
					sizes[n] = h.Store.Metrics().AppendedBytes - before
				}
				assert.Equal(t, c.moves, sizes[0] != sizes[1], "%v %v %v %v", c.event, asleep, sizes[0], sizes[1])
			}
		}
		h.checkLines()
	})
}

// TestNobodysInstances: what a schedule or a parent has created is in no list.
func TestNobodysInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startOn(t, storetest.NewSteadyDisk(), workflow.Options{Clock: time.Now})
		h.Publish(leave, order, `
id: mother
stateMachines: {main: {initial: wait, states: {wait: {on: {go: have}}, have: {invoke: {workflow: kid}, on: {back: wait}}}}}
`, `
id: kid
stateMachines: {main: {initial: open, states: {open: {on: {go: gone}}, gone: {type: final}}}}
`, `
id: daily
schedules: {each: {cron: '* * * * *'}}
stateMachines: {main: {initial: open, states: {open: {on: {go: open}}}}}
`)
		mother := h.Make(john, "mother", "")
		h.MustSend(john, "mother", mother, "go", "")
		clocktest.Advance(3 * time.Minute)
		require.NotEmpty(t, h.Instances("daily"), "the schedule has created nothing")
		assert.Len(t, h.lines(), 1, "rows, want that of the instance that john has created")
		h.checkLines()
	})
}

// TestPagesOfWhatSomebodyHasCreated: each instance stands on one page, in order, those that the reader may not read on none.
func TestPagesOfWhatSomebodyHasCreated(t *testing.T) {
	h := start(t, workflow.Options{})
	var want []string
	for n := range 40 {
		public := ""
		if n%4 == 1 {
			public = `{"by":"eve"}`
		}
		switch {
		case n%4 == 3:
			want = append(want, h.createForm(john, "leave", form.KindForm))
		default:
			id := h.Make(john, "leave", public)
			if public == "" {
				want = append(want, id)
			}
		}
		h.Make(mary, "leave", "")
	}
	for _, sort := range []form.Sort{form.NewestFirst, form.OldestFirst, form.ByName} {
		var got []string
		cursor := ""
		for pages := 0; pages < 100; pages++ {
			ids, page := h.created(john, form.Every, func(req *form.PageRequest) { req.Limit, req.Cursor, req.Sort = 7, cursor, sort })
			got = append(got, ids...)
			assert.Equal(t, int64(30), *page.Count, "by %s", sort)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		sorted := slices.Sorted(slices.Values(got))
		assert.True(t, slices.Equal(sorted, slices.Sorted(slices.Values(want))), "by %s: got %v\nwant %v", sort, sorted, want)
	}
	_, err := form.ReadPage(t.Context(), h.Queries, &form.PageRequest{ListRequest: form.ListRequest{Kind: form.KindForm, User: john.ID, Category: form.Every}, Limit: 7, Cursor: func() string {
		_, page := h.created(john, form.Every, func(req *form.PageRequest) { req.Limit = 7 })
		return page.Next
	}()})
	assert.Error(t, err, "a cursor of another list is taken")
	found, _ := h.created(john, form.Every, func(req *form.PageRequest) { req.Query = "TITLE " + want[0] })
	assert.True(t, slices.Equal(found, want[:1]), "searched: got %v, want %v", found, want[:1])
	if none, page := h.created(eve, form.Every); len(none) != 0 || *page.Count != 0 {
		t.Errorf("eve has %v of %d", none, *page.Count)
	}
}

// TestTheRowGoesWithItsInstance, wherever it stands.
func TestTheRowGoesWithItsInstance(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Make(john, "leave", "")
	for _, asleep := range []bool{false, true} {
		for _, events := range [][]string{nil, {"submit"}, {"submit", "back"}, {"submit", "approve"}} {
			id := h.Make(john, "leave", "")
			for _, event := range events {
				h.MustSend(mary, "leave", id, event, "")
			}
			if asleep {
				h.sleepAll()
			}
			h.Must(h.Delete("leave", id))
			assert.Len(t, h.lines(), 1, "%v (asleep: %t)", events, asleep)
		}
	}
	h.checkLists()
}
