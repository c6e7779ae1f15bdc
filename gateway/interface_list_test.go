package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// TestInterfaceList holds what may be asked of a list and how it is answered. Which
// instances match, and in which order, is held by the tests of actors/query and
// statemachine/filter.
func TestInterfaceList(t *testing.T) { runLines(t, listLines()) }

func listLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Paging"`, "limit cuts the list into pages; next and Link lead on", linkLeadsOn},
		{`gateway/INTERFACE.md, "Paging"`, "a cursor is of its list", cursorIsOfItsList},
		{`gateway/INTERFACE.md, "Sort"`, "by _id and by an indexed path, - for descending", listIsSorted},
		{`gateway/INTERFACE.md, "Fields"`, "adds svcHistory, svcRedirect and svcPrivate", fieldsAdd},
		{`gateway/INTERFACE.md, "Count"`, "all matches that the caller may read, whatever the page", countByRight},
		{`gateway/INTERFACE.md, "Explain"`, "which index was used, for holders of mod-workflows only", explainNames},
		{`gateway/INTERFACE.md, "Query strings"`, "other values are refused", listIsStrict},
		{`gateway/INTERFACE.md, "Filter"`, "on nodes, values and the history", filterFinds},
		{`gateway/INTERFACE.md, "Filter"`, "what it does not know is refused by name", filterIsStrict},
		{`gateway/INTERFACE.md, "Private data in queries"`, "400 for all but holders of mod-workflows", privateIsPrivate},
	}
}

// batch makes instances of stock and returns the filter that finds only them.
func (s *scene) batch(t testing.TB, name string, publics ...string) (ids []string, filter string) {
	t.Helper()
	for i, public := range publics {
		content := fmt.Sprintf(`{"svcPublic":{"batch":%q,%s"i":%d},"svcPrivate":{"cost":%d}}`, name, public, i, 100-i)
		ids = append(ids, s.ann.Create(t, "stock", content).Record(t).ID)
	}
	return ids, filterOf(fmt.Sprintf(`{"svcPublic.batch":%q}`, name))
}

var linkForm = regexp.MustCompile(`^<(/[!-;=?-~]*)>; rel="next"$`)

// followLink returns the path of a Link below the base path, "" when there is none.
func (s *service) followLink(t testing.TB, link string) string {
	t.Helper()
	if link == "" {
		return ""
	}
	parts := linkForm.FindStringSubmatch(link)
	require.True(t, parts != nil && strings.HasPrefix(parts[1], s.Base+wiretest.Root), "Link: got %q", link)
	return strings.TrimPrefix(parts[1], s.Base)
}

func linkLeadsOn(t *testing.T, _ *scene) {
	s := sceneOf(startService(t, serviceOptions{Options: actorstest.Options{Files: flows()}, Gateway: gateway.Options{BasePath: "/platform"}}))
	all, filter := s.batch(t, `<"batch">, & +;`, make([]string, 7)...)
	slices.Sort(all)
	slices.Reverse(all)
	for limit, pages := range map[int]int{1: 7, 2: 4, 7: 1, 1000: 1} {
		path := fmt.Sprintf("%s/instances/stoc%%6B?%s&limit=%d&sort=-_id&fields=svcHistory&count=true", wiretest.Root, filter, limit)
		var got []string
		for asked := 0; path != ""; asked++ {
			a := s.bob.Get(t, path)
			p := pageOf(t, a)
			got = append(got, p.ids()...)
			if *p.Count != 7 || !strings.Contains(a.Body, `"next":`) || len(p.Instances) > limit || p.Instances[0].History == nil || (p.next == "") != (asked == pages-1) {
				t.Fatalf("page %d of %d: got %s", asked+1, pages, a.Body)
			}
			if path = s.followLink(t, a.Header.Get("Link")); path != "" {
				reference, err := url.Parse(path)
				assert.True(t, err == nil && reference.Query().Get("cursor") == p.next && reference.Path == wiretest.Root+"/instances/stock", "%v %v", path, p.next)
			}
		}
		assert.True(t, slices.Equal(got, all), "limit %d: got %v, want %v", limit, got, all)
	}
	head := s.Send(t, request{Method: "HEAD", Path: s.Base + wiretest.Root + "/instances/stock?limit=1", Headers: s.bob.Credential})
	assert.True(t, head.Status == 200 && head.Header.Get("Link") != "", "HEAD: got %d with Link %q, want 200 and a Link", head.Status, head.Header.Get("Link"))
	assert.NotContains(t, s.bob.query(t, "stock", filter).Body, `"next":`, "without a limit")
	assert.Equal(t, `{"instances":[],"next":null}`, s.bob.query(t, "stock", "limit=5&"+filterOf(`{"svcPublic.batch":"none"}`)).Body)
}

