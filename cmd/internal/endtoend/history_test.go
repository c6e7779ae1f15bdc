package endtoend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestInterfaceHistory(t *testing.T) { runLines(t, historyLines()) }

func historyLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Pages of a history"`, "the entries of the record, oldest first", historyIsTheRecords},
		{`gateway/INTERFACE.md, "Pages of a history"`, "in pages of 1 to 1000, 100 by default", historyInPages},
		{`gateway/INTERFACE.md, "Pages of a history"`, "entries that come between two pages", historyGrows},
		{`gateway/INTERFACE.md, "Pages of a history"`, "rights as for the instance", historyByRight},
		{`gateway/INTERFACE.md, "Pages of a history"`, "parameters and cursors that cannot be", historyRefusals},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "those that the caller may send now", eventsByUser},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "in the order of the definition, with guard, transitions and schema", eventsSayMore},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "with the entity tag of the instance", eventsHaveTag},
		{`gateway/INTERFACE.md, "Events a caller may send"`, "rights as for the instance", eventsByRight},
	}
}

// history asks for a page of an instance's history.
func (u user) history(t testing.TB, workflow, instance, parameters string) answer {
	t.Helper()
	if parameters != "" {
		parameters = "?" + parameters
	}
	return u.get(t, root+"/instance/"+workflow+"/"+instance+"/history"+parameters)
}

// historyPage reads the answer: the entries as JSON, and the cursor.
func (a answer) historyPage(t testing.TB) (entries []string, next string) {
	t.Helper()
	wantStatus(t, a, 200)
	m := objectOf(t, a.body, "history", "next")
	if string(m["next"]) != "null" {
		next = decode[string](t, m["next"])
	}
	if (next != "") != (a.header.Get("Link") != "") {
		t.Errorf("next is %q and Link %q: one without the other", next, a.header.Get("Link"))
	}
	return decodeList(t, string(m["history"])), next
}

// grown is an instance with so many entries, and those entries as JSON.
func (s *scene) grown(t testing.TB, entries int) (id string, history []string) {
	t.Helper()
	id = s.ann.create(t, "plain", "").record(t).ID
	for n := 1; n < entries; n++ {
		s.ann.with("Prefer: return=minimal").event(t, "plain", id, "go", "").record(t)
	}
	whole := objectOf(t, s.ann.load(t, "plain", id).record(t).text, "_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory", "states")
	return id, decodeList(t, string(whole["svcHistory"]))
}

