package wiretest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"
)

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Closes bool // the server ends the connection behind it
}

// ReadAnswer reads one answer.
func ReadAnswer(r *bufio.Reader, method string) (Answer, error) {
	res, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer's body: %w", err)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: string(body), Closes: res.Close}, nil
}

// Decode reads JSON and requires its kind.
func Decode[T any, S ~string | ~[]byte](t testing.TB, text S) T {
	t.Helper()
	var v *T
	if err := json.Unmarshal([]byte(text), &v); err != nil || v == nil {
		t.Fatalf("got %.600s, want a %T (%v)", text, *new(T), err)
	}
	return *v
}

// WantStatus requires a status.
func (a Answer) WantStatus(t testing.TB, status int) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %.600s, want %d", a.Status, a.Body, status)
	}
}

// fault reads the body of an error; a body that is none has an empty one.
func (a Answer) fault() (f struct{ Error, Message string }) {
	_ = json.Unmarshal([]byte(a.Body), &f)
	return f
}

// Label is the member error of an error.
func (a Answer) Label() string { return a.fault().Error }

// Message is the member message of an error.
func (a Answer) Message() string { return a.fault().Message }

// FaultReason says what is wrong with an error answer, "" for nothing.
func (a Answer) FaultReason(status int, label string) string {
	retry := a.Header.Get("Retry-After")
	switch {
	case a.Status != status || a.Label() != label || a.Message() == "":
		return fmt.Sprintf("got %d %.600s, want %d %s", a.Status, a.Body, status, label)
	case (retry != "") != (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests):
		return fmt.Sprintf("header Retry-After of a %d: got %q", status, retry)
	}
	return ""
}

// WantFault requires an error.
func (a Answer) WantFault(t testing.TB, status int, label string) {
	t.Helper()
	if reason := a.FaultReason(status, label); reason != "" {
		t.Fatal(reason)
	}
}

// Position is an entry of states.
type Position struct{ StateMachineID, NodeID string }

// Entry is an entry of svcHistory.
type Entry struct {
	User            string
	StartState      []string
	TransitionEvent string
	EndState        []string
	TS              string
}

// Record is an instance record.
type Record struct {
	ID, WorkflowID  string
	Public, Private string // JSON, as it came
	History         []Entry
	States          []Position
	Redirect        *string // nil: not there
	Text            string  // the whole record, as it came
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(text []byte) error {
	var in struct {
		ID                    string `json:"_id"`
		WorkflowID            string
		SvcPublic, SvcPrivate json.RawMessage
		SvcHistory            []Entry
		States                []Position
		SvcRedirect           *string
	}
	err := json.Unmarshal(text, &in)
	*r = Record{in.ID, in.WorkflowID, string(in.SvcPublic), string(in.SvcPrivate), in.SvcHistory, in.States, in.SvcRedirect, string(text)}
	return err
}

// ReadRecord reads the answer of create, event and instance.
func (a Answer) ReadRecord() (Record, error) {
	var whole struct {
		WorkflowID, InstanceID string
		State                  Record
	}
	err := json.Unmarshal([]byte(a.Body), &whole)
	r := whole.State
	if err != nil || a.Status != http.StatusOK || r.ID == "" || whole.InstanceID != "" && (whole.InstanceID != r.ID || whole.WorkflowID != r.WorkflowID) {
		return r, fmt.Errorf("got %d %.600s, want an instance record (%v)", a.Status, a.Body, err)
	}
	return r, nil
}

// Record requires the answer of create, event and instance.
func (a Answer) Record(t testing.TB) Record {
	t.Helper()
	r, err := a.ReadRecord()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// timestamp is the form of ts (gateway/INTERFACE.md, "Time stamps").
var timestamp = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$`)

// HistoryReason holds what every history has, whatever happened: it returns the first thing that is wrong, or "".
func (r *Record) HistoryReason() string {
	last := ""
	for i, e := range r.History {
		switch _, err := time.Parse(time.RFC3339, e.TS); {
		case err != nil || !timestamp.MatchString(e.TS):
			return fmt.Sprintf("entry %d: ts %q is not RFC 3339 in UTC with milliseconds", i+1, e.TS)
		case e.TS < last:
			return fmt.Sprintf("entry %d: ts goes back from %s to %s", i+1, last, e.TS)
		case i == 0 && e.TransitionEvent != "":
			return fmt.Sprintf("entry 1: transitionEvent is %q, want empty", e.TransitionEvent)
		case i > 0 && !slices.Equal(e.StartState, r.History[i-1].EndState):
			return fmt.Sprintf("entry %d starts in %q, but the one before ended in %q", i+1, e.StartState, r.History[i-1].EndState)
		}
		last = e.TS
	}
	if len(r.History) == 0 {
		return "the history is empty"
	}
	if got, want := r.Nodes(), r.History[len(r.History)-1].EndState; !slices.Equal(got, want) {
		return fmt.Sprintf("states are %q, but the last endState is %q", got, want)
	}
	return ""
}

// Nodes returns the nodeIds of States, in their order.
func (r *Record) Nodes() (nodes []string) {
	for _, s := range r.States {
		nodes = append(nodes, s.NodeID)
	}
	return nodes
}

// Where returns the "stateMachineId/nodeId" of States, in their order.
func (r *Record) Where() (places []string) {
	for _, s := range r.States {
		places = append(places, s.StateMachineID+"/"+s.NodeID)
	}
	return places
}
