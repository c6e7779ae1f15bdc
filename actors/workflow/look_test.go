package workflow_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/workflow"
)

func TestHistoryPages(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1))
	id, other, hidden := h.Make(boss, "stock", ""), h.Make(boss, "stock", ""), h.Make(boss, "stock", `{"secret":true}`)
	for n := range 24 {
		h.MustSend(boss, "stock", id, oneOf(rand.New(rand.NewPCG(5, uint64(n))), "set", "close", "open"), "")
	}
	h.MustSend(boss, "stock", other, "set", "")
	ask := func(who *identity.Principal, id, cursor string, limit int) (*message.Page, error) {
		return h.History(&message.History{Caller: who, WorkflowID: "stock", InstanceID: id, Limit: limit, Cursor: cursor})
	}
	for _, limit := range []int{1, 7, 24, 25, 26, 1000} {
		var entries []string
		cursor := ""
		for page := 0; ; page++ {
			p, err := ask(member, id, cursor, limit)
			h.Must(err)
			if entries = append(entries, string(p.Entries)); p.Next == "" {
				break
			}
			if cursor = p.Next; page == 1 {
				h.Restart()
			}
		}
		assert.Equal(t, string(h.StoredHistory(h.Store, h.ID(id))), "["+strings.Join(entries, ",")+"]", "pages of %d", limit)
		want := (25 + limit - 1) / limit
		assert.Len(t, entries, want, "pages of %d", limit)
	}
	for _, limit := range []int{1, 7, 24, 25, 26, 1000} {
		h.checkDescending(id, limit, 25)
	}
	first, err := ask(member, id, "", 25-1)
	h.Must(err)
	h.MustSend(boss, "stock", id, "set", "")
	if rest, err := ask(member, id, first.Next, 10); err != nil || strings.Count(string(rest.Entries), `"ts"`) != 2 || rest.Next != "" {
		t.Errorf("an entry that came meanwhile is on the last page: got %s, %v", rest.Entries, err)
	}
	_, instances, err := h.list(query.Request{Caller: member, WorkflowID: "stock", Limit: 1})
	h.Must(err)
	for _, c := range []struct {
		name       string
		who        *identity.Principal
		id, cursor string
		limit      int
		want       error
	}{
		{"no limit", member, id, "", 0, failure.ErrInvalid},
		{"a limit of 1001", member, id, "", 1001, failure.ErrInvalid},
		{"a negative limit", member, id, "", -1, failure.ErrInvalid},
		{"another instance's cursor", member, other, first.Next, 5, failure.ErrInvalid},
		{"a list's cursor", member, id, instances.Next, 5, failure.ErrInvalid},
		{"a garbled cursor", member, id, first.Next[1:], 5, failure.ErrInvalid},
		{"a cursor behind the end", member, id, query.List{"history", "stock", id}.Cursor(binary.BigEndian.AppendUint64(nil, math.MaxUint64)), 5, failure.ErrInvalid},
		{"a cursor without a number", member, id, query.List{"history", "stock", id}.Cursor(nil), 5, failure.ErrInvalid},
		{"no right", eve, id, "", 5, failure.ErrForbidden},
		{"a hidden instance", guest, hidden, "", 5, failure.ErrNotFound},
		{"no instance", guest, "x", "", 5, failure.ErrNotFound},
	} {
		_, err := ask(c.who, c.id, c.cursor, c.limit)
		assert.ErrorIs(t, err, c.want, c.name)
	}
}

// checkDescending holds the pages of a history against its entries, newest first, while more of them come.
func (h *harness) checkDescending(id string, limit, entries int) {
	h.t.Helper()
	ask := func(descending bool, cursor string) (*message.Page, error) {
		return h.History(&message.History{
			Caller: member, WorkflowID: "stock", InstanceID: id, Limit: limit, Cursor: cursor, Descending: descending,
		})
	}
	var want []string
	for _, e := range h.StoredHistory(h.Store, h.ID(id)).Elements() {
		want = append([]string{string(e)}, want...)
	}
	var got []string
	pages := 0
	for cursor := ""; cursor != "" || pages == 0; pages++ {
		p, err := ask(true, cursor)
		h.Must(err)
		for _, e := range value("[" + string(p.Entries) + "]").Elements() {
			got = append(got, string(e))
		}
		if cursor = p.Next; cursor != "" {
			_, err := ask(false, cursor)
			assert.ErrorIs(h.t, err, failure.ErrInvalid, "a cursor of the other order")
		}
	}
	assert.True(h.t, slices.Equal(got, want) && pages == (len(want)+limit-1)/limit && len(want) == entries,
		"pages of %d, newest first: got %d pages with\n%s\nwant\n%s", limit, pages, strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// TestWhatComesMeanwhileIsOnNoLaterPageOfTheNewest: each page goes on behind the one before.
func TestWhatComesMeanwhileIsOnNoLaterPageOfTheNewest(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, stock("stock", 1))
	id := h.Make(boss, "stock", "")
	for range 5 {
		h.MustSend(boss, "stock", id, "set", "")
	}
	stored := h.StoredHistory(h.Store, h.ID(id)).Elements()
	var all []string
	for _, e := range stored {
		all = append(all, string(e))
	}
	cursor := ""
	for last := 6; last > 0; last -= 2 {
		p, err := h.History(&message.History{Caller: member, WorkflowID: "stock", InstanceID: id, Limit: 2, Cursor: cursor, Descending: true})
		h.Must(err)
		want := all[last-1] + "," + all[last-2]
		assert.Equal(t, want, string(p.Entries), "the page of entry %d", last)
		h.MustSend(boss, "stock", id, "set", "")
		cursor = p.Next
	}
	assert.Empty(t, cursor, "behind the first entry there is a cursor")
	none := query.List{"history", "stock", id, "desc"}.Cursor(binary.BigEndian.AppendUint64(nil, 1))
	_, err := h.History(&message.History{Caller: member, WorkflowID: "stock", InstanceID: id, Limit: 2, Cursor: none, Descending: true})
	assert.ErrorIs(t, err, failure.ErrInvalid, "a cursor behind the first entry")
}
