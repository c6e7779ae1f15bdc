package workflow

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/statemachine"
)

// TestPagesWhileInstancesComeGoAndChange: what matched all along, with the same
// value to sort by, comes once, whatever happens to the others.
func TestPagesWhileInstancesComeGoAndChange(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, stockIndexes...))
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
		for n := range 60 {
			data = append(data, fmt.Sprintf(`{"n":%d,"a":[%d,%d],"t":"in","u":"in"}`, r.IntN(40), r.IntN(10), r.IntN(10)), fmt.Sprintf(`{"n":%d}`, n))
		}
		ids := h.fill("stock", data)
		var stay, others []string
		for n, id := range ids {
			if n%4 == 0 {
				stay = append(stay, id)
			} else {
				others = append(others, id)
			}
		}
		var want, got []string
		for _, s := range obvious(t, h.instances("stock"), boss, c.filter, c.sort) {
			if slices.Contains(stay, s.name) {
				want = append(want, s.name)
			}
		}
		req := query.Request{Caller: boss, WorkflowID: "stock", Filter: c.filter, Sort: c.sort, Limit: 9}
		for {
			page, end, err := h.list(req)
			if err != nil {
				t.Fatal(err)
			}
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
					h.mustSend(boss, "stock", last, "set", `{"n":-1,"a":[],"t":"out","u":"gone"}`, "")
				}
			}
			for range 5 {
				h.mustSend(boss, "stock", others[r.IntN(len(others))], someOf(r, "set", "close", "open"), fmt.Sprintf(`{"n":%d,"a":[%d],"t":%q,"u":%q}`,
					r.IntN(40), r.IntN(10), someOf(r, "in", "out"), someOf(r, "in", "gone")), "")
			}
			h.create(boss, "stock", fmt.Sprintf(`{"n":%d,"a":%d,"t":"in"}`, r.IntN(40), r.IntN(10)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("sorted by %q, filter %s: %d of the %d that stayed came, in this order: %v\nwant %v", c.sort, c.filter, len(got), len(want), got, want)
		}
	}
	h.checkIndexes()
}

