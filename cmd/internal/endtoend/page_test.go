package endtoend

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestInterfacePage(t *testing.T) { runLines(t, pageLines()) }

func pageLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Paging"`, "limit cuts the list into pages", limitCuts},
		{`gateway/INTERFACE.md, "Paging"`, "limit, other values are refused", limitIsStrict},
		{`gateway/INTERFACE.md, "Paging"`, "next and the header Link lead to the next page", linkLeadsOn},
		{`gateway/INTERFACE.md, "Paging"`, "keyset, what stays is shown once while instances come and go", keysetHolds},
		{`gateway/INTERFACE.md, "Paging"`, "cursor, garbled or of another list", cursorIsOfItsList},
		{`gateway/INTERFACE.md, "Sort"`, "by _id", sortByID},
		{`gateway/INTERFACE.md, "Sort"`, "by an indexed path, - for descending", sortByIndex},
		{`gateway/INTERFACE.md, "Sort"`, "by anything else is refused", sortNeedsIndex},
		{`gateway/INTERFACE.md, "Fields"`, "adds svcHistory, svcRedirect and svcPrivate", fieldsAdd},
		{`gateway/INTERFACE.md, "Fields"`, "others are refused", fieldsAreKnown},
		{`gateway/INTERFACE.md, "Count"`, "all matches whatever the page", countCounts},
		{`gateway/INTERFACE.md, "Count"`, "only what the caller may read", countByRight},
		{`gateway/INTERFACE.md, "Explain"`, "which index was used", explainNames},
		{`gateway/INTERFACE.md, "Explain"`, "for holders of mod-workflows only", explainNeedsPrivilege},
		{`gateway/INTERFACE.md, "Explain"`, "order of members", membersInOrder},
	}
}

// page is an answer of query-all with more than the instances.
type page struct {
	ids   []string
	items []string // JSON
	next  string   // "" when null
	// hasNext says that the member next is there.
	hasNext bool
	count   int // -1 without
	link    string
}

// page reads an answer of query-all.
func (a answer) page(t testing.TB) page {
	t.Helper()
	wantStatus(t, a, 200)
	m := objectOf(t, a.body, "instances", "next?", "count?", "explain?")
	p := page{items: decodeList(t, string(m["instances"])), count: -1, link: a.header.Get("Link")}
	for _, text := range p.items {
		var one struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatal(err)
		}
		p.ids = append(p.ids, one.ID)
	}
	if text, there := m["next"]; there {
		p.hasNext = true
		if string(text) != "null" {
			p.next = decode[string](t, text)
		}
	}
	if m["count"] != nil {
		p.count = decode[int](t, m["count"])
	}
	if (p.next != "") != (p.link != "") {
		t.Errorf("next is %q and Link %q: one without the other", p.next, p.link)
	}
	return p
}

// decodeList splits a JSON array into its elements.
func decodeList(t testing.TB, text string) []string {
	t.Helper()
	out := []string{}
	for _, element := range decode[[]json.RawMessage](t, json.RawMessage(text)) {
		out = append(out, string(element))
	}
	return out
}

// walk follows the cursors from the first page to the last; between, when it is
// not nil, is called before each page but the first.
func (u user) walk(t testing.TB, workflow, parameters string, limit int, between func(seen []string)) []string {
	t.Helper()
	var ids []string
	request := fmt.Sprintf("%s&limit=%d", parameters, limit)
	for cursor := ""; ; {
		p := u.query(t, workflow, strings.TrimPrefix(request+cursor, "&")).page(t)
		if !p.hasNext || len(p.ids) > limit {
			t.Fatalf("a page of %d with next %v, want at most %d and a next", len(p.ids), p.hasNext, limit)
		}
		ids = append(ids, p.ids...)
		if p.next == "" {
			return ids
		}
		if len(p.ids) == 0 && limit < 1000 {
			t.Fatal("an empty page in the middle of a short list")
		}
		cursor = "&cursor=" + escape(p.next)
		if between != nil {
			between(ids)
		}
	}
}

