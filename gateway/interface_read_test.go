package gateway_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/actors/workflow"
	"troupe/gateway/wiretest"
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

// page is an answer of the list of instances.
type page struct {
	Instances []record
	Count     *int
	next      string // "" at the end
}

func (p *page) ids() []string {
	ids := []string{}
	for _, r := range p.Instances {
		ids = append(ids, r.ID)
	}
	return ids
}

// nextOf is the cursor that a page leads on with, "" at the end. It demands that the
// header Link is there with it.
func nextOf(t testing.TB, a answer) (next string) {
	t.Helper()
	if cursor := wiretest.Decode[struct{ Next *string }](t, a.Body).Next; cursor != nil {
		next = *cursor
	}
	link := a.Header.Get("Link")
	assert.Equal(t, link != "", next != "", "next is %q and Link %q: one without the other", next, link)
	return next
}

// query asks for instances with a query string, "" for none.
func (u user) query(t testing.TB, workflow, parameters string) answer {
	t.Helper()
	return u.Get(t, strings.TrimSuffix(wiretest.Root+"/instances/"+workflow+"?"+parameters, "?"))
}

// page demands an answer of query.
func (u user) page(t testing.TB, workflow, parameters string) *page {
	t.Helper()
	return pageOf(t, u.query(t, workflow, parameters))
}

func pageOf(t testing.TB, a answer) *page {
	t.Helper()
	a.WantStatus(t, 200)
	p := wiretest.Decode[page](t, a.Body)
	p.next = nextOf(t, a)
	return &p
}

// instances lists the ids of a workflow's instances.
func (s *scene) instances(t testing.TB, workflow string) []string {
	t.Helper()
	return s.adm.page(t, workflow, "").ids()
}

func escape(s string) string { return url.QueryEscape(s) }

// filterOf is the query parameter of a filter.
func filterOf(filter string) string { return "filter=" + escape(filter) }

// refuses demands the same refusal of a GET of each path.
func (u user) refuses(t testing.TB, status int, word string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		assert.Empty(t, u.Get(t, path).FaultReason(status, word), path)
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
	r := s.ann.Create(t, "order", `{"svcPublic":{"a":1}}`).Record(t)
	a := s.bob.Load(t, "order", r.ID)
	assert.Equal(t, r.Text, a.Record(t).Text)
}

func listIsWhole(t *testing.T, s *scene) {
	assert.Equal(t, `{"instances":[]}`, s.adm.query(t, "codes", "").Body, "without instances")
	var made []string
	for i := range 12 { // with keys and without, so that they lie in all shards
		var headers []string
		if i%2 == 0 {
			headers = []string{fmt.Sprintf("Idempotency-Key: listed-%d", i)}
		}
		r := s.ann.Create(t, "codes", `{"svcPublic":{"n":9007199254740993}}`, headers...).Record(t)
		made = append(made, r.ID)
		slices.Sort(made) // NB: two instances of one millisecond have ids in any order
		a := s.bob.query(t, "codes", "")
		if got := pageOf(t, a).ids(); !slices.Equal(got, made) {
			t.Fatalf("got %v, want %v", got, made)
		}
		r = s.ann.Event(t, "codes", r.ID, "next", "").Record(t)
		got := s.ann.page(t, "codes", filterOf(`{"_id":"`+r.ID+`"}`)).Instances
		require.True(t, len(got) == 1 && got[0].Public == r.Public && slices.Equal(got[0].States, r.States), "%v %v", got, r.Text)
	}
}

func listStreams(t *testing.T, s *scene) {
	for range 12 {
		s.ann.Create(t, "ignoring", `{"svcPublic":{"text":"`+strings.Repeat("x", 50_000)+`"}}`).Record(t)
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
		if len(pageOf(t, a).Instances) != 12 || !strings.HasSuffix(a.Body, c.end) || (a.Header.Get("Content-Length") == "") != c.streamed {
			t.Errorf("%q: got %d bytes, Content-Length %q and the end %q", c.parameters, len(a.Body), a.Header.Get("Content-Length"), a.Body[len(a.Body)-30:])
		}
	}
}

func choicesAnswers(t *testing.T, s *scene) {
	a := s.ann.Get(t, wiretest.Root+"/choices")
	choices := wiretest.Decode[struct{ Workflows []struct{ ID, Name string } }](t, a.Body).Workflows
	for _, want := range []struct{ ID, Name string }{{"order", `Order "handling"`}, {"guide", "guide"}} { // by its name, or by its id
		assert.True(t, slices.Contains(choices, want) && len(choices) == len(flows())-1, "got %v, want %v among all workflows", choices, want)
	}
	empty := startService(t, serviceOptions{}).as("ann").Get(t, wiretest.Root+"/choices")
	assert.Equal(t, `{"workflows":[]}`, empty.Body, "without workflows")
}

// budgetRunsOut before the first byte; TestListsThatFail has what comes later.
func budgetRunsOut(t *testing.T, _ *scene) {
	s := startService(t, serviceOptions{Options: actorstest.Options{Files: flows(), Workflow: workflow.Options{QueryTimeMax: time.Nanosecond}}})
	s.as("ann").query(t, "plain", "").WantFault(t, 503, "Busy")
	s.as("ann").Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
}

func repliesCarryTag(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	for _, c := range []struct {
		answer answer
		want   string
	}{
		{s.ann.Create(t, "order", ""), `"1"`},
		{s.ann.Event(t, "order", r.ID, "submit", ""), `"2"`},
		{s.ann.Event(t, "order", r.ID, "submit", ""), `"3"`}, // recorded
		{s.ann.Load(t, "order", r.ID), `"3"`},
		{s.ann.Event(t, "order", r.ID, "reject", ""), `"4"`},
		{s.ann.Event(t, "order", r.ID, "ping", ""), `"4"`}, // ignored
	} {
		assert.Equal(t, []string{c.want}, c.answer.Header.Values("ETag"), "ETag, %q", c.want)
	}
}

func ifMatchIsHonoured(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
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
		before := s.ann.Load(t, "plain", r.ID).Record(t)
		a := s.ann.Event(t, "plain", r.ID, "go", "", "If-Match: "+c.match)
		if c.status == 200 {
			a.Record(t)
			continue
		}
		assert.Empty(t, a.FaultReason(412, "PreconditionFailed"), "If-Match: %s", c.match)
		s.unchanged(t, before)
	}
}

func minimalHasNoHistory(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", "").Record(t)
	for name, a := range map[string]answer{
		"create":   s.ann.Create(t, "plain", "", "Prefer: return=minimal"),
		"event":    s.ann.Event(t, "plain", r.ID, "go", "", "Prefer: return=minimal"),
		"instance": s.ann.with("Prefer: return=minimal").Load(t, "plain", r.ID),
	} {
		got, applied := a.Record(t), a.Header.Get("Preference-Applied")
		assert.True(t, got.History == nil && applied == "return=minimal", "%v %v %v", name, len(got.History), applied)
	}
	a := s.ann.with("Prefer: return=representation").Load(t, "plain", r.ID)
	got := a.Record(t)
	assert.True(t, len(got.History) == 2 && a.Header.Get("Preference-Applied") == "", "%v %v", got.Text, a.Header.Get("Preference-Applied"))
}
