package endtoend

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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

// record is an instance record as the interface describes it.
type record struct {
	ID, WorkflowID  string
	Public, Private string // JSON, as it came
	History         []entry
	States          []position
	Redirect        *string // nil: not there
	text            string  // the whole record, as it came
}

// objectOf decodes an object and demands exactly the members that are named,
// where a name that ends in "?" may be missing.
func objectOf(t testing.TB, text string, names ...string) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&members); err != nil || members == nil {
		t.Fatalf("got %s, want an object (%v)", clip(text), err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Fatalf("something follows the object: %s", clip(text))
	}
	for _, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		if _, there := members[name]; !there && !optional {
			t.Errorf("member %q is missing: %s", name, clip(text))
		}
	}
	for name := range members {
		if !slices.Contains(names, name) && !slices.Contains(names, name+"?") {
			t.Errorf("member %q is unknown to the interface: %s", name, clip(text))
		}
	}
	return members
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
	names := []string{"workflowId", "instanceId", "state"}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a.body), &whole); err != nil {
		t.Fatalf("got %s, want JSON (%v)", clip(a.body), err)
	}
	if whole["instanceId"] == nil { // GET instance has only the state
		names = []string{"state"}
	}
	members := objectOf(t, a.body, names...)
	r := recordOf(t, string(members["state"]))
	if id := members["instanceId"]; id != nil {
		if got := decode[string](t, id); got != r.ID {
			t.Errorf("instanceId: got %q, want the record's _id %q", got, r.ID)
		}
		if got := decode[string](t, members["workflowId"]); got != r.WorkflowID {
			t.Errorf("workflowId: got %q, want the record's %q", got, r.WorkflowID)
		}
	}
	return r
}

// recordOf reads an instance record; svcHistory may have been asked away.
func recordOf(t testing.TB, text string) record {
	t.Helper()
	m := objectOf(t, text, "_id", "workflowId", "svcPublic", "svcPrivate", "svcHistory?", "states", "svcRedirect?")
	r := record{
		ID: decode[string](t, m["_id"]), WorkflowID: decode[string](t, m["workflowId"]),
		Public: string(m["svcPublic"]), Private: string(m["svcPrivate"]), text: text,
	}
	for name, object := range map[string]string{"svcPublic": r.Public, "svcPrivate": r.Private} {
		if !strings.HasPrefix(object, "{") {
			t.Errorf("%s: got %s, want an object", name, clip(object))
		}
	}
	for _, item := range decode[[]json.RawMessage](t, m["states"]) {
		s := objectOf(t, string(item), "stateMachineId", "nodeId")
		r.States = append(r.States, position{decode[string](t, s["stateMachineId"]), decode[string](t, s["nodeId"])})
	}
	if m["svcHistory"] != nil {
		for _, item := range decode[[]json.RawMessage](t, m["svcHistory"]) {
			r.History = append(r.History, entryOf(t, string(item)))
		}
	}
	if m["svcRedirect"] != nil {
		to := decode[string](t, m["svcRedirect"])
		r.Redirect = &to
	}
	return r
}

func entryOf(t testing.TB, text string) entry {
	t.Helper()
	m := objectOf(t, text, "user", "startState", "transitionEvent", "endState", "ts")
	return entry{
		User:            decode[string](t, m["user"]),
		StartState:      decode[[]string](t, m["startState"]),
		TransitionEvent: decode[string](t, m["transitionEvent"]),
		EndState:        decode[[]string](t, m["endState"]),
		TS:              decode[string](t, m["ts"]),
	}
}

// ulid is Crockford's base 32 of 128 bits.
var ulid = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

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
	if a.status != status {
		return fmt.Sprintf("got %d %s, want %d %s", a.status, clip(a.body), status, word)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		return fmt.Sprintf("the body of %d is no JSON: %s", a.status, clip(a.body))
	}
	message, isText := body["message"].(string)
	if names := slices.Sorted(maps.Keys(body)); !slices.Equal(names, []string{"error", "message"}) || !isText || message == "" {
		return fmt.Sprintf("the body is not {error, message}: %s", clip(a.body))
	}
	if got := body["error"]; got != word {
		return fmt.Sprintf("error: got %v, want %q; body %s", got, word, clip(a.body))
	}
	if !utf8.ValidString(a.body) {
		return fmt.Sprintf("the body is not UTF-8: %q", clip(a.body))
	}
	return headersReason(a)
}

// packedBytesMin is from where JSON is packed (gateway/DESIGN.md, "Compression").
const packedBytesMin = 4 << 10

// headersReason says what is wrong with the headers that every answer has
// (gateway/INTERFACE.md, "Common headers").
func headersReason(a answer) string {
	for name, want := range map[string]string{
		"Content-Type":           "application/json",
		"Cache-Control":          "no-store",
		"Vary":                   "Cookie, Authorization, Authentication",
		"X-Content-Type-Options": "nosniff",
	} {
		if name == "Vary" && len(a.body) >= packedBytesMin && a.header.Get("Content-Length") != "" {
			want += ", Accept-Encoding" // it would be packed for those who ask
		}
		if got := a.header.Values(name); !slices.Equal(got, []string{want}) {
			return fmt.Sprintf("header %s of a %d: got %q, want %q", name, a.status, got, want)
		}
	}
	if retry := a.header.Get("Retry-After"); (retry != "") != (a.status == http.StatusServiceUnavailable || a.status == http.StatusTooManyRequests) {
		return fmt.Sprintf("header Retry-After of a %d: got %q", a.status, retry)
	}
	return ""
}

// wantSameMeaning demands that two JSON texts have the same keys in the same
// order, the same literals of numbers and the same decoded strings.
func wantSameMeaning(t testing.TB, got, want string) {
	t.Helper()
	gotTokens, wantTokens := tokens(t, got), tokens(t, want)
	if !slices.Equal(gotTokens, wantTokens) {
		t.Errorf("free-form data changed:\n got %s\nwant %s", clip(got), clip(want))
	}
}

// tokens flattens a JSON text; strings are marked, so that "1" is not 1.
func tokens(t testing.TB, text string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var out []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatalf("read %s: %v", clip(text), err)
		}
		out = append(out, fmt.Sprintf("%T %v", token, token))
	}
}

const nowhere = "01JD0000000000000000000000" // an instance id that nobody has

// wantSameAnswer demands two answers that nobody can tell apart.
func wantSameAnswer(t testing.TB, got, want answer) {
	t.Helper()
	got.header, want.header = got.header.Clone(), want.header.Clone()
	got.header.Del("Date")
	want.header.Del("Date")
	if got.status != want.status || got.body != want.body || !maps.EqualFunc(got.header, want.header, slices.Equal) {
		t.Errorf("two answers can be told apart:\n%d %s %v\n%d %s %v", got.status, got.body, got.header, want.status, want.body, want.header)
	}
}

// quoted is a JSON string.
func quoted(s string) string {
	text, _ := json.Marshal(s) // no string makes this fail
	return string(text)
}