// batch makes instances of stock and returns the filter that finds only them.
func (s *scene) batch(t testing.TB, name string, publics ...string) (ids []string, filter string) {
	t.Helper()
	for i, public := range publics {
		content := fmt.Sprintf(`{"svcPublic":{"batch":%q,%s"i":%d},"svcPrivate":{"cost":%d}}`, name, public, i, 100-i)
		ids = append(ids, s.ann.create(t, "stock", content).record(t).ID)
	}
	return ids, "filter=" + escape(`{"svcPublic.batch":"`+name+`"}`)
}

func limitCuts(t *testing.T, s *scene) {
	ids, filter := s.batch(t, "limit", make([]string, 23)...)
	slices.Sort(ids) // NB: two instances of one millisecond have ids in any order
	if got := s.bob.query(t, "stock", filter).page(t); !slices.Equal(got.ids, ids) || got.hasNext {
		t.Errorf("without limit: got %v with next %v, want %v without", got.ids, got.hasNext, ids)
	}
	for _, limit := range []int{1, 2, 7, 22, 23, 24, 1000} {
		if got := s.bob.walk(t, "stock", filter, limit, nil); !slices.Equal(got, ids) {
			t.Errorf("limit %d: got %v, want %v", limit, got, ids)
		}
	}
	if got := s.bob.query(t, "stock", "limit=5&filter="+escape(`{"svcPublic.batch":"none"}`)); got.body != `{"instances":[],"next":null}` {
		t.Errorf("no match: got %s", got.body)
	}
	if got := s.bob.walk(t, "stock", "", 3, nil); len(got) < len(ids) || !slices.IsSorted(got) {
		t.Errorf("without a filter: got %v, want all in order", got)
	}
}

func limitIsStrict(t *testing.T, s *scene) {
	for _, parameters := range []string{
		"limit=", "limit", "limit=0", "limit=1001", "limit=-1", "limit=%2B1", "limit=+1", "limit=01", "limit=1.0", "limit=1e1", "limit=0x1", "limit=all",
		"limit=99999999999999999999", "limit=1&limit=1", "limit=%EF%BC%91", "limit=1%00", "limit=1,2", "Limit=1", "offset=1", "skip=1", "page=1", "cursor=x",
	} {
		if reason := faultReason(s.ann.query(t, "stock", parameters), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", parameters, reason)
		}
	}
}

var linkForm = regexp.MustCompile(`^<(/[!-;=?-~]*)>; rel="next"$`)

func linkLeadsOn(t *testing.T, s *scene) {
	ids, _ := s.batch(t, `<"batch">, & +;`, make([]string, 7)...)
	slices.Sort(ids)
	slices.Reverse(ids)
	filter := "filter=" + escape(`{"svcPublic.batch":"<\"batch\">, & +;"}`)
	path := root + "/instances/stock?" + filter + "&limit=2&sort=-_id&fields=svcHistory&count=true"
	var got []string
	for pages := 1; ; pages++ {
		a := s.bob.get(t, path)
		p := a.page(t)
		got = append(got, p.ids...)
		if p.count != len(ids) || !strings.Contains(p.items[0], "svcHistory") {
			t.Errorf("page %d: the parameters are not those of the first: %s", pages, clip(a.body))
		}
		if p.next == "" {
			break
		}
		parts := linkForm.FindStringSubmatch(p.link)
		if parts == nil {
			t.Fatalf("Link: got %q", p.link)
		}
		reference, err := url.Parse(parts[1])
		if err != nil || reference.Query().Get("cursor") != p.next || reference.IsAbs() || !strings.HasPrefix(reference.Path, s.base+root) {
			t.Fatalf("Link %q does not lead to %q (%v)", p.link, p.next, err)
		}
		path = strings.TrimPrefix(parts[1], s.base)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("got %v, want %v", got, ids)
	}
	a := s.send(t, ask{method: "HEAD", path: s.base + root + "/instances/stock?limit=1", headers: s.bob.credential})
	if a.status != 200 || a.header.Get("Link") == "" {
		t.Errorf("HEAD: got %d with Link %q, want 200 and a Link", a.status, a.header.Get("Link"))
	}
}

