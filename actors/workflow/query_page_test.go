package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
)

// TestPagesWhileInstancesComeGoAndChange: what matched all along, with the same
// value to sort by, comes once, whatever happens to the others.
func TestPagesWhileInstancesComeGoAndChange(t *testing.T) {
	h := startQueries(t, query.Options{})
	h.Publish(stock("stock", 1, workflowtest.StockIndexes...))
	h.AwaitIndexes()
	for round, c := range []struct{ sort, filter string }{
		{"", ""},
		{"-_id", `{"svcPublic.u":{"$ne":"gone"}}`},
		{"_id", `{"svcPublic.t":"in"}`},
		{"svcPublic.n", ""},
		{"-svcPublic.n", `{"svcPublic.u":{"$ne":"gone"}}`},
		{"svcPublic.a", `{"svcPublic.t":"in"}`},
		{"-svcPublic.a", `{"svcPublic.t":"in"}`},
	} {
		r := rand.New(rand.NewPCG(4, uint64(round)))
		var data []string
		for n := range 30 {
			data = append(data, fmt.Sprintf(`{"n":%d,"a":[%d,%d],"t":"in","u":"in"}`, r.IntN(40), r.IntN(10), r.IntN(10)), fmt.Sprintf(`{"n":%d}`, n))
		}
		ids := h.Fill("stock", data)
		var stay, others []string
		for n, id := range ids {
			if n%4 == 0 {
				stay = append(stay, id)
			} else {
				others = append(others, id)
			}
		}
		var want, got []string
		for _, id := range obvious(t, h.Instances("stock"), boss, c.filter, c.sort) {
			if slices.Contains(stay, id) {
				want = append(want, id)
			}
		}
		req := query.Request{Caller: boss, WorkflowID: "stock", Filter: c.filter, Sort: c.sort, Limit: 9}
		for {
			page, end, err := h.list(req)
			h.Must(err)
			for _, id := range page {
				if slices.Contains(stay, id) {
					got = append(got, id)
				}
			}
			if req.Cursor = end.Next; req.Cursor == "" {
				break
			}
			if len(page) > 0 { // also what the cursor stands behind goes or changes
				if last := page[len(page)-1]; !slices.Contains(stay, last) {
					h.MustSend(boss, "stock", last, "set", `{"n":-1,"a":[],"t":"out","u":"gone"}`)
				}
			}
			for range 5 {
				h.MustSend(boss, "stock", others[r.IntN(len(others))], oneOf(r, "set", "close", "open"),
					fmt.Sprintf(`{"n":%d,"a":[%d],"t":%q,"u":%q}`, r.IntN(40), r.IntN(10), oneOf(r, "in", "out"), oneOf(r, "in", "gone")))
			}
			h.Make(boss, "stock", fmt.Sprintf(`{"n":%d,"a":%d,"t":"in"}`, r.IntN(40), r.IntN(10)))
		}
		assert.True(t, slices.Equal(got, want), "%v %v %v %v %v %v", c.sort, c.filter, len(got), len(want), got, want)
	}
	h.CheckIndexes()
}

// TestAListGoesOnAfterARestart with the same filter and order; fields, limit and count may
// change from page to page.
func TestAListGoesOnAfterARestart(t *testing.T) {
	h := startQueries(t, query.Options{})
	h.Publish(stock("stock", 1, workflowtest.StockIndexes...), stock("plain", 1))
	h.Fill("stock", workflowtest.Publics(20, 60))
	h.AwaitIndexes()
	req := query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.n":{"$gte":0}}`, Sort: "svcPublic.n"}
	all, _, err := h.list(req)
	require.True(t, err == nil && len(all) == 60, "%v %v", len(all), err)
	req.Limit = 5
	_, end, err := h.list(req)
	h.Must(err)
	h.restart()
	req.Cursor = end.Next
	for name, change := range map[string]func(*query.Request){
		"another workflow": func(q *query.Request) { q.WorkflowID, q.Sort = "plain", "" },
		"another filter":   func(q *query.Request) { q.Filter = "" },
		"another sort":     func(q *query.Request) { q.Sort = "-svcPublic.n" },
		"no limit":         func(q *query.Request) { q.Limit = 0 },
	} {
		other := req
		change(&other)
		_, _, err := h.list(other)
		assert.ErrorIs(t, err, failure.ErrInvalid, name)
	}
	req.Limit, req.Fields, req.Count = 7, []string{"svcHistory"}, true
	if page, end, err := h.list(req); err != nil || !slices.Equal(page, all[5:12]) || end.Count != 60 {
		t.Errorf("after a restart: got %v, %v, want %v", page, err, all[5:12])
	}
}

// TestAPageEndsEarly holds that a page ends when it is large, and when nothing matches
// for long.
func TestAPageEndsEarly(t *testing.T) {
	h := startQueries(t, query.Options{})
	h.Limits.PageBytes, h.Limits.Peek = 10_000, 20
	h.Publish(stock("stock", 1, "svcPublic.n"))
	big := strings.Repeat("x", 900)
	for n := range 11 {
		h.Make(boss, "stock", fmt.Sprintf(`{"n":%d,"u":%q}`, n, big))
	}
	h.AwaitIndexes()
	req := query.Request{Caller: boss, WorkflowID: "stock", Limit: 1000, Sort: "-svcPublic.n"}
	first, end, err := h.list(req)
	if err != nil || len(first) != 10 || end.Next == "" {
		t.Errorf("a page of 900 bytes each: %d entries, next %q, %v; want ten, and another page", len(first), end.Next, err)
	}
	all, err := h.pages(req)
	assert.True(t, err == nil && len(all) == 11, "all pages: %d, %v, want 11", len(all), err)
	rare := slices.Repeat([]string{`{}`}, 50)
	h.Fill("stock", rare)
	h.Make(boss, "stock", `{"t":"rare"}`)
	h.Fill("stock", rare)
	last := h.Make(boss, "stock", `{"t":"rare"}`)
	req = query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.t":"rare"}`, Limit: 1}
	page, end, err := h.list(req)
	require.True(t, err == nil && len(page) == 1 && end.Next != "", "%v %v %v", page, end, err)
	rares := query.List{"instances", "stock", req.Filter, ""}
	if position, err := rares.Position(end.Next); err != nil || instanceid.Text(key.ID(position)) != page[0] {
		t.Errorf("the cursor is at %x, %v, want at %s: the instances behind it were not shown", position, err, page[0])
	}
	req.Cursor = end.Next
	if page, end, err = h.list(req); err != nil || !slices.Equal(page, []string{last}) || end.Next != "" {
		t.Errorf("the second page: %v, next %q, %v, want %s and no other", page, end.Next, err, last)
	}
	req.Cursor, req.Sort = "", "-_id"
	all, err = h.pages(req)
	assert.True(t, err == nil && len(all) == 2 && all[0] == last, "pages the other way: %v, %v", all, err)
	req.Sort, req.Filter = "", `{"svcPublic.n":{"$gte":0}}`
	req.Limit = 11
	full, end, err := h.list(req)
	require.True(t, err == nil && len(full) == 10, "%v %v", len(full), err)
	req.Cursor = end.Next
	if page, end, err := h.list(req); err != nil || len(page) != 1 {
		t.Errorf("the rest: %v, next %q, %v", page, end.Next, err)
	}
}