func TestACursorFitsOnlyItsList(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, stockIndexes...), stock("plain", 1))
	ids := h.fill("stock", publics(20, 60))
	h.fill("plain", publics(21, 60))
	for range 3 {
		h.mustSend(boss, "stock", ids[0], "set", "", "")
	}
	h.awaitIndexes()
	req := query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.n":{"$gte":0}}`, Sort: "svcPublic.n", Limit: 5}
	first, end, err := h.list(req)
	if err != nil || end.Next == "" {
		t.Fatal(first, end, err)
	}
	req.Cursor = end.Next
	second, _, err := h.list(req)
	if err != nil || len(second) != 5 {
		t.Fatal(second, err)
	}
	history, err := h.History(t.Context(), &HistoryRequest{Caller: boss, WorkflowID: "stock", InstanceID: ids[0], Limit: 1})
	if err != nil || history.Next == "" {
		t.Fatal(history, err)
	}
	for name, change := range map[string]func(*query.Request){
		"another workflow":         func(q *query.Request) { q.WorkflowID, q.Sort = "plain", "" },
		"another filter":           func(q *query.Request) { q.Filter = `{"svcPublic.n":{"$gte":1}}` },
		"no filter":                func(q *query.Request) { q.Filter = "" },
		"another sort":             func(q *query.Request) { q.Sort = "svcPublic.a" },
		"the other way":            func(q *query.Request) { q.Sort = "-svcPublic.n" },
		"no sort":                  func(q *query.Request) { q.Sort = "" },
		"a history's":              func(q *query.Request) { q.Cursor = history.Next },
		"garbled":                  func(q *query.Request) { q.Cursor = "x" },
		"not base64":               func(q *query.Request) { q.Cursor = "ä" },
		"with a padding":           func(q *query.Request) { q.Cursor += "=" },
		"an id":                    func(q *query.Request) { q.Cursor = ids[0] },
		"without its end":          func(q *query.Request) { q.Cursor = q.Cursor[:len(q.Cursor)-4] },
		"without its beginning":    func(q *query.Request) { q.Cursor = q.Cursor[4:] },
		"with something behind":    func(q *query.Request) { q.Cursor += "AAAA" },
		"twice":                    func(q *query.Request) { q.Cursor += q.Cursor },
		"without a limit":          func(q *query.Request) { q.Limit = 0 },
		"with a limit of 1001":     func(q *query.Request) { q.Limit = 1001 },
		"with a negative limit":    func(q *query.Request) { q.Limit = -1 },
		"with a limit of no list":  func(q *query.Request) { q.Cursor, q.Limit = "", -1 },
		"only its head":            func(q *query.Request) { q.Cursor = q.Cursor[:12] },
		"of a list that is longer": func(q *query.Request) { q.Filter += " " },
	} {
		other := req
		change(&other)
		if _, _, err := h.list(other); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	cursor, err := base64.RawURLEncoding.DecodeString(req.Cursor)
	if err != nil {
		t.Fatal(err)
	}
	stock := query.List{"instances", "stock", req.Filter, req.Sort}
	if _, err := stock.Position(req.Cursor); err != nil {
		t.Fatal(err)
	}
	for n := range cursor {
		for bit := range 8 {
			other := slices.Clone(cursor)
			other[n] ^= 1 << bit
			if _, err := stock.Position(base64.RawURLEncoding.EncodeToString(other)); !errors.Is(err, failure.ErrInvalid) {
				t.Fatalf("bit %d of byte %d flipped: got %v, want ErrInvalid", bit, n, err)
			}
		}
	}
	if id, _ := instanceid.Parse(first[4]); !bytes.Equal(cursor[9:9+16], id[:]) {
		t.Errorf("the cursor %x is not behind %s, which the caller saw last", cursor, first[4])
	}
	h.restart()
	req.Limit, req.Fields, req.Count = 7, []string{"svcHistory"}, true // these may change from page to page
	again, end, err := h.list(req)
	if err != nil || !slices.Equal(again[:5], second) || end.Count != 60 {
		t.Errorf("after a restart: got %v, %v, want to go on with %v", again, err, second)
	}
	if whole, err := h.pages(query.Request{Caller: boss, WorkflowID: "stock", Sort: "svcPublic.n", Limit: 1000}); err != nil || len(whole) != 60 {
		t.Errorf("one page of the largest size: %d, %v", len(whole), err)
	}
}

// TestAPageEndsEarlyWhenItIsLarge or when there is nothing else far and wide.
func TestAPageEndsEarly(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, "svcPublic.n"))
	big := strings.Repeat("x", 900_000)
	for n := range 11 {
		h.create(boss, "stock", fmt.Sprintf(`{"n":%d,"u":%q}`, n, big))
	}
	req := query.Request{Caller: boss, WorkflowID: "stock", Limit: 1000, Sort: "-svcPublic.n"}
	first, end, err := h.list(req)
	if err != nil || len(first) != 10 || end.Next == "" {
		t.Errorf("a page of 900 kB each: %d entries, next %q, %v; want ten, and another page", len(first), end.Next, err)
	}
	if all, err := h.pages(req); err != nil || len(all) != 11 {
		t.Errorf("all pages: %d, %v, want 11", len(all), err)
	}
	rare := slices.Repeat([]string{`{}`}, 2*1000+200)
	h.fill("stock", rare)
	h.create(boss, "stock", `{"t":"rare"}`)
	h.fill("stock", rare)
	last := h.create(boss, "stock", `{"t":"rare"}`)
	req = query.Request{Caller: boss, WorkflowID: "stock", Filter: `{"svcPublic.t":"rare"}`, Limit: 1}
	page, end, err := h.list(req)
	if err != nil || len(page) != 1 || end.Next == "" {
		t.Fatal(page, end, err)
	}
	rares := query.List{"instances", "stock", req.Filter, ""}
	if position, err := rares.Position(end.Next); err != nil || instanceid.Text(persistence.ID(position)) != page[0] {
		t.Errorf("the cursor is at %x, %v, want at %s: the instances behind it were not shown", position, err, page[0])
	}
	req.Cursor = end.Next
	if page, end, err = h.list(req); err != nil || !slices.Equal(page, []string{last}) || end.Next != "" {
		t.Errorf("the second page: %v, next %q, %v, want %s and no other", page, end.Next, err, last)
	}
	req.Cursor, req.Sort = "", "-_id"
	if all, err := h.pages(req); err != nil || len(all) != 2 || all[0] != last {
		t.Errorf("pages the other way: %v, %v", all, err)
	}
	req.Sort, req.Filter = "", `{"svcPublic.n":{"$gte":0}}`
	req.Limit = 11
	full, end, err := h.list(req)
	if err != nil || len(full) != 10 {
		t.Fatal(len(full), err)
	}
	req.Cursor = end.Next
	if page, end, err := h.list(req); err != nil || len(page) != 1 {
		t.Errorf("the rest: %v, next %q, %v", page, end.Next, err)
	}
}