// keysetHolds changes the list while it is leafed through: what matches all the
// time must be shown once, and nothing twice.
func keysetHolds(t *testing.T, s *scene) {
	for _, sort := range []string{"", "&sort=-_id", "&sort=svcPublic.n", "&sort=-svcPublic.n"} {
		var publics []string
		for i := range 30 {
			publics = append(publics, fmt.Sprintf(`"n":%d,`, i/2)) // pairs of equal values
		}
		name := "keyset" + sort
		made, _ := s.batch(t, name, publics...)
		filter := "filter=" + escape(`{"svcPublic.batch":"`+name+`","states.nodeId":"here"}`)
		gone := map[string]bool{}
		took := 0
		got := s.bob.walk(t, "stock", filter+sort, 4, func(seen []string) {
			// One that was shown goes, and one that was not; one comes.
			s.ann.event(t, "stock", seen[took], "take", "").record(t)
			gone[seen[took]] = true
			for _, id := range made {
				if !slices.Contains(seen, id) && !gone[id] && took < 4 {
					s.ann.event(t, "stock", id, "take", "").record(t)
					gone[id] = true
					break
				}
			}
			s.batch(t, name, fmt.Sprintf(`"n":%d,`, took*3))
			took++
		})
		times := map[string]int{}
		for _, id := range got {
			if times[id]++; times[id] > 1 {
				t.Errorf("%q: %s is shown twice", sort, id)
			}
		}
		for _, id := range made {
			if !gone[id] && times[id] != 1 {
				t.Errorf("%q: %s is shown %d times, though it was there all the time", sort, id, times[id])
			}
		}
		if took < 5 {
			t.Errorf("%q: only %d pages", sort, took)
		}
	}
}

func cursorIsOfItsList(t *testing.T, s *scene) {
	_, filter := s.batch(t, "cursor", make([]string, 5)...)
	s.ann.create(t, "plain", "").record(t)
	s.ann.create(t, "plain", "").record(t)
	next := s.bob.query(t, "stock", filter+"&limit=2").page(t).next
	if strings.Contains(next, nowhere[:4]) || next == "" {
		t.Fatalf("got the cursor %q", next)
	}
	if got := s.eve.query(t, "stock", filter+"&limit=3&cursor="+escape(next)).page(t); len(got.ids) != 3 {
		t.Errorf("with another limit: got %v, want the other three", got.ids)
	}
	refused := map[string]string{
		"of another workflow": "plain?limit=2&cursor=" + escape(next),
		"of another filter":   "stock?limit=2&cursor=" + escape(next),
		"of another sort":     "stock?" + filter + "&sort=-_id&limit=2&cursor=" + escape(next),
		"without a limit":     "stock?" + filter + "&cursor=" + escape(next),
		"empty":               "stock?" + filter + "&limit=2&cursor=",
		"twice":               "stock?" + filter + "&limit=2&cursor=" + escape(next) + "&cursor=" + escape(next),
		"a place of a watch":  "stock?" + filter + "&limit=2&cursor=1",
		"an id":               "stock?" + filter + "&limit=2&cursor=" + nowhere,
		"long":                "stock?" + filter + "&limit=2&cursor=" + strings.Repeat("A", 20_000),
	}
	for i := range next { // each letter
		other := byte('A')
		if next[i] == other {
			other = 'B'
		}
		refused[fmt.Sprintf("garbled at %d", i)] = "stock?" + filter + "&limit=2&cursor=" + escape(next[:i]+string(other)+next[i+1:])
	}
	for _, text := range []string{next[1:], next[:len(next)-1], next + "A", next + "=", next + "%00", " " + next, next + "\n", "null", "../..", "ü"} {
		refused["changed to "+text] = "stock?" + filter + "&limit=2&cursor=" + escape(text)
	}
	for what, path := range refused {
		if reason := faultReason(s.bob.get(t, root+"/instances/"+path), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", what, reason)
		}
	}
	other := s.bob.query(t, "stock", filter+"&sort=svcPublic.i&limit=2").page(t).next
	for what, parameters := range map[string]string{
		"of an index for _id": "&limit=2&cursor=", "of the other direction": "&limit=2&sort=-svcPublic.i&cursor=", "of another index": "&limit=2&sort=svcPublic.n&cursor=",
	} {
		if reason := faultReason(s.bob.query(t, "stock", filter+parameters+escape(other)), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", what, reason)
		}
	}
}

