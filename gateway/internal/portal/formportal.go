// Package portal has the routes of group A and of the form runtime: lists of forms, templates, drafts,
// submissions, and the forms of tasks.
package portal

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Routes is group A, the form runtime, and the forms of tasks.
func (g *Group) Routes() []kernel.Route {
	requests := kernel.Route{Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath}
	base := kernel.Route{Group: kernel.GroupPortal, Access: kernel.SignedIn(identity.Session), Privilege: identity.FormPortal, Path: kernel.PortalPath}
	row := base.Row
	base.Privilege = identity.Form
	forms := base.Row
	base.Privilege = identity.Checklist
	checklists := base.Row
	base.Privilege, base.Path = identity.FormPortal, kernel.RuntimePath
	runtime := base.Row
	base.Path += "/task/:taskId"
	task := base.Row
	list := []string{"kind", "category", "workflowId", "q", "sort", "limit", "cursor", "count"}
	return []kernel.Route{
		requests.Row("requests", "GET", "/requests", g.pageRequests, list...),
		row("role-info", "GET", "/role-info", g.showRoleInfo),
		row("portal-workflows", "GET", "/workflows", g.listPortalWorkflows),
		row("forms-current", "GET", "/forms/mycurrent", g.listForms(form.KindForm, form.Current)),
		row("forms-submitted", "GET", "/forms/mysubmitted", g.listForms(form.KindForm, form.Submitted)),
		row("forms-archived", "GET", "/forms/myarchived", g.listForms(form.KindForm, form.Archived)),
		row("checklists-current", "GET", "/checklists/mycurrent", g.listForms(form.KindChecklist, form.Current)),
		row("checklists-submitted", "GET", "/checklists/mysubmitted", g.listForms(form.KindChecklist, form.Submitted)),
		row("checklists-archived", "GET", "/checklists/myarchived", g.listForms(form.KindChecklist, form.Archived)),
		forms("form-templates", "GET", "/forms/role/:roleId", g.listTemplates(form.KindForm)),
		checklists("checklist-templates", "GET", "/checklists/role/:roleId", g.listTemplates(form.KindChecklist)),
		forms("create-form", "POST", "/forms/create", g.createForm),
		checklists("create-checklist", "POST", "/checklists/create", g.createChecklist),
		runtime("form", "GET", "/form/:workflowId/:instanceId", g.showForm),
		runtime("forms", "GET", "/forms", g.pageForms, list...),
		runtime("delete-form", "DELETE", "/form/:workflowId/:instanceId", g.deleteForm),
		runtime("template", "GET", "/template/:kind/:formId", g.showTemplate),
		runtime("save-draft", "PUT", "/draft/:workflowId/:instanceId", g.saveDraft),
		runtime("drop-draft", "DELETE", "/draft/:workflowId/:instanceId", g.dropDraft),
		runtime("submit-form", "POST", "/submit", g.submitForm),
		task("task-form", "GET", "", g.showTaskForm),
		task("task-draft", "GET", "/draft", g.showTaskDraft),
		task("save-task-draft", "PUT", "/draft", g.saveTaskDraft),
		task("drop-task-draft", "DELETE", "/draft", g.dropTaskDraft),
		task("submit-task", "POST", "/submit", g.submitTask),
	}
}

func (g *Group) showRoleInfo(x *kernel.Exchange) error {
	info, err := g.Portal.RoleInfo(x.Request.Context(), x.Caller)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.RoleInfo{Forms: rolesOf(info.Forms), Checklists: rolesOf(info.Checklists)})
}

func rolesOf(roles []identity.Role) []api.Role {
	out := []api.Role{}
	for _, role := range roles {
		out = append(out, api.Role{ID: string(role.ID), Name: role.Name})
	}
	return out
}

func (g *Group) listPortalWorkflows(x *kernel.Exchange) error {
	choices, err := g.Portal.Workflows(x.Request.Context(), x.Caller)
	if err != nil {
		return err
	}
	return x.AnswerJSON(show.Choices(choices))
}

