package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/workflow"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TestPortalBodies holds gateway/INTERFACE.md, "Bodies", and gateway/INTERFACE.md,
// "Creating forms": 400 for a malformed body, 404 for what can be nobody's.
func TestPortalBodies(t *testing.T) {
	depth := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	submit := func(data string) string { return `{"workflowId":"-","instanceId":"i","data":` + data + `}` }
	cases := []struct {
		line, method, path, body string
		status                   int
		message                  string // a part of it
	}{
		{"a form", "POST", formCreate, formBody, 200, ""},
		{"the members in another order, with white space", "POST", formCreate, "\n{ \"workflowId\" : \"leave\",\t\"formId\":\"f\" }", 200, ""},
		{"a form without workflowId", "POST", formCreate, `{"formId":"f"}`, 200, ""},
		{"an empty workflowId", "POST", formCreate, `{"formId":"f","workflowId":""}`, 200, ""},
		{"a checklist", "POST", checkCreate, checklistBody, 200, ""},
		{"a draft", "PUT", draftPath, draftBody, 200, ""},
		{"an empty draft", "PUT", draftPath, `{"data":{}}`, 200, ""},
		{"a draft of depth 64", "PUT", draftPath, `{"data":` + depth(63) + `}`, 200, ""},
		{"keys of other worlds", "PUT", draftPath, `{"data":{"__proto__":1,"$where":2,"a.b":3,"":4}}`, 200, ""},
		{"a submission", "POST", submitPath, submitBody, 200, ""},
		{"a submission without a workflow", "POST", submitPath, submit(`{}`), 200, ""},
		{"an escape in a key", "POST", formCreate, `{"form\u0049d":"f"}`, 200, ""},

		{"formId is missing", "POST", formCreate, `{}`, 400, `"formId" is missing`},
		{"formId is missing beside workflowId", "POST", formCreate, `{"workflowId":"leave"}`, 400, `"formId" is missing`},
		{"null as formId", "POST", formCreate, `{"formId":null}`, 400, `"formId" must be a string, not null`},
		{"a number as formId", "POST", formCreate, `{"formId":1}`, 400, `"formId" must be a string, not a number`},
		{"null as workflowId", "POST", formCreate, `{"formId":"f","workflowId":null}`, 400, `"workflowId" must be a string, not null`},
		{"a list as workflowId", "POST", formCreate, `{"formId":"f","workflowId":["leave"]}`, 400, `"workflowId" must be a string, not an array`},
		{"an unknown member", "POST", formCreate, `{"formId":"f","role":"boss"}`, 400, `unknown member "role"; allowed are formId, workflowId`},
		{"another case", "POST", formCreate, `{"formID":"f"}`, 400, `it is written "formId"`},
		{"formId twice", "POST", formCreate, `{"formId":"a","formId":"b"}`, 400, "formId"},
		{"formId twice, once escaped", "POST", formCreate, `{"formId":"a","form\u0049d":"b"}`, 400, "formId"},
		{"a checklist's member", "POST", formCreate, checklistBody, 400, `unknown member "checklistId"`},
		{"a form's member", "POST", checkCreate, `{"formId":"f"}`, 400, `unknown member "formId"; allowed are checklistId`},
		{"a checklist with a workflow", "POST", checkCreate, `{"checklistId":"c","workflowId":"leave"}`, 400, `unknown member "workflowId"`},
		{"a checklist with an empty name", "POST", checkCreate, `{"checklistId":"c","":"leave"}`, 400, `unknown member ""`},
		{"checklistId is missing", "POST", checkCreate, `{}`, 400, `"checklistId" is missing`},
		{"a boolean as checklistId", "POST", checkCreate, `{"checklistId":true}`, 400, `"checklistId" must be a string, not a bool`},
		{"nothing", "POST", formCreate, "", 400, "unexpected end"},
		{"a list", "POST", formCreate, `["f"]`, 400, "must be a JSON object"},
		{"a string", "POST", checkCreate, `"c"`, 400, "must be a JSON object"},
		{"a form post", "POST", formCreate, "formId=f&workflowId=leave", 400, "body is"},
		{"a second value", "POST", formCreate, formBody + "{}", 400, "after the value"},
		{"no UTF-8", "POST", formCreate, "{\"formId\":\"\xff\"}", 400, "UTF-8"},
		{"too deep", "POST", formCreate, strings.Repeat(`{"formId":`, 65), 400, "deeper than 64"},

		{"data is missing", "PUT", draftPath, `{}`, 400, `"data" is missing`},
		{"null as data", "PUT", draftPath, `{"data":null}`, 400, `"data" must be an object, not null`},
		{"a list as data", "PUT", draftPath, `{"data":[]}`, 400, `"data" must be an object, not an array`},
		{"the data itself", "PUT", draftPath, `{"days":4}`, 400, `unknown member "days"`},
		{"data twice", "PUT", draftPath, `{"data":{},"data":{}}`, 400, "data"},
		{"a member twice inside", "PUT", draftPath, `{"data":{"a":1,"a":2}}`, 400, "a"},
		{"revision in the body", "PUT", draftPath, `{"data":{},"revision":3}`, 400, `unknown member "revision"`},
		{"a draft too deep", "PUT", draftPath, `{"data":` + depth(64) + `}`, 400, "deeper than 64"},
		{"a draft that is empty", "PUT", draftPath, "", 400, "unexpected end"},

		{"submit without workflowId", "POST", submitPath, `{"instanceId":"i","data":{}}`, 400, `"workflowId" is missing`},
		{"submit without instanceId", "POST", submitPath, `{"workflowId":"-","data":{}}`, 400, `"instanceId" is missing`},
		{"submit without data", "POST", submitPath, `{"workflowId":"-","instanceId":"i"}`, 400, `"data" is missing`},
		{"submit with null", "POST", submitPath, submit(`null`), 400, `"data" must be an object, not null`},
		{"submit with a string", "POST", submitPath, submit(`"{}"`), 400, `"data" must be an object, not a string`},
		{"submit with a number as workflowId", "POST", submitPath, `{"workflowId":1,"instanceId":"i","data":{}}`, 400, `"workflowId" must be a string, not a number`},
		{"submit with null as instanceId", "POST", submitPath, `{"workflowId":"-","instanceId":null,"data":{}}`, 400, `"instanceId" must be a string, not null`},
		{"submit with an event", "POST", submitPath, `{"workflowId":"w","instanceId":"i","data":{},"event":{"name":"approve"}}`, 400, `unknown member "event"`},
		{"submit twice the data", "POST", submitPath, `{"workflowId":"w","instanceId":"i","data":{},"data":{}}`, 400, "data"},

		{"a formId that is none", "POST", formCreate, `{"formId":""}`, 404, ""},
		{"a formId with a slash", "POST", formCreate, `{"formId":"a/b"}`, 404, ""},
		{"a workflowId that is none", "POST", formCreate, `{"formId":"f","workflowId":".."}`, 404, ""},
		{"the workflow of plain forms", "POST", formCreate, `{"formId":"f","workflowId":"-"}`, 404, ""},
		{"a checklistId with NUL", "POST", checkCreate, `{"checklistId":"a\u0000b"}`, 404, ""},
		{"a checklistId of 129", "POST", checkCreate, `{"checklistId":"` + strings.Repeat("c", 129) + `"}`, 404, ""},
		{"submit to a workflow that is none", "POST", submitPath, `{"workflowId":"--","instanceId":"i","data":{}}`, 404, ""},
		{"submit to an instance that is none", "POST", submitPath, `{"workflowId":"-","instanceId":"..","data":{}}`, 404, ""},
		{"what is malformed comes before what is not there", "POST", formCreate, `{"formId":"..","workflowId":1}`, 400, `"workflowId" must be`},

		{"1 MiB", "PUT", draftPath, draftBody + strings.Repeat(" ", 1<<20-len(draftBody)), 200, ""},
		{"1 MiB and one byte", "PUT", draftPath, draftBody + strings.Repeat(" ", 1<<20-len(draftBody)+1), 413, "1048576"},
	}
	s := startPortal(t, new(fakePortal))
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			before := s.portal.calls()
			a := s.do(t, portalSend(c.method, c.path, c.body))
			if a.status != c.status || !strings.Contains(a.message(), c.message) {
				t.Errorf("got %d %s\nwant %d with %q", a.status, a.body, c.status, c.message)
			}
			if want := map[int]string{400: "Bad request", 404: "Not found", 413: "Too large"}[c.status]; c.status != 200 && a.label() != want {
				t.Errorf("got the word %q, want %q", a.label(), want)
			}
			if called := s.portal.calls() != before; called != (c.status == 200) {
				t.Errorf("the portal was asked: %v", called)
			}
		})
	}
}

