package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceHistory(t *testing.T) { runLines(t, historyLines()) }

func historyLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Pages of a history"`, "the entries of the record, oldest first, in pages", historyInPages},
		{`gateway/INTERFACE.md, "Pages of a history"`, "entries that come between two pages", historyGrows},
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
	return u.get(t, strings.TrimSuffix(root+"/instance/"+workflow+"/"+instance+"/history?"+parameters, "?"))
}

// entries reads a page of a history: the entries as JSON, and the cursor.
func (a answer) entries(t testing.TB) (entries []string, next string) {
	t.Helper()
	wantStatus(t, a, 200)
	m := objectOf(t, a.body, "history", "next")
	next, _ = nextOf(t, a, m)
	return decodeList(t, m["history"]), next
}

// grown is an instance with so many entries, and those entries as JSON.
func (s *scene) grown(t testing.TB, entries int) (id string, history []string) {
	t.Helper()
	r := s.ann.create(t, "plain", "").record(t)
	for n := 1; n < entries; n++ {
		s.ann.event(t, "plain", r.ID, "go", "", "Prefer: return=minimal").record(t)
	}
	whole := objectOf(t, s.ann.load(t, "plain", r.ID).record(t).text, "_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory", "states")
	return r.ID, decodeList(t, whole["svcHistory"])
}