func sortByID(t *testing.T, s *scene) {
	ids, filter := s.batch(t, "by id", make([]string, 9)...)
	slices.Sort(ids)
	down := slices.Clone(ids)
	slices.Reverse(down)
	for sort, want := range map[string][]string{"_id": ids, "-_id": down} {
		if got := s.bob.query(t, "stock", filter+"&sort="+sort).page(t).ids; !slices.Equal(got, want) {
			t.Errorf("sort=%s: got %v, want %v", sort, got, want)
		}
		for _, limit := range []int{1, 4, 9} {
			if got := s.bob.walk(t, "stock", filter+"&sort="+sort, limit, nil); !slices.Equal(got, want) {
				t.Errorf("sort=%s with limit %d: got %v, want %v", sort, limit, got, want)
			}
		}
	}
}

func sortByIndex(t *testing.T, s *scene) {
	// In the order of statemachine/filter/FILTER.md, "Comparisons"; numbers by
	// their exact value.
	ids, filter := s.batch(t, "by index",
		``, `"n":null,`, `"n":-1e400,`, `"n":-7,`, `"n":-0.5,`, `"n":0,`, `"n":1e-400,`, `"n":9,`, `"n":10,`, `"n":9007199254740992,`, `"n":9007199254740993,`,
		`"n":1e30,`, `"n":1e400,`, `"n":"",`, `"n":"10",`, `"n":"9",`, `"n":"a",`, `"n":"a\u0000",`, `"n":"aa",`, `"n":"ä",`, `"n":{},`, `"n":{"a":1},`, `"n":{"b":0},`,
		`"n":false,`, `"n":true,`)
	down := slices.Clone(ids)
	slices.Reverse(down)
	for sort, want := range map[string][]string{"svcPublic.n": ids, "-svcPublic.n": down} {
		if got := s.bob.query(t, "stock", filter+"&sort="+sort).page(t).ids; !slices.Equal(got, want) {
			t.Errorf("sort=%s: got %v, want %v", sort, got, want)
		}
		for _, limit := range []int{1, 6, 1000} {
			if got := s.bob.walk(t, "stock", filter+"&sort="+sort, limit, nil); !slices.Equal(got, want) {
				t.Errorf("sort=%s with limit %d: got %v, want %v", sort, limit, got, want)
			}
		}
	}
	// An event moves an instance to its new place.
	s.ann.event(t, "stock", ids[0], "note", `{"n":true,"i":-1}`).record(t)
	if got := s.bob.query(t, "stock", filter+"&sort=svcPublic.i&limit=1").page(t).ids; !slices.Equal(got, ids[:1]) {
		t.Errorf("after an event: got %v, want %v", got, ids[:1])
	}
	// Private values sort for those who may see them.
	wantSorted := slices.Clone(ids)
	slices.Reverse(wantSorted) // the cost falls
	if got := s.adm.walk(t, "stock", filter+"&sort=svcPrivate.cost", 7, nil); !slices.Equal(got, wantSorted) {
		t.Errorf("by svcPrivate.cost: got %v, want %v", got, wantSorted)
	}
}

func sortNeedsIndex(t *testing.T, s *scene) {
	for _, sort := range []string{
		"", "-", "--_id", "+_id", "_ID", "id", "_id,svcPublic.n", "svcPublic.n,_id", "svcPublic.other", "svcPublic", "svcPublic.n.x", "svcPublic.N", "states.nodeId",
		"workflowId", "svcHistory.0.ts", "svcPrivate.cost", "-svcPrivate.cost", "svcPublic.n ", "svcPublic.n:1", strings.Repeat("x", 5000), "\x00",
	} {
		if reason := faultReason(s.ann.query(t, "stock", "limit=1&sort="+escape(sort)), 400, "InvalidContent"); reason != "" {
			t.Errorf("sort=%s: %s", clip(sort), reason)
		}
	}
	wantFault(t, s.ann.query(t, "plain", "sort=svcPublic.n"), 400, "InvalidContent") // its index is another workflow's
}