// TestPortalContentTypes holds gateway/INTERFACE.md, "Content types": with a cookie
// the type must be there, and be JSON.
func TestPortalContentTypes(t *testing.T) {
	s := startPortal(t, new(fakePortal))
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Content-Type: application/json"}, 200},
		{[]string{"Content-Type: application/json; charset=UTF-8"}, 200},
		{nil, 415},
		{[]string{"Content-Type: text/plain"}, 415},
		{[]string{"Content-Type: application/x-www-form-urlencoded"}, 415},
		{[]string{"Content-Type: multipart/form-data; boundary=x"}, 415},
		{[]string{"Content-Type: application/json; charset=latin1"}, 415},
		{[]string{"Content-Type: application/json", "Content-Encoding: gzip"}, 415},
		{[]string{"Content-Type: application/json", "Sec-Fetch-Site: cross-site"}, 403},
		{[]string{"Content-Type: application/json", "Sec-Fetch-Site: same-site"}, 403},
		{[]string{"Content-Type: application/json", "Sec-Fetch-Site: same-origin"}, 200},
		{[]string{"Content-Type: application/json", "Origin: null"}, 403},
		{[]string{"Content-Type: text/plain", "Origin: https://evil.example"}, 403},
	} {
		for _, name := range []string{"create-form", "create-checklist", "save-draft", "submit-form"} {
			r := portalRequests()[name]
			r.headers = append([]string{withPortal}, c.headers...)
			a := s.do(t, r)
			if a.status != c.status {
				t.Errorf("%s with %q: got %d %s, want %d", name, c.headers, a.status, a.body, c.status)
			}
			if want := map[int]string{403: "Access denied", 415: "Unsupported media type"}[c.status]; a.status != 200 && a.label() != want {
				t.Errorf("%s with %q: got the word %q, want %q", name, c.headers, a.label(), want)
			}
		}
	}
}