func cursorIsOfItsList(t *testing.T, s *scene) {
	_, filter := s.batch(t, "cursor", make([]string, 5)...)
	next := s.bob.page(t, "stock", filter+"&limit=2").next
	assert.Len(t, s.eve.page(t, "stock", filter+"&limit=3&cursor="+escape(next)).Instances, 3)
	cursor := "&cursor=" + escape(next)
	s.bob.refusesQuery(t, wiretest.Root+"/instances/plain", "limit=2"+cursor)
	s.bob.refusesQuery(t, wiretest.Root+"/instances/stock",
		"limit=2"+cursor, filter+"&sort=-_id&limit=2"+cursor, filter+"&sort=svcPublic.n&limit=2"+cursor, filter+cursor, filter+"&limit=2"+cursor+cursor,
		filter+"&limit=2&cursor=", filter+"&limit=2&cursor=1", filter+"&limit=2&cursor="+next[1:], filter+"&limit=2&cursor="+next+"A", filter+"&limit=2&cursor=+"+next,
		filter+"&limit=2&cursor="+next+"%0A", filter+"&limit=2&cursor=%C3%BC", filter+"&limit=2&cursor="+strings.Repeat("A", 20_000))
}

func listIsSorted(t *testing.T, s *scene) {
	made, filter := s.batch(t, "sorted", ``, `"n":null,`, `"n":-7,`, `"n":9,`, `"n":10,`, `"n":9007199254740993,`, `"n":"10",`, `"n":"9",`, `"n":{},`, `"n":true,`)
	byID, down := slices.Sorted(slices.Values(made)), slices.Clone(made)
	slices.Reverse(down)
	for _, c := range []struct {
		user user
		sort string
		want []string
	}{
		{s.bob, "_id", byID},
		{s.bob, "svcPublic.n", made},
		{s.bob, "-svcPublic.n", down},
		{s.adm, "svcPrivate.cost", down},
	} {
		got := c.user.page(t, "stock", filter+"&sort="+c.sort).ids()
		assert.True(t, slices.Equal(got, c.want), "sort=%s: got %v, want %v", c.sort, got, c.want)
	}
	// An event moves an instance to its new place.
	s.ann.Event(t, "stock", made[0], "note", `{"i":100}`).Record(t)
	got := s.bob.page(t, "stock", filter+"&sort=-svcPublic.i&limit=1").ids()
	assert.True(t, slices.Equal(got, made[:1]), "after an event: got %v, want %v", got, made[:1])
}

func fieldsAdd(t *testing.T, s *scene) {
	r := s.ann.Create(t, "guide", `{"svcPrivate":{"k":1}}`).Record(t)
	whole := wiretest.Decode[map[string]json.RawMessage](t, r.Text)
	for _, c := range []struct {
		user   user
		fields string
	}{{s.ann, "svcRedirect,svcHistory"}, {s.adm, "svcPrivate"}} {
		want := map[string]json.RawMessage{}
		for _, name := range append(strings.Split(c.fields, ","), "_id", "workflowId", "svcPublic", "states") {
			want[name] = whole[name]
		}
		shown := c.user.page(t, "guide", "fields="+c.fields+"&"+filterOf(`{"_id":"`+r.ID+`"}`)).Instances[0]
		assert.Equal(t, want, wiretest.Decode[map[string]json.RawMessage](t, shown.Text), "fields=%s", c.fields)
	}
	s.ann.Event(t, "guide", r.ID, "leave", "").Record(t)
	got := s.ann.page(t, "guide", "fields=svcRedirect").Instances[0]
	assert.Nil(t, got.Redirect, "a redirect that is not set any more: got %s", got.Text)
}

