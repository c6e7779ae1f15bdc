package endtoend

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// wrong is one wrong input and how it must be answered.
type wrong struct {
	what   string
	ask    ask
	status int
	word   string
}

// refuses sends every wrong input. Each must be answered as said; at the end no
// instance may have changed, none may have come, and the program must answer.
func (s *scene) refuses(t *testing.T, cases []wrong) {
	t.Helper()
	guarded := s.guard(t)
	for _, c := range cases {
		a, err := s.try(c.ask)
		if err != nil {
			t.Errorf("%s: no answer: %v", c.what, err)
			continue
		}
		if reason := faultReason(a, c.status, c.word); reason != "" {
			t.Errorf("%s: %s", c.what, reason)
		}
	}
	guarded()
}

// guard remembers all instances of the workflow plain; the function that it
// returns demands that they are as they were and that the program works.
func (s *scene) guard(t *testing.T) func() {
	t.Helper()
	kept := s.ann.create(t, "plain", `{"svcPublic":{"kept":true}}`).record(t)
	before := s.adm.query(t, "plain", "").body
	return func() {
		t.Helper()
		s.unchanged(t, kept)
		if after := s.adm.query(t, "plain", "").body; after != before {
			t.Errorf("the instances changed:\n got %s\nwant %s", clip(after), clip(before))
		}
		wantStatus(t, s.ann.get(t, "/readyz"), 200)
		r := s.ann.create(t, "codes", "").record(t)
		if after := s.ann.event(t, "codes", r.ID, "next", "").record(t); len(after.History) != 2 {
			t.Errorf("history after a right event: got %d entries, want 2", len(after.History))
		}
	}
}

// quoted is a JSON string.
func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // no string makes this fail
	}
	return string(text)
}

// strangeIDs are texts that are no identifiers, or not of this instance
// (gateway/INTERFACE.md, "Identifiers").
func strangeIDs(id string) []string {
	return []string{
		"", ".", "..", "...", "-a", "_a", "~a", ".a", "a/b", "/", "a\\b", "a\x00b", "\x00", "a\r\nb", "a b", " a", "a ", "a;b=c", "a?b", "a#b",
		"a+b", "a%b", "a%2fb", "*", "ä", "a\u0308", "ａ", "а", "__proto__", "$where", strings.Repeat("a", 129), strings.Repeat("a", 5000),
		id + "x", id[:25], strings.ToLower(id), "0" + id, id + "/", "{" + id + "}", `"`, "'", "<id>", "\u202e" + id, "plain1", "plai",
	}
}

func TestWrongInputBodies(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	var cases []wrong
	for _, body := range wrongTexts(r.ID) {
		for _, path := range []string{root + "/create", root + "/event"} {
			cases = append(cases, wrong{path + " " + clip(body), s.ann.posting(path, body), 400, "InvalidContent"})
		}
	}
	for _, body := range wrongCreates() {
		cases = append(cases, wrong{"create " + clip(body), s.ann.posting(root+"/create", body), 400, "InvalidContent"})
	}
	for _, body := range wrongEvents(r.ID) {
		cases = append(cases, wrong{"event " + clip(body), s.ann.posting(root+"/event", body), 400, "InvalidContent"})
	}
	s.refuses(t, cases)
	s.unchanged(t, r)
}

// wrongTexts are no JSON objects for any route.
func wrongTexts(id string) []string {
	whole := `{"workflowId":"plain","instanceId":"` + id + `","event":{"name":"go","data":{"x":X}}}`
	with := func(value string) string { return strings.Replace(whole, "X", value, 1) }
	texts := []string{
		``, ` `, `null`, `[]`, `"x"`, `1`, `true`, `{`, `}`, `{}x`, `{"a"}`, `{"a":}`, `{a:1}`, `{'a':1}`, `{"a":1,}`, `{,}`, `[{}]`,
		`{"a":1 "b":2}`, `// comment` + "\n{}", `{/*x*/}`, "\ufeff{}", "\x00", `{"a":1}` + "\x00", "\xff\xfe{\x00}\x00", `workflowId=plain`,
		with(`1}}} {"a":1`), with(`{"a":1,"a":2}`), with(`{"a":1,"\u0061":2}`), with(`{"":1,"":2}`),
		strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), strings.Repeat("[", 500_000),
	}
	for _, value := range []string{
		`NaN`, `Infinity`, `-Infinity`, `+1`, `01`, `1.`, `.5`, `0x1`, `1e`, `1e+`, `--1`, `1_000`, `True`, `nil`, `undefined`, `'x'`,
		`"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", `"\x41"`, `"\u12"`, "\"a\nb\"", "\"\x00\"", `"open`,
		`{"\ud800":1}`, strings.Repeat("[", 64) + strings.Repeat("]", 64),
	} {
		texts = append(texts, with(value))
	}
	return texts
}