// TestPortalIdempotencyKeys holds gateway/INTERFACE.md, "Retries": every POST takes a
// key.
func TestPortalIdempotencyKeys(t *testing.T) {
	portal := new(fakePortal)
	s := startPortal(t, portal)
	retryOf := map[string]func() workflow.Retry{
		"create-form":      func() workflow.Retry { return portal.mu.create.Retry },
		"create-checklist": func() workflow.Retry { return portal.mu.create.Retry },
		"submit-form":      func() workflow.Retry { return portal.mu.submit.Retry },
	}
	seen := map[[32]byte]string{}
	for name, retry := range retryOf {
		r := portalRequests()[name]
		with := func(body string, headers ...string) (workflow.Retry, *answer) {
			r := r
			r.body, r.headers = body, append(slices.Clone(r.headers), headers...)
			a := s.do(t, r)
			return retry(), a
		}
		first, a := with(r.body, "Idempotency-Key: k1")
		if a.status != 200 || first.Key != "k1" {
			t.Errorf("%s: got %d and %+v", name, a.status, first)
		}
		if again, _ := with(" "+r.body+"\n", `Idempotency-Key: "k1"`); again != first {
			t.Errorf("%s: with other white space and a quoted key: got %+v, want %+v", name, again, first)
		}
		if other, _ := with(strings.Replace(r.body, `:"`, `:"x`, 1), "Idempotency-Key: k1"); other.Fingerprint == first.Fingerprint {
			t.Errorf("%s: another body has the same fingerprint", name)
		}
		if seen[first.Fingerprint] != "" {
			t.Errorf("%s has the fingerprint of %s", name, seen[first.Fingerprint])
		}
		seen[first.Fingerprint] = name
		for _, bad := range [][]string{{"Idempotency-Key: "}, {"Idempotency-Key: a b"}, {`Idempotency-Key: "a`}, {"Idempotency-Key: a", "Idempotency-Key: a"}, {"Idempotency-Key: " + strings.Repeat("k", 256)}} {
			before := portal.calls()
			if _, a := with(r.body, bad...); a.status != 400 || a.label() != "Bad request" || portal.calls() != before {
				t.Errorf("%s with %.30q: got %d %s, want 400", name, bad, a.status, a.body)
			}
		}
	}
}

