package gateway

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/formportal"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// routeFuzzer is a server on fakes, and the right request of each route.
type routeFuzzer struct {
	*Server
	workflows *fakeWorkflows
	portal    *fakePortal
	sessions  *fakeSessions
	requests  []request // as in table
}

func newRouteFuzzer(f *testing.F) *routeFuzzer {
	f.Helper()
	server, err := New(Options{})
	require.NoError(f, err)
	s := &routeFuzzer{Server: server, workflows: new(fakeWorkflows), portal: new(fakePortal), sessions: new(fakeSessions)}
	s.Open(Services{Workflows: s.workflows, Presentations: s.workflows, Credentials: fakeCredentials{}, Portal: s.portal, Sessions: s.sessions, Definitions: s.workflows, Migrations: s.workflows})
	for _, rt := range s.kernel.Table {
		s.requests = append(s.requests, requestOf(f, &rt))
	}
	return s
}

// FuzzTarget sends any request target: the answer is one that the document describes,
// and never a success without a credential where it demands one.
func FuzzTarget(f *testing.F) {
	s := newRouteFuzzer(f)
	seeds := []string{
		"//", "*", "/%2F", "http://x/workflow/api/v1/choices", "/workflow/api/v1/watch/a/", "/workflow/api/v1/instance/%00/b", "/workflow/api/v1/choices?a;b",
		"/workflow/api/v1/instance//", "/workflow/api/v1/instances/a?filter=%7B%7D&limit=1&fields=svcPrivate&explain=true", "/login?next=//x", "/login/",
		"/login/oidc/callback?state=x&code=y&other=z", "/livez?verbose", "/readyz?%zz", "/form-portal/workflows?x", "/form-portal/checklists/role/%00",
		"/form-runtime/%61pi/v1/form/-/-", "/form-runtime/api/v1/draft/a/b",
	}
	for _, r := range s.requests {
		seeds = append(seeds, r.Path)
	}
	for _, target := range seeds {
		f.Add("GET", target, true)
		f.Add("POST", target, false)
	}
	f.Fuzz(func(t *testing.T, method, target string, signed bool) {
		text := method + " " + target + " HTTP/1.1\r\nHost: x\r\n"
		if signed {
			text += withToken + "\r\n" + withPortal + "\r\n" // each route takes what it knows
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			return // net/http answers that itself
		}
		w := newRecorder()
		observe(t, s.Server).ServeHTTP(w, r)
		if w.status != http.StatusOK || signed {
			return
		}
		o, _ := theInterface().find(method, r.URL.Path)
		assert.True(t, o != nil && kindsOf(theInterface().doc, o.Operation) == 0, "%s %q is answered without a credential: %s", method, target, w.body.String())
	})
}

