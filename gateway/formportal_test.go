package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/statemachine/data"
)

// TestPortalRoutes goes through the operations of group A and of the form runtime in
// gateway/openapi.yaml. Each case says what it holds.
func TestPortalRoutes(t *testing.T) {
	full := fakePortal{
		roles: formportal.RoleInfo{
			Forms:      []identity.Role{{ID: "clerk", Name: `The "clerk"`}, {ID: "boss", Name: "Boss"}},
			Checklists: []identity.Role{{ID: "guard", Name: "Wächter"}},
		},
		choices:   []catalog.Choice{{ID: "leave", Name: "Leave"}, {ID: "trip", Name: "Trip \u2028"}},
		templates: []*formportal.Template{leaveView().Template, {ID: "b", Name: "B", Modified: leaveView().Template.Modified.AddDate(50, 0, 0)}},
		draft:     form.Draft{Revision: 4, SavedAt: 1760000000001},
	}
	const templates = `[{"formId":"leave-form","name":"Leave","description":"Ask \u003cfor\u003e days","lastModified":1},` +
		`{"formId":"b","name":"B","description":"","lastModified":1577836800001}]`
	cases := []struct {
		line    string
		portal  *fakePortal
		request request
		want    string
		tag     string
	}{
		{line: "role-info | RoleInfo object", portal: &full, request: portalGet("/form-portal/role-info"), want: `{"formRoles":[{"id":"clerk","name":"The \"clerk\""},{"id":"boss","name":"Boss"}],"checklistRoles":[{"id":"guard","name":"Wächter"}]}`},
		{line: "role-info | no role gives empty lists", request: portalGet("/form-portal/role-info"), want: `{"formRoles":[],"checklistRoles":[]}`},
		{line: "workflows | array of WorkflowInfo", portal: &full, request: portalGet("/form-portal/workflows"), want: `[{"id":"leave","name":"Leave"},{"id":"trip","name":"Trip \u2028"}]`},
		{line: "workflows | none", request: portalGet("/form-portal/workflows"), want: `[]`},
		{line: "forms/mycurrent | array of Form", request: portalGet("/form-portal/forms/mycurrent"), want: `[` + leaveJSON + `]`},
		{line: "forms/mysubmitted | array of Form", request: portalGet("/form-portal/forms/mysubmitted"), want: `[` + leaveJSON + `]`},
		{line: "forms/myarchived | array of Form", request: portalGet("/form-portal/forms/myarchived"), want: `[` + leaveJSON + `]`},
		{line: "checklists/mycurrent | array of Form", request: portalGet("/form-portal/checklists/mycurrent"), want: `[` + leaveJSON + `]`},
		{line: "checklists/mysubmitted | array of Form", request: portalGet("/form-portal/checklists/mysubmitted"), want: `[` + leaveJSON + `]`},
		{line: "checklists/myarchived | array of Form", request: portalGet("/form-portal/checklists/myarchived"), want: `[` + leaveJSON + `]`},
		{line: "forms/mycurrent | none, never null", portal: &fakePortal{list: listOf()}, request: portalGet("/form-portal/forms/mycurrent"), want: `[]`},
		{
			line: "forms/mycurrent | several, in the portal's order", portal: &fakePortal{list: listOf(leaveForm, &formportal.Summary{ID: "x", FormType: "Form", FormID: "y"}, leaveForm)}, request: portalGet("/form-portal/forms/mycurrent"),
			want: `[` + leaveJSON + `,{"id":"x","formType":"Form","formId":"y","submissionId":"","name":"","fullPath":"","by":"","when":0,"status":"","role":""},` + leaveJSON + `]`,
		},
		{line: "forms/role/{roleId} | array of CreateFormInfo", portal: &full, request: portalGet("/form-portal/forms/role/clerk"), want: templates},
		{line: "forms/role/{roleId} | none", request: portalGet("/form-portal/forms/role/clerk"), want: `[]`},
		{line: "checklists/role/{roleId} | array of CreateFormInfo-format items", portal: &full, request: portalGet("/form-portal/checklists/role/clerk"), want: templates},
		{line: "PUT draft | revision and savedAt", portal: &full, request: portalSend("PUT", draftPath, draftBody), want: `{"revision":4,"savedAt":1760000000001}`, tag: `"4"`},
		{line: "DELETE draft | {}", portal: &full, request: portalSend("DELETE", draftPath, ""), want: `{}`},
		{
			line: "GET form | everything", request: portalGet(formPath),
			want: `{"form":` + leaveJSON + `,"category":"submitted","template":{"formId":"leave-form","name":"Leave","description":"Ask \u003cfor\u003e days","schema":{"type":"object"},"ui":{"order":["days"]},"submit":"submit"},` +
				`"data":{"days":3},"draft":{"revision":1760000000456,"savedAt":1760000000457,"data":{"days":4}},"states":[{"stateMachineId":"main","nodeId":"review"}],"submittedAt":1760000000234,"editable":true}`,
		},
		{
			line: "GET form | without template and draft", request: portalGet(formPath),
			portal: &fakePortal{view: &formportal.View{Summary: leaveForm, Data: data.Value(`{}`), States: []byte(`[]`)}},
			want:   `{"form":` + leaveJSON + `,"category":"current","template":null,"data":{},"draft":null,"states":[],"submittedAt":0,"editable":false}`,
		},
		{
			line: "GET form | a checklist has items, and the members that its template lacks are missing", request: portalGet("/form-runtime/api/v1/form/-/" + instanceOne),
			portal: &fakePortal{view: &formportal.View{
				Summary: leaveForm, Category: formportal.Archived, Data: data.Value(`{}`), States: []byte(`[]`),
				Template: &formportal.Template{Kind: form.Checklist, ID: "c", Name: "C", Items: []formportal.Item{{ID: "a", Label: "A", Help: "h", Required: true}, {ID: "b", Label: "B"}}},
			}},
			want: `{"form":` + leaveJSON + `,"category":"archived","template":{"formId":"c","name":"C","description":"","items":[{"id":"a","label":"A","help":"h","required":true},{"id":"b","label":"B","help":"","required":false}]},` +
				`"data":{},"draft":null,"states":[],"submittedAt":0,"editable":false}`,
		},
		{
			line: "POST submit | as POST event answers", request: portalSend("POST", submitPath, submitBody),
			want: `{"workflowId":"leave","instanceId":"` + instanceOne + `","state":{"_id":"` + instanceOne + `","workflowId":"leave","svcPublic":{},"svcPrivate":{},` +
				`"svcHistory":[` + entryOfAnn + `],"states":[{"stateMachineId":"main","nodeId":"draft"}]}}`,
			tag: `"2"`,
		},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			portal := c.portal
			if portal == nil {
				portal = new(fakePortal)
			}
			a := startPortal(t, portal).do(t, c.request)
			want, err := data.Clean([]byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := data.Clean([]byte(a.body)); err != nil || a.status != 200 || !data.Equal(got, want) { // in any order
				t.Errorf("got %d %s\nwant 200 %s", a.status, a.body, c.want)
			}
			if got := a.header.Get("ETag"); got != c.tag {
				t.Errorf("ETag: got %q, want %q", got, c.tag)
			}
			if got := a.header.Get("Content-Length"); got != fmt.Sprint(len(a.body)) {
				t.Errorf("Content-Length: got %q, want %d", got, len(a.body))
			}
			checkCommonHeaders(t, a.header)
		})
	}
}

