package endtoend

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"testing"
)

func TestInterfaceRead(t *testing.T) { runLines(t, readLines()) }

func readLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "The record"`, "GET instance/{workflowId}/{instanceId} answers {state}", loadAnswers},
		{`gateway/INTERFACE.md, "Which instances a list has"`, "GET instances/{workflowId} answers {instances}, entries with _id, svcPublic and states", queryAnswers},
		{`gateway/INTERFACE.md, "Rights to a workflow"`, "GET choices answers {workflows: [{id, name}]}", choicesAnswers},
		{`gateway/INTERFACE.md, "Which instances a list has"`, "without parameters all instances, ordered by _id", queryIsOrdered},
		{`gateway/INTERFACE.md, "Which instances a list has"`, "everything acknowledged before", querySeesAcknowledged},
		{`gateway/INTERFACE.md, "Paging"`, "without limit a long list is streamed whole", queryStreams},
		{`gateway/INTERFACE.md, "Budget"`, "503 before the first byte", budgetRunsOut},
		{`gateway/INTERFACE.md, "Concurrent editing"`, "replies carry an ETag with the sequence number", repliesCarryTag},
		{`gateway/INTERFACE.md, "Concurrent editing"`, "If-Match is honoured with 412", ifMatchIsHonoured},
		{`gateway/INTERFACE.md, "Prefer"`, "return=minimal leaves the history out", minimalHasNoHistory},
	}
}

// item is an entry of the query-all endpoint.
type item struct {
	id, public string
	states     []position
}

// query asks for instances with a query string, "" for none.
func (u user) query(t testing.TB, workflow, parameters string) answer {
	t.Helper()
	if parameters != "" {
		parameters = "?" + parameters
	}
	return u.get(t, root+"/instances/"+workflow+parameters)
}

// items reads the answer of query-all.
func (a answer) items(t testing.TB) []item {
	t.Helper()
	wantStatus(t, a, 200)
	whole := objectOf(t, a.body, "instances")
	var out []item
	for _, text := range decode[[]json.RawMessage](t, whole["instances"]) {
		m := objectOf(t, string(text), "_id", "workflowId", "svcPublic", "states")
		one := item{id: decode[string](t, m["_id"]), public: string(m["svcPublic"])}
		for _, s := range decode[[]json.RawMessage](t, m["states"]) {
			p := objectOf(t, string(s), "stateMachineId", "nodeId")
			one.states = append(one.states, position{decode[string](t, p["stateMachineId"]), decode[string](t, p["nodeId"])})
		}
		out = append(out, one)
	}
	return out
}

// ids returns the _id of each item.
func ids(items []item) []string {
	out := []string{}
	for _, i := range items {
		out = append(out, i.id)
	}
	return out
}

// instances lists the ids of a workflow's instances.
func (s *scene) instances(t testing.TB, u user, workflow string) []string {
	t.Helper()
	return ids(u.query(t, workflow, "").items(t))
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

func queryAnswers(t *testing.T, s *scene) {
	a := s.adm.query(t, "guide", "")
	if len(a.items(t)) == 0 {
		if want := `{"instances":[]}`; a.body != want {
			t.Errorf("without instances: got %s, want %s", a.body, want)
		}
	}
	r := s.ann.create(t, "guide", `{"svcPublic":{"n":9007199254740993}}`).record(t)
	a = s.ann.query(t, "guide", "")
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	got := a.items(t)
	last := got[len(got)-1]
	if last.id != r.ID || last.public != r.Public || !slices.Equal(last.states, r.States) {
		t.Errorf("got %v, want the instance %s", last, r.text)
	}
}

func choicesAnswers(t *testing.T, s *scene) {
	a := s.ann.get(t, root+"/choices")
	wantStatus(t, a, 200)
	names := map[string]string{}
	var order []string
	for _, text := range decode[[]json.RawMessage](t, objectOf(t, a.body, "workflows")["workflows"]) {
		m := objectOf(t, string(text), "id", "name")
		id := decode[string](t, m["id"])
		order = append(order, id)
		names[id] = decode[string](t, m["name"])
	}
	want := map[string]string{
		"order": `Order "handling"`, "codes": "Codes", "guide": "guide", "vault": "vault", "mine": "mine", "small": "small",
		"rejecting": "rejecting", "ignoring": "ignoring", "nested": "nested", "plain": "plain",
		"stock": "stock", "desk": "desk", "bound": "bound",
	}
	if fmt.Sprint(names) != fmt.Sprint(want) || len(order) != len(want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func queryIsOrdered(t *testing.T, s *scene) {
	made := map[string]bool{}
	for i := range 40 { // with keys and without, so that they lie in all shards
		var headers []string
		if i%2 == 0 {
			headers = []string{fmt.Sprintf("Idempotency-Key: ordered-%d", i)}
		}
		made[s.ann.create(t, "codes", "", headers...).record(t).ID] = true
	}
	got := s.instances(t, s.bob, "codes")
	if !sort.StringsAreSorted(got) {
		t.Errorf("not in the order of _id: %v", got)
	}
	for _, id := range got {
		delete(made, id)
	}
	if len(made) > 0 {
		t.Errorf("these instances are missing: %v", made)
	}
}

func querySeesAcknowledged(t *testing.T, s *scene) {
	for range 20 {
		r := s.ann.create(t, "codes", "").record(t)
		if got := s.instances(t, s.ann, "codes"); !slices.Contains(got, r.ID) {
			t.Fatalf("instance %s was acknowledged and is not in the list", r.ID)
		}
		r = s.ann.event(t, "codes", r.ID, "next", "").record(t)
		got := s.ann.query(t, "codes", "filter="+escape(`{"_id":"`+r.ID+`"}`)).items(t)
		if len(got) != 1 || !slices.Equal(got[0].states, r.States) {
			t.Fatalf("the list shows %v, want the states that were acknowledged: %v", got, r.States)
		}
	}
}

func queryStreams(t *testing.T, s *scene) {
	filling := fmt.Sprintf(`{"svcPublic":{"text":%q}}`, slices.Repeat([]byte("x"), 50_000))
	for range 12 {
		s.ann.create(t, "ignoring", filling).record(t)
	}
	a := s.ann.query(t, "ignoring", "")
	got := a.items(t)
	if len(a.body) < 12*50_000 || len(got) < 12 {
		t.Errorf("got %d instances in %d bytes, want at least 12 in %d", len(got), len(a.body), 12*50_000)
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
}

func repliesCarryTag(t *testing.T, s *scene) {
	wantTag := func(a answer, want string) {
		t.Helper()
		if got := a.header.Values("ETag"); !slices.Equal(got, []string{want}) {
			t.Errorf("ETag: got %q, want %q", got, want)
		}
	}
	a := s.ann.create(t, "order", "")
	wantTag(a, `"1"`)
	r := a.record(t)
	wantTag(s.ann.event(t, "order", r.ID, "submit", ""), `"2"`)
	wantTag(s.ann.event(t, "order", r.ID, "submit", ""), `"3"`) // recorded
	wantTag(s.ann.load(t, "order", r.ID), `"3"`)
	wantTag(s.ann.event(t, "order", r.ID, "reject", ""), `"4"`)
	wantTag(s.ann.event(t, "order", r.ID, "ping", ""), `"4"`) // ignored
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
	if got := s.ann.load(t, "plain", r.ID).record(t); len(got.History) != 5 {
		t.Errorf("history: got %d entries, want 5", len(got.History))
	}
}

func minimalHasNoHistory(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	for name, a := range map[string]answer{
		"create":   s.ann.create(t, "plain", "", "Prefer: return=minimal"),
		"event":    s.ann.event(t, "plain", r.ID, "go", "", "Prefer: return=minimal"),
		"instance": s.ann.with("Prefer: return=minimal").load(t, "plain", r.ID),
	} {
		got := a.record(t)
		if got.History != nil {
			t.Errorf("%s: got a history of %d entries, want none", name, len(got.History))
		}
		if applied := a.header.Get("Preference-Applied"); applied != "return=minimal" {
			t.Errorf("%s: Preference-Applied: got %q, want return=minimal", name, applied)
		}
	}
	a := s.ann.with("Prefer: return=representation").load(t, "plain", r.ID)
	if got := a.record(t); len(got.History) != 2 || a.header.Get("Preference-Applied") != "" {
		t.Errorf("without the preference: got %s and %q, want the history", got.text, a.header.Get("Preference-Applied"))
	}
}