// TestDraftIfMatch holds gateway/INTERFACE.md, "Drafts".
func TestDraftIfMatch(t *testing.T) {
	portal := new(fakePortal)
	s := startPortal(t, portal)
	for _, c := range []struct {
		lines     []string
		status    int
		revisions []uint64
		mustExist bool
	}{
		{nil, 200, nil, false},
		{[]string{`"1760000000456"`}, 200, []uint64{1760000000456}, false},
		{[]string{`"3", "4"`}, 200, []uint64{3, 4}, false},
		{[]string{`"3"`, `"4"`}, 200, []uint64{3, 4}, false},
		{[]string{`*`}, 200, nil, true},
		{[]string{`W/"3"`}, 200, []uint64{0}, false},
		{[]string{`W/"3", "4"`}, 200, []uint64{4}, false},
		{[]string{`"03"`}, 200, []uint64{0}, false},
		{[]string{`"abc"`}, 200, []uint64{0}, false},
		{[]string{`"18446744073709551616"`}, 200, []uint64{0}, false},
		{[]string{`3`}, 400, nil, false},
		{[]string{`garbage`}, 400, nil, false},
		{[]string{`"3`}, 400, nil, false},
		{[]string{``}, 400, nil, false},
		{[]string{`*, "3"`}, 400, nil, false},
		{[]string{`*`, `*`}, 400, nil, false},
	} {
		for _, name := range []string{"save-draft", "drop-draft"} {
			r := portalRequests()[name]
			for _, line := range c.lines {
				r.headers = append(r.headers, "If-Match: "+line)
			}
			before := portal.calls()
			a := s.do(t, r)
			if a.status != c.status || c.status == 400 && (a.label() != "Bad request" || portal.calls() != before) {
				t.Errorf("%s with %q: got %d %s, want %d", name, c.lines, a.status, a.body, c.status)
			}
			if got := portal.mu.draft; c.status == 200 && (!slices.Equal(got.IfMatch, c.revisions) || (got.IfMatch == nil) != (c.revisions == nil) || got.MustExist != c.mustExist) {
				t.Errorf("%s with %q: got %v and %v, want %v and %v", name, c.lines, got.IfMatch, got.MustExist, c.revisions, c.mustExist)
			}
		}
	}
}