func historyIsTheRecords(t *testing.T, s *scene) {
	id, want := s.grown(t, 5)
	a := s.bob.history(t, "plain", id, "")
	got, next := a.historyPage(t)
	if !slices.Equal(got, want) || next != "" {
		t.Errorf("got %v and next %q, want %v and none", got, next, want)
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
}

func historyInPages(t *testing.T, s *scene) {
	id, want := s.grown(t, 120)
	first, next := s.bob.history(t, "plain", id, "").historyPage(t)
	if !slices.Equal(first, want[:100]) || next == "" {
		t.Errorf("without limit: got %d entries and next %q, want 100 and a next", len(first), next)
	}
	for _, limit := range []int{1, 50, 119, 120, 121, 1000} {
		var got []string
		request := fmt.Sprint("limit=", limit)
		for cursor := ""; ; {
			entries, next := s.bob.history(t, "plain", id, request+cursor).historyPage(t)
			if len(entries) > limit || len(entries) == 0 {
				t.Fatalf("limit %d: got a page of %d", limit, len(entries))
			}
			if got = append(got, entries...); next == "" {
				break
			}
			cursor = "&cursor=" + escape(next)
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d entries, want the %d of the record", limit, len(got), len(want))
		}
	}
	// The Link leads on as well.
	link := s.bob.history(t, "plain", id, "limit=70").header.Get("Link")
	parts := linkForm.FindStringSubmatch(link)
	if parts == nil {
		t.Fatalf("Link: got %q", link)
	}
	if rest, next := s.bob.get(t, strings.TrimPrefix(parts[1], s.base)).historyPage(t); !slices.Equal(rest, want[70:]) || next != "" {
		t.Errorf("behind the Link: got %d entries and next %q, want 50 and none", len(rest), next)
	}
}

func historyGrows(t *testing.T, s *scene) {
	id, _ := s.grown(t, 4)
	got, next := s.bob.history(t, "plain", id, "limit=3").historyPage(t)
	for range 3 {
		s.ann.event(t, "plain", id, "go", "").record(t)
	}
	rest, last := s.bob.history(t, "plain", id, "limit=100&cursor="+escape(next)).historyPage(t)
	whole, _ := s.bob.history(t, "plain", id, "").historyPage(t)
	if !slices.Equal(append(got, rest...), whole) || len(whole) != 7 || last != "" {
		t.Errorf("got %d and %d entries, want the 7 of the whole", len(got), len(rest))
	}
}

func historyByRight(t *testing.T, s *scene) {
	mine := s.ann.create(t, "mine", `{"svcPublic":{"owner":"ann"}}`).record(t)
	vault := s.ann.create(t, "vault", "").record(t)
	if entries, _ := s.ann.history(t, "mine", mine.ID, "").historyPage(t); len(entries) != 1 {
		t.Errorf("got %v, want one entry", entries)
	}
	for _, of := range []func(u user, workflow, instance string) answer{
		func(u user, workflow, instance string) answer { return u.history(t, workflow, instance, "") },
		func(u user, workflow, instance string) answer { return u.events(t, workflow, instance) },
	} {
		wantFault(t, of(s.bob, "mine", mine.ID), 404, "NotFound")
		wantSameAnswer(t, of(s.bob, "mine", mine.ID), of(s.bob, "mine", nowhere))
		wantSameAnswer(t, of(s.bob, "plain", mine.ID), of(s.bob, "missing", nowhere))
		wantSameAnswer(t, of(s.bob, "plain", "%2e%2e"), of(s.bob, "missing", nowhere))
		wantFault(t, of(s.eve, "vault", vault.ID), 403, "AccessDenied")
		wantSameAnswer(t, of(s.eve, "vault", vault.ID), of(s.eve, "vault", nowhere))
	}
}

func historyRefusals(t *testing.T, s *scene) {
	id, _ := s.grown(t, 4)
	other, _ := s.grown(t, 4)
	_, next := s.ann.history(t, "plain", id, "limit=2").historyPage(t)
	list := s.ann.query(t, "plain", "limit=1").page(t).next
	for _, parameters := range []string{
		"limit=", "limit=0", "limit=1001", "limit=01", "limit=+1", "limit=-1", "limit=1&limit=1", "cursor=", "cursor=1", "cursor=x", "cursor=" + escape(next[1:]),
		"cursor=" + escape(next+"A"), "cursor=" + escape(list), "filter=%7B%7D", "sort=_id", "fields=svcHistory", "count=true", "limit=1;cursor=x", "cursor=%zz",
	} {
		if reason := faultReason(s.ann.history(t, "plain", id, parameters), 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", parameters, reason)
		}
	}
	wantFault(t, s.ann.history(t, "plain", other, "cursor="+escape(next)), 400, "InvalidContent")
	wantFault(t, s.ann.query(t, "plain", "limit=2&cursor="+escape(next)), 400, "InvalidContent")
}

// events asks what may be sent to an instance now.
func (u user) events(t testing.TB, workflow, instance string) answer {
	t.Helper()
	return u.get(t, root+"/instance/"+workflow+"/"+instance+"/events")
}

// offered lists the events of an answer, as "name guard".
func (a answer) offered(t testing.TB) []string {
	t.Helper()
	wantStatus(t, a, 200)
	out := []string{}
	for _, text := range decodeList(t, string(objectOf(t, a.body, "events")["events"])) {
		m := objectOf(t, text, "name", "guard", "transitions", "schema")
		for _, transition := range decodeList(t, string(m["transitions"])) {
			way := objectOf(t, transition, "stateMachineId", "nodeId", "targets", "guard")
			decode[string](t, way["guard"])
			decodeList(t, string(way["targets"]))
		}
		out = append(out, decode[string](t, m["name"])+" "+decode[string](t, m["guard"]))
	}
	return out
}

func eventsByUser(t *testing.T, s *scene) {
	r := s.ann.create(t, "desk", `{"svcPublic":{"level":1}}`).record(t)
	for name, c := range map[string]struct {
		user user
		want []string
	}{
		"ann": {s.ann, []string{"raise false", "weigh unknown", "close true"}},
		"bob": {s.bob, []string{"decide true", "raise false", "weigh unknown", "close true"}},
		"eve": {s.eve, []string{"raise false", "weigh unknown", "close true"}},
	} {
		if got := c.user.events(t, "desk", r.ID).offered(t); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	s.ann.event(t, "desk", r.ID, "note", `{"level":2}`).record(t) // nothing takes it: the data is not applied
	if got := s.ann.events(t, "desk", r.ID).offered(t); got[0] != "raise false" {
		t.Errorf("after an event that was not applied: got %v", got)
	}
	s.ann.event(t, "desk", r.ID, "weigh", `{"weight":5}`).record(t)
	if got := s.bob.events(t, "desk", r.ID); got.body != `{"events":[]}` {
		t.Errorf("at the end: got %s, want none", got.body)
	}
	high := s.ann.create(t, "desk", `{"svcPublic":{"level":2}}`).record(t)
	if got := s.ann.events(t, "desk", high.ID).offered(t); got[0] != "raise true" {
		t.Errorf("with another level: got %v, want raise to be true", got)
	}
	// What is offered as true can be sent.
	s.ann.event(t, "desk", high.ID, "raise", "").record(t)
	if got := s.ann.events(t, "desk", high.ID).offered(t); !slices.Equal(got, []string{"close true"}) {
		t.Errorf("in the next node: got %v, want close", got)
	}
}

func eventsSayMore(t *testing.T, s *scene) {
	r := s.ann.create(t, "desk", `{"svcPublic":{"level":1}}`).record(t)
	a := s.bob.events(t, "desk", r.ID)
	way := func(target, guard string) string {
		return `"transitions":[{"stateMachineId":"main","nodeId":"open","targets":["` + target + `"],"guard":"` + guard + `"}]`
	}
	want := `{"events":[` +
		`{"name":"decide","guard":"true",` + way("done", "true") + `,"schema":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}},` +
		`{"name":"raise","guard":"false",` + way("high", "false") + `,"schema":null},` +
		`{"name":"weigh","guard":"unknown",` + way("done", "unknown") + `,"schema":null},` +
		`{"name":"close","guard":"true",` + way("done", "true") + `,"schema":null}]}`
	if a.body != want {
		t.Errorf("got  %s\nwant %s", a.body, want)
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
}

func eventsHaveTag(t *testing.T, s *scene) {
	r := s.ann.create(t, "desk", `{"svcPublic":{"level":1}}`).record(t)
	tag := s.ann.events(t, "desk", r.ID).header.Get("ETag")
	if want := s.ann.load(t, "desk", r.ID).header.Get("ETag"); tag != want || tag != `"1"` {
		t.Errorf("ETag: got %q, want %q as the instance has it", tag, want)
	}
	s.ann.event(t, "desk", r.ID, "note", "", "If-Match: "+tag).record(t)
	wantFault(t, s.ann.event(t, "desk", r.ID, "close", "", "If-Match: "+tag), 412, "PreconditionFailed")
	if got := s.ann.events(t, "desk", r.ID).header.Get("ETag"); got != `"2"` {
		t.Errorf("ETag after an event: got %q, want \"2\"", got)
	}
}

func eventsByRight(t *testing.T, s *scene) {
	r := s.ann.create(t, "vault", "").record(t)
	if got := s.ann.events(t, "vault", r.ID).offered(t); !slices.Equal(got, []string{"open true"}) {
		t.Errorf("ann: got %v, want open", got)
	}
	for name, u := range map[string]user{"bob reads only": s.bob, "adm is denied": s.adm} {
		if got := u.events(t, "vault", r.ID).body; got != `{"events":[]}` {
			t.Errorf("%s: got %s, want none", name, got)
		}
	}
	if reason := faultReason(s.ann.get(t, root+"/instance/vault/"+r.ID+"/events?limit=1"), 400, "InvalidContent"); reason != "" {
		t.Error(reason)
	}
	if a := s.send(t, ask{method: "POST", path: s.base + root + "/instance/vault/" + r.ID + "/events", headers: append([]string{jsonType}, s.ann.credential...)}); a.status != 405 {
		t.Errorf("POST: got %d, want 405", a.status)
	}
}
