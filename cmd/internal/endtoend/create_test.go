package endtoend

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInterfaceCreate(t *testing.T) { runLines(t, createLines()) }

func createLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "The record"`, "POST create answers {workflowId, instanceId, state}", createAnswers},
		{`gateway/INTERFACE.md, "Create data"`, "create takes data with svcPublic and svcPrivate, each optional", createTakesData},
		{`gateway/INTERFACE.md, "Bodies"`, "create refuses a missing workflowId", createNeedsWorkflow},
		{`gateway/INTERFACE.md, "First history entry"`, "one entry, without an event", createStartsInitial},
		{`gateway/INTERFACE.md, "The record"`, "_id", recordHasID},
		{`gateway/INTERFACE.md, "The record"`, "workflowId", recordHasWorkflow},
		{`gateway/INTERFACE.md, "The record"`, "svcPublic", recordHasPublic},
		{`gateway/INTERFACE.md, "The record"`, "svcPrivate may be empty", recordHasPrivate},
		{`gateway/INTERFACE.md, "The record"`, "svcHistory", createStartsInitial},
		{`gateway/INTERFACE.md, "The record"`, "states", recordHasStates},
		{`gateway/INTERFACE.md, "Redirect"`, "it is shown when it is set", redirectIsShown},
		{`gateway/INTERFACE.md, "History entries"`, "user", entryHasUser},
		{`gateway/INTERFACE.md, "History entries"`, "endState", recordHasStates},
		{`gateway/INTERFACE.md, "First history entry"`, "user, nodes and no event", firstEntryStarts},
		{`gateway/INTERFACE.md, "Time stamps"`, "ts is RFC 3339 in UTC with milliseconds", entryHasTime},
		{`gateway/INTERFACE.md, "Redirect"`, "it is missing when it is not set", redirectOnlyWhenSet},
		{`gateway/INTERFACE.md, "Instance identifiers"`, "_id is a ULID of the server, sortable by creation time", recordHasID},
		{`gateway/INTERFACE.md, "Order of machines"`, "it follows the file, from YAML and from JSON", orderFollowsFile},
		{`gateway/INTERFACE.md, "Create data"`, "context keys are replaced by those of create", contextIsOverlaid},
		{`gateway/INTERFACE.md, "Create data"`, "null is kept on create", contextKeepsNull},
		{`gateway/INTERFACE.md, "Create data"`, "it holds nothing but svcPublic and svcPrivate", dataIsOnlyTwo},
		{`gateway/INTERFACE.md, "Success is 200"`, "creates included", createAnswers},
	}
}

func createAnswers(t *testing.T, s *scene) {
	a := s.ann.create(t, "order", "")
	r := a.record(t) // demands exactly the members of the interface
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	if got := s.ann.load(t, "order", r.ID).record(t).text; got != r.text {
		t.Errorf("GET instance: got %s, want the record of create %s", got, r.text)
	}
}

func createTakesData(t *testing.T, s *scene) {
	for _, c := range []struct{ content, public, private string }{
		{``, `{}`, `{}`},
		{`{}`, `{}`, `{}`},
		{`{"svcPublic":{"a":1}}`, `{"a":1}`, `{}`},
		{`{"svcPrivate":{"b":2}}`, `{}`, `{"b":2}`},
		{`{"svcPublic":{"a":1},"svcPrivate":{"b":2}}`, `{"a":1}`, `{"b":2}`},
	} {
		r := s.ann.create(t, "plain", c.content).record(t)
		if r.Public != c.public || r.Private != c.private {
			t.Errorf("data %s: got %s and %s, want %s and %s", c.content, r.Public, r.Private, c.public, c.private)
		}
	}
}

func createNeedsWorkflow(t *testing.T, s *scene) {
	for _, body := range []string{`{}`, `{"data":{}}`, `{"workflowId":null}`, `{"workflowId":7}`} {
		wantFault(t, s.ann.post(t, root+"/create", body), 400, "InvalidContent")
	}
}

func createStartsInitial(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	if want := []position{{"review", "draft"}, {"billing", "unpaid"}}; !slices.Equal(r.States, want) {
		t.Errorf("states: got %v, want %v", r.States, want)
	}
	if len(r.History) != 1 || r.History[0].TransitionEvent != "" {
		t.Errorf("history: got %v, want one entry without an event", r.History)
	}
}

// ulid is Crockford's base 32 of 128 bits.
var ulid = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

func recordHasID(t *testing.T, s *scene) {
	last, lastAt := "", ""
	for range 20 {
		before := time.Now()
		r := s.ann.create(t, "plain", "").record(t)
		if !ulid.MatchString(r.ID) {
			t.Fatalf("_id: got %q, want a ULID", r.ID)
		}
		if at := ulidTime(r.ID); at.Before(before.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
			t.Errorf("_id %s says it was made at %v, want about %v", r.ID, at, before)
		}
		if lastAt < r.ID[:10] && r.ID <= last || r.ID == last {
			t.Errorf("_id %s was made after %s but is not behind it", r.ID, last)
		}
		last, lastAt = r.ID, r.ID[:10]
	}
}

// ulidTime reads the first 48 bits: milliseconds since 1970.
func ulidTime(id string) time.Time {
	ms := int64(0)
	for _, c := range id[:10] {
		ms = ms<<5 | int64(strings.IndexRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c))
	}
	return time.UnixMilli(ms)
}

func recordHasWorkflow(t *testing.T, s *scene) {
	if r := s.ann.create(t, "codes", "").record(t); r.WorkflowID != "codes" {
		t.Errorf("workflowId: got %q, want codes", r.WorkflowID)
	}
}

func recordHasPublic(t *testing.T, s *scene) {
	const want = `{"title":"x","":[],"a.b":{"c":null}}`
	if r := s.ann.create(t, "plain", `{"svcPublic":`+want+`}`).record(t); r.Public != want {
		t.Errorf("svcPublic: got %s, want %s", r.Public, want)
	}
}

func recordHasPrivate(t *testing.T, s *scene) {
	if r := s.ann.create(t, "plain", "").record(t); r.Private != "{}" {
		t.Errorf("svcPrivate: got %s, want an empty object", r.Private)
	}
}

func recordHasStates(t *testing.T, s *scene) {
	r := s.ann.create(t, "nested", "").record(t)
	if want := []position{{"main", "inner"}}; !slices.Equal(r.States, want) {
		t.Errorf("states: got %v, want %v", r.States, want)
	}
	if want := []string{"inner"}; !slices.Equal(r.History[0].EndState, want) {
		t.Errorf("endState: got %v, want %v", r.History[0].EndState, want)
	}
}

func redirectIsShown(t *testing.T, s *scene) {
	r := s.ann.create(t, "guide", "").record(t)
	if want := "/rooms/" + r.ID; r.Redirect == nil || *r.Redirect != want {
		t.Errorf("svcRedirect: got %v in %s, want %q", r.Redirect, r.text, want)
	}
}

func redirectOnlyWhenSet(t *testing.T, s *scene) {
	if r := s.ann.create(t, "plain", "").record(t); r.Redirect != nil {
		t.Errorf("svcRedirect: got %q, want no such member", *r.Redirect)
	}
	r := s.ann.create(t, "guide", "").record(t)
	r = s.ann.event(t, "guide", r.ID, "leave", "").record(t)
	if r.Redirect != nil {
		t.Errorf("svcRedirect after it was taken away: got %q, want no such member", *r.Redirect)
	}
}

func entryHasUser(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	r = s.bob.event(t, "plain", r.ID, "note", "").record(t)
	if r.History[0].User != "ann" || r.History[1].User != "bob" {
		t.Errorf("users: got %q and %q, want ann and bob", r.History[0].User, r.History[1].User)
	}
}

func entryHasTime(t *testing.T, s *scene) {
	before := time.Now().Add(-time.Second)
	r := s.ann.create(t, "plain", "").record(t)
	for range 20 {
		r = s.ann.event(t, "plain", r.ID, "go", "").record(t)
	}
	if reason := checkHistory(r.History, r.States); reason != "" {
		t.Error(reason)
	}
	at, err := time.Parse(time.RFC3339, r.History[20].TS)
	if err != nil || at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("ts: got %s (%v), want the time of now", r.History[20].TS, err)
	}
}

func firstEntryStarts(t *testing.T, s *scene) {
	for workflow, machines := range map[string]int{"plain": 1, "order": 2, "codes": 3, "nested": 1} {
		r := s.ann.create(t, workflow, "").record(t)
		first := r.History[0]
		if want := slices.Repeat([]string{"Start"}, machines); !slices.Equal(first.StartState, want) {
			t.Errorf("%s: startState: got %q, want %q", workflow, first.StartState, want)
		}
		if first.TransitionEvent != "" {
			t.Errorf("%s: transitionEvent: got %q, want empty", workflow, first.TransitionEvent)
		}
		if want := nodes(r.States); !slices.Equal(first.EndState, want) {
			t.Errorf("%s: endState: got %q, want the initial nodes %q", workflow, first.EndState, want)
		}
	}
}

func orderFollowsFile(t *testing.T, s *scene) {
	r := s.ann.create(t, "codes", "").record(t)
	if want := []position{{"zeta", "z1"}, {"alpha", "a1"}, {"mid", "m1"}}; !slices.Equal(r.States, want) {
		t.Errorf("states from JSON: got %v, want %v", r.States, want)
	}
	r = s.ann.event(t, "codes", r.ID, "next", "").record(t)
	if want := []string{"z1", "a1", "m1"}; !slices.Equal(r.History[1].StartState, want) {
		t.Errorf("startState: got %v, want %v", r.History[1].StartState, want)
	}
	if want := []string{"z2", "a2", "m1"}; !slices.Equal(r.History[1].EndState, want) {
		t.Errorf("endState: got %v, want %v", r.History[1].EndState, want)
	}
	r = s.ann.create(t, "nested", "").record(t)
	r = s.ann.event(t, "nested", r.ID, "deeper", "").record(t)
	if want := []position{{"main", "twin"}, {"right", "r1"}, {"left", "l1"}}; !slices.Equal(r.States, want) {
		t.Errorf("states of a nested parallel node: got %v, want %v", r.States, want)
	}
}

func contextIsOverlaid(t *testing.T, s *scene) {
	for _, c := range []struct{ content, public, private string }{
		{``, `{"status":"new","limits":{"low":1,"high":9},"note":"none"}`, `{"margin":3,"secret":"s3"}`},
		{
			`{"svcPublic":{"limits":{"high":5}}}`,
			`{"status":"new","limits":{"high":5},"note":"none"}`, `{"margin":3,"secret":"s3"}`,
		},
		{
			`{"svcPublic":{"extra":1,"status":"mine"},"svcPrivate":{"margin":{"a":1}}}`,
			`{"status":"mine","limits":{"low":1,"high":9},"note":"none","extra":1}`, `{"margin":{"a":1},"secret":"s3"}`,
		},
	} {
		r := s.ann.create(t, "order", c.content).record(t)
		wantSameMeaning(t, r.Public, c.public)
		wantSameMeaning(t, r.Private, c.private)
	}
}

func contextKeepsNull(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", `{"svcPublic":{"status":null,"new":null},"svcPrivate":{"secret":null}}`).record(t)
	wantSameMeaning(t, r.Public, `{"status":null,"limits":{"low":1,"high":9},"note":"none","new":null}`)
	wantSameMeaning(t, r.Private, `{"margin":3,"secret":null}`)
}

func dataIsOnlyTwo(t *testing.T, s *scene) {
	before := s.instances(t, s.adm, "plain")
	for _, content := range []string{
		`{"other":1}`, `{"_id":"x"}`, `{"states":[]}`, `{"svcHistory":[]}`, `{"svcPublic":{},"workflowId":"x"}`,
		`{"svcpublic":{}}`, `{"svcPublic":[]}`, `{"svcPublic":null}`, `{"svcPublic":"x"}`, `{"svcPrivate":1}`, `[]`, `null`, `"x"`,
	} {
		if reason := faultReason(s.ann.create(t, "plain", content), 400, "InvalidContent"); reason != "" {
			t.Errorf("data %s: %s", content, reason)
		}
	}
	if got := s.instances(t, s.adm, "plain"); len(got) != len(before) {
		t.Errorf("instances: got %d, want %d as before", len(got), len(before))
	}
}
