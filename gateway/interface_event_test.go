package gateway_test

import (
	"fmt"
	"slices"
	"testing"
)

func TestInterfaceEvent(t *testing.T) {
	runLines(t, []line{
		{`gateway/INTERFACE.md, "The record"`, "POST event answers {workflowId, instanceId, state} with the updated record", eventMoves},
		{`gateway/INTERFACE.md, "History entries"`, "each event adds one, a macrostep included, by its sender", eventMoves},
		{`gateway/INTERFACE.md, "Time stamps"`, "ts never goes back within an instance", eventMoves},
		{`gateway/INTERFACE.md, "Undeclared events"`, "400, and nothing is stored", undeclaredIsRefused},
		{`gateway/INTERFACE.md, "Unmatched events"`, "record, reject and ignore, for all events and for one, guards included", unmatchedEvents},
		{`gateway/INTERFACE.md, "Unmatched events"`, "of many at once one is enabled", oneOfManyWins},
		{`gateway/INTERFACE.md, "Events without the right"`, "403, and no trace", enabledButForbidden},
		{`gateway/INTERFACE.md, "Execution errors"`, "nothing is stored", executionErrorStoresNothing},
	})
}

// unchanged demands that an instance is as it was.
func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	if got := s.adm.load(t, r.WorkflowID, r.ID).record(t).text; got != r.text {
		t.Errorf("the instance changed:\n got %s\nwant %s", clip(got), clip(r.text))
	}
}

func eventMoves(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for i, step := range []struct {
		who    user
		event  string
		states []position
	}{
		{s.ann, "leap", []position{{"review", "pending"}, {"billing", "unpaid"}}},
		{s.bob, "reject", []position{{"review", "draft"}, {"billing", "unpaid"}}},
		{s.ann, "pay", []position{{"review", "draft"}, {"billing", "paid"}}},
		{s.bob, "note", []position{{"review", "draft"}, {"billing", "paid"}}},
	} {
		a := step.who.event(t, "order", r.ID, step.event, fmt.Sprintf(`{"step":%d}`, i))
		after := a.record(t)
		if reason := headersReason(a) + checkHistory(after.History, after.States); reason != "" {
			t.Error(reason)
		}
		if after.ID != r.ID || !slices.Equal(after.States, step.states) || len(after.History) != i+2 {
			t.Fatalf("after %s: got %s, want %v and %d entries", step.event, after.text, step.states, i+2)
		}
		if last := after.History[i+1]; last.TransitionEvent != step.event || last.User != []string{"ann", "bob"}[i%2] {
			t.Errorf("the entry of %s is %v", step.event, last)
		}
		wantSameMeaning(t, after.Public, fmt.Sprintf(`{"status":"new","limits":{"low":1,"high":9},"note":"none","step":%d}`, i))
		r = after
	}
	s.unchanged(t, r)
}

func undeclaredIsRefused(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for _, name := range []string{"unknown", "Submit", "submit ", "sub", "submit.x", "done.state.review", "error.execution", "*", ""} {
		if reason := faultReason(s.ann.event(t, "order", r.ID, name, `{"x":1}`), 400, "InvalidContent"); reason != "" {
			t.Errorf("event %q: %s", name, reason)
		}
	}
	s.unchanged(t, r)
}

func unmatchedEvents(t *testing.T, s *scene) {
	for _, c := range []struct {
		workflow, event, data string
		status, entries       int
	}{
		{"order", "reject", `{"status":"x","svcNew":1}`, 200, 2},
		{"order", "spare", ``, 200, 2}, // only the contracts declare it
		{"order", "cheap", `{"amount":10}`, 200, 2},
		{"order", "ship", ``, 409, 1},
		{"order", "ping", `{"x":1}`, 200, 1},
		{"rejecting", "back", `{"x":1}`, 409, 1},
		{"rejecting", "noted", `{"x":1}`, 200, 2},
		{"ignoring", "back", `{"x":1}`, 200, 1},
	} {
		r := s.ann.create(t, c.workflow, "").record(t)
		a := s.ann.event(t, c.workflow, r.ID, c.event, c.data)
		after := s.ann.load(t, c.workflow, r.ID).record(t)
		switch {
		case c.status != 200:
			if reason := faultReason(a, c.status, "EventNotAllowed"); reason != "" {
				t.Errorf("%s: %s", c.event, reason)
			}
		case a.record(t).text != after.text:
			t.Errorf("%s: got %s, want the record %s", c.event, a.body, after.text)
		}
		if len(after.History) != c.entries || after.Public != r.Public || after.Private != r.Private || !slices.Equal(after.States, r.States) || c.entries == 1 && after.text != r.text {
			t.Errorf("%s: got %s, want %d entries and nothing else", c.event, after.text, c.entries)
		}
		if reason := checkHistory(after.History, after.States); reason != "" {
			t.Error(reason)
		}
	}
}

func oneOfManyWins(t *testing.T, s *scene) {
	r := s.ann.create(t, "rejecting", "").record(t)
	answers := s.atOnce(t, 16, s.ann.posting(root+"/event", eventBody("rejecting", r.ID, "go", `{"a":1}`)))
	won := 0
	for _, a := range answers {
		if a.status == 200 {
			won++
		} else if reason := faultReason(a, 409, "EventNotAllowed"); reason != "" {
			t.Error(reason)
		}
	}
	if after := s.ann.load(t, "rejecting", r.ID).record(t); won != 1 || len(after.History) != 2 {
		t.Errorf("got %d winners and %d entries, want 1 and 2", won, len(after.History))
	}
}

func enabledButForbidden(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	r = s.ann.event(t, "order", r.ID, "submit", "").record(t)
	wantFault(t, s.ann.event(t, "order", r.ID, "approve", `{"x":1}`), 403, "AccessDenied")
	s.unchanged(t, r)
	r = s.bob.event(t, "order", r.ID, "approve", "").record(t)
	if !slices.Equal(nodes(r.States), []string{"approved", "unpaid"}) {
		t.Errorf("states after the approver's event: got %v", r.States)
	}
}

func executionErrorStoresNothing(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	wantFault(t, s.ann.event(t, "order", r.ID, "boom", `{"a":1}`), 500, "MarshallingError")
	s.unchanged(t, r)
	s.ann.event(t, "order", r.ID, "note", "").record(t)
}
