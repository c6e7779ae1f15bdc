package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"
)

// position is an entry of states.
type position struct{ StateMachineID, NodeID string }

// entry is an entry of svcHistory.
type entry struct {
	User            string
	StartState      []string
	TransitionEvent string
	EndState        []string
	TS              string
}

// record is what is asked of an instance record.
type record struct {
	ID         string `json:"_id"`
	WorkflowID string
	History    []entry `json:"svcHistory"`
	States     []position
	text       string // the whole record, as it came
}

// decode reads one value and demands its kind.
func decode[T any](t testing.TB, text json.RawMessage) T {
	t.Helper()
	var v *T
	if err := json.Unmarshal(text, &v); err != nil || v == nil {
		t.Fatalf("got %s, want a %T (%v)", clip(string(text)), *new(T), err)
	}
	return *v
}

func clip(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

// record reads the answer of create, event and instance.
func (a answer) record(t testing.TB) record {
	t.Helper()
	wantStatus(t, a, 200)
	text := decode[map[string]json.RawMessage](t, json.RawMessage(a.body))["state"]
	r := decode[record](t, text)
	r.text = string(text)
	return r
}

// timestamp is the form of ts (gateway/INTERFACE.md, "Time stamps").
var timestamp = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`)

// checkHistory holds what every history has, whatever happened: it returns the
// first thing that is wrong, or "".
func checkHistory(history []entry, states []position) string {
	last := ""
	for i, e := range history {
		if _, err := time.Parse(time.RFC3339, e.TS); err != nil || !timestamp.MatchString(e.TS) {
			return fmt.Sprintf("entry %d: ts %q is not RFC 3339 in UTC with milliseconds", i+1, e.TS)
		}
		if e.TS < last {
			return fmt.Sprintf("entry %d: ts goes back from %s to %s", i+1, last, e.TS)
		}
		last = e.TS
		if i == 0 && e.TransitionEvent != "" {
			return fmt.Sprintf("entry 1: transitionEvent is %q, want empty", e.TransitionEvent)
		}
		if i > 0 && !slices.Equal(e.StartState, history[i-1].EndState) {
			return fmt.Sprintf("entry %d starts in %q, but the one before ended in %q", i+1, e.StartState, history[i-1].EndState)
		}
	}
	if len(history) == 0 {
		return "the history is empty"
	}
	if got := nodes(states); !slices.Equal(got, history[len(history)-1].EndState) {
		return fmt.Sprintf("states are %q, but the last endState is %q", got, history[len(history)-1].EndState)
	}
	return ""
}

// nodes returns the nodeIds of states, in their order.
func nodes(states []position) []string {
	var out []string
	for _, s := range states {
		out = append(out, s.NodeID)
	}
	return out
}

func wantStatus(t testing.TB, a answer, status int) {
	t.Helper()
	if a.status != status {
		t.Fatalf("got %d %s, want %d", a.status, clip(a.body), status)
	}
}

// wantFault demands an error of group B: status, word and the body's shape.
func wantFault(t testing.TB, a answer, status int, word string) {
	t.Helper()
	if reason := faultReason(a, status, word); reason != "" {
		t.Fatal(reason)
	}
}

// faultReason says what is wrong with an error answer, "" for nothing.
func faultReason(a answer, status int, word string) string {
	var body struct{ Error, Message string }
	_ = json.Unmarshal([]byte(a.body), &body) // what is no JSON has no word
	if a.status != status || body.Error != word || body.Message == "" {
		return fmt.Sprintf("got %d %s, want %d %s", a.status, clip(a.body), status, word)
	}
	if retry := a.header.Get("Retry-After"); (retry != "") != (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests) {
		return fmt.Sprintf("header Retry-After of a %d: got %q", a.status, retry)
	}
	return ""
}
