package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// TestPortalErrors holds that every route of group A and of the form runtime answers
// with the errors of the portal as gateway/INTERFACE.md, "Errors", says.
func TestPortalErrors(t *testing.T) {
	s := startPortal(t, new(fakePortal))
	for _, c := range []struct {
		err    error
		status int
		word   string
		retry  bool
	}{
		{failure.ErrNotFound, 404, "Not found", false},
		{failure.ErrBusy, 503, "Busy", true},
		{failure.ErrOutcomeUnknown, 504, "Busy", false},
		{errors.New("disk on fire"), 500, "Server error", false},
	} {
		s.portal.setFail(fmt.Errorf("form portal: secret: %w", c.err))
		for name, r := range portalRequests() {
			if !describes(r, c.status) {
				continue // it has no such error
			}
			a := s.do(t, r)
			if a.status != c.status || a.label() != c.word || (a.header.Get("Retry-After") != "") != c.retry {
				t.Errorf("%s: got %d %s and Retry-After %q, want %d %s", name, a.status, a.body, a.header.Get("Retry-After"), c.status, c.word)
			}
			if a.header.Get("ETag") != "" || strings.Contains(a.body, "secret") {
				t.Errorf("%s: the answer tells too much: %v %s", name, a.header, a.body)
			}
			checkErrorBody(t, a)
			checkCommonHeaders(t, a.header)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "disk on fire") {
		t.Errorf("the log has nothing about the error that nobody knows: %s", log)
	}
}

// manyForms is a list of a fakePortal with n forms and then perhaps an error.
func manyForms(n int, end error) func(func(*formportal.Summary) error) error {
	return func(item func(*formportal.Summary) error) error {
		for range n {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return end
	}
}

// pieces takes an answer and notes the largest piece that it came in.
type pieces struct {
	recorder
	largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.largest = max(p.largest, len(text))
	return p.recorder.Write(text)
}

// TestALongListIsStreamed holds that a list of any length needs the memory of one
// piece.
func TestALongListIsStreamed(t *testing.T) {
	const forms = 100_000
	s := startPortal(t, &fakePortal{list: manyForms(forms, nil)})
	request := newTestRequest("GET", "/form-portal/forms/mycurrent", "", withPortal)
	w := &pieces{recorder: *newRecorder()}
	s.ServeHTTP(w, request)
	if want := "[" + strings.Repeat(leaveJSON+",", forms-1) + leaveJSON + "]"; w.body.String() != want {
		t.Errorf("got %d bytes, want %d", w.body.Len(), len(want))
	}
	if w.largest > streamBytes+len(leaveJSON)+1 || w.header.Get("Content-Length") != "" {
		t.Errorf("the largest piece has %d bytes, Content-Length %q", w.largest, w.header.Get("Content-Length"))
	}
	if perForm := testing.AllocsPerRun(1, func() {
		w.body.Reset()
		s.Server.ServeHTTP(w, request)
	}) / forms; perForm > 0.1 {
		t.Errorf("%.2f allocations a form", perForm)
	}
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