// counting takes an answer and notes how it came.
type counting struct {
	header        http.Header
	pieces, bytes int
	largest       int
	first, last   []byte
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     {}
func (c *counting) Write(p []byte) (int, error) {
	c.pieces, c.bytes, c.largest = c.pieces+1, c.bytes+len(p), max(c.largest, len(p))
	if c.first == nil {
		c.first = slices.Clone(p[:100])
	}
	c.last = append(c.last[:0], p[max(0, len(p)-100):]...)
	return len(p), nil
}

// manyForms is a list of a fakePortal with n forms and then perhaps an error.
func manyForms(n int, end error) func(context.Context, *formportal.ListRequest, func(*formportal.Summary) error) error {
	return func(_ context.Context, _ *formportal.ListRequest, item func(*formportal.Summary) error) error {
		for range n {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return end
	}
}

// TestALongListIsStreamed holds that a list of any length needs the memory of
// one piece.
func TestALongListIsStreamed(t *testing.T) {
	const forms = 100_000
	s := startPortal(t, &fakePortal{list: manyForms(forms, nil)})
	w := &counting{header: http.Header{}}
	request := newTestRequest("GET", "/form-portal/forms/mycurrent", "", withPortal)
	s.ServeHTTP(w, request)
	if want := 2 + forms*(len(leaveJSON)+1) - 1; w.bytes != want || string(w.first[:50]) != "["+leaveJSON[:49] || !strings.HasSuffix(string(w.last), leaveJSON[len(leaveJSON)-50:]+"]") {
		t.Errorf("got %d bytes, want %d; %q … %q", w.bytes, want, w.first, w.last)
	}
	if w.largest > streamBytes+len(leaveJSON)+1 || w.header.Get("Content-Length") != "" {
		t.Errorf("the largest piece has %d bytes, Content-Length %q", w.largest, w.header.Get("Content-Length"))
	}
	if perForm := testing.AllocsPerRun(1, func() {
		w := &counting{header: http.Header{}}
		s.ServeHTTP(w, request)
	}) / forms; perForm > 0.1 {
		t.Errorf("%.2f allocations a form", perForm)
	}
	a := s.do(t, portalGet("/form-portal/checklists/myarchived"))
	if a.status != 200 || !json.Valid([]byte(a.body)) || strings.Count(a.body, leaveJSON) != forms {
		t.Errorf("over a connection: got %d and %d bytes", a.status, len(a.body))
	}
	checkCommonHeaders(t, a.header)
}

// TestAListThatFailsIsNeverShort holds gateway/INTERFACE.md,
// "What an answer means": a status before the first byte, a closed connection after
// it.
func TestAListThatFailsIsNeverShort(t *testing.T) {
	for _, c := range []struct {
		forms int
		end   error
		want  string
	}{
		{0, failure.ErrBusy, " 503 "},
		{10, failure.ErrBusy, " 503 "},
		{10, failure.ErrInternal, " 500 "},
		{10_000, failure.ErrBusy, ""},
		{10_000, failure.ErrExecution, ""},
		{10_000, context.DeadlineExceeded, ""},
	} {
		t.Run(fmt.Sprint(c.forms, " ", c.end), func(t *testing.T) {
			s := startPortal(t, &fakePortal{list: manyForms(c.forms, c.end)})
			text, err := s.rawErr(t, "GET /form-portal/forms/mysubmitted HTTP/1.1\r\nHost: x\r\n"+withPortal+"\r\n\r\n")
			if c.want != "" {
				if err != nil || !strings.Contains(text[:20], c.want) || strings.Contains(text, "leave-form") {
					t.Errorf("got %.40q, %v; want %s", text, err, c.want)
				}
				return
			}
			// NB: a reset takes away what was not read yet, so nothing is said about text.
			if !errors.Is(err, syscall.ECONNRESET) || strings.HasSuffix(text, "]\r\n0\r\n\r\n") {
				t.Errorf("got the end %v behind %d bytes, want a reset", err, len(text))
			}
			if s.Metrics().Cut != 1 {
				t.Errorf("%d answers were aborted, want 1", s.Metrics().Cut)
			}
		})
	}
}

// TestCallerLeavesAList holds that a list ends when nobody reads it.
func TestCallerLeavesAList(t *testing.T) {
	ended := make(chan error, 1)
	s := startPortal(t, &fakePortal{list: func(_ context.Context, _ *formportal.ListRequest, item func(*formportal.Summary) error) error {
		for {
			if err := item(leaveForm); err != nil {
				ended <- err
				return err
			}
		}
	}})
	c := s.dial(t)
	if _, err := io.WriteString(c, "GET /form-portal/forms/mycurrent HTTP/1.1\r\nHost: x\r\n"+withPortal+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := <-ended; !errors.Is(err, errAborted) {
		t.Errorf("got %v, want errAborted", err)
	}
	waitFor(t, "the answer to be counted as aborted", func() bool { return s.Metrics().Cut == 1 })
}

// portalSeeds are bodies near the right ones.
var portalSeeds = []string{
	formBody, checklistBody, draftBody, submitBody, "", "{}", "null", `{"formId":"f"}`, `{"formId":"f","workflowId":""}`, `{"formId":"f","formId":"g"}`, `{"FormId":"f"}`,
	`{"checklistId":"c","":1}`, `{"data":{}}`, `{"data":null}`, `{"data":{"a":9007199254740993}}`, `{"workflowId":"-","instanceId":"i","data":{"a":[1,{"b":null}]}}`,
	`{"workflowId":"-","instanceId":"-","data":{}}`, `{"form\u0049d":"f"}`, "{\"formId\":\"\xff\"}", `{"formId":"f"} x`, `{"formId":"` + strings.Repeat("f", 129) + `"}`,
}

// FuzzPortalBody sends any body to the four routes of group A and of the form
// runtime that read one, and compares what reaches the portal with what the
// standard library reads.
func FuzzPortalBody(f *testing.F) {
	for _, seed := range portalSeeds {
		for route := range uint8(4) {
			f.Add(route, []byte(seed))
		}
	}
	portal := new(fakePortal)
	server, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	server.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Portal: portal})
	names := []string{"create-form", "create-checklist", "save-draft", "submit-form"}
	f.Fuzz(func(t *testing.T, route uint8, text []byte) {
		name := names[route%4]
		r := portalRequests()[name]
		before := portal.calls()
		w := newRecorder()
		observe(t, server).ServeHTTP(w, newTestRequest(r.method, r.path, string(text), r.headers...))
		taken := portal.calls() != before
		if taken != (w.status == 200) || w.status != 200 && w.status != 400 && w.status != 404 && !(w.status == 413 && len(text) > 1<<20) {
			t.Fatalf("%s %q: got %d, the portal was asked: %v", name, text, w.status, taken)
		}
		if w.status != 200 {
			a := &answer{body: w.body.String()}
			if checkErrorBody(t, a); len(a.message()) > 300 {
				t.Errorf("a message of %d bytes: %q", len(a.message()), a.message())
			}
			return
		}
		var std struct {
			FormID      *string         `json:"formId"`
			ChecklistID *string         `json:"checklistId"`
			WorkflowID  string          `json:"workflowId"`
			InstanceID  string          `json:"instanceId"`
			Data        json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(text, &std); err != nil {
			t.Fatalf("%s %q passed, but encoding/json says %v", name, text, err)
		}
		var got []string
		var value data.Value
		want := []string{std.WorkflowID, std.InstanceID}
		switch name {
		case "create-form":
			got, want = []string{portal.mu.create.TemplateID, portal.mu.create.WorkflowID}, []string{*std.FormID, std.WorkflowID}
		case "create-checklist":
			got, want = []string{portal.mu.create.TemplateID, portal.mu.create.WorkflowID}, []string{*std.ChecklistID, ""}
		case "save-draft":
			got, want, value = []string{}, []string{}, portal.mu.draft.Data
		case "submit-form":
			got, value = []string{portal.mu.submit.WorkflowID, portal.mu.submit.InstanceID}, portal.mu.submit.Data
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %q: got %q, encoding/json reads %q", name, text, got, want)
		}
		for i, id := range got {
			if !statemachine.IsIdentifier(id) && !(name == "submit-form" && i == 0 && id == "-") && !(i == 1 && id == "") {
				t.Errorf("%s %q: handed on the identifier %q", name, text, id)
			}
		}
		checkSame(t, value, std.Data)
	})
}
