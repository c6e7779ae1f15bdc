package gateway_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

func TestInterfaceHistory(t *testing.T) { runLines(t, historyLines()) }

func historyLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Pages of a history"`, "the entries of the record, oldest first, in pages", historyInPages},
		{`gateway/INTERFACE.md, "Pages of a history"`, "entries that come between two pages", historyGrows},
		{`gateway/INTERFACE.md, "Pages of a history"`, "newest first, on request", historyNewestFirst},
		{`gateway/INTERFACE.md, "Pages of a history"`, "what the events brought, on request", historyHasData},
		{`gateway/INTERFACE.md, "Pages of a history"`, "parameters and cursors that cannot be", historyIsStrict},
		{`gateway/INTERFACE.md, "Unknown instances"`, "rights of a history and of events as for the instance", historyByRight},
		{`gateway/INTERFACE.md, "Identifiers"`, "whatever stands in a path, it is never another instance", strangePaths},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "in the order of the definition, with guard, transitions and schema", eventsSayAll},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "those that the caller may send now", eventsByUser},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "with the entity tag of the instance", eventsHaveTag},
	}
}

const nowhere = "01JD0000000000000000000000" // an instance id that nobody has

// history asks for a page of an instance's history.
func (u user) history(t testing.TB, workflow, instance, parameters string) answer {
	t.Helper()
	return u.Get(t, strings.TrimSuffix(wiretest.Root+"/instance/"+workflow+"/"+instance+"/history?"+parameters, "?"))
}

// entries reads a page of a history, and its cursor.
func entries(t testing.TB, a answer) (entries []wiretest.Entry, next string) {
	t.Helper()
	a.WantStatus(t, 200)
	return wiretest.Decode[struct{ History []wiretest.Entry }](t, a.Body).History, nextOf(t, a)
}

// grown is an instance with so many entries.
func (s *scene) grown(t testing.TB, entries int) record {
	t.Helper()
	r := s.ann.Create(t, "plain", "").Record(t)
	for n := 1; n < entries; n++ {
		s.ann.Event(t, "plain", r.ID, "go", "", "Prefer: return=minimal").Record(t)
	}
	return s.ann.Load(t, "plain", r.ID).Record(t)
}

func historyInPages(t *testing.T, s *scene) {
	r := s.grown(t, 120)
	for limit, first := range map[string]int{"": 100, "limit=7": 7, "limit=119": 119, "limit=120": 120, "limit=1000": 120} {
		var got []wiretest.Entry
		path := strings.TrimSuffix(fmt.Sprintf("%s/instance/plain/%s/history?%s", wiretest.Root, r.ID, limit), "?")
		for path != "" {
			a := s.bob.Get(t, path)
			entries, _ := entries(t, a)
			require.True(t, (len(got) != 0 || len(entries) == first) && len(entries) <= first && len(entries) != 0, "%v %v %v", limit, len(entries), first)
			got, path = append(got, entries...), s.followLink(t, a.Header.Get("Link"))
		}
		assert.Equal(t, r.History, got, limit)
	}
}

func historyGrows(t *testing.T, s *scene) {
	id := s.grown(t, 4).ID
	got, next := entries(t, s.bob.history(t, "plain", id, "limit=3"))
	for range 3 {
		s.ann.Event(t, "plain", id, "go", "").Record(t)
	}
	rest, last := entries(t, s.bob.history(t, "plain", id, "limit=100&cursor="+escape(next)))
	whole, _ := entries(t, s.bob.history(t, "plain", id, ""))
	assert.True(t, reflect.DeepEqual(append(got, rest...), whole) && len(whole) == 7 && last == "", "got %d and %d entries, want the 7 of the whole", len(got), len(rest))
}

// historyNewestFirst: what comes meanwhile is on no later page.
func historyNewestFirst(t *testing.T, s *scene) {
	r := s.grown(t, 25)
	var got []wiretest.Entry
	path := fmt.Sprintf("%s/instance/plain/%s/history?order=desc&limit=7", wiretest.Root, r.ID)
	for pages := 0; path != ""; pages++ {
		a := s.bob.Get(t, path)
		entries, next := entries(t, a)
		require.Len(t, entries, min(7, 25-len(got)), "page %d", pages)
		if got, path = append(got, entries...), s.followLink(t, a.Header.Get("Link")); next != "" {
			s.bob.history(t, "plain", r.ID, "cursor="+next).WantFault(t, 400, "InvalidContent")
			s.ann.Event(t, "plain", r.ID, "go", "").Record(t)
		}
	}
	slices.Reverse(got)
	assert.Equal(t, r.History, got)
	oldest, _ := entries(t, s.bob.history(t, "plain", r.ID, "order=asc&limit=1"))
	assert.Equal(t, r.History[:1], oldest, "order=asc")
}

