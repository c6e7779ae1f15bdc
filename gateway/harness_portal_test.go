package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/portal"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// portalPrivileges are the privileges of group A, and two others. A set of them is a
// number: bit i stands for privilege i.
var portalPrivileges = []identity.Privilege{identity.FormPortal, identity.Form, identity.Checklist, identity.Admin, identity.Workflows}

const (
	allPrivileges = 7 // of group A
	// These are sets of one.
	privilegeAdmin     = 8
	privilegeWorkflows = 16
)

// sessionOf is the session of a user who holds a set of the privileges.
func sessionOf(set int) string {
	return fmt.Sprintf("ses_set%013d.%s", set, strings.Repeat("P", 43))
}

// usersOfSets are the users of these sessions.
var usersOfSets = func() []*identity.Principal {
	users := make([]*identity.Principal, privilegeWorkflows+1)
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

// fakePortal answers with something small, list, if it is set, is called for lists.
type fakePortal struct {
	planned
	list func(item func(*formportal.Summary) error) error
}

func (f *fakePortal) RoleInfo(context.Context, *identity.Principal) (formportal.RoleInfo, error) {
	return formportal.RoleInfo{}, f.ask()
}

func (f *fakePortal) Workflows(context.Context, *identity.Principal) ([]catalog.Choice, error) {
	return nil, f.ask()
}

func (f *fakePortal) OfRole(context.Context, *identity.Principal, form.Kind, string) ([]*formportal.Template, error) {
	return nil, f.ask()
}

func (f *fakePortal) Template(_ context.Context, _ *identity.Principal, kind form.Kind, id string) (*formportal.Template, []catalog.Choice, error) {
	return &formportal.Template{Kind: kind, ID: id, Name: statemachine.Plain("Leave"), Digest: form.DigestOf(nil)}, nil, f.ask()
}

func (f *fakePortal) List(_ context.Context, _ *formportal.ListRequest, item func(*formportal.Summary) error) error {
	if err := f.ask(); err != nil {
		return err
	}
	if f.list != nil {
		return f.list(item)
	}
	return item(leaveForm)
}

func (f *fakePortal) Create(_ context.Context, r *formportal.CreateRequest) (string, error) {
	return instanceOne, f.ask(func() { f.asked = r })
}

func (f *fakePortal) Form(context.Context, *formportal.FormRequest) (*formportal.View, error) {
	return &formportal.View{Summary: leaveForm, Data: data.Value(`{}`), States: []byte(`[]`)}, f.ask()
}

func (f *fakePortal) SaveDraft(_ context.Context, r *formportal.DraftRequest) (form.Draft, error) {
	return form.Draft{}, f.ask(func() { f.asked = r })
}

func (f *fakePortal) Delete(context.Context, *formportal.FormRequest) error { return f.ask() }

func (f *fakePortal) Page(context.Context, *formportal.PageRequest) (*formportal.Page, error) {
	return &formportal.Page{Forms: []formportal.Paged{{Summary: *leaveForm, WorkflowID: "leave"}, {Summary: *leaveForm, WorkflowID: formportal.PlainWorkflow}}}, f.ask()
}

func (f *fakePortal) Submit(_ context.Context, r *formportal.SubmitRequest) (*message.Reply, error) {
	return smallReply(r.WorkflowID, r.InstanceID, 2, true), f.ask(func() { f.asked = r })
}

func (f *fakePortal) Task(_ context.Context, r *formportal.TaskRequest) (*formportal.TaskView, error) {
	draft := &form.Draft{Revision: 7, SavedAt: 8, Data: data.Value(`{"days":4}`), Template: form.DigestOf(nil)}
	return &formportal.TaskView{
		Task: &taskOne, Template: &formportal.Template{ID: "leave-form", Digest: form.DigestOf(nil)}, Events: []statemachine.EventName{"approve"}, Sequence: 2,
		Data: data.Value(`{}`), States: []byte(`[]`), Draft: draft, TemplateChanged: true, Strays: []schema.Unreachable{{Pointer: "/days", Reason: "type"}}, Editable: true,
	}, f.ask(func() { f.asked = r.TaskID })
}

func (f *fakePortal) SaveTaskDraft(_ context.Context, r *formportal.TaskDraftRequest) (form.Draft, error) {
	return form.Draft{Revision: 7, SavedAt: 8}, f.ask(func() { f.asked = r })
}

func (f *fakePortal) SubmitTask(_ context.Context, r *formportal.TaskSubmitRequest) (*message.Reply, error) {
	return smallReply("leave", instanceOne, 3, r.WithHistory), f.ask(func() { f.asked = r })
}

// leaveForm is a form with something in every member.
var leaveForm = &formportal.Summary{
	ID: instanceOne, FormType: "WorkflowForm", FormID: "leave-form", SubmissionID: "01JD0000000000000000000009", Name: statemachine.Plain(`Leave "now"`),
	FullPath: "form-runtime/leave-form/leave/" + instanceOne + "/index.html", By: "ann", When: 1760000000123, Status: "review, open", Role: "clerk",
}

// leaveJSON is how package api shows it.
var leaveJSON = func() string {
	text, _ := json.Marshal(portal.FormOf(leaveForm, nil)) // strings can always be written
	return string(text)
}()

// The bodies of tasks and comments.
const taskBody, commentBody = `{"taskId":"` + instanceOne + `-2-0","action":"claim"}`, `{"text":"hello"}`

// The bodies that the portal's routes take.
const (
	formBody       = `{"formId":"leave-form","workflowId":"leave"}`
	checklistBody  = `{"checklistId":"safety"}`
	draftBody      = `{"data":{"days":4}}`
	taskSubmitBody = `{"event":"approve","data":{"days":4}}`
	definitionBody = `{"id":"leave"}`
	operationBody  = `{"action":"retry"}`
	scheduleBody   = `{"action":"pause"}`
	migrationBody  = `{"plan":{"from":1,"to":2}}`
	submitBody     = `{"workflowId":"leave","instanceId":"` + instanceOne + `","data":{"days":4}}`
)

// requestOf asks a route in the right way.
func requestOf(t testing.TB, rt *kernel.Route) request {
	t.Helper()
	path := strings.NewReplacer(":workflowId", "leave", ":instanceId", "i1", ":roleId", "clerk", ":kind", "form", ":formId", "leave-form", ":taskId", instanceOne+"-2-0", ":version", "1", ":name", assetName(t), ":file", "form.schema.json").Replace(rt.Path)
	query := map[string]string{"report-parameters": "?rml=/a.rml", "document-parameters": "?docx=/a.docx", "list-files": "?extension=rml"}
	body := map[string]string{
		"create": createBody, "event": eventBody, "batch": "[" + eventBody + "," + createBody + "]", "create-form": formBody, "create-checklist": checklistBody, "save-draft": draftBody, "save-task-draft": draftBody, "submit-task": taskSubmitBody, "submit-form": submitBody,
		"sign-in": signInBody, "publish-home": "an archive", "change-delivery": operationBody, "change-incident": operationBody, "stop": `{"tree": true}`, "change-schedule": scheduleBody, "change-task": taskBody, "comment": commentBody, "migrate": migrationBody, "publish-definition": definitionBody, "publish-definition-version": definitionBody,
	}
	credential := withToken
	if rt.Access.Kinds == identity.Session {
		credential = withPortal
	}
	if rt.Privilege == identity.Admin {
		credential = "Cookie: session=" + sessionOf(privilegeAdmin)
	}
	if rt.Privilege == identity.Workflows {
		credential = "Cookie: session=" + sessionOf(privilegeWorkflows)
	}
	content := jsonLine
	if rt.Content != "" {
		content = "Content-Type: " + rt.Content
	}
	return request{Method: rt.Method, Path: path + query[rt.Name], Body: body[rt.Name], Headers: []string{credential, content}}
}