// FuzzBody sends any body to the routes that read one, and compares what reaches the
// actors with what the standard library reads.
func FuzzBody(f *testing.F) {
	s := newRouteFuzzer(f)
	s.requests = slices.DeleteFunc(s.requests, func(r request) bool {
		// home.FuzzUnpack has an archive, and the parser of definitions is none of the gateway's.
		return r.Body == "" || strings.HasPrefix(r.Path, kernel.AdminPath) || strings.Contains(r.Path, "/definitions/")
	})
	seeds := []string{
		"", "{}", "null", `{"workflowId":"w"}`, `{"workflowId":"w","workflowId":"w"}`, `{"WorkflowId":"w"}`, `{"\u0077orkflowId":"w"}`, "{\"workflowId\":\"\xff\"}",
		`{"workflowId":"w"} x`, `{"workflowId":1}`, `{"workflowId":"w","data":null}`, `{"workflowId":"w","data":{"svcPublic":{},"svcPrivate":{}}}`,
		`{"workflowId":"w","instanceId":"i","event":{"name":"n","data":{},"id":"k"}}`, `{"formId":"f","workflowId":""}`, `{"checklistId":"c","":1}`,
		`{"data":{"a":9007199254740993}}`, `{"workflowId":"-","instanceId":"-","data":{"a":[1,{"b":null}]}}`, `{"formId":"` + strings.Repeat("f", 129) + `"}`,
		`{"user":"ann","password":"\ud83d\udc0e"}`, `{"user":"ann","password":"\ud800"}`, `{"user":"","password":""}`,
	}
	for _, r := range s.requests {
		seeds = append(seeds, r.Body)
	}
	for _, seed := range seeds {
		for route := range s.requests {
			f.Add(uint8(route), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, route uint8, text []byte) {
		r := s.requests[int(route)%len(s.requests)]
		if strings.HasSuffix(r.Path, "/v1/events") {
			t.Skip("FuzzBatch has it")
		}
		s.workflows.asked, s.portal.asked, s.sessions.asked = nil, nil, nil
		w := newRecorder()
		observe(t, s.Server).ServeHTTP(w, newTestRequest(r.Method, r.Path, string(text), r.Headers...))
		var asked any
		for _, one := range []any{s.workflows.asked, s.portal.asked, s.sessions.asked} {
			if one != nil {
				asked = one
			}
		}
		a := answer{Body: w.body.String()}
		refused := w.status == 400 || w.status == 404 || w.status == 413 && len(text) > 100_000
		require.NotEqual(t, asked != nil, refused, "%s %q: got %d %s, the actors were asked %+v", r.Path, text, w.status, a.Body, asked)
		if asked == nil {
			if len(a.Message()) > 300 || !utf8.ValidString(a.Body) {
				t.Errorf("a message of %d bytes: %q", len(a.Message()), a.Body)
			}
			return
		}
		var std struct {
			WorkflowID, InstanceID, FormID, ChecklistID, User, Password string
			Event, Data                                                 json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &std), "%s %q passed, but encoding/json", r.Path, text)
		var got, want, ids []string
		switch asked := asked.(type) {
		case *message.Create:
			var parts struct{ SvcPublic, SvcPrivate json.RawMessage }
			_ = json.Unmarshal(std.Data, &parts) // no data is no parts
			got, want, ids = []string{asked.WorkflowID}, []string{std.WorkflowID}, []string{asked.WorkflowID}
			checkSame(t, asked.Public, parts.SvcPublic)
			checkSame(t, asked.Private, parts.SvcPrivate)
		case *message.Event:
			var event struct {
				Name, ID string
				Data     json.RawMessage
			}
			require.NoError(t, json.Unmarshal(std.Event, &event), "%s %q passed, but encoding/json", r.Path, text)
			got, want = []string{asked.WorkflowID, asked.InstanceID, asked.Name, asked.ID}, []string{std.WorkflowID, std.InstanceID, event.Name, event.ID}
			ids = got[:2]
			checkSame(t, asked.Data, event.Data)
			assert.False(t, asked.ID != "" && !parse.IsIdempotencyKey(asked.ID), "%q: got the id %q", text, asked.ID)
		case *formportal.CreateRequest:
			got, want, ids = []string{asked.TemplateID, asked.WorkflowID}, []string{std.FormID + std.ChecklistID, std.WorkflowID}, []string{asked.TemplateID}
			if asked.WorkflowID != "" {
				ids = got
			}
		case *formportal.DraftRequest:
			checkSame(t, asked.Data, std.Data)
		case *formportal.TaskDraftRequest:
			checkSame(t, asked.Data, std.Data)
		case *formportal.TaskSubmitRequest:
			var event string
			_ = json.Unmarshal(std.Event, &event) // none is ""
			got, want = []string{asked.Event}, []string{event}
			checkSame(t, asked.Data, std.Data)
		case *formportal.SubmitRequest:
			got, want, ids = []string{asked.WorkflowID, asked.InstanceID}, []string{std.WorkflowID, std.InstanceID}, []string{strings.Replace(asked.WorkflowID, "-", "x", 1), asked.InstanceID}
			checkSame(t, asked.Data, std.Data)
		case [2]string:
			got, want = asked[:], []string{std.User, std.Password}
		}
		assert.True(t, slices.Equal(got, want), "%s %q: got %q, encoding/json reads %q", r.Path, text, got, want)
		if i := slices.IndexFunc(ids, func(id string) bool { return !statemachine.IsIdentifier(id) }); i >= 0 {
			t.Errorf("%s %q: handed on the identifier %q", r.Path, text, ids[i])
		}
	})
}

// checkSame holds that a value is an object that the standard library reads
// alike, or that both have none.
func checkSame(t *testing.T, got data.Value, std json.RawMessage) {
	t.Helper()
	if got.Kind() == data.Absent && std == nil {
		return
	}
	want, err := data.Clean(std)
	assert.True(t, err == nil && got.Kind() == data.Object && data.Equal(got, want), "got %s, encoding/json reads %s", got, std)
}
