package endtoend

import (
	"strings"
	"testing"
)

func TestInterfaceData(t *testing.T) { runLines(t, dataLines()) }

func dataLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "The record"`, "data comes back as it was sent", dataComesBack},
		{`gateway/INTERFACE.md, "Event data"`, "of only svcPublic and svcPrivate is merged into its places", dataGoesToItsPlaces},
		{`gateway/INTERFACE.md, "Event data"`, "of anything else is merged into svcPublic", dataGoesToPublic},
		{`gateway/INTERFACE.md, "Event data"`, "that reaches svcPrivate undeclared, or mixes, is refused", unclearDataIsRefused},
		{`gateway/INTERFACE.md, "Unmatched events"`, "apply takes the data, from whom its allow names", applyIsAsked},
		{`gateway/INTERFACE.md, "Create data"`, "it is what the create block lets through", createBlockIsAsked},
		{`gateway/INTERFACE.md, "Event data"`, "is merged as RFC 7396 says", mergeFollowsRFC},
		{`gateway/INTERFACE.md, "Event data"`, "transition or event may say otherwise", dataMayGoElsewhere},
		{`gateway/INTERFACE.md, "Event data"`, "assign", assignSets},
		{`gateway/INTERFACE.md, "Event data"`, "guards see the old data and event.data", guardsSeeOldData},
		{`gateway/INTERFACE.md, "Event data"`, "a declared schema answers 400 before anything happens", schemaIsAsked},
		{`gateway/INTERFACE.md, "Event data"`, "never reaches the other fields of the record", dataStaysInside},
		{`gateway/INTERFACE.md, "Size of an instance"`, "it is checked before the commit", sizeIsChecked},
		{`gateway/INTERFACE.md, "Size of an instance"`, "the history has no limit", historyIsUnlimited},
	}
}

// torture is data that other programs garble (persistence/PROMISES.md, "F15").
const torture = `{"zz":1,"a":9007199254740993,"":"empty key","a.b":1e400,"neg":-0,"long":123456789012345678901234567890.123456789,` +
	`"exp":1E-7,"one":1.0,"esc":"\u0041\n\t\"\\\/\u2028\u0000","emoji":"😀\ud83d\ude00","nfd":"u\u0308","html":"<a>&'</a>",` +
	`"__proto__":{"constructor":null},"$where":"x","Z":[1,[2,[]],{},{"b":2,"a":1},null,true,false],"zZ":"ſK"}`

func dataComesBack(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", `{"svcPublic":`+torture+`,"svcPrivate":`+torture+`}`).record(t)
	wantSameMeaning(t, r.Public, torture)
	wantSameMeaning(t, r.Private, torture)
	// NB: a merge takes members with null away, also from new objects (RFC 7396).
	sent := strings.Replace(torture, `{"constructor":null}`, `{"constructor":[null]}`, 1)
	r = s.ann.event(t, "plain", r.ID, "note", `{"more":`+sent+`}`).record(t)
	want := strings.TrimSuffix(torture, "}") + `,"more":` + sent + `}`
	wantSameMeaning(t, r.Public, want)
	r = s.ann.load(t, "plain", r.ID).record(t)
	wantSameMeaning(t, r.Public, want)
	r = s.ann.create(t, "plain", `{ "svcPublic" : { "b" : [ 1 , 2 ] , "a" : " x " } }`).record(t)
	wantSameMeaning(t, r.Public, `{"b":[1,2],"a":" x "}`)
}

// after creates an instance, sends one event and returns svcPublic and
// svcPrivate.
func (s *scene) after(t *testing.T, workflow, content, event, sent string) (public, private string) {
	t.Helper()
	r := s.ann.create(t, workflow, content).record(t)
	r = s.ann.event(t, workflow, r.ID, event, sent).record(t)
	return r.Public, r.Private
}

// sending is one event and what it must leave.
type sending struct{ event, data, public, private string }

const bothPlaces = `{"svcPublic":{"p":1,"q":{"r":1}},"svcPrivate":{"s":1}}`

func (s *scene) wantAfter(t *testing.T, workflow string, cases []sending) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.event+" "+c.data, func(t *testing.T) {
			public, private := s.after(t, workflow, bothPlaces, c.event, c.data)
			wantSameMeaning(t, public, c.public)
			wantSameMeaning(t, private, c.private)
		})
	}
}

func dataGoesToItsPlaces(t *testing.T, s *scene) {
	s.wantAfter(t, "plain", []sending{
		{"note", `{"svcPublic":{"a":1}}`, `{"p":1,"q":{"r":1},"a":1}`, `{"s":1}`},
		{"note", `{"svcPrivate":{"a":1}}`, `{"p":1,"q":{"r":1}}`, `{"s":1,"a":1}`},
		{"note", `{"svcPrivate":{"s":2},"svcPublic":{"q":{"t":2}}}`, `{"p":1,"q":{"r":1,"t":2}}`, `{"s":2}`},
		{"note", `{}`, `{"p":1,"q":{"r":1}}`, `{"s":1}`},
		{"note", ``, `{"p":1,"q":{"r":1}}`, `{"s":1}`},
	})
}

func dataGoesToPublic(t *testing.T, s *scene) {
	s.wantAfter(t, "plain", []sending{
		{"note", `{"a":1}`, `{"p":1,"q":{"r":1},"a":1}`, `{"s":1}`},
		{"note", `{"svcpublic":{"a":1},"b":2}`, `{"p":1,"q":{"r":1},"svcpublic":{"a":1},"b":2}`, `{"s":1}`},
		{"note", `{"b":{"svcPrivate":{"a":1}}}`, `{"p":1,"q":{"r":1},"b":{"svcPrivate":{"a":1}}}`, `{"s":1}`},
	})
}

func unclearDataIsRefused(t *testing.T, s *scene) {
	for workflow, sent := range map[string][][2]string{
		"plain": {
			{"go", `{"svcPrivate":{"a":1}}`},
			{"go", `{"svcPublic":{"a":1},"svcPrivate":{"a":1}}`},
			{"go", `{"svcPrivate":{}}`},
			{"note", `{"svcPublic":{"a":1},"b":2}`},
			{"note", `{"svcPublic":1}`},
			{"note", `{"svcPrivate":{"a":1},"svcPublic":[]}`},
			{"note", `{"svcPublic":null}`},
		},
		"order": {
			{"hide", `{"svcPrivate":{"a":1}}`},
			{"into", `{"svcPublic":{"a":1}}`},
			{"drop", `{"svcPrivate":{"a":1}}`},
		},
	} {
		r := s.ann.create(t, workflow, bothPlaces).record(t)
		for _, c := range sent {
			if reason := faultReason(s.ann.event(t, workflow, r.ID, c[0], c[1]), 400, "InvalidContent"); reason != "" {
				t.Errorf("%s with %s: %s", c[0], c[1], reason)
			}
		}
		s.unchanged(t, r)
	}
}

func applyIsAsked(t *testing.T, s *scene) {
	r := s.ann.create(t, "bound", `{"svcPublic":{"n":11}}`).record(t)
	r = s.ann.event(t, "bound", r.ID, "close", "").record(t)
	wantSameMeaning(t, r.Public, `{"n":11,"kind":"plain","limit":10}`)
	wantFault(t, s.ann.event(t, "bound", r.ID, "comment", `{"text":"mine"}`), 403, "AccessDenied")
	s.unchanged(t, r)
	after := s.bob.event(t, "bound", r.ID, "comment", `{"text":"fine"}`).record(t)
	wantSameMeaning(t, after.Public, `{"n":11,"kind":"plain","limit":10,"text":"fine"}`)
	if len(after.History) != 3 || after.States[0] != r.States[0] {
		t.Errorf("got %s, want one entry more and the same state", after.text)
	}
}

func createBlockIsAsked(t *testing.T, s *scene) {
	for _, content := range []string{
		``, `{"svcPublic":{}}`, `{"svcPublic":{"n":"1"}}`, `{"svcPublic":{"n":1,"kind":"best"}}`, `{"svcPublic":{"n":1},"svcPrivate":{"owner":"ann"}}`,
	} {
		if reason := faultReason(s.ann.create(t, "bound", content), 400, "InvalidContent"); reason != "" {
			t.Errorf("data %s: %s", content, reason)
		}
	}
	r := s.ann.create(t, "bound", `{"svcPublic":{"n":7},"svcPrivate":{}}`).record(t)
	wantSameMeaning(t, r.Public, `{"n":7,"kind":"plain"}`)
	wantSameMeaning(t, r.Private, `{"owner":"nobody"}`)
	if r = s.ann.event(t, "bound", r.ID, "close", "").record(t); r.Redirect == nil || *r.Redirect != "/small" {
		t.Errorf("svcRedirect: got %s, want /small", r.text)
	}
	if r = s.ann.event(t, "bound", r.ID, "note", "").record(t); r.Redirect != nil {
		t.Errorf("svcRedirect after the next event: got %s, want none", r.text)
	}
}

func mergeFollowsRFC(t *testing.T, s *scene) {
	// The examples of RFC 7396, appendix A, one level down.
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
	} {
		public, _ := s.after(t, "plain", `{"svcPublic":{"x":`+c.target+`}}`, "note", `{"x":`+c.patch+`}`)
		wantSameMeaning(t, public, `{"x":`+c.want+`}`)
	}
}

func dataMayGoElsewhere(t *testing.T, s *scene) {
	const publicBefore = `{"status":"new","limits":{"low":1,"high":9},"note":"none","p":1,"q":{"r":1}}`
	const privateBefore = `{"margin":3,"secret":"s3","s":1}`
	s.wantAfter(t, "order", []sending{
		{"hide", `{"a":1}`, publicBefore, `{"margin":3,"secret":"s3","s":1,"a":1}`},
		{"into", `{"a":1,"margin":null}`, publicBefore, `{"secret":"s3","s":1,"a":1}`},
		{"over", `{"a":null}`, publicBefore, `{"a":null}`},
		{"swap", `{"a":1}`, `{"a":1}`, privateBefore},
		{"swap", `{"svcPublic":{"a":1}}`, `{"a":1}`, privateBefore},
		{"drop", `{"a":1}`, publicBefore, privateBefore},
	})
}

func assignSets(t *testing.T, s *scene) {
	public, _ := s.after(t, "order", "", "set", `{"note":"x"}`)
	wantSameMeaning(t, public, `{"status":"new","limits":{"low":1,"high":9},"note":"x","by":"ann","plain":"user.id"}`)
}

func guardsSeeOldData(t *testing.T, s *scene) {
	// The event raises the limit by which its own guard is decided.
	public, _ := s.after(t, "order", "", "cheap", `{"amount":50,"limits":{"high":100}}`)
	wantSameMeaning(t, public, `{"status":"new","limits":{"low":1,"high":9},"note":"none"}`)
}

func schemaIsAsked(t *testing.T, s *scene) {
	r := s.ann.create(t, "order", "").record(t)
	for _, content := range []string{``, `{}`, `{"comment":7}`} {
		if reason := faultReason(s.ann.event(t, "order", r.ID, "checked", content), 400, "InvalidContent"); reason != "" {
			t.Errorf("data %s: %s", content, reason)
		}
	}
	s.unchanged(t, r)
	if after := s.ann.event(t, "order", r.ID, "checked", `{"comment":"fine"}`).record(t); len(after.History) != 2 {
		t.Errorf("history: got %v, want a second entry", after.History)
	}
}

func dataStaysInside(t *testing.T, s *scene) {
	r := s.ann.create(t, "plain", "").record(t)
	const sent = `{"_id":"x","workflowId":"y","states":[],"svcHistory":[],"svcRedirect":"/evil"}`
	after := s.ann.event(t, "plain", r.ID, "note", sent).record(t)
	if after.ID != r.ID || after.WorkflowID != "plain" || len(after.History) != 2 || after.Redirect != nil || len(after.States) != 1 {
		t.Errorf("got %s, want the data in svcPublic only", after.text)
	}
	wantSameMeaning(t, after.Public, sent)
}

func sizeIsChecked(t *testing.T, s *scene) {
	half := `"` + strings.Repeat("x", 600<<10) + `"`
	r := s.ann.create(t, "plain", `{"svcPublic":{"a":`+half+`}}`).record(t)
	wantFault(t, s.ann.event(t, "plain", r.ID, "note", `{"b":`+half+`}`), 413, "TooLarge")
	s.unchanged(t, r)
	after := s.ann.event(t, "plain", r.ID, "note", `{"a":`+half+`}`).record(t)
	if len(after.History) != 2 {
		t.Errorf("history after data that fits: got %d entries, want 2", len(after.History))
	}
	// Small events that add up meet the same limit.
	part := `"` + strings.Repeat("y", 100<<10) + `"`
	for _, key := range []string{"c", "d", "e", "f"} {
		s.ann.event(t, "plain", r.ID, "note", `{"`+key+`":`+part+`}`).record(t)
	}
	wantFault(t, s.ann.event(t, "plain", r.ID, "note", `{"g":`+part+`}`), 413, "TooLarge")
}
