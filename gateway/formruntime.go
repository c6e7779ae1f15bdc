package gateway

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// formRequest reads which form the path names.
func (x *exchange) formRequest() (formportal.FormRequest, error) {
	return x.formOf(x.params.ByName("workflowId"), x.params.ByName("instanceId"))
}

// formOf names a form. What can be nobody's is failure.ErrNotFound.
func (x *exchange) formOf(workflowID, instanceID string) (formportal.FormRequest, error) {
	if workflowID != formportal.PlainWorkflow && !statemachine.IsIdentifier(workflowID) || !statemachine.IsIdentifier(instanceID) {
		return formportal.FormRequest{}, failure.ErrNotFound
	}
	return formportal.FormRequest{Caller: x.caller, WorkflowID: workflowID, InstanceID: instanceID}, nil
}

// showForm answers GET form-runtime/api/v1/form/{workflowId}/{instanceId}.
func showForm(x *exchange) error {
	request, err := x.formRequest()
	if err != nil {
		return err
	}
	view, err := x.services.Portal.Form(x.r.Context(), &request)
	if err != nil {
		return err
	}
	languages := x.languages()
	answer := api.FormView{
		Form: formOf(view.Summary, languages), Category: view.Category.String(), Template: templateOf(view.Template, languages),
		Data: json.RawMessage(view.Data), States: view.States, SubmittedAt: view.SubmittedAt, Editable: view.Editable,
	}
	answer.Draft = draftOf(view.Draft, view.TemplateChanged, view.Strays)
	return x.answerJSON(answer)
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

// deleteForm answers DELETE form-runtime/api/v1/form/{workflowId}/{instanceId}.
func deleteForm(x *exchange) error {
	request, err := x.formRequest()
	if err != nil {
		return err
	}
	if err := x.services.Portal.Delete(x.r.Context(), &request); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// formsPageDefault is the page of a list of forms.
const formsPageDefault = 50

// queryCharsMax bounds the words of a search, each of which is looked for in thousands of titles.
const queryCharsMax = 200

// checkWords refuses a parameter "q" that is too long.
func checkWords(words string) error {
	if utf8.RuneCountInString(words) > queryCharsMax {
		return parse.Malformed(`the query parameter "q" has more than %d characters`, queryCharsMax)
	}
	return nil
}

// pageForms answers GET form-runtime/api/v1/forms.
func pageForms(x *exchange) error {
	request, err := x.formPageRequest(form.KindForm, form.KindChecklist)
	if err != nil {
		return err
	}
	page, answer, err := x.pageOf(request)
	if err != nil {
		return err
	}
	if answer.Forms, err = x.presentForms(page); err != nil {
		return err
	}
	answer.Next = x.linkNext(page.Next)
	return x.answerJSON(answer)
}

// pageRequests answers GET workflow/api/v1/requests: all that the caller has created but for checklists.
func pageRequests(x *exchange) error {
	request, err := x.formPageRequest(form.KindForm, form.KindChecklist, form.KindInstance)
	if err != nil {
		return err
	}
	request.WithInstances = x.query.Get("kind") == ""
	if x.query.Get("category") == "" {
		request.Category = form.Every
	}
	page, of, err := x.pageOf(request)
	if err != nil {
		return err
	}
	shown, err := x.presentForms(page)
	if err != nil {
		return err
	}
	answer := api.RequestPage{Forms: []api.Request{}, Next: x.linkNext(page.Next), Count: of.Count}
	for n, f := range shown {
		if f.FormType == formportal.TypeInstance && f.Title == nil { // it is gone, or hidden, since it was found
			continue
		}
		of := &page.Forms[n]
		answer.Forms = append(answer.Forms, api.Request{PagedForm: f, WorkflowID: of.WorkflowID, Category: of.Category.String()})
	}
	return x.answerJSON(answer)
}

// pageOf reads a page, and begins its answer.
func (x *exchange) pageOf(request *formportal.PageRequest) (*formportal.Page, *api.FormPage, error) {
	if x.services.Presentations != nil {
		request.Title = x.titleOf
	}
	request.Languages = x.languages()
	page, err := x.services.Portal.Page(x.r.Context(), request)
	answer := &api.FormPage{}
	if err == nil && request.Count {
		answer.Count = &api.FormCount{N: page.Count}
	}
	return page, answer, err
}

// titleOf is that of a form, for a search.
func (x *exchange) titleOf(from *query.Reader, f form.Listed) (statemachine.Text, error) {
	if f.WorkflowID == formportal.PlainWorkflow {
		return nil, nil
	}
	return x.services.Presentations.Called(from, x.caller, presentation.Name{WorkflowID: f.WorkflowID, InstanceID: f.InstanceID})
}

// presentForms adds to the forms of a page how people see their instances. Where that would be too much for one answer, it returns the
// first of them, and the page ends there.
func (x *exchange) presentForms(page *formportal.Page) ([]api.PagedForm, error) {
	out, names, at := make([]api.PagedForm, len(page.Forms)), []presentation.Name{}, []int{}
	languages := x.languages()
	for n, f := range page.Forms {
		out[n].Form = formOf(&f.Summary, languages)
		if f.WorkflowID != formportal.PlainWorkflow {
			names, at = append(names, presentation.Name{WorkflowID: f.WorkflowID, InstanceID: f.ID}), append(at, n)
		}
	}
	if x.services.Presentations == nil {
		return out, nil
	}
	lines, err := x.services.Presentations.Lines(x.r.Context(), x.caller, names)
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
		f.Title, f.States, f.Columns = &title, standingOf(l, languages), columnsOf(l, languages)
		if f.FormType == formportal.TypeInstance {
			f.Status = statemachine.NodeNames(l.At)
		}
	}
	return out, nil
}

// formPageRequest reads the query of a page of forms of one of some kinds, which is the first without another.
func (x *exchange) formPageRequest(kinds ...form.Kind) (*formportal.PageRequest, error) {
	request := &formportal.PageRequest{ListRequest: formportal.ListRequest{Caller: x.caller, Kind: kinds[0]}}
	words := make([]string, len(kinds))
	for n, k := range kinds {
		words[n] = k.String()
	}
	kind, err := parse.Choice(x.query, "kind", words...)
	if err != nil {
		return nil, err
	}
	if n := slices.Index(words, kind); n >= 0 {
		request.Kind = kinds[n]
	}
	category, err := parse.Choice(x.query, "category", form.Current.String(), form.Submitted.String(), form.Archived.String())
	if err != nil {
		return nil, err
	}
	for _, c := range []form.Category{form.Submitted, form.Archived} {
		if category == c.String() {
			request.Category = c
		}
	}
	if request.Sort, err = parse.Choice(x.query, "sort", form.NewestFirst, form.OldestFirst, form.ByName); err != nil {
		return nil, err
	}
	if request.Query, err = parse.Text(x.query, "q"); err != nil {
		return nil, err
	}
	if err = checkWords(request.Query); err != nil {
		return nil, err
	}
	if request.WorkflowID, err = parse.Text(x.query, "workflowId"); err != nil {
		return nil, err
	}
	if request.Limit, err = parse.Limit(x.query, formsPageDefault); err != nil {
		return nil, err
	}
	if request.Count, err = parse.Flag(x.query, "count"); err != nil {
		return nil, err
	}
	request.Cursor, err = parse.Cursor(x.query)
	return request, err
}

// showTemplate answers GET form-runtime/api/v1/template/{kind}/{formId}: what a
// page asks before it makes a form.
func showTemplate(x *exchange) error {
	kind, privilege := form.KindForm, identity.Form
	switch x.params.ByName("kind") {
	case form.KindForm.String():
	case form.KindChecklist.String():
		kind, privilege = form.KindChecklist, identity.Checklist
	default:
		return failure.ErrNotFound
	}
	if !x.caller.Has(privilege) {
		return failure.Needs(privilege)
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	template, bound, err := x.services.Portal.Template(x.r.Context(), x.caller, kind, x.params.ByName("formId"))
	if err != nil {
		return err
	}
	return x.answerJSON(api.TemplatePage{
		Template: templateOf(template, x.languages()), Workflows: choicesOf(bound), NeedsWorkflow: len(template.Workflows) > 0,
	})
}

// formOf is a form as the lists show it.
func formOf(f *formportal.Summary, languages []string) api.Form {
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
func (x *exchange) draftConditions() (c form.DraftCondition, err error) {
	lines := x.r.Header["If-Match"]
	c.IfMatch, err = parse.IfMatch(lines)
	c.MustExist = len(lines) > 0 && c.IfMatch == nil // a star (RFC 9110, 13.1.1)
	return c, err
}

// parseDraft reads a request to keep a draft.
func (x *exchange) parseDraft() (v data.Value, template form.Digest, c form.DraftCondition, err error) {
	if c, err = x.draftConditions(); err != nil {
		return nil, template, c, err
	}
	if c.IfAbsent, err = parse.IfAbsent(x.r.Header["If-None-Match"]); err != nil {
		return nil, template, c, err
	}
	body, err := parse.Body(x.body)
	if err != nil {
		return nil, template, c, err
	}
	for key, member := range body.Members() {
		switch key {
		case "data":
			v, err = parse.ObjectMember(member, key)
		case "template":
			template, err = digestMember(member, key)
		default:
			err = parse.UnknownMember("", key, "data", "template")
		}
		if err != nil {
			return nil, template, c, err
		}
	}
	if v == nil {
		err = parse.MissingMember("data")
	}
	return v, template, c, err
}

// saveDraft answers PUT form-runtime/api/v1/draft/{workflowId}/{instanceId}.
func saveDraft(x *exchange) (err error) {
	request := formportal.DraftRequest{}
	if request.Data, request.Template, request.DraftCondition, err = x.parseDraft(); err != nil {
		return err
	}
	if request.FormRequest, err = x.formRequest(); err != nil {
		return err
	}
	draft, err := x.services.Portal.SaveDraft(x.r.Context(), &request)
	if err != nil {
		return err
	}
	return x.answerDraftSaved(&draft)
}

func (x *exchange) answerDraftSaved(d *form.Draft) error {
	x.w.Header()["Etag"] = []string{parse.EntityTag(d.Revision)}
	return x.answerJSON(savedOf(d))
}

// digestMember reads the digest of a template.
func digestMember(v data.Value, key string) (form.Digest, error) {
	text, err := parse.StringMember(v, key)
	if err != nil {
		return form.Digest{}, err
	}
	digest, ok := form.ParseDigest(text)
	if !ok {
		return form.Digest{}, parse.Malformed("%q must be the digest of a template", key)
	}
	return digest, nil
}

// dropDraft answers DELETE form-runtime/api/v1/draft/{workflowId}/{instanceId}.
func dropDraft(x *exchange) (err error) {
	request := formportal.DraftRequest{}
	if request.DraftCondition, err = x.draftConditions(); err != nil {
		return err
	}
	if request.FormRequest, err = x.formRequest(); err != nil {
		return err
	}
	if _, err := x.services.Portal.SaveDraft(x.r.Context(), &request); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// submitForm answers POST form-runtime/api/v1/submit, as POST event does.
func submitForm(x *exchange) error {
	key, body, err := x.keyedBody()
	if err != nil {
		return err
	}
	request, err := x.parseSubmit(body)
	if err != nil {
		return err
	}
	if request.Retry, err = retryOf(x, key, "", body); err != nil {
		return err
	}
	request.WithHistory = !parse.PrefersMinimal(x.r.Header["Prefer"])
	reply, err := x.services.Portal.Submit(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}

// parseSubmit reads the body of submit, with the errors of parseCreate.
func (x *exchange) parseSubmit(body data.Value) (*formportal.SubmitRequest, error) {
	request := &formportal.SubmitRequest{}
	var workflowID, instanceID string
	missing := map[string]bool{"workflowId": true, "instanceId": true, "data": true}
	for key, v := range body.Members() {
		var err error
		switch key {
		case "workflowId":
			workflowID, err = parse.StringMember(v, key)
		case "instanceId":
			instanceID, err = parse.StringMember(v, key)
		case "data":
			request.Data, err = parse.ObjectMember(v, key)
		default:
			err = parse.UnknownMember("", key, "workflowId", "instanceId", "data")
		}
		if err != nil {
			return nil, err
		}
		delete(missing, key)
	}
	for _, key := range []string{"workflowId", "instanceId", "data"} {
		if missing[key] {
			return nil, parse.MissingMember(key)
		}
	}
	var err error
	request.FormRequest, err = x.formOf(workflowID, instanceID)
	return request, err
}
