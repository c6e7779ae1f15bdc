package workflow

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/query"
)

func TestAQueryShowsWhatMatchesAndMayBeSeen(t *testing.T) {
	h := newHouse(t, Options{})
	var johns, marys, reviewed []string
	for n := range 40 {
		id := h.create(john, "leave", fmt.Sprintf(`{"n": %d, "tags": ["a", {"k": %d}]}`, n, n%2))
		johns = append(johns, id)
		if n%4 == 0 {
			h.mustSend(john, "leave", id, "submit", "", "")
			reviewed = append(reviewed, id)
		}
	}
	for range 5 {
		marys = append(marys, h.create(mary, "leave", `{"by": "mary"}`))
	}
	all := slices.Concat(johns, marys)
	for _, s := range [][]string{johns, all, reviewed} {
		slices.Sort(s)
	}
	for _, c := range []struct {
		name, filter string
		who          string
		want         []string
	}{
		{"without a filter", "", "mary", all},
		{"an empty filter", "{}", "mary", all},
		{"only one's own", "", "john", johns},
		{"by node, from the index", `{"states.nodeId":"review"}`, "john", reviewed},
		{"by node and data", `{"states.nodeId":"review","svcPublic.n":4}`, "john", johns2(h, 4)},
		{"by data", `{"svcPublic.by":"mary"}`, "mary", sorted(marys)},
		{"by what one may not see", `{"svcPublic.by":"mary"}`, "john", nil},
		{"by id", `{"_id":"` + johns[0] + `"}`, "john", johns[:1]},
		{"by an unknown node", `{"states.nodeId":"nowhere"}`, "john", nil},
		{"through the history", `{"svcHistory.transitionEvent":"submit"}`, "john", reviewed},
	} {
		who := john
		if c.who == "mary" {
			who = mary
		}
		if got := h.query(who, "leave", c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %d ids %v, want %d %v", c.name, len(got), got, len(c.want), c.want)
		}
	}
	for _, c := range []struct {
		name, workflow, filter string
		want                   error
	}{
		{"an operator that is refused", "leave", `{"svcPublic.n":{"$where":"1"}}`, failure.ErrInvalid},
		{"private data", "leave", `{"svcPrivate.x":1}`, failure.ErrInvalid},
		{"another root", "leave", `{"other":1}`, failure.ErrInvalid},
		{"no JSON", "leave", `{`, failure.ErrInvalid},
		{"an unknown workflow", "nope", ``, failure.ErrNotFound},
	} {
		_, err := h.Query(t.Context(), &query.Request{Caller: john, WorkflowID: c.workflow, Filter: c.filter}, func([]byte) error { return nil })
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if got := h.query(root, "leave", `{"svcPrivate.x":null}`); len(got) != len(all) {
		t.Errorf("private data for who manages workflows: %d ids, want %d", len(got), len(all))
	}
}

func johns2(h *house, n int) []string {
	return h.query(john, "leave", fmt.Sprintf(`{"svcPublic.n":%d}`, n))
}

func sorted(ids []string) []string { slices.Sort(ids); return ids }

func TestANodeInTwoMachinesIsOneRow(t *testing.T) {
	h := newHouse(t, Options{})
	id := h.create(john, "order", "")
	if got := h.query(john, "order", `{"states.nodeId":"open"}`); !slices.Equal(got, []string{id}) {
		t.Errorf("both open: got %v", got)
	}
	h.mustSend(john, "order", id, "pay", "", "")
	if got := h.query(john, "order", `{"states.nodeId":"open"}`); !slices.Equal(got, []string{id}) {
		t.Errorf("one still open: got %v", got)
	}
	h.mustSend(john, "order", id, "approve", "", "")
	if got := h.query(john, "order", `{"states.nodeId":"open"}`); len(got) != 0 {
		t.Errorf("none open: got %v", got)
	}
}
