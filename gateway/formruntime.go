package gateway

import (
	"encoding/json"
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/statemachine"
	"troupe/statemachine/data"
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
	answer := api.FormView{
		Form: api.Form(*view.Summary), Category: view.Category.String(), Template: templateOf(view.Template),
		Data: json.RawMessage(view.Data), States: view.States, SubmittedAt: view.SubmittedAt, Editable: view.Editable,
	}
	if d := view.Draft; d != nil {
		answer.Draft = &api.Draft{Revision: d.Revision, SavedAt: d.SavedAt, Data: json.RawMessage(d.Data)}
	}
	return x.answerJSON(answer)
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
		return failure.ErrForbidden
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	template, bound, err := x.services.Portal.Template(x.r.Context(), x.caller, kind, x.params.ByName("formId"))
	if err != nil {
		return err
	}
	return x.answerJSON(api.TemplatePage{
		Template: templateOf(template), Workflows: choicesOf(bound), NeedsWorkflow: len(template.Workflows) > 0,
	})
}

// templateOf is what a page sees of a template; nil stays nil.
func templateOf(t *formportal.Template) *api.Template {
	if t == nil {
		return nil
	}
	out := &api.Template{
		FormID: t.ID, Name: t.Name, Description: t.Description,
		Schema: json.RawMessage(t.Schema), UI: json.RawMessage(t.UI), Submit: t.Submit,
	}
	for _, item := range t.Items {
		out.Items = append(out.Items, api.Item(item))
	}
	return out
}

// draftRequest begins a request for a draft with what its headers say.
func (x *exchange) draftRequest() (request formportal.DraftRequest, err error) {
	lines := x.r.Header["If-Match"]
	request.IfMatch, err = parseIfMatch(lines)
	request.MustExist = len(lines) > 0 && request.IfMatch == nil // a star (RFC 9110, 13.1.1)
	return request, err
}

// saveDraft answers PUT form-runtime/api/v1/draft/{workflowId}/{instanceId}.
func saveDraft(x *exchange) error {
	request, err := x.draftRequest()
	if err != nil {
		return err
	}
	if request.IfAbsent, err = parseIfAbsent(x.r.Header["If-None-Match"]); err != nil {
		return err
	}
	body, err := parseBody(x.body)
	if err != nil {
		return err
	}
	for key, v := range body.Members() {
		if key != "data" {
			return unknownMember("", key, "data")
		}
		if request.Data, err = objectMember(v, key); err != nil {
			return err
		}
	}
	if request.Data == nil {
		return missingMember("data")
	}
	if request.FormRequest, err = x.formRequest(); err != nil {
		return err
	}
	draft, err := x.services.Portal.SaveDraft(x.r.Context(), &request)
	if err != nil {
		return err
	}
	x.w.Header()["Etag"] = []string{entityTag(draft.Revision)}
	return x.answerJSON(api.Draft{Revision: draft.Revision, SavedAt: draft.SavedAt})
}

// parseIfAbsent reports whether If-None-Match demands that there is nothing yet.
// Tags have no meaning for what is about to be written.
func parseIfAbsent(lines []string) (bool, error) {
	switch {
	case len(lines) == 0:
		return false, nil
	case len(lines) == 1 && trimBlanks(lines[0]) == "*":
		return true, nil
	}
	return false, malformed("the header If-None-Match can only be * here")
}

// dropDraft answers DELETE form-runtime/api/v1/draft/{workflowId}/{instanceId}.
func dropDraft(x *exchange) error {
	request, err := x.draftRequest()
	if err != nil {
		return err
	}
	if request.FormRequest, err = x.formRequest(); err != nil {
		return err
	}
	if _, err := x.services.Portal.SaveDraft(x.r.Context(), &request); err != nil {
		return err
	}
	x.out = append(x.out, `{}`...)
	x.send(http.StatusOK)
	return nil
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
	request.WithHistory = !prefersMinimal(x.r.Header["Prefer"])
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
			workflowID, err = stringMember(v, key)
		case "instanceId":
			instanceID, err = stringMember(v, key)
		case "data":
			request.Data, err = objectMember(v, key)
		default:
			err = unknownMember("", key, "workflowId", "instanceId", "data")
		}
		if err != nil {
			return nil, err
		}
		delete(missing, key)
	}
	for _, key := range []string{"workflowId", "instanceId", "data"} {
		if missing[key] {
			return nil, missingMember(key)
		}
	}
	var err error
	request.FormRequest, err = x.formOf(workflowID, instanceID)
	return request, err
}
