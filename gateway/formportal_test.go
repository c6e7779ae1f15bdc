package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"troupe/actors/formportal"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

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
	s := startServer(t, Options{}, nil)
	s.portal.list = func(item func(*formportal.Summary) error) error {
		for range forms {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return nil
	}
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
	var names []string
	var requests []request
	for _, rt := range server.table {
		if slices.Contains([]string{"create-form", "create-checklist", "save-draft", "submit-form"}, rt.name) {
			names, requests = append(names, rt.name), append(requests, requestOf(f, &rt))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, text []byte) {
		name, r := names[route%4], requests[route%4]
		before := portal.calls()
		w := newRecorder()
		observe(t, server).ServeHTTP(w, newTestRequest(r.method, r.path, string(text), r.headers...))
		taken := portal.calls() != before
		if taken != (w.status == 200) || w.status != 200 && w.status != 400 && w.status != 404 && !(w.status == 413 && len(text) > 1<<20) {
			t.Fatalf("%s %q: got %d, the portal was asked: %v", name, text, w.status, taken)
		}
		if w.status != 200 {
			a := &answer{body: w.body.String()}
			if len(a.message()) > 300 || !utf8.ValidString(a.body) {
				t.Errorf("a message of %d bytes: %q", len(a.message()), a.body)
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
			got, want = []string{portal.create.TemplateID, portal.create.WorkflowID}, []string{*std.FormID, std.WorkflowID}
		case "create-checklist":
			got, want = []string{portal.create.TemplateID, portal.create.WorkflowID}, []string{*std.ChecklistID, ""}
		case "save-draft":
			got, want, value = []string{}, []string{}, portal.draft.Data
		case "submit-form":
			got, value = []string{portal.submit.WorkflowID, portal.submit.InstanceID}, portal.submit.Data
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