// historyHasData: what the events brought, for whoever reads the instance, and on request only.
func historyHasData(t *testing.T, s *scene) {
	id := s.ann.Create(t, "plain", "").Record(t).ID
	s.ann.Event(t, "plain", id, "go", `{"a":{"b":1.50}}`).Record(t)
	s.ann.Event(t, "plain", id, "go", `{"text":"`+strings.Repeat("x", 17<<10)+`"}`).Record(t)
	s.ann.Event(t, "plain", id, "go", "").Record(t)
	type entry struct {
		Data   json.RawMessage `json:"data"`
		Digest *struct {
			Bytes  int    `json:"bytes"`
			SHA256 string `json:"sha256"`
		} `json:"dataDigest"`
	}
	page := func(parameters string) []entry {
		a := s.bob.history(t, "plain", id, parameters)
		a.WantStatus(t, 200)
		return wiretest.Decode[struct{ History []entry }](t, a.Body).History
	}
	got := page("fields=data&limit=10")
	if len(got) != 4 || got[0].Data != nil || string(got[1].Data) != `{"a":{"b":1.50}}` || string(got[2].Data) != "null" || got[3].Data != nil {
		t.Errorf("got %+v", got)
	} else if d := got[2].Digest; d == nil || d.Bytes != 17<<10+len(`{"text":""}`) || len(d.SHA256) != 64 {
		t.Errorf("of a long one: got %+v", d)
	}
	for _, e := range page("") {
		assert.True(t, e.Data == nil && e.Digest == nil, "without the parameter: got %s", e.Data)
	}
}

func historyIsStrict(t *testing.T, s *scene) {
	id, other := s.grown(t, 3).ID, s.grown(t, 3).ID
	_, next := entries(t, s.ann.history(t, "plain", id, "limit=2"))
	list := s.ann.page(t, "plain", "limit=1").next
	path := wiretest.Root + "/instance/plain/" + id
	s.ann.refusesQuery(t, path+"/history",
		"limit=", "limit=0", "limit=1001", "limit=01", "limit=1&limit=1", "cursor=", "cursor=x", "cursor="+next[1:], "cursor="+next+"A", "cursor="+escape(list), "cursor=%zz",
		"filter=%7B%7D", "sort=_id", "fields=svcHistory", "fields=", "fields=data,data", "count=true", "limit=1;cursor=x", "order=", "order=up", "order=DESC", "order=asc&order=asc")
	s.ann.refusesQuery(t, wiretest.Root+"/instance/plain/"+other+"/history", "cursor="+next)
	s.ann.refusesQuery(t, wiretest.Root+"/instances/plain", "limit=2&cursor="+next)
	s.ann.refusesQuery(t, path+"/events", "limit=1")
	s.ann.Post(t, path+"/events", "{}").WantStatus(t, 405)
}

func historyByRight(t *testing.T, s *scene) {
	mine := s.ann.Create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).Record(t)
	vault := s.ann.Create(t, "vault", "").Record(t)
	got, _ := entries(t, s.ann.history(t, "mine", mine.ID, ""))
	assert.Len(t, got, 1)
	for _, what := range []string{"/history", "/events"} {
		of := func(u user, workflow, instance string) answer {
			return u.Get(t, wiretest.Root+"/instance/"+workflow+"/"+instance+what)
		}
		missing := of(s.bob, "missing", nowhere)
		missing.WantFault(t, 404, "NotFound")
		for _, a := range []answer{of(s.bob, "mine", mine.ID), of(s.bob, "mine", nowhere), of(s.bob, "plain", mine.ID), of(s.bob, "plain", "%2e%2e")} {
			wantSameAnswer(t, a, missing)
		}
		of(s.eve, "vault", vault.ID).WantFault(t, 403, "AccessDenied")
		wantSameAnswer(t, of(s.eve, "vault", vault.ID), of(s.eve, "vault", nowhere))
	}
}

