package gateway

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"troupe/actors/activity"
	"troupe/actors/catalog"
	"troupe/actors/export"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/actors/schedule"
	"troupe/actors/task"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/portal"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

//go:embed testdata/actors.json
var actorsJSON []byte

// canned is what the actors answer, as it stands in testdata/actors.json, which nothing else reads: TestFakes plays testdata/fakes with it.
func canned[T any](name string) (answer T) {
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(actorsJSON, &all), json.Unmarshal(all[name], &answer)); err != nil {
		panic(name + ": " + err.Error())
	}
	return answer
}

// taskOne is open; the other task of the list was decided.
var taskOne = *canned[*task.Page]("tasks").Items[0]

// worklists are the tasks of a fakeWorkflows, and watches of them.
type worklists struct{ *fakeWorkflows }

func (f worklists) List(_ context.Context, r *task.ListRequest) (*task.Page, error) {
	return canned[*task.Page]("tasks"), f.ask(func() {
		f.asked = fmt.Sprint(r.Scope, "|", r.WorkflowID, "|", r.Filter, "|", r.Query, "|", r.Sort, "|", r.Limit, "|", r.Cursor, "|", r.Count, "|", r.Languages)
	})
}

func (f worklists) Task(_ context.Context, _ *identity.Principal, id string) (*task.Item, error) {
	return &taskOne, f.ask(func() { f.asked = id })
}

func (f *fakeWorkflows) ChangeTask(_ context.Context, r *message.TaskChange) (*task.Item, error) {
	return &taskOne, f.ask(func() { f.asked = fmt.Sprint(r.TaskID, " ", r.Action, " ", r.To != nil) })
}

func (f *fakeWorkflows) AddComment(r *message.Comment) (*activity.Row, error) {
	return &activity.Row{Kind: activity.Comment, User: string(r.Caller.ID), Text: r.Text, At: time.Unix(1_800_000_000, 0)}, f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) Activity(r *message.Activity) (*activity.Page, error) {
	at := time.Unix(1_800_000_000, 0)
	node := statemachine.Position{Machine: "main", Node: "review"}
	return &activity.Page{Next: "more", Items: []*activity.Item{
		{At: at, Timer: &statemachine.Timer{Event: "remind", Due: at}, Name: instanceOne + "-1-1"},
		{At: at, Delivery: &canned[*pending.DeliveryPage]("deliveries").Deliveries[0]},
		{At: at, User: "mary.major", Row: &activity.Row{Kind: activity.Assigned, Task: statemachine.ElementID{Sequence: 2}, Node: node, To: "john.doe"}},
		{At: at, User: "mary.major", Row: &activity.Row{Kind: activity.Comment, Text: "<b>hello</b>"}},
		{At: at, User: "john.doe", Sequence: 1, Entry: data.Value(`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2027-01-15T08:00:00.000Z","data":{"a":1}}`)},
	}}, f.ask(func() { f.asked = fmt.Sprint(r.OldestFirst, " ", r.Limit, " ", r.Cursor) })
}

