package gateway

import (
	"net/http"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
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
	x.out = append(x.out, `{"form":`...)
	x.out = appendSummary(x.out, view.Summary)
	x.out = append(x.out, `,"category":"`...)
	x.out = append(x.out, view.Category.String()...)
	x.out = append(x.out, `","template":`...)
	x.out = appendTemplate(x.out, view.Template)
	x.out = append(x.out, `,"data":`...)
	x.out = append(x.out, view.Data...)
	x.out = append(x.out, `,"draft":`...)
	if d := view.Draft; d == nil {
		x.out = append(x.out, "null"...)
	} else {
		x.out = appendRevision(append(x.out, '{'), d.Revision, d.SavedAt)
		x.out = append(x.out, `,"data":`...)
		x.out = append(append(x.out, d.Data...), '}')
	}
	x.out = append(x.out, `,"states":`...)
	x.out = append(x.out, view.States...)
	x.out = append(x.out, `,"submittedAt":`...)
	x.out = strconv.AppendInt(x.out, view.SubmittedAt, 10)
	x.out = append(x.out, `,"editable":`...)
	x.out = strconv.AppendBool(x.out, view.Editable)
	x.out = append(x.out, '}')
	x.send(http.StatusOK)
	return nil
}

// showTemplate answers GET form-runtime/api/v1/template/{kind}/{formId}: what a
// page asks before it makes a form.
func showTemplate(x *exchange) error {
	kind, privilege := form.Plain, identity.Form
	switch x.params.ByName("kind") {
	case form.Plain.String():
	case form.Checklist.String():
		kind, privilege = form.Checklist, identity.Checklist
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
	x.out = append(x.out, `{"template":`...)
	x.out = appendTemplate(x.out, template)
	x.out = append(x.out, `,"workflows":`...)
	x.appendChoices(bound)
	x.out = append(x.out, `,"needsWorkflow":`...)
	x.out = append(strconv.AppendBool(x.out, len(template.Workflows) > 0), '}')
	x.send(http.StatusOK)
	return nil
}

func appendRevision(dst []byte, revision uint64, savedAt int64) []byte {
	dst = append(dst, `"revision":`...)
	dst = strconv.AppendUint(dst, revision, 10)
	dst = append(dst, `,"savedAt":`...)
	return strconv.AppendInt(dst, savedAt, 10)
}

// appendTemplate appends what a page needs to show a form: null when there is no
// template, and without the members that it does not have.
func appendTemplate(dst []byte, t *formportal.Template) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"formId":`...)
	dst = data.AppendString(dst, t.ID)
	dst = append(dst, `,"name":`...)
	dst = data.AppendString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = data.AppendString(dst, t.Description)
	if t.Schema != nil {
		dst = append(dst, `,"schema":`...)
		dst = append(dst, t.Schema...)
	}
	if t.UI != nil {
		dst = append(dst, `,"ui":`...)
		dst = append(dst, t.UI...)
	}
	if len(t.Items) > 0 {
		dst = append(dst, `,"items":[`...)
		for i, item := range t.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, `{"id":`...)
			dst = data.AppendString(dst, item.ID)
			dst = append(dst, `,"label":`...)
			dst = data.AppendString(dst, item.Label)
			dst = append(dst, `,"help":`...)
			dst = data.AppendString(dst, item.Help)
			dst = append(dst, `,"required":`...)
			dst = append(strconv.AppendBool(dst, item.Required), '}')
		}
		dst = append(dst, ']')
	}
	if t.Submit != "" {
		dst = append(dst, `,"submit":`...)
		dst = data.AppendString(dst, t.Submit)
	}
	return append(dst, '}')
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
	x.out = append(appendRevision(append(x.out, '{'), draft.Revision, draft.SavedAt), '}')
	x.send(http.StatusOK)
	return nil
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