func TestWhatAnEntryOfAListHas(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, `
id: shop
context: {svcPrivate: {cost: 3}}
stateMachines:
  main: {initial: a, states: {a: {on: {go: b}}, b: {type: final, entry: [{redirect: '/b/"x"'}]}}}
`)
	plain, moved := h.create(john, "shop", `{"k":"é","n":1.50}`), h.create(john, "shop", "")
	h.mustSend(john, "shop", moved, "go", "", "")
	history := map[string]string{plain: string(h.storedHistory(h.store, mustID(t, plain))), moved: string(h.storedHistory(h.store, mustID(t, moved)))}
	for _, c := range []struct {
		who    *identity.Principal
		fields []string
		want   []string // with % for the history
	}{
		{john, nil, []string{`"svcPublic":{"k":"é","n":1.50},"states":[{"stateMachineId":"main","nodeId":"a"}]`, `"svcPublic":{},"states":[{"stateMachineId":"main","nodeId":"b"}]`}},
		{john, []string{"svcHistory"}, []string{`"svcPublic":{"k":"é","n":1.50},"svcHistory":%,"states":[{"stateMachineId":"main","nodeId":"a"}]`, `"svcPublic":{},"svcHistory":%,"states":[{"stateMachineId":"main","nodeId":"b"}]`}},
		{john, []string{"svcRedirect"}, []string{`"svcPublic":{"k":"é","n":1.50},"states":[{"stateMachineId":"main","nodeId":"a"}]`, `"svcPublic":{},"states":[{"stateMachineId":"main","nodeId":"b"}],"svcRedirect":"/b/\"x\""`}},
		{root, []string{"svcRedirect", "svcPrivate", "svcHistory"}, []string{
			`"svcPublic":{"k":"é","n":1.50},"svcPrivate":{"cost":3},"svcHistory":%,"states":[{"stateMachineId":"main","nodeId":"a"}]`,
			`"svcPublic":{},"svcPrivate":{"cost":3},"svcHistory":%,"states":[{"stateMachineId":"main","nodeId":"b"}],"svcRedirect":"/b/\"x\""`,
		}},
	} {
		for _, limit := range []int{0, 10} {
			var got []string
			_, err := h.Query(t.Context(), &query.Request{Caller: c.who, WorkflowID: "shop", Fields: c.fields, Limit: limit}, func(item []byte) error {
				got = append(got, string(item))
				return nil
			})
			var want []string
			for n, id := range []string{plain, moved} {
				want = append(want, fmt.Sprintf(`{"_id":%q,"workflowId":"shop",%s}`, id, strings.ReplaceAll(c.want[n], "%", history[id])))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, fields %v, limit %d: %v\n got %s\nwant %s", c.who.ID, c.fields, limit, err, got, want)
			}
		}
	}
}

