package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/statemachine/data"
)

// portalPrivileges are the privileges of group A. A set of them is a number: bit
// i stands for privilege i.
var portalPrivileges = []identity.Privilege{identity.FormPortal, identity.Form, identity.Checklist}

const allPrivileges = 7

// sessionOf is the session of a user who holds a set of the privileges.
func sessionOf(set int) string {
	return fmt.Sprintf("ses_set%013d.%s", set, strings.Repeat("P", 43))
}

// userOf is the user of that session.
func userOf(set int) *identity.Principal { return usersOfSets[set] }

var usersOfSets = func() []*identity.Principal {
	users := make([]*identity.Principal, allPrivileges+1)
	for set := range users {
		users[set] = &identity.Principal{ID: identity.UserID(fmt.Sprintf("set%d", set)), Roles: []string{"clerk"}}
		for i, p := range portalPrivileges {
			if set&(1<<i) != 0 {
				users[set].Privileges = append(users[set].Privileges, string(p))
			}
		}
		slices.Sort(users[set].Privileges)
	}
	return users
}()

// withPortal is the cookie of a user with all privileges of group A.
var withPortal = "Cookie: session=" + sessionOf(allPrivileges)

// fakePortal answers from functions, and remembers what it was asked. A nil
// function answers with something small. fail, if it is set, is the answer to
// everything.
type fakePortal struct {
	roles     formportal.RoleInfo
	choices   []catalog.Choice
	templates []*formportal.Template
	list      func(context.Context, *formportal.ListRequest, func(*formportal.Summary) error) error
	view      *formportal.View
	draft     form.Draft

	mu struct {
		sync.Mutex
		fail   error
		calls  int
		caller *identity.Principal
		role   string
		kind   form.Kind
		list   *formportal.ListRequest
		create *formportal.CreateRequest
		form   *formportal.FormRequest
		draft  *formportal.DraftRequest
		submit *formportal.SubmitRequest
	}
}

// asked notes a call and returns what is to be answered.
func (f *fakePortal) asked(note func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.calls++
	note()
	return f.mu.fail
}

func (f *fakePortal) RoleInfo(_ context.Context, caller *identity.Principal) (formportal.RoleInfo, error) {
	return f.roles, f.asked(func() { f.mu.caller = caller })
}

func (f *fakePortal) Workflows(_ context.Context, caller *identity.Principal) ([]catalog.Choice, error) {
	return f.choices, f.asked(func() { f.mu.caller = caller })
}

func (f *fakePortal) OfRole(_ context.Context, caller *identity.Principal, kind form.Kind, role string) ([]*formportal.Template, error) {
	return f.templates, f.asked(func() { f.mu.caller, f.mu.kind, f.mu.role = caller, kind, role })
}

func (f *fakePortal) Template(_ context.Context, caller *identity.Principal, kind form.Kind, id string) (*formportal.Template, []catalog.Choice, error) {
	template := &formportal.Template{Kind: kind, ID: id, Name: "Leave"}
	if len(f.templates) > 0 {
		template = f.templates[0]
	}
	return template, f.choices, f.asked(func() { f.mu.caller, f.mu.kind, f.mu.role = caller, kind, id })
}

func (f *fakePortal) List(ctx context.Context, r *formportal.ListRequest, item func(*formportal.Summary) error) error {
	if err := f.asked(func() { f.mu.list = r }); err != nil {
		return err
	}
	if f.list != nil {
		return f.list(ctx, r, item)
	}
	return item(leaveForm)
}

func (f *fakePortal) Create(_ context.Context, r *formportal.CreateRequest) (string, error) {
	return instanceOne, f.asked(func() { f.mu.create = r })
}

func (f *fakePortal) Form(_ context.Context, r *formportal.FormRequest) (*formportal.View, error) {
	view := f.view
	if view == nil {
		view = leaveView()
	}
	return view, f.asked(func() { f.mu.form = r })
}

func (f *fakePortal) SaveDraft(_ context.Context, r *formportal.DraftRequest) (form.Draft, error) {
	return f.draft, f.asked(func() { f.mu.draft = r })
}

func (f *fakePortal) Submit(_ context.Context, r *formportal.SubmitRequest) (*workflow.Reply, error) {
	return smallReply(r.WorkflowID, r.InstanceID, 2, true), f.asked(func() { f.mu.submit = r })
}

// calls says how often anything was asked.
func (f *fakePortal) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.calls
}

func (f *fakePortal) setFail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.fail = err
}

