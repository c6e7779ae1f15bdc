package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"troupe/actors/actorstest"
	"troupe/actors/workflow"
)

func TestInterfaceRead(t *testing.T) { runLines(t, readLines()) }

func readLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "The record"`, "GET instance/{workflowId}/{instanceId} answers {state}", loadAnswers},
		{`gateway/INTERFACE.md, "Which instances a list has"`, "all, ordered by _id, with everything acknowledged before", listIsWhole},
		{`gateway/INTERFACE.md, "Paging"`, "a long list is streamed, a page is sent whole", listStreams},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "GET choices answers {workflows: [{id, name}]}", choicesAnswers},
		{`gateway/INTERFACE.md, "Budget"`, "503 before the first byte", budgetRunsOut},
		{`gateway/INTERFACE.md, "Concurrent editing"`, "replies carry an ETag with the sequence number", repliesCarryTag},
		{`gateway/INTERFACE.md, "Concurrent editing"`, "If-Match is honoured with 412", ifMatchIsHonoured},
		{`gateway/INTERFACE.md, "Prefer"`, "return=minimal leaves the history out", minimalHasNoHistory},
	}
}

// item is an entry of the list of instances.
type item struct {
	id, public string
	states     []position
	text       string // the whole entry
}

// page is an answer of the list of instances.
type page struct {
	items   []item
	next    string // "" for null
	hasNext bool   // the member next is there
	count   int    // -1 without
	link    string
}

// query asks for instances with a query string, "" for none.
func (u user) query(t testing.TB, workflow, parameters string) answer {
	t.Helper()
	if parameters != "" {
		parameters = "?" + parameters
	}
	return u.get(t, root+"/instances/"+workflow+parameters)
}

// page reads an answer of query.
func (a answer) page(t testing.TB) page {
	t.Helper()
	wantStatus(t, a, 200)
	m := objectOf(t, a.body, "instances", "next?", "count?", "explain?")
	p := page{items: []item{}, count: -1, link: a.header.Get("Link")}
	for _, text := range decodeList(t, m["instances"]) {
		entry := objectOf(t, text, "_id", "workflowId", "svcPublic", "states", "svcHistory?", "svcRedirect?", "svcPrivate?")
		p.items = append(p.items, item{decode[string](t, entry["_id"]), string(entry["svcPublic"]), positionsOf(t, entry["states"]), text})
	}
	p.next, p.hasNext = nextOf(t, a, m)
	if m["count"] != nil {
		p.count = decode[int](t, m["count"])
	}
	return p
}

// nextOf reads the member next of a page, "" for null, and demands that the header
// Link is there with it.
func nextOf(t testing.TB, a answer, members map[string]json.RawMessage) (next string, there bool) {
	t.Helper()
	text, there := members["next"]
	if there && string(text) != "null" {
		next = decode[string](t, text)
	}
	if link := a.header.Get("Link"); (next != "") != (link != "") {
		t.Errorf("next is %q and Link %q: one without the other", next, link)
	}
	return next, there
}

// items reads the instances of an answer of query.
func (a answer) items(t testing.TB) []item { t.Helper(); return a.page(t).items }

// ids returns the _id of each item.
func ids(items []item) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.id)
	}
	return out
}

func (p page) ids() []string { return ids(p.items) }

// instances lists the ids of a workflow's instances.
func (s *scene) instances(t testing.TB, u user, workflow string) []string {
	t.Helper()
	return u.query(t, workflow, "").page(t).ids()
}

// decodeList splits a JSON array into its elements.
func decodeList(t testing.TB, text json.RawMessage) []string {
	t.Helper()
	out := []string{}
	for _, element := range decode[[]json.RawMessage](t, text) {
		out = append(out, string(element))
	}
	return out
}

// positionsOf reads the member states.
func positionsOf(t testing.TB, text json.RawMessage) (positions []position) {
	t.Helper()
	for _, one := range decodeList(t, text) {
		p := objectOf(t, one, "stateMachineId", "nodeId")
		positions = append(positions, position{decode[string](t, p["stateMachineId"]), decode[string](t, p["nodeId"])})
	}
	return positions
}

func escape(s string) string { return url.QueryEscape(s) }

// filterOf is the query parameter of a filter.
func filterOf(filter string) string { return "filter=" + escape(filter) }

// refuses demands the same refusal of a GET of each path.
func (u user) refuses(t testing.TB, status int, word string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if reason := faultReason(u.get(t, path), status, word); reason != "" {
			t.Errorf("%s: %s", clip(path), reason)
		}
	}
}

// refusesQuery demands 400 for each query string of a path.
func (u user) refusesQuery(t testing.TB, path string, queries ...string) {
	t.Helper()
	for _, query := range queries {
		u.refuses(t, 400, "InvalidContent", path+"?"+query)
	}
}

func loadAnswers(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", `{"svcPublic":{"a":1}}`).record(t)
	a := s.bob.load(t, "order", r.ID)
	if got := a.record(t); got.text != r.text {
		t.Errorf("got %s, want %s", got.text, r.text)
	}
	objectOf(t, a.body, "state")
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
}

func listIsWhole(t *testing.T, s *scene) {
	if a := s.adm.query(t, "codes", ""); a.body != `{"instances":[]}` {
		t.Errorf("without instances: got %s", a.body)
	}
	var made []string
	for i := range 30 { // with keys and without, so that they lie in all shards
		var headers []string
		if i%2 == 0 {
			headers = []string{fmt.Sprintf("Idempotency-Key: listed-%d", i)}
		}
		r := s.ann.create(t, "codes", `{"svcPublic":{"n":9007199254740993}}`, headers...).record(t)
		made = append(made, r.ID)
		slices.Sort(made) // NB: two instances of one millisecond have ids in any order
		a := s.bob.query(t, "codes", "")
		if got := a.page(t).ids(); !slices.Equal(got, made) {
			t.Fatalf("got %v, want %v", got, made)
		}
		if reason := headersReason(a); reason != "" {
			t.Error(reason)
		}
		r = s.ann.event(t, "codes", r.ID, "next", "").record(t)
		got := s.ann.query(t, "codes", filterOf(`{"_id":"`+r.ID+`"}`)).items(t)
		if len(got) != 1 || got[0].public != r.Public || !slices.Equal(got[0].states, r.States) {
			t.Fatalf("the list shows %v, want what was acknowledged: %s", got, r.text)
		}
	}
}

func listStreams(t *testing.T, s *scene) {
	for range 12 {
		s.ann.create(t, "ignoring", `{"svcPublic":{"text":"`+strings.Repeat("x", 50_000)+`"}}`).record(t)
	}
	for _, c := range []struct {
		parameters, end string
		streamed        bool
	}{
		{"", `}]}`, true},
		{"count=true", `}],"count":12}`, true},
		{"limit=12&count=true", `}],"next":null,"count":12}`, false},
	} {
		a := s.ann.query(t, "ignoring", c.parameters)
		if len(a.items(t)) != 12 || !strings.HasSuffix(a.body, c.end) || (a.header.Get("Content-Length") == "") != c.streamed {
			t.Errorf("%q: got %d bytes, Content-Length %q and the end %q", c.parameters, len(a.body), a.header.Get("Content-Length"), a.body[len(a.body)-30:])
		}
		if reason := headersReason(a); reason != "" {
			t.Error(reason)
		}
	}
}

func choicesAnswers(t *testing.T, s *scene) {
	names := map[string]string{}
	a := s.ann.get(t, root+"/choices")
	for _, text := range decodeList(t, objectOf(t, a.body, "workflows")["workflows"]) {
		m := objectOf(t, text, "id", "name")
		names[decode[string](t, m["id"])] = decode[string](t, m["name"])
	}
	if len(names) != len(flows()) || names["order"] != `Order "handling"` || names["guide"] != "guide" {
		t.Errorf("got %v, want all workflows by their names, or by their ids", names)
	}
	empty := startService(t, serviceOptions{}).as("ann").get(t, root+"/choices")
	if empty.body != `{"workflows":[]}` {
		t.Errorf("without workflows: got %s", empty.body)
	}
}

// budgetRunsOut before the first byte; TestListsThatFail has what comes later.
func budgetRunsOut(t *testing.T, _ *scene) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: flows(), Workflow: workflow.Options{QueryTimeMax: time.Nanosecond}}})
	wantFault(t, s.as("ann").query(t, "plain", ""), 503, "Busy")
	wantStatus(t, s.as("ann").get(t, root+"/choices"), 200)
}

func repliesCarryTag(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for _, c := range []struct {
		answer answer
		want   string
	}{
		{s.ann.create(t, "order", ""), `"1"`},
		{s.ann.event(t, "order", r.ID, "submit", ""), `"2"`},
		{s.ann.event(t, "order", r.ID, "submit", ""), `"3"`}, // recorded
		{s.ann.load(t, "order", r.ID), `"3"`},
		{s.ann.event(t, "order", r.ID, "reject", ""), `"4"`},
		{s.ann.event(t, "order", r.ID, "ping", ""), `"4"`}, // ignored
	} {
		if got := c.answer.header.Values("ETag"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("ETag: got %q, want %q", got, c.want)
		}
	}
}

func ifMatchIsHonoured(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for _, c := range []struct {
		match  string
		status int
	}{
		{`"1"`, 200},         // 1 → 2
		{`"1"`, 412},         // too late
		{`"3"`, 412},         // too early
		{`*`, 200},           // 2 → 3
		{`"1", "3"`, 200},    // 3 → 4
		{`W/"4"`, 412},       // weak tags never match
		{`"x"`, 412},         // not one of ours
		{`"04"`, 412},        // nor this
		{`"7","8"`, 412},     // none of them
		{`"7" , "4" ,`, 200}, // 4 → 5
	} {
		before := s.ann.load(t, "plain", r.ID).record(t)
		a := s.ann.event(t, "plain", r.ID, "go", "", "If-Match: "+c.match)
		if c.status == 200 {
			a.record(t)
			continue
		}
		if reason := faultReason(a, 412, "PreconditionFailed"); reason != "" {
			t.Errorf("If-Match: %s: %s", c.match, reason)
		}
		s.unchanged(t, before)
	}
}

func minimalHasNoHistory(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for name, a := range map[string]answer{
		"create":   s.ann.create(t, "plain", "", "Prefer: return=minimal"),
		"event":    s.ann.event(t, "plain", r.ID, "go", "", "Prefer: return=minimal"),
		"instance": s.ann.with("Prefer: return=minimal").load(t, "plain", r.ID),
	} {
		if got, applied := a.record(t), a.header.Get("Preference-Applied"); got.History != nil || applied != "return=minimal" {
			t.Errorf("%s: got %d entries and Preference-Applied %q, want none and return=minimal", name, len(got.History), applied)
		}
	}
	a := s.ann.with("Prefer: return=representation").load(t, "plain", r.ID)
	if got := a.record(t); len(got.History) != 2 || a.header.Get("Preference-Applied") != "" {
		t.Errorf("without the preference: got %s and %q, want the history", got.text, a.header.Get("Preference-Applied"))
	}
}
