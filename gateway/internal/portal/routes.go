package portal

import (
	"net/http"

	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes is group A, and the form runtime.
func (g *Group) Routes() []kernel.Route {
	return append([]kernel.Route{
		{
			Name: "requests", Method: http.MethodGet, Path: kernel.WorkflowPath + "/requests",
			Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session),
			Query: []string{"kind", "category", "workflowId", "q", "sort", "limit", "cursor", "count"}, Handle: g.pageRequests,
		},
		portalRow("role-info", "/role-info", identity.FormPortal, g.showRoleInfo),
		portalRow("portal-workflows", "/workflows", identity.FormPortal, g.listPortalWorkflows),
		portalRow("forms-current", "/forms/mycurrent", identity.FormPortal, g.listForms(form.KindForm, form.Current)),
		portalRow("forms-submitted", "/forms/mysubmitted", identity.FormPortal, g.listForms(form.KindForm, form.Submitted)),
		portalRow("forms-archived", "/forms/myarchived", identity.FormPortal, g.listForms(form.KindForm, form.Archived)),
		portalRow("checklists-current", "/checklists/mycurrent", identity.FormPortal, g.listForms(form.KindChecklist, form.Current)),
		portalRow("checklists-submitted", "/checklists/mysubmitted", identity.FormPortal, g.listForms(form.KindChecklist, form.Submitted)),
		portalRow("checklists-archived", "/checklists/myarchived", identity.FormPortal, g.listForms(form.KindChecklist, form.Archived)),
		portalRow("form-templates", "/forms/role/:roleId", identity.Form, g.listTemplates(form.KindForm)),
		portalRow("checklist-templates", "/checklists/role/:roleId", identity.Checklist, g.listTemplates(form.KindChecklist)),
		{
			Name: "create-form", Method: http.MethodPost, Path: kernel.PortalPath + "/forms/create",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.Form, Handle: g.createForm,
		},
		{
			Name: "create-checklist", Method: http.MethodPost, Path: kernel.PortalPath + "/checklists/create",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.Checklist, Handle: g.createChecklist,
		},
		{
			Name: "form", Method: http.MethodGet, Path: kernel.RuntimePath + "/form/:workflowId/:instanceId",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.showForm,
		},
		{
			Name: "forms", Method: http.MethodGet, Path: kernel.RuntimePath + "/forms",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal,
			Query: []string{"kind", "category", "workflowId", "q", "sort", "limit", "cursor", "count"}, Handle: g.pageForms,
		},
		{
			Name: "delete-form", Method: http.MethodDelete, Path: kernel.RuntimePath + "/form/:workflowId/:instanceId",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.deleteForm,
		},
		{
			Name: "template", Method: http.MethodGet, Path: kernel.RuntimePath + "/template/:kind/:formId",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.showTemplate,
		},
		{
			Name: "save-draft", Method: http.MethodPut, Path: kernel.RuntimePath + "/draft/:workflowId/:instanceId",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.saveDraft,
		},
		{
			Name: "drop-draft", Method: http.MethodDelete, Path: kernel.RuntimePath + "/draft/:workflowId/:instanceId",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.dropDraft,
		},
		{
			Name: "submit-form", Method: http.MethodPost, Path: kernel.RuntimePath + "/submit",
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: g.submitForm,
		},
	}, g.taskFormRoutes()...)
}

// portalRow is a row for reading in group A.
func portalRow(name, path string, p identity.Privilege, handle func(*kernel.Exchange) error) kernel.Route {
	return kernel.Route{
		Name: name, Method: http.MethodGet, Path: kernel.PortalPath + path,
		Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: p, Handle: handle,
	}
}

// taskFormRoutes are the forms of tasks.
func (g *Group) taskFormRoutes() []kernel.Route {
	row := func(name, method, path string, handle func(*kernel.Exchange) error) kernel.Route {
		return kernel.Route{
			Name: name, Method: method, Path: kernel.RuntimePath + "/task/:taskId" + path,
			Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Handle: handle,
		}
	}
	return []kernel.Route{
		row("task-form", http.MethodGet, "", g.showTaskForm),
		row("task-draft", http.MethodGet, "/draft", g.showTaskDraft),
		row("save-task-draft", http.MethodPut, "/draft", g.saveTaskDraft),
		row("drop-task-draft", http.MethodDelete, "/draft", g.dropTaskDraft),
		row("submit-task", http.MethodPost, "/submit", g.submitTask),
	}
}