// leaveForm is a form with something in every member.
var leaveForm = &formportal.Summary{
	ID: instanceOne, FormType: "WorkflowForm", FormID: "leave-form", SubmissionID: "01JD0000000000000000000009", Name: `Leave "now"`,
	FullPath: "form-runtime/leave-form/leave/" + instanceOne + "/index.html", By: "ann", When: 1760000000123, Status: "review, open", Role: "clerk",
}

// leaveJSON is how it is shown.
const leaveJSON = `{"id":"` + instanceOne + `","formType":"WorkflowForm","formId":"leave-form","submissionId":"01JD0000000000000000000009",` +
	`"name":"Leave \"now\"","fullPath":"form-runtime/leave-form/leave/` + instanceOne + `/index.html","by":"ann","when":1760000000123,` +
	`"status":"review, open","role":"clerk"}`

// leaveView is the same form on its page, with everything that there can be.
func leaveView() *formportal.View {
	return &formportal.View{
		Summary: leaveForm, Category: formportal.Submitted, Data: data.Value(`{"days":3}`), States: []byte(`[{"stateMachineId":"main","nodeId":"review"}]`),
		Template: &formportal.Template{
			Kind: form.Plain, ID: "leave-form", Name: "Leave", Description: "Ask <for> days", Schema: data.Value(`{"type":"object"}`),
			UI: data.Value(`{"order":["days"]}`), Submit: "submit", Workflows: []string{"leave"}, Roles: []string{"clerk"}, Modified: time.UnixMilli(1),
		},
		Draft:       &form.Draft{Revision: 1760000000456, SavedAt: 1760000000457, Data: data.Value(`{"days":4}`)},
		SubmittedAt: 1760000000234, Editable: true, Sequence: 3,
	}
}

// startPortal starts a server with a portal.
func startPortal(t testing.TB, portal *fakePortal) *testServer {
	t.Helper()
	s := startClosed(t, Options{})
	s.workflows, s.sessions, s.portal = new(fakeWorkflows), new(fakeSessions), portal
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Portal: portal})
	return s
}

func portalGet(path string, headers ...string) request {
	return request{method: "GET", path: path, headers: append([]string{withPortal}, headers...)}
}

func portalSend(method, path, body string, headers ...string) request {
	return request{method: method, path: path, body: body, headers: append([]string{withPortal, jsonLine}, headers...)}
}

// The paths of the form runtime, and bodies that the portal's routes take.
const (
	formPath      = "/form-runtime/api/v1/form/leave/" + instanceOne
	draftPath     = "/form-runtime/api/v1/draft/leave/" + instanceOne
	plainDraft    = "/form-runtime/api/v1/draft/-/" + instanceOne
	submitPath    = "/form-runtime/api/v1/submit"
	formCreate    = "/form-portal/forms/create"
	checkCreate   = "/form-portal/checklists/create"
	formBody      = `{"formId":"leave-form","workflowId":"leave"}`
	checklistBody = `{"checklistId":"safety"}`
	draftBody     = `{"data":{"days":4}}`
	submitBody    = `{"workflowId":"leave","instanceId":"` + instanceOne + `","data":{"days":4}}`
)

// portalRequests asks each route of group A and of the form runtime once, in the
// right way, by the name of the route.
func portalRequests() map[string]request {
	return map[string]request{
		"role-info":            portalGet("/form-portal/role-info"),
		"portal-workflows":     portalGet("/form-portal/workflows"),
		"forms-current":        portalGet("/form-portal/forms/mycurrent"),
		"forms-submitted":      portalGet("/form-portal/forms/mysubmitted"),
		"forms-archived":       portalGet("/form-portal/forms/myarchived"),
		"checklists-current":   portalGet("/form-portal/checklists/mycurrent"),
		"checklists-submitted": portalGet("/form-portal/checklists/mysubmitted"),
		"checklists-archived":  portalGet("/form-portal/checklists/myarchived"),
		"form-templates":       portalGet("/form-portal/forms/role/clerk"),
		"checklist-templates":  portalGet("/form-portal/checklists/role/clerk"),
		"create-form":          portalSend("POST", formCreate, formBody),
		"create-checklist":     portalSend("POST", checkCreate, checklistBody),
		"form":                 portalGet(formPath),
		"save-draft":           portalSend("PUT", draftPath, draftBody),
		"drop-draft":           portalSend("DELETE", draftPath, ""),
		"submit-form":          portalSend("POST", submitPath, submitBody),
	}
}
