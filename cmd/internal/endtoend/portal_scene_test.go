package endtoend

import (
	"encoding/json"
	"strings"
	"testing"
)

// portalPeople are the users of group A. ann is an employee, bob everything,
// adm manages workflows, eve has no role, kim may only look, and lou may make
// everything but look at nothing.
const portalPeople = `roles:
  - {id: employee, name: Employee, privileges: [mod-form-portal, mod-form]}
  - {id: boss, name: The "boss", privileges: [mod-form-portal, mod-form]}
  - {id: inspector, name: Inspector, privileges: [mod-form-portal, mod-checklist]}
  - {id: reader, name: Reader, privileges: [mod-form-portal]}
users:
  - {id: ann, name: Ann, roles: [employee]}
  - {id: bob, name: Bob, roles: [inspector, employee, boss]}
  - {id: eve, name: Eve, roles: []}
  - {id: adm, name: Adam, roles: [employee], privileges: [mod-workflows, mod-admin]}
  - {id: kim, name: Kim, roles: [reader]}
  - {id: lou, name: Lou, roles: [], privileges: [mod-form, mod-checklist]}
`

const leaveFlow = `
id: leave
name: Leave
allow:
  create: {roles: [employee]}
  read: {when: 'user.id == svcPublic.by || "boss" in user.roles'}
events: {boom: {unmatched: reject}}
stateMachines:
  main:
    initial: draft
    states:
      draft: {entry: [{assign: {svcPublic.by: '${has(svcPublic.by) ? svcPublic.by : user.id}'}}], on: {submit: review, note: {}}}
      review: {on: {approve: {target: approved, allow: {roles: [boss]}}, back: draft}}
      approved: {type: final}
`

const bossFlow = `
id: payroll
allow: {create: {roles: [boss]}}
stateMachines: {m: {states: {a: {on: {submit: b}}, b: {type: final}}}}
`

const twinFlow = `
id: twin
stateMachines:
  one: {initial: a, states: {a: {on: {sign: b, fail: {target: b, actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}}}, b: {type: final}}}
  two: {initial: x, states: {x: {on: {sign: x2}}, x2: {on: {end: y}}, y: {type: final}}}
`

const (
	leaveTemplate = `{id: leave-form, name: Leave request, description: Ask for days off, access: {roles: [employee, boss]}, workflows: [leave, payroll], submit: submit,
schema: {type: object, properties: {days: {type: integer, minimum: 1, maximum: 60}}, required: [days]}, ui: {order: [days]}}
`
	twinTemplate     = "{id: twin-form, access: {roles: [employee]}, workflows: [twin], submit: fail, schema: {type: object}}\n"
	feedbackTemplate = "{id: feedback, name: Feedback, access: {roles: [boss, employee]}, schema: {type: object, properties: {text: {type: string}}}}\n"
	offTemplate      = "{id: off, enabled: false, access: {roles: [employee]}, schema: {type: object}}\n"
	safetyTemplate   = "{id: safety, name: Safety, access: {roles: [inspector]}, items: [{id: exits, label: Exits, help: Look., required: true}, {id: light}]}\n"
)

// portalFiles are the files of a home with forms.
func portalFiles() map[string]string {
	return map[string]string{
		"identity.yaml":        portalPeople,
		"workflows/leave.yaml": leaveFlow,
		"workflows/boss.yaml":  bossFlow,
		"workflows/twin.yaml":  twinFlow,
		"workflows/plain.yaml": plainFlow,
		"forms/leave.yaml":     leaveTemplate,
		"forms/twin.yaml":      twinTemplate,
		"forms/feedback.yaml":  feedbackTemplate,
		"forms/off.yaml":       offTemplate,
		"checklists/safe.yaml": safetyTemplate,
	}
}

// desk returns a user with a session.
func (p *program) desk(name string) user { return p.withCookie(p.home.session(name)) }

// formItem is an item of the lists (gateway/INTERFACE.md, "Fields of a form").
type formItem struct {
	ID, FormType, FormID, SubmissionID, Name, FullPath, By, Status, Role string
	When                                                                 int64
}

func formItemOf(t testing.TB, text string) formItem {
	t.Helper()
	m := objectOf(t, text, "id", "formType", "formId", "submissionId", "name", "fullPath", "by", "when", "status", "role")
	get := func(name string) string { return decode[string](t, m[name]) }
	return formItem{
		ID: get("id"), FormType: get("formType"), FormID: get("formId"), SubmissionID: get("submissionId"), Name: get("name"),
		FullPath: get("fullPath"), By: get("by"), Status: get("status"), Role: get("role"), When: decode[int64](t, m["when"]),
	}
}

