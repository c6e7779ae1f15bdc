package portal

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Portal is what group A and the form runtime need; formportal.Portal does it.
// What it returns is only read. Errors are those of package failure.
type Portal interface {
	// RoleInfo returns the roles with which the caller can make forms.
	RoleInfo(ctx context.Context, caller *identity.Principal) (formportal.RoleInfo, error)
	// Workflows returns what the caller may create, by id.
	Workflows(ctx context.Context, caller *identity.Principal) ([]catalog.Choice, error)
	// OfRole returns the templates that a role of the caller's is offered.
	OfRole(ctx context.Context, caller *identity.Principal, kind form.Kind, role string) ([]*formportal.Template, error)
	// Template returns what the caller can make a form of, and with which workflows.
	Template(ctx context.Context, caller *identity.Principal, kind form.Kind, id string) (*formportal.Template, []catalog.Choice, error)
	// List calls item with each form of a list, in its order. An error of item
	// ends the list and is returned.
	List(ctx context.Context, request *formportal.ListRequest, item func(*formportal.Summary) error) error
	// Create makes a form and returns its id, when it is durable.
	Create(ctx context.Context, request *formportal.CreateRequest) (string, error)
	// Form returns a form with the caller's draft.
	Form(ctx context.Context, request *formportal.FormRequest) (*formportal.View, error)
	// SaveDraft keeps or drops the caller's draft. It returns when that is durable.
	SaveDraft(ctx context.Context, request *formportal.DraftRequest) (form.Draft, error)
	// Delete deletes a form that was never submitted. It returns when that is durable.
	Delete(ctx context.Context, request *formportal.FormRequest) error
	// Page returns a part of a list.
	Page(ctx context.Context, request *formportal.PageRequest) (*formportal.Page, error)
	TaskForms
	// Submit sends a form on its way. It returns when that is durable.
	Submit(ctx context.Context, request *formportal.SubmitRequest) (*message.Reply, error)
}

// showRoleInfo answers GET form-portal/role-info.
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

// listPortalWorkflows answers GET form-portal/workflows.
func (g *Group) listPortalWorkflows(x *kernel.Exchange) error {
	choices, err := g.Portal.Workflows(x.Request.Context(), x.Caller)
	if err != nil {
		return err
	}
	return x.AnswerJSON(show.Choices(choices))
}

// listTemplates answers GET form-portal/{forms,checklists}/role/{roleId}.
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

// listForms answers the six lists of the caller's own forms. A list of any
// length goes out in pieces.
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

// createChecklist answers POST form-portal/checklists/create.
func (g *Group) createChecklist(x *kernel.Exchange) error {
	return g.create(x, form.KindChecklist, checklistShape)
}

// create makes a form and answers with its id as plain text.
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
