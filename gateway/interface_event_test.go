package gateway_test

import (
	"fmt"
	"slices"
	"testing"
)

func TestInterfaceEvent(t *testing.T) { runLines(t, eventLines()) }

func eventLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "The record"`, "POST event answers {workflowId, instanceId, state} with the updated record", eventAnswers},
		{`gateway/INTERFACE.md, "History entries"`, "POST event: moves, history gains an entry, data is applied", eventMoves},
		{`gateway/INTERFACE.md, "Undeclared events"`, "400, and nothing is stored", undeclaredIsRefused},
		{`gateway/INTERFACE.md, "Errors"`, "group B, 400 InvalidContent", undeclaredIsRefused},
		{`gateway/INTERFACE.md, "Errors"`, "group B, 403 AccessDenied", enabledButForbidden},
		{`gateway/INTERFACE.md, "Errors"`, "group B, 404 NotFound", eventNotFound},
		{`gateway/INTERFACE.md, "Errors"`, "group B, 409", rejectLeavesNoTrace},
		{`gateway/INTERFACE.md, "Errors"`, "group B, 500 MarshallingError", executionErrorStoresNothing},
		{`gateway/INTERFACE.md, "History entries"`, "a macrostep is one entry", macrostepIsOneEntry},
		{`gateway/INTERFACE.md, "Order of machines"`, "every entry lists nodes in the order of states", entriesFollowStates},
		{`gateway/INTERFACE.md, "Time stamps"`, "ts never goes back within an instance", eventMoves},
		{`gateway/INTERFACE.md, "Unmatched events"`, "record, data is not applied", unmatchedIsRecorded},
		{`gateway/INTERFACE.md, "Unmatched events"`, "reject, for all events but one", rejectLeavesNoTrace},
		{`gateway/INTERFACE.md, "Unmatched events"`, "ignore, for all events", ignoreLeavesNoEntry},
		{`gateway/INTERFACE.md, "Unmatched events"`, "reject and ignore for one event", unmatchedByEvent},
		{`gateway/INTERFACE.md, "Unmatched events"`, "guards included", closedGuardIsUnmatched},
		{`gateway/INTERFACE.md, "Unmatched events"`, "of many at once one is enabled", oneOfManyWins},
		{`gateway/INTERFACE.md, "Events without the right"`, "403, and no trace", enabledButForbidden},
		{`gateway/INTERFACE.md, "Execution errors"`, "nothing is stored", executionErrorStoresNothing},
	}
}

// unchanged demands that an instance is as it was.
func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	if got := s.adm.load(t, r.WorkflowID, r.ID).record(t).text; got != r.text {
		t.Errorf("the instance changed:\n got %s\nwant %s", got, r.text)
	}
}

func eventAnswers(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	a := s.ann.event(t, "order", r.ID, "submit", `{"who":"x"}`)
	after := a.record(t)
	if after.ID != r.ID {
		t.Errorf("_id: got %s, want %s", after.ID, r.ID)
	}
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	s.unchanged(t, after)
}

func eventMoves(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for i, step := range []struct {
		event  string
		states []position
	}{
		{"submit", []position{{"review", "pending"}, {"billing", "unpaid"}}},
		{"reject", []position{{"review", "draft"}, {"billing", "unpaid"}}},
		{"pay", []position{{"review", "draft"}, {"billing", "paid"}}},
		{"note", []position{{"review", "draft"}, {"billing", "paid"}}},
	} {
		r = s.ann.event(t, "order", r.ID, step.event, fmt.Sprintf(`{"step":%d}`, i)).record(t)
		if !slices.Equal(r.States, step.states) {
			t.Errorf("states after %s: got %v, want %v", step.event, r.States, step.states)
		}
		if len(r.History) != i+2 || r.History[i+1].TransitionEvent != step.event {
			t.Fatalf("history after %s: got %v", step.event, r.History)
		}
		wantSameMeaning(t, r.Public, fmt.Sprintf(`{"status":"new","limits":{"low":1,"high":9},"note":"none","step":%d}`, i))
	}
	if reason := checkHistory(r.History, r.States); reason != "" {
		t.Error(reason)
	}
}

func undeclaredIsRefused(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for _, name := range []string{"unknown", "Submit", "submit ", "sub", "submit.x", "done.state.review", "error.execution", "*"} {
		if reason := faultReason(s.ann.event(t, "order", r.ID, name, `{"x":1}`), 400, "InvalidContent"); reason != "" {
			t.Errorf("event %q: %s", name, reason)
		}
	}
	s.unchanged(t, r)
}

func eventNotFound(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for workflow, instance := range map[string]string{
		"order": "01JD0000000000000000000000", "codes": r.ID, "missing": r.ID,
	} {
		wantFault(t, s.ann.event(t, workflow, instance, "submit", ""), 404, "NotFound")
	}
	s.unchanged(t, r)
}

func macrostepIsOneEntry(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	r = s.ann.event(t, "order", r.ID, "leap", "").record(t)
	if len(r.History) != 2 {
		t.Fatalf("history: got %d entries, want 2: %v", len(r.History), r.History)
	}
	last := r.History[1]
	if !slices.Equal(last.StartState, []string{"draft", "unpaid"}) || !slices.Equal(last.EndState, []string{"pending", "unpaid"}) {
		t.Errorf("got %v, want one entry from draft to pending", last)
	}
}

func entriesFollowStates(t *testing.T, s *scene) {
	r := s.ann.create(t, "nested", "").record(t)
	for _, name := range []string{"deeper", "l", "r", "end"} {
		r = s.ann.event(t, "nested", r.ID, name, "").record(t)
		last := r.History[len(r.History)-1]
		if !slices.Equal(last.EndState, nodes(r.States)) {
			t.Errorf("endState after %s: got %v, want the order of states %v", name, last.EndState, nodes(r.States))
		}
	}
	if want := []string{"twin", "r2", "l2"}; !slices.Equal(r.History[4].StartState, want) {
		t.Errorf("startState: got %v, want %v", r.History[4].StartState, want)
	}
	if reason := checkHistory(r.History, r.States); reason != "" {
		t.Error(reason)
	}
}

func unmatchedIsRecorded(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	after := s.ann.event(t, "order", r.ID, "reject", `{"status":"x","svcNew":1}`).record(t)
	if len(after.History) != 2 {
		t.Fatalf("history: got %v, want a second entry", after.History)
	}
	last := after.History[1]
	if last.TransitionEvent != "reject" || !slices.Equal(last.StartState, last.EndState) || !slices.Equal(last.EndState, []string{"draft", "unpaid"}) {
		t.Errorf("got %v, want an entry with equal startState and endState", last)
	}
	if after.Public != r.Public || after.Private != r.Private {
		t.Errorf("data: got %s %s, want it as it was", after.Public, after.Private)
	}
}

func rejectLeavesNoTrace(t *testing.T, s *scene) {
	r := s.ann.create(t, "rejecting", "").record(t)
	wantFault(t, s.ann.event(t, "rejecting", r.ID, "back", `{"x":1}`), 409, "EventNotAllowed")
	s.unchanged(t, r)
	after := s.ann.event(t, "rejecting", r.ID, "noted", `{"x":1}`).record(t)
	if len(after.History) != 2 || after.Public != r.Public {
		t.Errorf("got %s, want an entry and no data", after.text)
	}
	moved := s.ann.event(t, "rejecting", r.ID, "go", "").record(t)
	if !slices.Equal(nodes(moved.States), []string{"b"}) {
		t.Errorf("states: got %v, want b", moved.States)
	}
}

func ignoreLeavesNoEntry(t *testing.T, s *scene) {
	r := s.ann.create(t, "ignoring", "").record(t)
	a := s.ann.event(t, "ignoring", r.ID, "back", `{"x":1}`)
	if after := a.record(t); after.text != r.text {
		t.Errorf("got %s, want the record as it was", after.text)
	}
	s.unchanged(t, r)
}

func unmatchedByEvent(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	wantFault(t, s.ann.event(t, "order", r.ID, "ship", ""), 409, "EventNotAllowed")
	s.unchanged(t, r)
	if after := s.ann.event(t, "order", r.ID, "ping", `{"x":1}`).record(t); after.text != r.text {
		t.Errorf("got %s, want the record as it was", after.text)
	}
	s.unchanged(t, r)
	// An event that only the contracts declare is declared.
	if after := s.ann.event(t, "order", r.ID, "spare", "").record(t); len(after.History) != 2 {
		t.Errorf("got %v, want it recorded", after.History)
	}
}

func closedGuardIsUnmatched(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	after := s.ann.event(t, "order", r.ID, "cheap", `{"amount":10}`).record(t)
	if after.Public != r.Public || len(after.History) != 2 {
		t.Errorf("got %s, want an entry and no data", after.text)
	}
	after = s.ann.event(t, "order", r.ID, "cheap", `{"amount":9}`).record(t)
	wantSameMeaning(t, after.Public, `{"status":"new","limits":{"low":1,"high":9},"note":"none","amount":9,"cheap":true}`)
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
	if after := s.ann.event(t, "order", r.ID, "note", "").record(t); len(after.History) != 2 {
		t.Errorf("history after the next event: got %d entries, want 2", len(after.History))
	}
}