// arrayOf demands an answer with an array, and the headers of every answer.
func arrayOf(t testing.TB, a answer) []json.RawMessage {
	t.Helper()
	wantStatus(t, a, 200)
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	return decode[[]json.RawMessage](t, json.RawMessage(a.body))
}

// forms returns a list, such as "forms/mycurrent".
func (u user) forms(t testing.TB, list string) []formItem {
	t.Helper()
	items := []formItem{}
	for _, text := range arrayOf(t, u.get(t, "/form-portal/"+list)) {
		items = append(items, formItemOf(t, string(text)))
	}
	return items
}

// where returns the lists of the user that show the form.
func (u user) where(t testing.TB, id string) string {
	t.Helper()
	var found []string
	for _, list := range portalLists {
		for _, item := range u.forms(t, list) {
			if item.ID == id {
				found = append(found, list)
			}
		}
	}
	return strings.Join(found, " ")
}

var portalLists = []string{
	"forms/mycurrent", "forms/mysubmitted", "forms/myarchived", "checklists/mycurrent", "checklists/mysubmitted", "checklists/myarchived",
}

// sending is a request of the portal with a body.
func (u user) sending(method, path, body string, headers ...string) ask {
	return ask{method: method, path: u.base + path, headers: append(append(headers, jsonType), u.credential...), body: body}
}

func (u user) sendBody(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	return u.send(t, u.sending(method, path, body, headers...))
}

// makeForm creates a form, a checklist for safety, and returns its id.
func (u user) makeForm(t testing.TB, template, workflow string) string {
	t.Helper()
	a := u.tryForm(t, template, workflow)
	wantStatus(t, a, 200)
	return a.body
}

func (u user) tryForm(t testing.TB, template, workflow string, headers ...string) answer {
	t.Helper()
	path, body := makeBody(template, workflow)
	return u.sendBody(t, "POST", path, body, headers...)
}

func makeBody(template, workflow string) (path, body string) {
	switch {
	case template == "safety":
		return "/form-portal/checklists/create", `{"checklistId":"safety"}`
	case workflow == "":
		return "/form-portal/forms/create", `{"formId":` + quoted(template) + `}`
	}
	return "/form-portal/forms/create", `{"formId":` + quoted(template) + `,"workflowId":` + quoted(workflow) + `}`
}

const runtimeRoot = "/form-runtime/api/v1"

// view is a form as its page gets it.
type view struct {
	form         formItem
	category     string
	template     string // JSON
	data, draft  string // JSON
	revision     json.Number
	states       []position
	submittedAt  int64
	editable     bool
	draftSavedAt int64
}

func (u user) view(t testing.TB, workflow, id string) view {
	t.Helper()
	a := u.get(t, runtimeRoot+"/form/"+workflow+"/"+id)
	wantStatus(t, a, 200)
	if reason := headersReason(a); reason != "" {
		t.Error(reason)
	}
	m := objectOf(t, a.body, "form", "category", "template", "data", "draft", "states", "submittedAt", "editable")
	v := view{
		form: formItemOf(t, string(m["form"])), category: decode[string](t, m["category"]), template: string(m["template"]), data: string(m["data"]),
		submittedAt: decode[int64](t, m["submittedAt"]), editable: decode[bool](t, m["editable"]), draft: "null",
	}
	if string(m["draft"]) != "null" {
		d := objectOf(t, string(m["draft"]), "revision", "savedAt", "data")
		v.revision, v.draftSavedAt, v.draft = json.Number(d["revision"]), decode[int64](t, d["savedAt"]), string(d["data"])
	}
	for _, item := range decode[[]json.RawMessage](t, m["states"]) {
		s := objectOf(t, string(item), "stateMachineId", "nodeId")
		v.states = append(v.states, position{decode[string](t, s["stateMachineId"]), decode[string](t, s["nodeId"])})
	}
	return v
}

func (u user) save(t testing.TB, workflow, id, data string, headers ...string) answer {
	t.Helper()
	return u.sendBody(t, "PUT", runtimeRoot+"/draft/"+workflow+"/"+id, `{"data":`+data+`}`, headers...)
}

func (u user) drop(t testing.TB, workflow, id string, headers ...string) answer {
	t.Helper()
	return u.send(t, ask{method: "DELETE", path: u.base + runtimeRoot + "/draft/" + workflow + "/" + id, headers: append(headers, u.credential...)})
}

func submitBody(workflow, id, data string) string {
	return `{"workflowId":` + quoted(workflow) + `,"instanceId":` + quoted(id) + `,"data":` + data + `}`
}

func (u user) submit(t testing.TB, workflow, id, data string, headers ...string) answer {
	t.Helper()
	return u.sendBody(t, "POST", runtimeRoot+"/submit", submitBody(workflow, id, data), headers...)
}