func wrongCreates() []string {
	bodies := []string{
		`{}`, `{"data":{}}`, `{"workflowID":"plain"}`, `{"WorkflowId":"plain"}`, `{"workflowId":"plain","WORKFLOWID":"codes"}`,
		`{"workflowId":"plain","instanceId":"x"}`, `{"workflowId":"plain","event":{}}`, `{"workflowId":"plain","Data":{}}`,
		`{"workflowId":"plain","svcPublic":{}}`, `{"workflowId":"plain","version":2}`, `{"workflowId":"plain","__proto__":{}}`,
	}
	for _, value := range []string{`null`, `1`, `true`, `[]`, `{}`, `["plain"]`} {
		bodies = append(bodies, `{"workflowId":`+value+`}`)
	}
	for _, value := range []string{`null`, `1`, `"x"`, `[]`, `false`, `[{}]`} {
		bodies = append(bodies,
			`{"workflowId":"plain","data":`+value+`}`,
			`{"workflowId":"plain","data":{"svcPublic":`+value+`}}`,
			`{"workflowId":"plain","data":{"svcPrivate":`+value+`}}`)
	}
	for _, member := range []string{"_id", "workflowId", "states", "svcHistory", "svcRedirect", "SvcPublic", "svcpublic", "svcPublic ", "", "constructor"} {
		bodies = append(bodies, `{"workflowId":"plain","data":{"svcPublic":{},`+quoted(member)+`:{}}}`)
	}
	return bodies
}

func wrongEvents(id string) []string {
	const name = `"name":"go"`
	head := `{"workflowId":"plain","instanceId":"` + id + `",`
	bodies := []string{
		head + `"event":{}}`, head + `"event":{"data":{}}}`, head + `"name":"go"}`, head + `"event":{` + name + `},"data":{}}`,
		head + `"event":{"Name":"go"}}`, head + `"event":{` + name + `,"Data":{}}}`, head + `"event":{` + name + `,"user":"bob"}}`,
		head + `"event":{` + name + `,"ts":"2020-01-01T00:00:00Z"}}`, head + `"Event":{` + name + `}}`, head[:len(head)-1] + `}`,
		`{"workflowId":"plain","event":{` + name + `}}`, `{"instanceId":"` + id + `","event":{` + name + `}}`,
		`{"workflowId":null,"instanceId":"` + id + `","event":{` + name + `}}`, `{"workflowId":"plain","instanceId":7,"event":{` + name + `}}`,
		head + `"event":{` + name + `,"id":7}}`, head + `"event":{` + name + `,"id":""}}`, head + `"event":{` + name + `,"id":"a b"}}`,
	}
	for _, value := range []string{`null`, `1`, `"go"`, `[]`, `true`, `[{"name":"go"}]`} {
		bodies = append(bodies, head+`"event":`+value+`}`, head+`"event":{`+name+`,"data":`+value+`}}`)
	}
	for _, value := range []string{`null`, `1`, `{}`, `["go"]`} {
		bodies = append(bodies, head+`"event":{"name":`+value+`}}`)
	}
	for _, event := range []string{
		"", " ", "GO", "go ", " go", "g", "go\x00", "go\n", "*", "go.*", "Start", "done.state.main", "done.invoke.x", "error", "error.execution",
		"__proto__", "$where", strings.Repeat("g", 129), strings.Repeat("g", 100_000), "ｇｏ", "../go",
	} {
		bodies = append(bodies, head+`"event":{"name":`+quoted(event)+`}}`)
	}
	return bodies
}

// TestWrongInputStrangeKeys sends keys that other programs interpret. They are
// data like any other (gateway/INTERFACE.md, "The record").
func TestWrongInputStrangeKeys(t *testing.T) {
	s := newScene(t)
	guarded := s.guard(t)
	kept := []string{}
	for _, key := range []string{"__proto__", "constructor", "$where", "$set", "a.b", "", " ", "svcPublic", "_id", "\u0000", "😀", strings.Repeat("k", 1000)} {
		want := `{` + quoted(key) + `:{` + quoted(key) + `:[1]}}`
		r := s.ann.create(t, "codes", `{"svcPublic":`+want+`,"svcPrivate":`+want+`}`).record(t)
		wantSameMeaning(t, r.Public, want)
		wantSameMeaning(t, r.Private, want)
		kept = append(kept, r.ID)
	}
	if got := s.instances(t, s.ann, "codes"); !slices.Equal(got, kept) {
		t.Errorf("instances: got %v, want %v", got, kept)
	}
	guarded()
}