// TestAQueryIsRefused is the table of what cannot be asked, and by whom.
func TestAQueryIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1, stockIndexes...))
	h.fill("stock", publics(22, 5))
	h.awaitIndexes()
	for _, c := range []struct {
		name string
		req  query.Request
		want error
	}{
		{"explained to a member", query.Request{Caller: member, Explain: true}, failure.ErrForbidden},
		{"no right", query.Request{Caller: eve}, failure.ErrForbidden},
		{"no right, with a bad filter", query.Request{Caller: eve, Filter: "{"}, failure.ErrForbidden},
		{"no right, with a cursor", query.Request{Caller: eve, Cursor: "x", Limit: 1}, failure.ErrForbidden},
		{"no right, explained", query.Request{Caller: eve, Explain: true}, failure.ErrForbidden},
		{"an unknown workflow", query.Request{Caller: boss, WorkflowID: "nope"}, failure.ErrNotFound},
		{"a member's filter on private data", query.Request{Caller: member, Filter: `{"svcPrivate.p":0}`}, failure.ErrInvalid},
		{"the same inside of others", query.Request{Caller: member, Filter: `{"$or":[{"svcPrivate.p":0},{"_id":"x"}]}`}, failure.ErrInvalid},
		{"a member's sort by private data", query.Request{Caller: member, Sort: "svcPrivate.p"}, failure.ErrInvalid},
		{"the same down", query.Request{Caller: member, Sort: "-svcPrivate.p"}, failure.ErrInvalid},
		{"private data for a member", query.Request{Caller: member, Fields: []string{"svcPrivate"}}, failure.ErrInvalid},
		{"an unknown field", query.Request{Caller: boss, Fields: []string{"states"}}, failure.ErrInvalid},
		{"an empty field", query.Request{Caller: boss, Fields: []string{""}}, failure.ErrInvalid},
		{"a field twice", query.Request{Caller: boss, Fields: []string{"svcHistory", "svcPrivate", "svcHistory"}}, failure.ErrInvalid},
		{"sorted by what has no index", query.Request{Caller: boss, Sort: "svcPublic.u"}, failure.ErrInvalid},
		{"sorted by a part of a path", query.Request{Caller: boss, Sort: "svcPublic.b"}, failure.ErrInvalid},
		{"sorted by the states", query.Request{Caller: boss, Sort: "states.nodeId"}, failure.ErrInvalid},
		{"sorted by nothing", query.Request{Caller: boss, Sort: "-"}, failure.ErrInvalid},
		{"sorted twice down", query.Request{Caller: boss, Sort: "--_id"}, failure.ErrInvalid},
		{"sorted by another workflow's index", query.Request{Caller: john, WorkflowID: "order", Sort: "svcPublic.a"}, failure.ErrInvalid},
		{"nothing wrong", query.Request{Caller: boss, Sort: "-svcPrivate.p", Filter: `{"svcPrivate.p":{"$gte":0}}`, Fields: []string{"svcPrivate"}, Explain: true}, nil},
	} {
		if c.req.WorkflowID == "" {
			c.req.WorkflowID = "stock"
		}
		if ids, _, err := h.list(c.req); !errors.Is(err, c.want) || err != nil && len(ids) > 0 {
			t.Errorf("%s: got %v after %d entries, want %v", c.name, err, len(ids), c.want)
		}
	}
	if _, end, err := h.list(query.Request{Caller: member, WorkflowID: "stock"}); err != nil || end.Explain != nil || end.Next != "" {
		t.Errorf("a query that asks for nothing else: %+v, %v", end, err)
	}
}

