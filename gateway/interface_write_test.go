package gateway_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInterfaceCreate(t *testing.T) {
	runLines(t, []line{
		{`gateway/INTERFACE.md, "Success is 200"`, "creates included: {workflowId, instanceId, state}, and GET shows the same record", createAnswers},
		{`gateway/INTERFACE.md, "First history entry"`, "the caller, Start for each machine, the initial nodes and no event", instancesBegin},
		{`gateway/INTERFACE.md, "Order of machines"`, "states follow the file, from YAML and from JSON", instancesBegin},
		{`gateway/INTERFACE.md, "Instance identifiers"`, "_id is a ULID of the server, sortable by creation time", idsAreSortable},
		{`gateway/INTERFACE.md, "Redirect"`, "it is shown while it is set", redirectIsShown},
		{`gateway/INTERFACE.md, "Create data"`, "its keys take the place of those of the context", createData},
		{`gateway/INTERFACE.md, "Create data"`, "it is what the create block lets through", createBlockIsAsked},
		{`gateway/INTERFACE.md, "The record"`, "data comes back as it was sent", dataComesBack},
		{`gateway/INTERFACE.md, "Event data"`, "where it goes", eventData},
		{`gateway/INTERFACE.md, "Event data"`, "what its event does not declare is refused", eventDataIsRefused},
		{`gateway/INTERFACE.md, "Unmatched events"`, "apply takes the data, from whom its allow names", applyIsAsked},
		{`gateway/INTERFACE.md, "Size of an instance"`, "it is checked before the commit", sizeIsChecked},
		{`gateway/INTERFACE.md, "Size of an instance"`, "the history has no limit", historyIsUnlimited},
	})
}

func createAnswers(t *testing.T, s *scene) {
	a := s.ann.Create(t, "order", "")
	r := a.Record(t)
	assert.Empty(t, r.HistoryReason())
	s.unchanged(t, r)
}

func instancesBegin(t *testing.T, s *scene) {
	for workflow, want := range map[string][]string{
		"plain":  {"main/a"},
		"order":  {"review/draft", "billing/unpaid"},
		"codes":  {"zeta/z1", "alpha/a1", "mid/m1"},
		"nested": {"main/inner"},
	} {
		r := s.bob.Create(t, workflow, "").Record(t)
		require.True(t, r.WorkflowID == workflow && slices.Equal(r.Where(), want) && len(r.History) == 1, "%v %v %v", workflow, r.Text, want)
		first := r.History[0]
		start := slices.Repeat([]string{"Start"}, len(want))
		assert.True(t, first.User == "bob" && first.TransitionEvent == "" && slices.Equal(first.StartState, start) && slices.Equal(first.EndState, r.Nodes()),
			"%s: the first entry is %v", workflow, first)
	}
}

// ulid is Crockford's base 32 of 128 bits.
var ulid = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