// TestCreateAnswersInPlainText holds gateway/INTERFACE.md, "Creating forms": the
// answer is the id alone.
func TestCreateAnswersInPlainText(t *testing.T) {
	s := startPortal(t, new(fakePortal))
	for _, r := range []request{
		portalSend("POST", formCreate, formBody), portalSend("POST", checkCreate, checklistBody),
		portalSend("POST", formCreate, formBody, "Accept: application/json"),
	} {
		a := s.do(t, r)
		if a.status != 200 || a.body != instanceOne {
			t.Errorf("%s: got %d %q, want 200 %q", r.path, a.status, a.body, instanceOne)
		}
		checkCommonHeadersBut(t, a.header, "text/plain; charset=utf-8")
	}
	a := s.do(t, portalSend("POST", formCreate, `{`))
	if a.status != 400 {
		t.Errorf("a failed create: got %d, want 400", a.status)
	}
	checkErrorBody(t, a)
	checkCommonHeaders(t, a.header)
}

// TestPortalRequests holds what each route hands on.
func TestPortalRequests(t *testing.T) {
	portal := new(fakePortal)
	s := startPortal(t, portal)
	user := userOf(allPrivileges)
	for name, r := range portalRequests() {
		if a := s.do(t, r); a.status != 200 {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
	for path, want := range map[string]formportal.ListRequest{
		"forms/mycurrent":        {Caller: user, Kind: form.Plain, Category: formportal.Current},
		"forms/mysubmitted":      {Caller: user, Kind: form.Plain, Category: formportal.Submitted},
		"forms/myarchived":       {Caller: user, Kind: form.Plain, Category: formportal.Archived},
		"checklists/mycurrent":   {Caller: user, Kind: form.Checklist, Category: formportal.Current},
		"checklists/mysubmitted": {Caller: user, Kind: form.Checklist, Category: formportal.Submitted},
		"checklists/myarchived":  {Caller: user, Kind: form.Checklist, Category: formportal.Archived},
	} {
		s.do(t, portalGet("/form-portal/"+path))
		if got := *portal.mu.list; got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	for path, want := range map[string]form.Kind{"forms/role/a.b~c-d_e": form.Plain, "checklists/role/a.b~c-d_e": form.Checklist} {
		s.do(t, portalGet("/form-portal/"+path))
		if portal.mu.kind != want || portal.mu.role != "a.b~c-d_e" || portal.mu.caller != user {
			t.Errorf("%s: got %v, %q, %v", path, portal.mu.kind, portal.mu.role, portal.mu.caller)
		}
	}
	for _, c := range []struct {
		path, body string
		want       formportal.CreateRequest
	}{
		{formCreate, ` { "workflowId":"le\u0061ve" , "formId":"f"} `, formportal.CreateRequest{Caller: user, Kind: form.Plain, TemplateID: "f", WorkflowID: "leave"}},
		{formCreate, `{"formId":"f"}`, formportal.CreateRequest{Caller: user, Kind: form.Plain, TemplateID: "f"}},
		{formCreate, `{"formId":"f","workflowId":""}`, formportal.CreateRequest{Caller: user, Kind: form.Plain, TemplateID: "f"}},
		{checkCreate, `{"checklistId":"c"}`, formportal.CreateRequest{Caller: user, Kind: form.Checklist, TemplateID: "c"}},
	} {
		s.do(t, portalSend("POST", c.path, c.body))
		if got := *portal.mu.create; got != c.want {
			t.Errorf("%s %s: got %+v, want %+v", c.path, c.body, got, c.want)
		}
	}
	s.do(t, portalGet("/form-runtime/api/v1/form/-/"+instanceOne))
	if got, want := *portal.mu.form, (formportal.FormRequest{Caller: user, WorkflowID: "-", InstanceID: instanceOne}); got != want {
		t.Errorf("form: got %+v, want %+v", got, want)
	}
	s.do(t, portalSend("PUT", plainDraft, ` { "data" : {"b": 9007199254740993, "a": "\u0041"} } `))
	if got := portal.mu.draft; got.Data.String() != `{"b":9007199254740993,"a":"\u0041"}` || got.IfMatch != nil || got.WorkflowID != "-" || got.InstanceID != instanceOne || got.Caller != user {
		t.Errorf("draft: got %+v", got)
	}
	s.do(t, portalSend("DELETE", draftPath, `{"data":{}}`))
	if got := portal.mu.draft; got.Data != nil || got.WorkflowID != "leave" {
		t.Errorf("drop: got %+v, want no data, whatever the body says", got)
	}
	s.do(t, portalSend("POST", submitPath, submitBody))
	if got := portal.mu.submit; got.Data.String() != `{"days":4}` || got.WorkflowID != "leave" || got.InstanceID != instanceOne || got.Caller != user || got.Retry != (workflow.Retry{}) {
		t.Errorf("submit: got %+v", got)
	}
}

// TestPortalErrors goes through the errors of group A (gateway/INTERFACE.md,
// "Errors").
func TestPortalErrors(t *testing.T) {
	portal := new(fakePortal)
	s := startPortal(t, portal)
	var notFound string
	tried := 0
	for _, c := range []struct {
		line   string
		err    error
		status int
		word   string
		retry  bool
	}{
		{"400 Bad request | Invalid request parameters", fmt.Errorf("%w: %w", failure.ErrInvalid, errors.New("at '/days': too many")), 400, "Bad request", false},
		{"401 Unauthorized", failure.ErrUnauthorized, 401, "Unauthorized", false},
		{"403 Access denied | Caller lacks the required privilege", failure.ErrForbidden, 403, "Access denied", false},
		{"404 Not found | Resource not found", failure.ErrNotFound, 404, "Not found", false},
		{"409 Conflict", failure.ErrNotAllowed, 409, "Conflict", false},
		{"412 Precondition failed", failure.ErrPrecondition, 412, "Precondition failed", false},
		{"413 Too large", failure.ErrTooLarge, 413, "Too large", false},
		{"422 Unprocessable", failure.ErrKeyReused, 422, "Unprocessable", false},
		{"429 Busy", failure.ErrInstanceBusy, 429, "Busy", true},
		{"503 Busy", failure.ErrBusy, 503, "Busy", true},
		{"503 Busy", failure.ErrUnavailable, 503, "Busy", true},
		{"504 Busy", failure.ErrOutcomeUnknown, 504, "Busy", false},
		{"500 Server error | Internal error", failure.ErrInternal, 500, "Server error", false},
		{"500 Server error | of a workflow", failure.ErrExecution, 500, "Server error", false},
		{"500 Server error | an error that nobody knows", errors.New("disk on fire at /secret/place"), 500, "Server error", false},
	} {
		portal.setFail(fmt.Errorf("form portal: %s: %w", "secret", c.err))
		for name, r := range portalRequests() {
			if !describes(r, c.status) {
				continue // it has no such error
			}
			tried++
			t.Run(c.line+" "+name, func(t *testing.T) {
				a := s.do(t, r)
				if a.status != c.status || a.label() != c.word || a.message() == "" {
					t.Errorf("got %d %s, want %d %s", a.status, a.body, c.status, c.word)
				}
				if got := a.header.Get("Retry-After") != ""; got != c.retry {
					t.Errorf("Retry-After: got %v, want %v", got, c.retry)
				}
				if a.header.Get("ETag") != "" || strings.Contains(a.body, "secret") {
					t.Errorf("the answer tells too much: %v %s", a.header, a.body)
				}
				if c.status == 404 && notFound == "" {
					notFound = a.body
				}
				if c.status == 404 && a.body != notFound {
					t.Errorf("404 bodies are constant: got %s, want %s", a.body, notFound)
				}
				checkErrorBody(t, a)
				checkCommonHeaders(t, a.header)
			})
		}
	}
	if tried < 180 {
		t.Errorf("tried %d errors", tried)
	}
	if log := s.log.String(); !strings.Contains(log, "disk on fire") {
		t.Errorf("the log has nothing about the error that nobody knows: %s", log)
	}
}

// TestPrivilegesComeFirst holds gateway/INTERFACE.md, "Order of checks": a caller
// without the privilege learns nothing: neither whether the path can be, nor
// whether the body is right.
func TestPrivilegesComeFirst(t *testing.T) {
	s := startPortal(t, new(fakePortal))
	for _, c := range []struct {
		set    int
		r      request
		status int
	}{
		{0, portalGet("/form-portal/forms/role/..%00"), 403},
		{5, portalGet("/form-portal/forms/role/a%20b"), 403},
		{3, portalGet("/form-portal/checklists/role/a%20b"), 403},
		{5, portalSend("POST", formCreate, "{"), 403},
		{3, portalSend("POST", checkCreate, strings.Repeat(" ", 2<<20)), 403},
		{6, portalGet("/form-runtime/api/v1/form/~/.."), 403},
		{6, portalSend("PUT", draftPath, "[]"), 403},
		{6, portalSend("DELETE", draftPath, "", "If-Match: garbage"), 403},
		{6, portalSend("POST", submitPath, "{}", "Idempotency-Key: "), 403},
		{6, portalGet("/form-portal/role-info?x=1"), 403},
		{1, portalGet("/form-portal/role-info?x=1"), 400},
		{2, portalGet("/form-portal/forms/role/a%20b"), 404},
	} {
		c.r.headers = append([]string{"Cookie: session=" + sessionOf(c.set)}, c.r.headers[1:]...)
		// NB: not over a connection. It is closed on a body that nobody reads, and a
		// busy machine may not be done with sending that when it is.
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest(c.r.method, c.r.path, c.r.body, c.r.headers...))
		a := &answer{status: w.status, header: w.header, body: w.body.String()}
		if a.status != c.status {
			t.Errorf("%s %s with set %d: got %d %s, want %d", c.r.method, c.r.path, c.set, a.status, a.body, c.status)
		}
		checkErrorBody(t, a)
	}
	if s.portal.calls() != 0 {
		t.Error("the portal was asked")
	}
}

// TestPortalPaths is TestPaths for group A and the form runtime: the words are
// those of the group, also where there is nothing.
func TestPortalPaths(t *testing.T) {
	long := strings.Repeat("A", 129)
	s := startPortal(t, new(fakePortal))
	bodies := map[string]string{}
	for _, c := range []struct {
		line, method, target string
		status               int
		group                string // "A" or "B": whose words
	}{
		{"a role", "GET", "/form-portal/forms/role/clerk", 200, ""},
		{"a role with every character", "GET", "/form-portal/forms/role/a.b~c-d_E9", 200, ""},
		{"an escaped letter", "GET", "/form-%70ortal/forms/role/%63lerk", 200, ""},
		{"128 characters", "GET", "/form-portal/checklists/role/" + long[:128], 200, ""},
		{"a form without a workflow", "GET", "/form-runtime/api/v1/form/-/i1", 200, ""},
		{"a form, the api escaped", "GET", "/form-runtime/%61pi/v1/form/-/i1", 200, ""},

		{"the role ..", "GET", "/form-portal/forms/role/..", 404, "A"},
		{"the escaped role ..", "GET", "/form-portal/forms/role/%2e%2e", 404, "A"},
		{"NUL", "GET", "/form-portal/forms/role/a%00b", 404, "A"},
		{"a line end", "GET", "/form-portal/checklists/role/%0d%0a", 404, "A"},
		{"5,000 characters", "GET", "/form-portal/forms/role/" + strings.Repeat("A", 5000), 404, "A"},
		{"129 characters", "GET", "/form-portal/forms/role/" + long, 404, "A"},
		{"an escaped slash", "GET", "/form-portal/forms/role/a%2Fb", 404, "A"},
		{"a dash in front", "GET", "/form-portal/forms/role/-", 404, "A"},
		{"no UTF-8", "GET", "/form-portal/forms/role/%ff", 404, "A"},
		{"no role", "GET", "/form-portal/forms/role/", 404, "A"},
		{"a trailing slash", "GET", "/form-portal/role-info/", 404, "A"},
		{"another list", "GET", "/form-portal/forms/mydeleted", 404, "A"},
		{"another case", "GET", "/form-portal/Role-Info", 404, "A"},
		{"the instance ..", "GET", "/form-runtime/api/v1/form/-/%2e%2e", 404, "A"},
		{"the instance -", "GET", "/form-runtime/api/v1/form/-/-", 404, "A"},
		{"the workflow --", "GET", "/form-runtime/api/v1/form/--/i1", 404, "A"},
		{"the workflow ~", "GET", "/form-runtime/api/v1/form/~/i1", 404, "A"},
		{"an empty workflow", "GET", "/form-runtime/api/v1/form//i1", 404, "A"},
		{"another version", "GET", "/form-runtime/api/v2/form/-/i1", 404, "B"},
		{"the group alone", "GET", "/form-portal", 404, "B"},
		{"the api alone", "GET", "/form-runtime/api/", 404, "B"},
		{"group B with the workflow -", "GET", "/workflow/api/v1/instance/-/i1", 404, "B"},

		{"POST of a list", "POST", "/form-portal/forms/mycurrent", 405, "A GET, HEAD"},
		{"GET of create", "GET", "/form-portal/forms/create", 405, "A POST"},
		{"HEAD of create", "HEAD", "/form-portal/checklists/create", 405, "A POST"},
		{"PUT of a role", "PUT", "/form-portal/forms/role/clerk", 405, "A GET, HEAD"},
		{"OPTIONS", "OPTIONS", "/form-portal/role-info", 405, "A GET, HEAD"},
		{"GET of a draft", "GET", "/form-runtime/api/v1/draft/-/i1", 405, "A DELETE, PUT"},
		{"PATCH of a draft", "PATCH", "/form-runtime/api/v1/draft/-/i1", 405, "A DELETE, PUT"},
		{"PUT of a form", "PUT", "/form-runtime/api/v1/form/-/i1", 405, "A GET, HEAD"},
		{"GET of submit", "GET", "/form-runtime/api/v1/submit", 405, "A POST"},
	} {
		t.Run(c.line, func(t *testing.T) {
			credential := withPortal
			if strings.HasPrefix(c.target, "/workflow/") {
				credential = withToken
			}
			replies := parseReplies(t, s.raw(t, c.method+" "+c.target+" HTTP/1.1\r\nHost: x\r\n"+credential+"\r\n\r\n"), c.method)
			if len(replies) != 1 || replies[0].status != c.status {
				t.Fatalf("got %+v, want one %d", replies, c.status)
			}
			a := replies[0]
			checkCommonHeaders(t, a.header)
			if a.header.Get("Location") != "" {
				t.Errorf("the answer leads to %q", a.header.Get("Location"))
			}
			if c.status == 200 {
				return
			}
			word, allow, _ := strings.Cut(c.group, " ")
			want := map[string]string{"404 A": "Not found", "404 B": "NotFound", "405 A": "Method not allowed"}[fmt.Sprint(c.status, " ", word)]
			if c.method != "HEAD" && a.label() != want || a.header.Get("Allow") != allow {
				t.Errorf("got %s and Allow %q, want %q and %q", a.body, a.header.Get("Allow"), want, allow)
			}
			if c.method == "HEAD" {
				return
			}
			if first := bodies[want]; first != "" && first != a.body {
				t.Errorf("%d bodies are constant: got %s, want %s", c.status, a.body, first)
			}
			bodies[want] = a.body
		})
	}
}

// TestPortalBelowABasePath holds gateway/INTERFACE.md, "Base path": both routers
// hang below it, and their words with them.
func TestPortalBelowABasePath(t *testing.T) {
	s := startServer(t, Options{BasePath: "/platform"}, nil)
	for path, status := range map[string]int{
		"/form-portal/role-info": 200, formPath: 200, "/form-portal/nothing": 404, "/form-runtime/api/v1/nothing": 404,
	} {
		if a := s.do(t, portalGet(path)); a.status != status || status == 404 && a.label() != "Not found" {
			t.Errorf("%s: got %d %s, want %d", path, a.status, a.body, status)
		}
	}
	s.base = strings.TrimSuffix(s.base, "/platform")
	for _, path := range []string{"/form-portal/role-info", formPath} {
		if a := s.do(t, portalGet(path)); a.status != 404 || a.label() != "NotFound" {
			t.Errorf("%s outside: got %d %s", path, a.status, a.body)
		}
	}
}

// listOf is a list of a fakePortal.
func listOf(forms ...*formportal.Summary) func(context.Context, *formportal.ListRequest, func(*formportal.Summary) error) error {
	return func(_ context.Context, _ *formportal.ListRequest, item func(*formportal.Summary) error) error {
		for _, f := range forms {
			if err := item(f); err != nil {
				return err
			}
		}
		return nil
	}
}