func strangePaths(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
	for _, id := range []string{
		"", "%2e%2e", "%2f", "%5c", "%00", "%ff", "%c0%af", "%252e", "%0d%0a", "%2A", "__proto__", "-a", "a%20b", strings.Repeat("a", 5000), "codes", "PLAIN", "plain;x",
		r.ID + "x", r.ID[:25], strings.ToLower(r.ID), "0" + r.ID, r.ID + "%2F", "%E2%80%AE" + r.ID,
	} {
		for _, form := range []string{"/instance/plain/%s", "/instance/%s/" + r.ID, "/instance/plain/%s/history", "/instance/%s/" + r.ID + "/events", "/watch/plain/%s", "/watch/%s/" + r.ID} {
			s.ann.refuses(t, 404, "NotFound", wiretest.Root+fmt.Sprintf(form, id))
		}
	}
	s.unchanged(t, r)
}

// events asks what may be sent to an instance now.
func (u user) events(t testing.TB, workflow, instance string) answer {
	t.Helper()
	return u.Get(t, wiretest.Root+"/instance/"+workflow+"/"+instance+"/events")
}

// offered lists the events of an instance, as "name guard".
func (u user) offered(t testing.TB, workflow, instance string) string {
	t.Helper()
	var out []string
	for _, e := range wiretest.Decode[struct {
		Events []struct{ Name, Guard string }
	}](t, u.events(t, workflow, instance).Body).Events {
		out = append(out, e.Name+" "+e.Guard)
	}
	return strings.Join(out, ", ")
}

func eventsSayAll(t *testing.T, s *scene) {
	r := s.ann.Create(t, "desk", `{"svcPublic":{"level":1}}`).Record(t)
	a := s.bob.events(t, "desk", r.ID)
	event := func(name, target, guard, schema string) string {
		return fmt.Sprintf(`{"name":%q,"label":%q,"done":null,"style":"default","guard":%q,"transitions":[{"stateMachineId":"main","nodeId":"open","targets":[%q],"targetLabels":[%q],"guard":%q}],"schema":%s}`, name, name, guard, target, target, guard, schema)
	}
	want := `{"events":[` + event("decide", "done", "true", `{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}`) + "," +
		event("raise", "high", "false", "null") + "," + event("weigh", "done", "unknown", "null") + "," + event("close", "done", "true", "null") + `]}`
	assert.Equal(t, want, a.Body)
	s.ann.Event(t, "desk", r.ID, "weigh", `{"weight":5}`).Record(t)
	assert.Equal(t, `{"events":[]}`, s.bob.events(t, "desk", r.ID).Body, "at the end")
}

func eventsByUser(t *testing.T, s *scene) {
	low, high := s.ann.Create(t, "desk", `{"svcPublic":{"level":1}}`).Record(t), s.ann.Create(t, "desk", `{"svcPublic":{"level":2}}`).Record(t)
	vault := s.ann.Create(t, "vault", "").Record(t)
	for _, c := range []struct {
		who                      user
		workflow, instance, want string
	}{
		{s.eve, "desk", low.ID, "raise false, weigh unknown, close true"},
		{s.bob, "desk", low.ID, "decide true, raise false, weigh unknown, close true"},
		{s.ann, "desk", high.ID, "raise true, weigh unknown, close true"},
		{s.ann, "vault", vault.ID, "open true"},
		{s.bob, "vault", vault.ID, ""}, // he may only read
		{s.adm, "vault", vault.ID, ""}, // denied
	} {
		assert.Equal(t, c.want, c.who.offered(t, c.workflow, c.instance), c.workflow)
	}
	// What is offered as true can be sent.
	s.ann.Event(t, "desk", high.ID, "raise", "").Record(t)
	assert.Equal(t, "close true", s.ann.offered(t, "desk", high.ID), "in the next node")
}

func eventsHaveTag(t *testing.T, s *scene) {
	r := s.ann.Create(t, "desk", "").Record(t)
	tag := s.ann.events(t, "desk", r.ID).Header.Get("ETag")
	s.ann.Event(t, "desk", r.ID, "note", "", "If-Match: "+tag).Record(t)
	s.ann.Event(t, "desk", r.ID, "close", "", "If-Match: "+tag).WantFault(t, 412, "PreconditionFailed")
	got := s.ann.events(t, "desk", r.ID).Header.Get("ETag")
	assert.True(t, tag == `"1"` && got == `"2"`, "ETag: got %q and %q, want those of the instance", tag, got)
}
