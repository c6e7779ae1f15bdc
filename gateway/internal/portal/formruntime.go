package portal

import (
	"context"
	"encoding/json"
	"slices"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

func formRequest(x *kernel.Exchange) (formportal.FormRequest, error) {
	return formOf(x, x.Params.ByName("workflowId"), x.Params.ByName("instanceId"))
}

// formOf names a form. What can be nobody's is failure.ErrNotFound.
func formOf(x *kernel.Exchange, workflowID, instanceID string) (formportal.FormRequest, error) {
	if workflowID != formportal.PlainWorkflow && !statemachine.IsIdentifier(workflowID) || !statemachine.IsIdentifier(instanceID) {
		return formportal.FormRequest{}, failure.ErrNotFound
	}
	return formportal.FormRequest{Caller: x.Caller, WorkflowID: workflowID, InstanceID: instanceID}, nil
}

func (g *Group) showForm(x *kernel.Exchange) error {
	request, err := formRequest(x)
	if err != nil {
		return err
	}
	view, err := g.Portal.Form(x.Request.Context(), &request)
	if err != nil {
		return err
	}
	x.NoteInstance(&message.Load{WorkflowID: request.WorkflowID, InstanceID: request.InstanceID, ByPrivilege: view.ByPrivilege})
	languages := x.Languages()
	answer := api.FormView{
		Form: FormOf(view.Summary, languages), Category: view.Category.String(), Template: templateOf(view.Template, languages),
		Data: json.RawMessage(view.Data), States: view.States, SubmittedAt: view.SubmittedAt, Editable: view.Editable,
	}
	answer.Draft = draftOf(view.Draft, view.TemplateChanged, view.Strays)
	return x.AnswerJSON(answer)
}

// draftOf is a draft with what does not fit the template any more; nil stays nil.
func draftOf(d *form.Draft, templateChanged bool, strays []schema.Unreachable) *api.Draft {
	if d == nil {
		return nil
	}
	out := &api.Draft{DraftSaved: savedOf(d), Data: json.RawMessage(d.Data), Template: d.Template.String(), TemplateChanged: templateChanged}
	out.Misfits = []api.Misfit{} // NB: none is a list, too
	for _, s := range strays {
		out.Misfits = append(out.Misfits, api.Misfit{Path: s.Pointer, Reason: string(s.Reason)})
	}
	return out
}

func savedOf(d *form.Draft) api.DraftSaved {
	return api.DraftSaved{Revision: d.Revision, SavedAt: d.SavedAt}
}

func (g *Group) deleteForm(x *kernel.Exchange) error {
	request, err := formRequest(x)
	if err != nil {
		return err
	}
	if err := g.Portal.Delete(x.Request.Context(), &request); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

const formsPageDefault = 50

func (g *Group) pageForms(x *kernel.Exchange) error {
	request, err := formPageRequest(x, form.KindForm, form.KindChecklist)
	if err != nil {
		return err
	}
	page, answer, err := g.pageOf(x, request)
	if err != nil {
		return err
	}
	if answer.Forms, err = g.presentForms(x, page); err != nil {
		return err
	}
	answer.Next = x.LinkNext(page.Next)
	return x.AnswerJSON(answer)
}

// pageRequests answers GET workflow/api/v1/requests: all that the caller has created but for checklists.
func (g *Group) pageRequests(x *kernel.Exchange) error {
	request, err := formPageRequest(x, form.KindForm, form.KindChecklist, form.KindInstance)
	if err != nil {
		return err
	}
	request.WithInstances = x.Query.Get("kind") == ""
	if x.Query.Get("category") == "" {
		request.Category = form.Every
	}
	page, of, err := g.pageOf(x, request)
	if err != nil {
		return err
	}
	shown, err := g.presentForms(x, page)
	if err != nil {
		return err
	}
	answer := api.RequestPage{Forms: []api.Request{}, Next: x.LinkNext(page.Next), Count: of.Count}
	for n, f := range shown {
		if f.FormType == formportal.TypeInstance && f.Title == nil { // it is gone, or hidden, since it was found
			continue
		}
		of := &page.Forms[n]
		answer.Forms = append(answer.Forms, api.Request{PagedForm: f, WorkflowID: of.WorkflowID, Category: of.Category.String()})
	}
	return x.AnswerJSON(answer)
}

func (g *Group) pageOf(x *kernel.Exchange, request *formportal.PageRequest) (*formportal.Page, *api.FormPage, error) {
	if g.Presentations != nil {
		request.Title = func(from query.Loader, f form.Listed) (statemachine.Text, error) { return g.titleOf(x, from, f) }
	}
	request.Languages = x.Languages()
	page, err := g.Portal.Page(x.Request.Context(), request)
	answer := &api.FormPage{}
	if err == nil && request.Count {
		answer.Count = &api.FormCount{N: page.Count}
	}
	return page, answer, err
}

func (g *Group) titleOf(x *kernel.Exchange, from query.Loader, f form.Listed) (statemachine.Text, error) {
	if f.WorkflowID == formportal.PlainWorkflow {
		return nil, nil
	}
	return g.Presentations.Called(from, x.Caller, presentation.Name{WorkflowID: f.WorkflowID, InstanceID: f.InstanceID})
}

// presentForms adds to the forms of a page how people see their instances. Where that would be too much for one answer, it returns the
// first of them, and the page ends there.
func (g *Group) presentForms(x *kernel.Exchange, page *formportal.Page) ([]api.PagedForm, error) {
	out, names, at := make([]api.PagedForm, len(page.Forms)), []presentation.Name{}, []int{}
	languages := x.Languages()
	for n, f := range page.Forms {
		out[n].Form = FormOf(&f.Summary, languages)
		if f.WorkflowID != formportal.PlainWorkflow {
			names, at = append(names, presentation.Name{WorkflowID: f.WorkflowID, InstanceID: f.ID}), append(at, n)
		}
	}
	lines, err := g.Presentations.Lines(x.Request.Context(), x.Caller, names)
	if err != nil {
		return nil, err
	}
	if len(lines) < len(names) {
		out = out[:at[len(lines)]]
		page.Next = page.NextBehind(len(out) - 1)
	}
	for k, l := range lines {
		if l == nil {
			continue
		}
		f, title := &out[at[k]], l.Called().For(languages...)
		f.Title, f.States, f.Columns = &title, show.Statuses(l, languages), show.Columns(l, languages)
		if f.FormType == formportal.TypeInstance {
			f.Status = statemachine.NodeNames(l.At)
		}
	}
	return out, nil
}

// formPageRequest reads the query of a page of forms of one of some kinds, which is the first without another.
func formPageRequest(x *kernel.Exchange, kinds ...form.Kind) (*formportal.PageRequest, error) {
	request := &formportal.PageRequest{ListRequest: formportal.ListRequest{Caller: x.Caller, Kind: kinds[0]}}
	words := make([]string, len(kinds))
	for n, k := range kinds {
		words[n] = k.String()
	}
	q := parse.Parameters{Values: x.Query}
	if n := slices.Index(words, parse.Choice(&q, "kind", words...)); n >= 0 {
		request.Kind = kinds[n]
	}
	category := parse.Choice(&q, "category", form.Current.String(), form.Submitted.String(), form.Archived.String())
	for _, c := range []form.Category{form.Submitted, form.Archived} {
		if category == c.String() {
			request.Category = c
		}
	}
	request.Sort, request.Query = parse.Choice(&q, "sort", form.NewestFirst, form.OldestFirst, form.ByName), q.Text("q")
	q.CheckWords(request.Query)
	request.WorkflowID, request.Limit, request.Count, request.Cursor = q.Text("workflowId"), q.Limit(formsPageDefault), q.Flag("count"), q.Cursor()
	return request, q.Err
}

// showTemplate answers GET form-runtime/api/v1/template/{kind}/{formId}: what a page asks before it makes a form.
func (g *Group) showTemplate(x *kernel.Exchange) error {
	kind, privilege := form.KindForm, identity.Form
	switch x.Params.ByName("kind") {
	case form.KindForm.String():
	case form.KindChecklist.String():
		kind, privilege = form.KindChecklist, identity.Checklist
	default:
		return failure.ErrNotFound
	}
	if !x.Caller.Has(privilege) {
		return failure.Needs(privilege)
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	template, bound, err := g.Portal.Template(x.Request.Context(), x.Caller, kind, x.Params.ByName("formId"))
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.TemplatePage{
		Template: templateOf(template, x.Languages()), Workflows: show.Choices(bound), NeedsWorkflow: len(template.Workflows) > 0,
	})
}

// FormOf is a form as the lists show it.
func FormOf(f *formportal.Summary, languages []string) api.Form {
	return api.Form{
		ID: f.ID, FormType: f.FormType, FormID: f.FormID, SubmissionID: f.SubmissionID, Name: f.Name.For(languages...), FullPath: f.FullPath,
		By: f.By, When: f.When, Status: f.Status, Role: f.Role,
	}
}

// templateOf is what a page sees of a template, in the first of the languages that its texts are in; nil stays nil.
func templateOf(t *formportal.Template, languages []string) *api.Template {
	if t == nil {
		return nil
	}
	out := &api.Template{
		FormID: t.ID, Name: t.Name.For(languages...), Description: t.Description.For(languages...),
		Schema: json.RawMessage(t.SchemaFor(languages...)), UI: json.RawMessage(t.UIFor(languages...)), Submit: t.Submit, Digest: t.Digest.String(),
	}
	for _, item := range t.Items {
		out.Items = append(out.Items, api.Item{ID: item.ID, Label: item.Label.For(languages...), Help: item.Help.For(languages...), Required: item.Required})
	}
	return out
}

// draftConditions reads what the headers of a request demand of the draft that there is.
func draftConditions(x *kernel.Exchange) (c form.DraftCondition, err error) {
	lines := x.Request.Header["If-Match"]
	c.IfMatch, err = parse.IfMatch(lines)
	c.MustExist = len(lines) > 0 && c.IfMatch == nil // a star (RFC 9110, 13.1.1)
	return c, err
}

var draftShape = parse.NewShape("",
	parse.Field{Name: "data", Kind: data.Object, Required: true},
	parse.Field{Name: "template", Kind: data.String, Check: func(v data.Value) error {
		if _, ok := form.ParseDigest(v.Text()); !ok {
			return parse.Malformed("%q must be the digest of a template", "template")
		}
		return nil
	}},
)

func parseDraft(x *kernel.Exchange) (v data.Value, template form.Digest, c form.DraftCondition, err error) {
	if c, err = draftConditions(x); err != nil {
		return nil, template, c, err
	}
	if c.IfAbsent, err = parse.IfAbsent(x.Request.Header["If-None-Match"]); err != nil {
		return nil, template, c, err
	}
	body, err := parse.Body(x.Body)
	if err != nil {
		return nil, template, c, err
	}
	var members [2]data.Value
	if err := draftShape.Read(body, members[:]); err != nil {
		return nil, template, c, err
	}
	if members[1] != nil {
		template, _ = form.ParseDigest(members[1].Text())
	}
	return members[0], template, c, nil
}

func (g *Group) saveDraft(x *kernel.Exchange) (err error) {
	request := formportal.DraftRequest{}
	if request.Data, request.Template, request.DraftCondition, err = parseDraft(x); err != nil {
		return err
	}
	if request.FormRequest, err = formRequest(x); err != nil {
		return err
	}
	draft, err := g.Portal.SaveDraft(x.Request.Context(), &request)
	if err != nil {
		return err
	}
	return answerDraftSaved(x, &draft)
}

func answerDraftSaved(x *kernel.Exchange, d *form.Draft) error {
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(d.Revision)}
	return x.AnswerJSON(savedOf(d))
}

func (g *Group) dropDraft(x *kernel.Exchange) (err error) {
	request := formportal.DraftRequest{}
	if request.DraftCondition, err = draftConditions(x); err != nil {
		return err
	}
	if request.FormRequest, err = formRequest(x); err != nil {
		return err
	}
	if _, err := g.Portal.SaveDraft(x.Request.Context(), &request); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

// submitForm answers POST form-runtime/api/v1/submit, as POST event does.
func (g *Group) submitForm(x *kernel.Exchange) error {
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	request, err := parseSubmit(x, body)
	if err != nil {
		return err
	}
	if request.Retry, err = kernel.RetryOf(x, key, "", body); err != nil {
		return err
	}
	request.WithHistory = !parse.PrefersMinimal(x.Request.Header["Prefer"])
	reply, err := g.Portal.Submit(x.Request.Context(), request)
	if err != nil {
		return err
	}
	x.AnswerInstance(reply)
	return nil
}

var submitShape = parse.NewShape("",
	parse.Field{Name: "workflowId", Kind: data.String, Required: true},
	parse.Field{Name: "instanceId", Kind: data.String, Required: true},
	parse.Field{Name: "data", Kind: data.Object, Required: true},
)

// parseSubmit reads the body of submit, with the errors of create.
func parseSubmit(x *kernel.Exchange, body data.Value) (*formportal.SubmitRequest, error) {
	var members [3]data.Value
	if err := submitShape.Read(body, members[:]); err != nil {
		return nil, err
	}
	of, err := formOf(x, members[0].Text(), members[1].Text())
	return &formportal.SubmitRequest{FormRequest: of, Data: members[2]}, err
}

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Portal Portal
	// Presentations has how people see instances.
	Presentations Presentations
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users
}

// Presentations has how people see instances. Errors are those of package failure.
type Presentations interface {
	// Lines returns some instances as people see them in a list; nil for those that the caller may not read.
	Lines(ctx context.Context, caller *identity.Principal, of []presentation.Name) ([]*presentation.Line, error)
	// Called returns what one of them is called; no text for those.
	Called(from query.Loader, caller *identity.Principal, of presentation.Name) (statemachine.Text, error)
}

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
	// List calls item with each form of a list, in its order. An error of item ends the list and is returned.
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

// TaskForms has the forms of tasks. Errors are those of package failure.
type TaskForms interface {
	// Task returns the form of a task with the caller's draft.
	Task(ctx context.Context, request *formportal.TaskRequest) (*formportal.TaskView, error)
	// SaveTaskDraft keeps or drops the caller's draft. It returns when that is durable.
	SaveTaskDraft(ctx context.Context, request *formportal.TaskDraftRequest) (form.Draft, error)
	// SubmitTask sends what was filled in. It returns when that is durable.
	SubmitTask(ctx context.Context, request *formportal.TaskSubmitRequest) (*message.Reply, error)
}