func countByRight(t *testing.T, s *scene) {
	for _, owner := range []string{"ann", "bob", "ann", "nobody", "ann"} {
		s.adm.Create(t, "mine", `{"svcPublic":{"owner":"`+owner+`","counted":1}}`).Record(t)
	}
	counted := filterOf(`{"svcPublic.counted":1}`)
	for want, u := range map[int]user{3: s.ann, 1: s.bob, 0: s.eve} {
		for _, limit := range []string{"", "&limit=1", "&limit=3"} {
			got := u.page(t, "mine", counted+"&count=true"+limit)
			assert.True(t, *got.Count == want && (limit == "&limit=1" || len(got.Instances) == want), "%q: got %+v, want %d", limit, got, want)
		}
	}
	if got := s.ann.page(t, "mine", counted+"&count=false&explain=false").Count; got != nil {
		t.Errorf("count=false: got %d, want none", *got)
	}
}

func explainNames(t *testing.T, s *scene) {
	made, _ := s.batch(t, "explain", make([]string, 3)...)
	for _, c := range []struct {
		filter, index, plan string
		matched             int
	}{
		{`{"svcPublic.batch":"explain"}`, "svcPublic.batch", "index", 3},
		{`{"_id":"` + made[0] + `"}`, "", "ids", 1},
		{`{"$or":[{"svcPublic.batch":"explain"},{"_id":"` + made[0] + `"}]}`, "_id | svcPublic.batch", "union", 3},
		{`{"svcPublic.other":"nothing"}`, "", "scan", 0},
	} {
		a := s.adm.query(t, "stock", "explain=true&count=true&limit=100&"+filterOf(c.filter))
		assert.True(t, regexp.MustCompile(`^\{"instances":\[.*\],"next":null,"count":\d+,"explain":\{"index":.*\}\}$`).MatchString(a.Body), a.Body)
		got := wiretest.Decode[struct {
			Explain struct {
				Index   *string
				Plan    string
				Matched int
			}
		}](t, a.Body).Explain
		assert.True(t, *cmp.Or(got.Index, new(string)) == c.index && got.Plan == c.plan && got.Matched == c.matched,
			"filter %s: got %s, want %q, %q and %d", c.filter, a.Body, c.index, c.plan, c.matched)
	}
	s.ann.Create(t, "mine", `{"svcPublic":{"owner":"ann","secret":1}}`).Record(t)
	a := s.adm.query(t, "mine", "explain=true&"+filterOf(`{"svcPublic.secret":1}`))
	assert.Equal(t, `{"instances":[],"explain":{"index":null,"plan":null,"keysRead":null,"recordsRead":null,"matched":0,"milliseconds":null,"considered":[]}}`, a.Body)
	for _, u := range []user{s.ann, s.bob, s.eve} {
		u.refuses(t, 403, "AccessDenied", wiretest.Root+"/instances/stock?explain=true", wiretest.Root+"/instances/vault?explain=true")
	}
}

// listIsStrict: FuzzQueryParameters knows what each parameter may be
// (persistence/PROMISES.md, "F17").
func listIsStrict(t *testing.T, s *scene) {
	s.adm.refusesQuery(t, wiretest.Root+"/instances/stock",
		"limit=", "limit=0", "limit=1001", "limit=1&limit=1", "Limit=1", "offset=1", "limit=1;count=true", "cursor=x",
		"sort=", "sort=-", "sort=--_id", "sort=svcPublic.other", "sort=_id,svcPublic.n", "sort=states.nodeId", "sort=svcPublic.n%20", "sort="+strings.Repeat("x", 5000),
		"fields=", "fields=_id", "fields=svcHistory,", "fields=svcHistory,svcHistory", "count=", "count=1", "explain=1",
		"filter=%zz", "filter=%7B%257D", "filter=%2B%7B%7D", "filter=%ff", "filter[a]=1", "filter=%7B%7D&filter=%7B%7D", "svcPublic.n=1")
	s.adm.refusesQuery(t, wiretest.Root+"/instances/plain", "sort=svcPublic.n") // its index is another workflow's
	for _, route := range []string{"/choices", "/instance/plain/x", "/instance/plain/x/events", "/instance/plain/x/history"} {
		s.ann.refusesQuery(t, wiretest.Root+route, "filter=%7B%7D")
	}
}

