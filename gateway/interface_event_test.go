package gateway_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
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
		{`gateway/INTERFACE.md, "Events without the right"`, "403 where no transition now, and none that the caller may take anywhere, takes the event", neverAllowed},
		{`gateway/INTERFACE.md, "Pages of a history"`, "what nothing took is an attempt, with data and in the activity", attemptsShow},
		{`gateway/INTERFACE.md, "Execution errors"`, "nothing is stored", executionErrorStoresNothing},
	})
}

// unchanged demands that an instance is as it was.
func (s *scene) unchanged(t testing.TB, r record) {
	t.Helper()
	assert.Equal(t, r.Text, s.adm.Load(t, r.WorkflowID, r.ID).Record(t).Text, "the instance changed")
}

func eventMoves(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	for i, step := range []struct {
		who    user
		event  string
		states []string
	}{
		{s.ann, "leap", []string{"review/pending", "billing/unpaid"}},
		{s.bob, "reject", []string{"review/draft", "billing/unpaid"}},
		{s.ann, "pay", []string{"review/draft", "billing/paid"}},
		{s.bob, "note", []string{"review/draft", "billing/paid"}},
	} {
		a := step.who.Event(t, "order", r.ID, step.event, fmt.Sprintf(`{"step":%d}`, i))
		after := a.Record(t)
		assert.Empty(t, after.HistoryReason())
		require.True(t, after.ID == r.ID && slices.Equal(after.Where(), step.states) && len(after.History) == i+2,
			"after %s: got %s, want %v and %d entries", step.event, after.Text, step.states, i+2)
		last := after.History[i+1]
		assert.True(t, last.TransitionEvent == step.event && last.User == []string{"ann", "bob"}[i%2], "the entry of %s is %v", step.event, last)
		wantSameMeaning(t, after.Public, fmt.Sprintf(`{"status":"new","limits":{"low":1,"high":9},"note":"none","step":%d}`, i))
		r = after
	}
	s.unchanged(t, r)
}

func undeclaredIsRefused(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	for _, name := range []string{"unknown", "Submit", "submit ", "sub", "submit.x", "done.state.review", "error.execution", "*", ""} {
		a := s.ann.Event(t, "order", r.ID, name, `{"x":1}`)
		assert.Empty(t, a.FaultReason(400, "InvalidContent"), "event %q", name)
		got, want := a.Message(), "event is not declared by the workflow: "+strconv.Quote(name)
		assert.False(t, name != "" && got != want, "event %q: got %q, want %q", name, got, want)
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
		r := s.ann.Create(t, c.workflow, "").Record(t)
		a := s.ann.Event(t, c.workflow, r.ID, c.event, c.data)
		after := s.ann.Load(t, c.workflow, r.ID).Record(t)
		switch {
		case c.status != 200:
			assert.Empty(t, a.FaultReason(c.status, "EventNotAllowed"), c.event)
		case a.Record(t).Text != after.Text:
			t.Errorf("%s: got %s, want the record %s", c.event, a.Body, after.Text)
		}
		if len(after.History) != c.entries || after.Public != r.Public || after.Private != r.Private || !slices.Equal(after.States, r.States) || c.entries == 1 && after.Text != r.Text {
			t.Errorf("%s: got %s, want %d entries and nothing else", c.event, after.Text, c.entries)
		}
		assert.Empty(t, after.HistoryReason())
	}
}

func oneOfManyWins(t *testing.T, s *scene) {
	r := s.ann.Create(t, "rejecting", "").Record(t)
	answers := s.AtOnce(t, 16, s.ann.Posting(wiretest.Root+"/event", wiretest.EventBody("rejecting", r.ID, "go", `{"a":1}`)))
	won := 0
	for _, a := range answers {
		if a.Status == 200 {
			won++
		} else if reason := a.FaultReason(409, "EventNotAllowed"); reason != "" {
			t.Error(reason)
		}
	}
	after := s.ann.Load(t, "rejecting", r.ID).Record(t)
	assert.True(t, won == 1 && len(after.History) == 2, "got %d winners and %d entries, want 1 and 2", won, len(after.History))
}

func enabledButForbidden(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	r = s.ann.Event(t, "order", r.ID, "submit", "").Record(t)
	s.ann.Event(t, "order", r.ID, "approve", `{"x":1}`).WantFault(t, 403, "AccessDenied")
	s.unchanged(t, r)
	r = s.bob.Event(t, "order", r.ID, "approve", "").Record(t)
	assert.Equal(t, []string{"approved", "unpaid"}, r.Nodes(), "states after the approver's event: got %v", r.States)
}

// neverAllowed: in a state where nothing takes the event, who could send it nowhere is refused, and who could is recorded.
func neverAllowed(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	s.ann.Event(t, "order", r.ID, "approve", "").WantFault(t, 403, "AccessDenied")
	s.unchanged(t, r)
	assert.Len(t, s.bob.Event(t, "order", r.ID, "approve", "").Record(t).History, 2, "the approver's event left")
	s.ann.Event(t, "order", r.ID, "submit", "").Record(t)
	after := s.bob.Event(t, "order", r.ID, "approve", "").Record(t)
	s.ann.Event(t, "order", r.ID, "approve", "").WantFault(t, 403, "AccessDenied")
	s.unchanged(t, after)
}

// attemptsShow: an entry of which nothing but itself is left says so, and no other.
func attemptsShow(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	for _, event := range []string{"submit", "note", "spare"} {
		s.ann.Event(t, "order", r.ID, event, `{"x":1}`).Record(t)
	}
	type entry struct {
		Kind, TransitionEvent string
		Attempt               *bool
	}
	path := wiretest.Root + "/instance/order/" + r.ID
	for query, member := range map[string]string{"/history?fields=data": "history", "/activity?order=asc": "activity", "/history": ""} {
		lists := wiretest.Decode[map[string]json.RawMessage](t, s.ann.Get(t, path+query).Body)
		list := wiretest.Decode[[]entry](t, lists[cmp.Or(member, "history")])
		for _, e := range list {
			want := member != "" && e.TransitionEvent == "spare"
			assert.True(t, (e.Attempt != nil) == want && (!want || *e.Attempt), "%s: %q is an attempt: %v, want %v", query, e.TransitionEvent, e.Attempt, want)
		}
		assert.Len(t, list, 4, query)
	}
}

func executionErrorStoresNothing(t *testing.T, s *scene) {
	r := s.ann.Create(t, "order", "").Record(t)
	s.ann.Event(t, "order", r.ID, "boom", `{"a":1}`).WantFault(t, 500, "MarshallingError")
	s.unchanged(t, r)
	s.ann.Event(t, "order", r.ID, "note", "").Record(t)
}