func idsAreSortable(t *testing.T, s *scene) {
	last := ""
	for range 20 {
		before := time.Now().UnixMilli()
		id := s.ann.Create(t, "plain", "").Record(t).ID
		require.True(t, ulid.MatchString(id), "_id: got %q, want a ULID", id)
		ms := int64(0)
		for _, c := range id[:10] {
			ms = ms<<5 | int64(strings.IndexRune("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c))
		}
		assert.True(t, ms >= before-1000 && ms <= time.Now().UnixMilli()+1000, "_id %s was made at %d ms, want about %d", id, ms, before)
		assert.True(t, id != last && (id > last || id[:10] == last[:10]), "_id %s was made after %s but is not behind it", id, last)
		last = id
	}
}

func redirectIsShown(t *testing.T, s *scene) {
	r := s.ann.Create(t, "guide", "").Record(t)
	want := "/rooms/" + r.ID
	assert.True(t, r.Redirect != nil && *r.Redirect == want, "svcRedirect: got %s, want %q", r.Text, want)
	for _, r := range []record{s.ann.Event(t, "guide", r.ID, "leave", "").Record(t), s.ann.Create(t, "plain", "").Record(t)} {
		assert.Nil(t, r.Redirect, "svcRedirect: got %s, want no such member", r.Text)
	}
}

func createData(t *testing.T, s *scene) {
	for _, c := range []struct{ workflow, content, public, private string }{
		{"plain", ``, `{}`, `{}`},
		{"plain", `{}`, `{}`, `{}`},
		{"plain", `{"svcPublic":{"a":1}}`, `{"a":1}`, `{}`},
		{"plain", `{"svcPrivate":{"b":2}}`, `{}`, `{"b":2}`},
		{"order", ``, `{"status":"new","limits":{"low":1,"high":9},"note":"none"}`, `{"margin":3,"secret":"s3"}`},
		{
			"order", `{"svcPublic":{"new":1,"status":null,"limits":{"high":5}},"svcPrivate":{"margin":{"a":1}}}`,
			`{"status":null,"limits":{"high":5},"note":"none","new":1}`, `{"margin":{"a":1},"secret":"s3"}`,
		},
	} {
		r := s.ann.Create(t, c.workflow, c.content).Record(t)
		wantSameMeaning(t, r.Public, c.public)
		wantSameMeaning(t, r.Private, c.private)
	}
}

func createBlockIsAsked(t *testing.T, s *scene) {
	for _, content := range []string{
		``, `{"svcPublic":{}}`, `{"svcPublic":{"n":"1"}}`, `{"svcPublic":{"n":1,"kind":"best"}}`, `{"svcPublic":{"n":1},"svcPrivate":{"owner":"ann"}}`,
	} {
		assert.Empty(t, s.ann.Create(t, "bound", content).FaultReason(400, "InvalidContent"), "data %s", content)
	}
	r := s.ann.Create(t, "bound", `{"svcPublic":{"n":7},"svcPrivate":{}}`).Record(t)
	wantSameMeaning(t, r.Public+r.Private, `{"n":7,"kind":"plain"}{"owner":"nobody"}`)
}

// torture is data that other programs garble (persistence/PROMISES.md, "F15").
const torture = `{"zz":1,"a":9007199254740993,"":"empty key","a.b":1e400,"neg":-0,"long":123456789012345678901234567890.123456789,` +
	`"exp":1E-7,"one":1.0,"esc":"\u0041\n\t\"\\\/\u2028\u0000","emoji":"😀\ud83d\ude00","nfd":"u\u0308","html":"<a>&'</a>","svcPublic":{"_id":1},` +
	`"__proto__":{"constructor":[null]},"$where":"x","Z":[1,[2,[]],{},{"b":2,"a":1},null,true,false],"zZ":"ſK"}`

func dataComesBack(t *testing.T, s *scene) {
	r := s.ann.Create(t, "plain", `{"svcPublic":`+torture+`,"svcPrivate":`+torture+`}`).Record(t)
	wantSameMeaning(t, r.Private, torture)
	wantSameMeaning(t, r.Public, torture)
	r = s.ann.Event(t, "plain", r.ID, "note", `{"more":`+torture+`}`).Record(t)
	wantSameMeaning(t, r.Public, strings.TrimSuffix(torture, "}")+`,"more":`+torture+`}`)
	s.unchanged(t, r)
}

const bothPlaces = `{"svcPublic":{"p":1,"q":{"r":1}},"svcPrivate":{"s":1}}`

func eventData(t *testing.T, s *scene) {
	const plainPublic, orderPublic, orderPrivate = `{"p":1,"q":{"r":1}}`, `{"status":"new","limits":{"low":1,"high":9},"note":"none","p":1,"q":{"r":1}}`, `{"margin":3,"secret":"s3","s":1}`
	for _, c := range []struct{ workflow, event, data, public, private string }{
		{"plain", "note", ``, plainPublic, `{"s":1}`},
		{"plain", "note", `{}`, plainPublic, `{"s":1}`},
		{"plain", "note", `{"svcPrivate":{"s":2},"svcPublic":{"q":{"t":2}}}`, `{"p":1,"q":{"r":1,"t":2}}`, `{"s":2}`},
		{"plain", "note", `{"p":null,"q":{"r":null,"u":{"v":null}}}`, `{"q":{"u":{}}}`, `{"s":1}`},
		{"plain", "note", `{"svcpublic":{"a":1}}`, `{"p":1,"q":{"r":1},"svcpublic":{"a":1}}`, `{"s":1}`},
		{
			"plain", "note", `{"_id":"x","workflowId":"y","states":[],"svcHistory":[],"svcRedirect":"/evil"}`,
			`{"p":1,"q":{"r":1},"_id":"x","workflowId":"y","states":[],"svcHistory":[],"svcRedirect":"/evil"}`, `{"s":1}`,
		},
		{"order", "into", `{"a":1,"margin":null}`, orderPublic, `{"secret":"s3","s":1,"a":1}`},
		{"order", "hide", `{"a":1}`, orderPublic, `{"margin":3,"secret":"s3","s":1,"a":1}`},
		{"order", "over", `{"a":null}`, orderPublic, `{"a":null}`},
		{"order", "swap", `{"svcPublic":{"a":1}}`, `{"a":1}`, orderPrivate},
		{"order", "drop", `{"a":1}`, orderPublic, orderPrivate},
		{"order", "checked", `{"comment":"fine"}`, strings.TrimSuffix(orderPublic, "}") + `,"comment":"fine"}`, orderPrivate},
		{"order", "set", `{"note":"x"}`, `{"status":"new","limits":{"low":1,"high":9},"note":"x","p":1,"q":{"r":1},"by":"ann","plain":"user.id"}`, orderPrivate},
		{"order", "cheap", `{"amount":50,"limits":{"high":100}}`, orderPublic, orderPrivate}, // the guard sees the old limit
	} {
		r := s.ann.Create(t, c.workflow, bothPlaces).Record(t)
		after := s.ann.Event(t, c.workflow, r.ID, c.event, c.data).Record(t)
		wantSameMeaning(t, after.Public, c.public)
		wantSameMeaning(t, after.Private, c.private)
		assert.True(t, after.ID == r.ID && after.Redirect == nil && len(after.History) == 2 && slices.Equal(after.States, r.States),
			"%s with %s: got %s, want nothing but data and an entry", c.event, c.data, after.Text)
	}
}

func eventDataIsRefused(t *testing.T, s *scene) {
	for workflow, sent := range map[string][][2]string{
		"plain": {
			{"go", `{"svcPrivate":{"a":1}}`},
			{"go", `{"svcPublic":{"a":1},"svcPrivate":{}}`},
			{"note", `{"svcPublic":{"a":1},"b":2}`},
			{"note", `{"svcPrivate":{"a":1},"svcPublic":[]}`},
			{"note", `{"svcPublic":null}`},
		},
		"order": {
			{"hide", `{"svcPrivate":{"a":1}}`},
			{"into", `{"svcPublic":{"a":1}}`},
			{"drop", `{"svcPrivate":{"a":1}}`},
			{"checked", ``},
			{"checked", `{"comment":7}`},
		},
	} {
		r := s.ann.Create(t, workflow, bothPlaces).Record(t)
		for _, c := range sent {
			if reason := s.ann.Event(t, workflow, r.ID, c[0], c[1]).FaultReason(400, "InvalidContent"); reason != "" {
				t.Errorf("%s with %s: %s", c[0], c[1], reason)
			}
		}
		s.unchanged(t, r)
	}
}

func applyIsAsked(t *testing.T, s *scene) {
	r := s.ann.Create(t, "bound", `{"svcPublic":{"n":11}}`).Record(t)
	r = s.ann.Event(t, "bound", r.ID, "close", "").Record(t)
	s.ann.Event(t, "bound", r.ID, "comment", `{"text":"mine"}`).WantFault(t, 403, "AccessDenied")
	s.unchanged(t, r)
	after := s.bob.Event(t, "bound", r.ID, "comment", `{"text":"fine"}`).Record(t)
	wantSameMeaning(t, after.Public, `{"n":11,"kind":"plain","limit":10,"text":"fine"}`)
	assert.True(t, len(after.History) == 3 && after.States[0] == r.States[0], "got %s, want one entry more and the same state", after.Text)
}

func sizeIsChecked(t *testing.T, s *scene) {
	half := `"` + strings.Repeat("x", 600<<10) + `"`
	r := s.ann.Create(t, "plain", `{"svcPublic":{"a":`+half+`}}`).Record(t)
	s.ann.Event(t, "plain", r.ID, "note", `{"b":`+half+`}`).WantFault(t, 413, "TooLarge")
	s.unchanged(t, r)
	s.ann.Event(t, "plain", r.ID, "note", `{"a":`+half+`}`).Record(t)
	// Small events that add up meet the same limit.
	part := `"` + strings.Repeat("y", 200<<10) + `"`
	s.ann.Event(t, "plain", r.ID, "note", `{"c":`+part+`,"d":`+part+`}`).Record(t)
	s.ann.Event(t, "plain", r.ID, "note", `{"e":`+part+`}`).WantFault(t, 413, "TooLarge")
}

// historyIsUnlimited makes a history that is larger than an instance may be without
// it: its nodes have long names.
func historyIsUnlimited(t *testing.T, s *scene) {
	var regions strings.Builder
	for i := range 60 {
		name := fmt.Sprintf("%s%d", strings.Repeat("n", 60), i)
		regions.WriteString(name + "r: {initial: " + name + ", states: {" + name + ": {}}}, ")
	}
	s.Write("workflows/long.yaml", "id: long\nstateMachines: {m: {initial: p, on: {go: {}}, states: {p: {type: parallel, states: {"+regions.String()+"}}}}}\n")
	r := s.ann.Create(t, "long", "").Record(t)
	early := s.ann.Event(t, "long", r.ID, "go", "", "Idempotency-Key: early")
	const events = 200
	for range events {
		s.ann.Event(t, "long", r.ID, "go", "", "Prefer: return=minimal").WantStatus(t, 200)
	}
	last := s.ann.Event(t, "long", r.ID, "go", "", "Idempotency-Key: last")
	got := last.Record(t)
	reason := got.HistoryReason()
	assert.True(t, reason == "" && len(got.History) == events+3 && len(got.Text) >= 1<<20, "%v %v %v %v", len(got.History), len(got.Text), events+3, reason)
	s.unchanged(t, got)
	wantRepeat(t, "the first event", s.ann.Event(t, "long", r.ID, "go", "", "Idempotency-Key: early"), early)
	wantRepeat(t, "the last event", s.ann.Event(t, "long", r.ID, "go", "", "Idempotency-Key: last"), last)
}