func (f worklists) Watch(_ context.Context, r *task.WatchRequest, deliver func(*task.Event) error) error {
	if err := f.ask(); err != nil {
		return err
	}
	for _, e := range []*task.Event{
		{Kind: task.Opened}, {Kind: task.Changed, WorkflowID: "order", InstanceID: instanceOne, Items: []*task.Item{&taskOne}}, {Kind: task.Lost}, {Kind: task.Heartbeat},
	} {
		if _, err := r.Reauthorize(); err != nil {
			return err
		}
		if err := deliver(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeWorkflows) Pending(*message.Load) (*message.Pending, error) {
	return canned[*message.Pending]("pending"), f.ask()
}

func (f *fakeWorkflows) Deliveries(_ context.Context, r *pending.DeliveryList) (*pending.DeliveryPage, error) {
	return canned[*pending.DeliveryPage]("deliveries"), f.ask(func() { f.asked = []any{r.Caller.ID, r.State, r.Cursor, r.Limit} })
}

func (f *fakeWorkflows) ChangeDelivery(_ context.Context, id string, action outbox.Action) error {
	return f.ask(func() { f.asked = id + " " + string(action) })
}

func (f *fakeWorkflows) Incidents(_ context.Context, r *pending.IncidentList) (*pending.IncidentPage, error) {
	return canned[*pending.IncidentPage]("incidents"), f.ask(func() { f.asked = []any{r.Caller.ID, r.Cursor, r.Limit} })
}

func (f *fakeWorkflows) Timers(_ context.Context, r *pending.TimerList) (*pending.TimerPage, error) {
	return canned[*pending.TimerPage]("timers"), f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) ChangeIncident(_ context.Context, _ *identity.Principal, id string, drop bool) error {
	action := outbox.Retry
	if drop {
		action = outbox.Drop
	}
	return f.ask(func() { f.asked = id + " " + string(action) })
}

func (f *fakeWorkflows) StopTree(_ context.Context, workflowID, instanceID, user string) error {
	return f.ask(func() { f.asked = workflowID + "/" + instanceID + " " + user })
}

func (f *fakeWorkflows) Reset(_ context.Context, r *message.Reset) (*message.Reply, error) {
	return smallReply(r.WorkflowID, r.InstanceID, 2, r.WithHistory), f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) Delete(_ context.Context, user, workflowID, instanceID string, cascade bool) error {
	return f.ask(func() { f.asked = fmt.Sprint(user, " deletes ", workflowID, "/", instanceID, " ", cascade) })
}

func (f *fakeWorkflows) Schedules(context.Context) ([]schedule.State, error) {
	return canned[[]schedule.State]("schedules"), f.ask()
}

func (f *fakeWorkflows) hour(context.Context) api.Load {
	return api.Load{Minutes: canned[[]api.Minute]("load"), Nodes: 2, Missing: 1}
}

func (f *fakeWorkflows) backups(context.Context) []api.Backup {
	return canned[[]api.Backup]("backups")
}

func (f *fakeWorkflows) exports(context.Context) ([]export.Status, error) {
	return canned[[]export.Status]("exports"), nil
}

func (f *fakeWorkflows) Resume(what hold.What) error {
	return f.ask(func() { f.asked = "resume " + string(what) })
}

func (f *fakeWorkflows) ChangeSchedule(_ context.Context, workflowID, name string, action schedule.Action) error {
	return f.ask(func() { f.asked = workflowID + " " + name + " " + string(action) })
}

func (f *fakeWorkflows) Migrate(_ context.Context, r *migration.Request) (*migration.Answer, error) {
	return canned[*migration.Answer]("migration"), f.ask(func() {
		f.asked = fmt.Sprint(r.Caller.ID, " ", r.WorkflowID, " ", r.File, " ", string(r.Plan), " ", r.Filter, " ", r.DryRun, " ", r.Limit, " ", r.Cursor)
	})
}

// presented is a definition with texts for people.
var presented = sync.OnceValue(func() *statemachine.Definition {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		panic(err)
	}
	parsed, err := parser.Parse(statemachine.Source{File: "order.yaml", Text: []byte(`
id: order
name: Order
title: 'Order ${svcPublic.n}'
columns: [{path: svcPublic.n, label: {en: Number, de: Nummer}}, svcPublic.customer]
events: {approve: {label: {en: Approve, de: Genehmigen}, done: {en: approved it, de: hat genehmigt}, style: primary}, note: {style: danger}}
stateMachines:
  main:
    states:
      open: {label: {en: Open, de: Offen}, tone: waiting, on: {approve: closed}}
      closed: {tone: good, type: final}
`)})
	if err != nil {
		panic(err)
	}
	return parsed.Definition
})

var openNode = statemachine.Position{Machine: "main", Node: "open"}

func lineOne() presentation.Line {
	return presentation.Line{Of: presented(), Title: statemachine.Plain("Order 7"), At: []statemachine.Position{openNode}, Values: []data.Value{data.Value("7"), nil}}
}

func (f *fakeWorkflows) Lines(_ context.Context, _ *identity.Principal, of []presentation.Name) ([]*presentation.Line, error) {
	lines, one := make([]*presentation.Line, len(of)), lineOne()
	lines[0] = &one
	return lines, f.ask(func() { f.asked = of })
}

func (f *fakeWorkflows) Called(query.Loader, *identity.Principal, presentation.Name) (statemachine.Text, error) {
	return nil, f.ask()
}

func (f *fakeWorkflows) Summary(context.Context, *message.Load) (*presentation.Summary, error) {
	return &presentation.Summary{
		Line: lineOne(), Sequence: 2,
		Created: time.Unix(1_800_000_000, 0), Updated: time.Unix(1_800_000_001, 0), Requester: "ann", Form: &form.Form{Kind: form.KindForm, TemplateID: "order-form", Name: "Order form"},
	}, f.ask()
}

func (f *fakeWorkflows) Trace(context.Context, *message.Load, uint64) (*presentation.Trace, error) {
	return &presentation.Trace{
		Of: presented(), Sequence: 2, At: []statemachine.Position{openNode}, Steps: []presentation.Step{{End: []statemachine.NodeID{"open"}}},
	}, f.ask()
}

func (f *fakeWorkflows) Presented(_ *identity.Principal, id string, version uint64) (*statemachine.Definition, error) {
	return presented(), f.ask(func() { f.asked = [2]any{id, version} })
}

func (f *fakeWorkflows) Standing(_ context.Context, _ *identity.Principal, _ string, at []statemachine.Position) ([]query.Standing, error) {
	var out []query.Standing
	for _, p := range at {
		out = append(out, query.Standing{At: p, Instances: 78_123, About: true})
	}
	return out, f.ask()
}

// portalPrivileges are the privileges of group A, and two others. A set of them is a
// number: bit i stands for privilege i.
var portalPrivileges = []identity.Privilege{identity.FormPortal, identity.Form, identity.Checklist, identity.Admin, identity.Workflows}

const (
	allPrivileges = 7 // of group A
	// These are sets of one.
	privilegeAdmin     = 8
	privilegeWorkflows = 16
)

func sessionOf(set int) string { return fmt.Sprintf("ses_set%013d.%s", set, strings.Repeat("P", 43)) }

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

var leaveForm = canned[*formportal.Summary]("form")

var leaveJSON = func() string {
	text, _ := json.Marshal(portal.FormOf(leaveForm, nil)) // strings can always be written
	return string(text)
}()

// The bodies of tasks and comments.
const taskBody, commentBody = `{"taskId":"` + instanceOne + `-2-0","action":"claim"}`, `{"text":"hello"}`

const jobBody = `{"jobs":[{"jobId":"j","lease":"l"}]}`

// The bodies that the portal's routes take.
const (
	formBody       = `{"formId":"leave-form","workflowId":"leave"}`
	checklistBody  = `{"checklistId":"safety"}`
	draftBody      = `{"data":{"days":4}}`
	taskSubmitBody = `{"event":"approve","data":{"days":4}}`
	definitionBody = `{"id":"leave"}`
	operationBody  = `{"action":"retry"}`
	scheduleBody   = `{"action":"pause"}`
	resumeBody     = `{"action": "resume"}`
	migrationBody  = `{"plan":{"from":1,"to":2}}`
	submitBody     = `{"workflowId":"leave","instanceId":"` + instanceOne + `","data":{"days":4}}`
)

// requestOf asks a route in the right way.
// asksNobody: no actor and no service that could fail, or be elsewhere; each node knows how far all exports are.
func asksNobody(rt *kernel.Route) bool {
	return slices.Contains([]string{"choices", "session", "health", "load", "backups", "exports", "users", "user", "roles", "audit", "verify-audit"}, rt.Name)
}

// isOfIdentities: it has to do with tokens and sessions.
func isOfIdentities(rt *kernel.Route) bool {
	return slices.Contains([]string{"sessions", "revoke-session", "tokens", "create-token", "revoke-token"}, rt.Name)
}

func requestOf(t testing.TB, rt *kernel.Route) request {
	t.Helper()
	path := strings.NewReplacer(":workflowId", "leave", ":instanceId", "i1", ":roleId", "clerk", ":kind", "form", ":formId", "leave-form", ":taskId", instanceOne+"-2-0", ":jobId", "j", ":userId", "ann", ":version", "1", ":name", assetName(t), ":file", "form.schema.json").Replace(rt.Path)
	query := map[string]string{"report-parameters": "?rml=/a.rml", "document-parameters": "?docx=/a.docx", "list-files": "?extension=rml", "can": "?event=go&workflowId=leave&instanceId=i1"}
	body := map[string]string{
		"create": createBody, "event": eventBody, "batch": "[" + eventBody + "," + createBody + "]", "create-form": formBody, "create-checklist": checklistBody, "save-draft": draftBody, "save-task-draft": draftBody, "submit-task": taskSubmitBody, "submit-form": submitBody,
		"sign-in": signInBody, "publish-home": "an archive", "change-delivery": operationBody, "change-incident": operationBody, "stop": `{"tree": true}`, "change-schedule": scheduleBody, "resume-outbox": resumeBody, "resume-schedules": resumeBody, "resume-jobs": resumeBody, "change-task": taskBody, "comment": commentBody, "migrate": migrationBody, "reset": `{"to": 1, "reason": "a mistake"}`, "activate-jobs": `{"types":["charge"]}`, "complete-jobs": jobBody, "fail-jobs": jobBody, "retry-jobs": `{"jobs":[{"jobId":"j"}]}`, "cancel-jobs": `{"jobs":[{"jobId":"j"}]}`, "extend-jobs": `{"jobs":[{"jobId":"j","lease":"l","by":"PT1M"}]}`, "create-bulk": `{"workflowId": "leave", "action": {"event": {"name": "go"}}}`, "change-bulk": `{"action": "pause"}`, "simulate": `{"workflowId": "leave", "steps": []}`, "publish-definition": definitionBody, "publish-definition-version": definitionBody,
	}
	if rt.Name == "create-token" {
		body[rt.Name] = "{}"
	}
	credential := withToken
	if rt.Access.Kinds == identity.Session {
		credential = withPortal
	}
	if rt.Privilege == identity.Admin || rt.Privilege == identity.APITokens {
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