func fieldsAdd(t *testing.T, s *scene) {
	r := s.ann.create(t, "guide", `{"svcPrivate":{"k":1}}`).record(t)
	left := s.ann.create(t, "guide", "").record(t)
	left = s.ann.event(t, "guide", left.ID, "leave", "").record(t)
	entry := func(u user, id, fields string) map[string]json.RawMessage {
		t.Helper()
		p := u.query(t, "guide", "fields="+fields+"&filter="+escape(`{"_id":"`+id+`"}`)).page(t)
		if len(p.items) != 1 {
			t.Fatalf("got %v, want one instance", p.items)
		}
		names := append([]string{"_id", "workflowId", "svcPublic", "states"}, strings.Split(fields, ",")...)
		if id == left.ID {
			names = slices.DeleteFunc(names, func(name string) bool { return name == "svcRedirect" }) // it is not set
		}
		return objectOf(t, p.items[0], names...)
	}
	whole := objectOf(t, r.text, "_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory", "states", "svcRedirect")
	for _, c := range []struct {
		user   user
		fields string
	}{
		{s.ann, "svcHistory"},
		{s.ann, "svcRedirect"},
		{s.ann, "svcRedirect,svcHistory"},
		{s.adm, "svcPrivate"},
		{s.adm, "svcPrivate,svcHistory,svcRedirect"},
	} {
		for name, text := range entry(c.user, r.ID, c.fields) {
			if string(text) != string(whole[name]) {
				t.Errorf("fields=%s: %s: got %s, want %s", c.fields, name, text, whole[name])
			}
		}
	}
	if got := decodeList(t, string(entry(s.ann, left.ID, "svcRedirect,svcHistory")["svcHistory"])); len(got) != 2 {
		t.Errorf("svcHistory: got %v, want two entries", got)
	}
}

func fieldsAreKnown(t *testing.T, s *scene) {
	for _, fields := range []string{
		"", ",", "svcHistory,", ",svcHistory", "svcHistory,svcHistory", "svcHistory, svcRedirect", "SVCHISTORY", "_id", "states", "svcPublic", "svcPublic.a", "*",
		"svcHistory.user", "svcHistory;svcRedirect", "version", "svcPrivate", "svcHistory,svcPrivate",
	} {
		if reason := faultReason(s.ann.query(t, "guide", "fields="+escape(fields)), 400, "InvalidContent"); reason != "" {
			t.Errorf("fields=%s: %s", fields, reason)
		}
	}
}

func countCounts(t *testing.T, s *scene) {
	_, filter := s.batch(t, "count", make([]string, 11)...)
	for _, parameters := range []string{"", "&limit=1", "&limit=10", "&limit=11", "&limit=1000", "&limit=4&sort=-svcPublic.n", "&sort=_id"} {
		if got := s.bob.query(t, "stock", filter+"&count=true"+parameters).page(t).count; got != 11 {
			t.Errorf("count with %q: got %d, want 11", parameters, got)
		}
	}
	next := s.bob.query(t, "stock", filter+"&limit=9").page(t).next
	if got := s.bob.query(t, "stock", filter+"&limit=9&count=true&cursor="+escape(next)).page(t); got.count != 11 || len(got.ids) != 2 {
		t.Errorf("on the last page: got %d and %v, want 11 and two", got.count, got.ids)
	}
	if got := s.bob.query(t, "stock", filter+"&count=false").page(t).count; got != -1 {
		t.Errorf("count=false: got %d, want none", got)
	}
	for _, parameters := range []string{"count=", "count", "count=1", "count=True", "count=yes", "count=true&count=true", "Count=true", "explain=", "explain=1"} {
		if reason := faultReason(s.adm.query(t, "stock", parameters), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", parameters, reason)
		}
	}
}