func TestHistoryPages(t *testing.T) {
	h := newHouse(t, Options{})
	h.publish(leave, order, stock("stock", 1))
	id, other, hidden := h.create(boss, "stock", ""), h.create(boss, "stock", ""), h.create(boss, "stock", `{"secret":true}`)
	for n := range 24 {
		h.mustSend(boss, "stock", id, someOf(rand.New(rand.NewPCG(5, uint64(n))), "set", "close", "open"), "", "")
	}
	h.mustSend(boss, "stock", other, "set", "", "")
	ask := func(who *identity.Principal, id, cursor string, limit int) (*HistoryPage, error) {
		return h.History(t.Context(), &HistoryRequest{Caller: who, WorkflowID: "stock", InstanceID: id, Limit: limit, Cursor: cursor})
	}
	for _, limit := range []int{1, 7, 24, 25, 26, 1000} {
		var entries []string
		cursor := ""
		for page := 0; ; page++ {
			p, err := ask(member, id, cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			if entries = append(entries, string(p.Entries)); p.Next == "" {
				break
			}
			if cursor = p.Next; page == 1 {
				h.restart()
			}
		}
		if got, want := "["+strings.Join(entries, ",")+"]", string(h.storedHistory(h.store, mustID(t, id))); got != want {
			t.Errorf("pages of %d:\n got %s\nwant %s", limit, got, want)
		}
		if want := (25 + limit - 1) / limit; len(entries) != want {
			t.Errorf("pages of %d: %d pages, want %d", limit, len(entries), want)
		}
	}
	first, err := ask(member, id, "", 25-1)
	if err != nil {
		t.Fatal(err)
	}
	h.mustSend(boss, "stock", id, "set", "", "")
	if rest, err := ask(member, id, first.Next, 10); err != nil || strings.Count(string(rest.Entries), `"ts"`) != 2 || rest.Next != "" {
		t.Errorf("an entry that came meanwhile is on the last page: got %s, %v", rest.Entries, err)
	}
	_, instances, err := h.list(query.Request{Caller: member, WorkflowID: "stock", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := ask(c.who, c.id, c.cursor, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestEventsAreWhatTheCallerMaySendNow(t *testing.T) {
	h := newHouse(t, Options{})
	id, hidden := h.create(john, "leave", ""), h.create(mary, "leave", `{"by":"mary"}`)
	ask := func(who *identity.Principal, id string) (string, uint64, error) {
		r, err := h.Events(t.Context(), &LoadRequest{Caller: who, WorkflowID: "leave", InstanceID: id})
		if err != nil {
			return "", 0, err
		}
		return fmt.Sprint(r.Events), r.Sequence, nil
	}
	one := func(name string, targets ...statemachine.NodeID) statemachine.Available {
		from := statemachine.Position{Machine: "main", Node: "draft"}
		if name == "back" || name == "approve" || name == "fail" {
			from.Node = "review"
		}
		return statemachine.Available{
			Name: statemachine.EventName(name), Guard: statemachine.GuardTrue,
			Transitions: []statemachine.AvailableTransition{{From: from, Targets: targets, Guard: statemachine.GuardTrue}},
		}
	}
	got, sequence, err := ask(john, id)
	want := fmt.Sprint([]statemachine.Available{one("submit", "review"), one("note"), one("refuse", "review"), one("drop", "review"), one("grow")})
	if err != nil || got != want || sequence != 1 {
		t.Errorf("in draft: sequence %d, %v\n got %s\nwant %s", sequence, err, got, want)
	}
	h.mustSend(john, "leave", id, "submit", "", "")
	for who, events := range map[*identity.Principal][]statemachine.Available{
		john: {one("back", "draft"), one("fail")}, mary: {one("approve", "approved"), one("back", "draft"), one("fail")},
	} {
		if got, sequence, err := ask(who, id); err != nil || got != fmt.Sprint(events) || sequence != 2 {
			t.Errorf("in review, for %s: sequence %d, %v, %s", who.ID, sequence, err, got)
		}
	}
	h.mustSend(mary, "leave", id, "approve", "", "")
	if got, _, err := ask(mary, id); err != nil || got != "[]" {
		t.Errorf("at the end: %s, %v, want none", got, err)
	}
	if _, _, err := ask(john, hidden); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("hidden: %v, want ErrNotFound", err)
	}
	h.publish(leave, order, strings.Replace(stock("stock", 1), "allow:", "allow:\n  send: {users: [boss]}", 1))
	sent := h.create(boss, "stock", "")
	for who, none := range map[*identity.Principal]bool{boss: false, member: true} {
		r, err := h.Events(t.Context(), &LoadRequest{Caller: who, WorkflowID: "stock", InstanceID: sent})
		if err != nil || (len(r.Events) == 0) != none {
			t.Errorf("for %s: %+v, %v; none: %v", who.ID, r, err, none)
		}
	}
}