func (g *Group) listTemplates(kind form.Kind) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		if err := x.CheckIdentifiers(); err != nil {
			return err
		}
		templates, err := g.Portal.OfRole(x.Request.Context(), x.Caller, kind, x.Params.ByName("roleId"))
		if err != nil {
			return err
		}
		out, languages := []api.TemplateSummary{}, x.Languages()
		for _, t := range templates {
			out = append(out, api.TemplateSummary{
				FormID: t.ID, Name: t.Name.For(languages...), Description: t.Description.For(languages...), LastModified: t.Modified.UnixMilli(),
			})
		}
		slices.SortStableFunc(out, func(a, b api.TemplateSummary) int { return cmp.Compare(a.Name, b.Name) })
		return x.AnswerJSON(out)
	}
}

// listForms answers the six lists of the caller's own forms. A list of any length goes out in pieces.
func (g *Group) listForms(kind form.Kind, category form.Category) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		request := formportal.ListRequest{Caller: x.Caller, Kind: kind, Category: category}
		languages := x.Languages()
		list := x.BeginList()
		return list.End(g.Portal.List(x.Request.Context(), &request, func(f *formportal.Summary) error {
			list.BeforeElement()
			x.Out = appendSummary(x.Out, f, languages)
			return list.AfterElement()
		}))
	}
}

// appendSummary appends a form as package api writes it (gateway/INTERFACE.md, "Fields of a
// form"). A list may have many, so it does not allocate.
func appendSummary(dst []byte, f *formportal.Summary, languages []string) []byte {
	for i, member := range []struct{ name, value string }{
		{"id", f.ID},
		{"formType", f.FormType},
		{"formId", f.FormID},
		{"submissionId", f.SubmissionID},
		{"name", f.Name.For(languages...)},
		{"fullPath", f.FullPath},
		{"by", f.By},
		{"status", f.Status},
		{"role", f.Role},
	} {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, member.name...)
		dst = append(dst, `":`...)
		dst = data.AppendString(dst, member.value)
		if member.name == "by" {
			dst = append(dst, `,"when":`...)
			dst = strconv.AppendInt(dst, f.When, 10)
		}
	}
	return append(dst, '}')
}

var (
	formShape = parse.NewShape("",
		parse.Field{Name: "formId", Kind: data.String, Required: true}, parse.Field{Name: "workflowId", Kind: data.String})
	checklistShape = parse.NewShape("", parse.Field{Name: "checklistId", Kind: data.String, Required: true})
)

// createForm answers POST form-portal/forms/create. Without a workflow, and with an empty one, it is the template's.
func (g *Group) createForm(x *kernel.Exchange) error { return g.create(x, form.KindForm, formShape) }

func (g *Group) createChecklist(x *kernel.Exchange) error {
	return g.create(x, form.KindChecklist, checklistShape)
}

func (g *Group) create(x *kernel.Exchange, kind form.Kind, shape *parse.Shape) error {
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	var members [2]data.Value
	if err := shape.Read(body, members[:]); err != nil {
		return err
	}
	request := formportal.CreateRequest{Caller: x.Caller, Kind: kind, TemplateID: members[0].Text(), WorkflowID: members[1].Text()}
	if !statemachine.IsIdentifier(request.TemplateID) || request.WorkflowID != "" && !statemachine.IsIdentifier(request.WorkflowID) {
		return failure.ErrNotFound
	}
	if request.Retry, err = kernel.RetryOf(x, key, "", body); err != nil {
		return err
	}
	id, err := g.Portal.Create(x.Request.Context(), &request)
	if err != nil {
		return err
	}
	x.ContentType = valueText
	x.Out = append(x.Out, id...)
	x.Send(http.StatusOK)
	return nil
}

var valueText = []string{"text/plain; charset=utf-8"}