func countByRight(t *testing.T, s *scene) {
	for _, owner := range []string{"ann", "bob", "ann", "nobody", "ann"} {
		s.adm.create(t, "mine", `{"svcPublic":{"owner":"`+owner+`","counted":1}}`).record(t)
	}
	counted := "count=true&filter=" + escape(`{"svcPublic.counted":1}`)
	for name, c := range map[string]struct {
		user user
		want int
	}{"ann": {s.ann, 3}, "bob": {s.bob, 1}, "eve": {s.eve, 0}, "adm": {s.adm, 0}} {
		for _, limit := range []string{"", "&limit=1", "&limit=2", "&limit=1000"} {
			if got := c.user.query(t, "mine", counted+limit).page(t); got.count != c.want {
				t.Errorf("%s with %q: got %d, want %d", name, limit, got.count, c.want)
			}
		}
		if got := c.user.walk(t, "mine", counted, 1, nil); len(got) != c.want {
			t.Errorf("%s sees %v, want %d", name, got, c.want)
		}
	}
}

func explainNames(t *testing.T, s *scene) {
	ids, _ := s.batch(t, "explain", make([]string, 3)...)
	for _, c := range []struct {
		filter, index, plan string
		matched             int
	}{
		{`{"svcPublic.batch":"explain"}`, "svcPublic.batch", "index", 3},
		{`{"svcPublic.batch":"explain","svcPublic.other":{"$exists":false}}`, "svcPublic.batch", "index", 3},
		{`{"_id":"` + ids[0] + `"}`, "", "ids", 1},
		{`{"svcPublic.other":"nothing"}`, "", "scan", 0},
	} {
		a := s.adm.query(t, "stock", "explain=true&filter="+escape(c.filter))
		wantStatus(t, a, 200)
		m := objectOf(t, string(objectOf(t, a.body, "instances", "explain")["explain"]), "index", "plan", "keysRead", "recordsRead", "matched", "milliseconds", "considered")
		index := ""
		if string(m["index"]) != "null" {
			index = decode[string](t, m["index"])
		}
		if plan := decode[string](t, m["plan"]); index != c.index || plan != c.plan {
			t.Errorf("filter %s: got the index %q and the plan %q, want %q and %q", c.filter, index, plan, c.index, c.plan)
		}
		if got := decode[int](t, m["matched"]); got != c.matched {
			t.Errorf("filter %s: matched: got %d, want %d", c.filter, got, c.matched)
		}
		if got := decode[float64](t, m["milliseconds"]); got < 0 || got > 10_000 {
			t.Errorf("filter %s: milliseconds: got %v", c.filter, got)
		}
		read := decode[int](t, m["recordsRead"])
		if read < c.matched || c.plan != "scan" && read > c.matched {
			t.Errorf("filter %s: recordsRead: got %d for %d matches", c.filter, read, c.matched)
		}
		decodeList(t, string(m["considered"]))
	}
}

func explainNeedsPrivilege(t *testing.T, s *scene) {
	for name, u := range map[string]user{"ann": s.ann, "bob": s.bob, "eve": s.eve} {
		for _, workflow := range []string{"stock", "vault", "mine"} {
			if reason := faultReason(u.query(t, workflow, "explain=true"), 403, "AccessDenied"); reason != "" {
				t.Errorf("%s asks of %s: %s", name, workflow, reason)
			}
		}
		wantStatus(t, u.query(t, "stock", "limit=1&explain=false"), 200)
	}
}

func membersInOrder(t *testing.T, s *scene) {
	s.ann.create(t, "stock", "").record(t)
	form := regexp.MustCompile(`^\{"instances":\[\{.*\}\],"next":(null|"[^"]+"),"count":\d+,"explain":\{"index":.*\}\}$`)
	a := s.adm.query(t, "stock", "explain=true&count=true&limit=1")
	if !form.MatchString(a.body) {
		t.Errorf("got %s", clip(a.body))
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	a = s.adm.query(t, "stock", "explain=true&count=true")
	if !regexp.MustCompile(`^\{"instances":\[\{.*\}\],"count":\d+,"explain":\{"index":.*\}\}$`).MatchString(a.body) {
		t.Errorf("without limit: got %s", clip(a.body))
	}
}