func historyInPages(t *testing.T, s *scene) {
	id, want := s.grown(t, 120)
	for limit, first := range map[string]int{"": 100, "limit=1": 1, "limit=119": 119, "limit=120": 120, "limit=1000": 120} {
		var got []string
		path := strings.TrimSuffix(fmt.Sprintf("%s/instance/plain/%s/history?%s", root, id, limit), "?")
		for path != "" {
			a := s.bob.get(t, path)
			entries, _ := a.entries(t)
			if len(got) == 0 && len(entries) != first || len(entries) > first || len(entries) == 0 {
				t.Fatalf("%q: got a page of %d, want %d", limit, len(entries), first)
			}
			if reason := headersReason(a); reason != "" {
				t.Error(reason)
			}
			got, path = append(got, entries...), s.followLink(t, a.header.Get("Link"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %d entries, want the %d of the record", limit, len(got), len(want))
		}
	}
}

func historyGrows(t *testing.T, s *scene) {
	id, _ := s.grown(t, 4)
	got, next := s.bob.history(t, "plain", id, "limit=3").entries(t)
	for range 3 {
		s.ann.event(t, "plain", id, "go", "").record(t)
	}
	rest, last := s.bob.history(t, "plain", id, "limit=100&cursor="+escape(next)).entries(t)
	whole, _ := s.bob.history(t, "plain", id, "").entries(t)
	if !slices.Equal(append(got, rest...), whole) || len(whole) != 7 || last != "" {
		t.Errorf("got %d and %d entries, want the 7 of the whole", len(got), len(rest))
	}
}

func historyIsStrict(t *testing.T, s *scene) {
	id, _ := s.grown(t, 3)
	other, _ := s.grown(t, 3)
	_, next := s.ann.history(t, "plain", id, "limit=2").entries(t)
	list := s.ann.query(t, "plain", "limit=1").page(t).next
	path := root + "/instance/plain/" + id
	s.ann.refusesQuery(t, path+"/history",
		"limit=", "limit=0", "limit=1001", "limit=01", "limit=1&limit=1", "cursor=", "cursor=x", "cursor="+next[1:], "cursor="+next+"A", "cursor="+escape(list), "cursor=%zz",
		"filter=%7B%7D", "sort=_id", "fields=svcHistory", "count=true", "limit=1;cursor=x")
	s.ann.refusesQuery(t, root+"/instance/plain/"+other+"/history", "cursor="+next)
	s.ann.refusesQuery(t, root+"/instances/plain", "limit=2&cursor="+next)
	s.ann.refusesQuery(t, path+"/events", "limit=1")
	wantStatus(t, s.ann.post(t, path+"/events", "{}"), 405)
}

func historyByRight(t *testing.T, s *scene) {
	mine := s.ann.create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).record(t)
	vault := s.ann.create(t, "vault", "").record(t)
	if entries, _ := s.ann.history(t, "mine", mine.ID, "").entries(t); len(entries) != 1 {
		t.Errorf("got %v, want one entry", entries)
	}
	for _, what := range []string{"/history", "/events"} {
		of := func(u user, workflow, instance string) answer {
			return u.get(t, root+"/instance/"+workflow+"/"+instance+what)
		}
		missing := of(s.bob, "missing", nowhere)
		wantFault(t, missing, 404, "NotFound")
		for _, a := range []answer{of(s.bob, "mine", mine.ID), of(s.bob, "mine", nowhere), of(s.bob, "plain", mine.ID), of(s.bob, "plain", "%2e%2e")} {
			wantSameAnswer(t, a, missing)
		}
		wantFault(t, of(s.eve, "vault", vault.ID), 403, "AccessDenied")
		wantSameAnswer(t, of(s.eve, "vault", vault.ID), of(s.eve, "vault", nowhere))
	}
}

func strangePaths(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, id := range []string{
		"", "%2e%2e", "%2f", "%5c", "%00", "%ff", "%c0%af", "%252e", "%0d%0a", "%2A", "__proto__", "-a", "a%20b", strings.Repeat("a", 5000), "codes", "PLAIN", "plain;x",
		r.ID + "x", r.ID[:25], strings.ToLower(r.ID), "0" + r.ID, r.ID + "%2F", "%E2%80%AE" + r.ID,
	} {
		for _, form := range []string{"/instance/plain/%s", "/instance/%s/" + r.ID, "/instance/plain/%s/history", "/instance/%s/" + r.ID + "/events", "/watch/plain/%s", "/watch/%s/" + r.ID} {
			s.ann.refuses(t, 404, "NotFound", root+fmt.Sprintf(form, id))
		}
	}
	s.unchanged(t, r)
}

// events asks what may be sent to an instance now.
func (u user) events(t testing.TB, workflow, instance string) answer {
	t.Helper()
	return u.get(t, root+"/instance/"+workflow+"/"+instance+"/events")
}

// offered lists the events of an answer, as "name guard".
func (a answer) offered(t testing.TB) string {
	t.Helper()
	wantStatus(t, a, 200)
	out := []string{}
	for _, text := range decodeList(t, objectOf(t, a.body, "events")["events"]) {
		m := objectOf(t, text, "name", "guard", "transitions", "schema")
		out = append(out, decode[string](t, m["name"])+" "+decode[string](t, m["guard"]))
	}
	return strings.Join(out, ", ")
}

func eventsSayAll(t *testing.T, s *scene) {
	r := s.ann.create(t, "desk", `{"svcPublic":{"level":1}}`).record(t)
	a := s.bob.events(t, "desk", r.ID)
	event := func(name, target, guard, schema string) string {
		return fmt.Sprintf(`{"name":%q,"guard":%q,"transitions":[{"stateMachineId":"main","nodeId":"open","targets":[%q],"guard":%q}],"schema":%s}`, name, guard, target, guard, schema)
	}
	want := `{"events":[` + event("decide", "done", "true", `{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}`) + "," +
		event("raise", "high", "false", "null") + "," + event("weigh", "done", "unknown", "null") + "," + event("close", "done", "true", "null") + `]}`
	if a.body != want {
		t.Errorf("got  %s\nwant %s", a.body, want)
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	s.ann.event(t, "desk", r.ID, "weigh", `{"weight":5}`).record(t)
	if got := s.bob.events(t, "desk", r.ID); got.body != `{"events":[]}` {
		t.Errorf("at the end: got %s, want none", got.body)
	}
}

func eventsByUser(t *testing.T, s *scene) {
	low, high := s.ann.create(t, "desk", `{"svcPublic":{"level":1}}`).record(t), s.ann.create(t, "desk", `{"svcPublic":{"level":2}}`).record(t)
	vault := s.ann.create(t, "vault", "").record(t)
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
		if got := c.who.events(t, c.workflow, c.instance).offered(t); got != c.want {
			t.Errorf("%s: got %s, want %s", c.workflow, got, c.want)
		}
	}
	// What is offered as true can be sent.
	s.ann.event(t, "desk", high.ID, "raise", "").record(t)
	if got := s.ann.events(t, "desk", high.ID).offered(t); got != "close true" {
		t.Errorf("in the next node: got %s, want close", got)
	}
}

func eventsHaveTag(t *testing.T, s *scene) {
	r := s.ann.create(t, "desk", "").record(t)
	tag := s.ann.events(t, "desk", r.ID).header.Get("ETag")
	s.ann.event(t, "desk", r.ID, "note", "", "If-Match: "+tag).record(t)
	wantFault(t, s.ann.event(t, "desk", r.ID, "close", "", "If-Match: "+tag), 412, "PreconditionFailed")
	if got := s.ann.events(t, "desk", r.ID).header.Get("ETag"); tag != `"1"` || got != `"2"` {
		t.Errorf("ETag: got %q and %q, want those of the instance", tag, got)
	}
}