func filterFinds(t *testing.T, s *scene) {
	one := s.ann.Create(t, "order", `{"svcPublic":{"n":9007199254740993,"o":{"a":[{"b":"x+y"}]}}}`).Record(t).ID
	two := s.ann.Create(t, "order", `{"svcPublic":{"n":9007199254740992,"o":{"a":[{"b":"x y"}]}}}`).Record(t).ID
	s.ann.Event(t, "order", two, "submit", "").Record(t)
	for filter, want := range map[string][]string{
		"":                                  {one, two},
		escape(` { } `):                     {one, two},
		escape(`{"workflowId":"plain"}`):    {},
		escape(`{"states.nodeId":"draft"}`): {one},
		escape(`{"states.nodeId":{"$oid":"pending"}}`):                                             {two},
		escape(`{"states.0.nodeId":"pending","states.stateMachineId":"billing"}`):                  {two},
		escape(`{"svcHistory.transitionEvent":"submit"}`):                                          {two},
		escape(`{"svcPublic.n":9007199254740993}`):                                                 {one},
		escape(`{"svcPublic.n":{"$gt":9007199254740992}}`):                                         {one},
		escape(`{"$or":[{"svcPublic.n":1},{"_id":"` + two + `","svcPublic.n":{"$exists":true}}]}`): {two},
		"%7B%22svcPublic.o.a.b%22:%22x%2By%22%7D":                                                  {one},
		"%7B%22svcPublic.o.a.b%22:%22x+y%22%7D":                                                    {two},
	} {
		got := s.bob.page(t, "order", "filter="+filter).ids()
		slices.Sort(want)
		assert.True(t, slices.Equal(got, want), "filter %s: got %v, want %v", filter, got, want)
	}
}

func filterIsStrict(t *testing.T, s *scene) {
	for _, operator := range []string{"$where", "$expr", "$nonsense", "$GT"} {
		for _, filter := range []string{`{"` + operator + `":[{"svcPublic.n":1}]}`, `{"svcPublic.n":{"` + operator + `":1}}`} {
			a := s.adm.query(t, "plain", filterOf(filter))
			reason := a.FaultReason(400, "InvalidContent")
			assert.True(t, reason == "" && strings.Contains(a.Body, operator), "filter %s: got %s; %s", filter, a.Body, reason)
		}
	}
	for _, filter := range []string{
		`null`, `[]`, `{`, `{}{}`, "\ufeff{}", `{"svcPublic.a":NaN}`, `{"svcPublic.a":1,"svcPublic.\u0061":2}`, "{\"svcPublic.a\":\"\xff\"}", "{\"\x00\":1}",
		`{"":1}`, `{"other":1}`, `{"svcPublic..b":1}`, `{"svcRedirect":1}`, `{"__proto__.x":1}`, `{"svcPublic.a":{"$in":1}}`, `{"svcPublic.a":{"$regex":"(?=x)"}}`,
		`{"svcPublic.a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, `{"svcPublic.a":"` + strings.Repeat("x", 16<<10) + `"}`,
	} {
		s.adm.refusesQuery(t, wiretest.Root+"/instances/plain", filterOf(filter))
		s.adm.refusesQuery(t, wiretest.Root+"/watch/plain", filterOf(filter))
	}
	for _, filter := range []string{`{}`, `{`, `{"svcPrivate.x":1}`} { // who may not ask is not told what is wrong
		s.eve.refuses(t, 404, "NotFound", wiretest.Root+"/instances/missing?"+filterOf(filter), wiretest.Root+"/watch/missing?"+filterOf(filter))
		s.eve.refuses(t, 403, "AccessDenied", wiretest.Root+"/instances/vault?"+filterOf(filter), wiretest.Root+"/watch/vault?"+filterOf(filter))
	}
}

func privateIsPrivate(t *testing.T, s *scene) {
	made, filter := s.batch(t, "private", "", "")
	private := filterOf(`{"svcPublic.batch":"private","svcPrivate.cost":100}`)
	got := s.adm.page(t, "stock", private+"&fields=svcPrivate").ids()
	assert.True(t, slices.Equal(got, made[:1]), "with mod-workflows: got %v, want %v", got, made[:1])
	for _, u := range []user{s.ann, s.bob, s.eve} {
		u.refusesQuery(t, wiretest.Root+"/instances/stock", private, filterOf(`{"$or":[{"_id":"x"},{"svcPrivate":{"cost":1}}]}`), filter+"&sort=svcPrivate.cost", filter+"&fields=svcPrivate")
		u.refusesQuery(t, wiretest.Root+"/watch/stock", private)
	}
}
