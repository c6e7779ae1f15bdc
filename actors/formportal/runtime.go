package formportal

import (
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/workflow"
	"troupe/statemachine/data"
)

// FormRequest names one form. WorkflowID is PlainWorkflow for those without a
// workflow.
type FormRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string

	withoutDraft bool
}

// alone is the request for those who do not look at the draft.
func (r FormRequest) alone() *FormRequest {
	r.withoutDraft = true
	return &r
}

// View is a form as the page that it is filled in on needs it.
type View struct {
	Summary  *Summary
	Category Category
	// Template is nil when there is none of that name any more.
	Template *Template
	// Data is what was submitted: svcPublic.
	Data data.Value
	// Draft is the caller's own; nil when there is none.
	Draft *form.Draft
	// States is the JSON of the positions.
	States []byte
	// SubmittedAt is the first submission, in Unix milliseconds; 0 before.
	SubmittedAt int64
	// Editable: the caller may keep a draft and submit now.
	Editable bool
	// Sequence is the number of history entries.
	Sequence uint64
}

// Form returns a form as everything acknowledged before has left it. What the
// caller may not see is ErrNotFound.
func (p *Portal) Form(ctx context.Context, req *FormRequest) (view *View, err error) {
	err = p.do(ctx, req.Caller, "form", func(ctx context.Context) error {
		v, err := p.load(ctx, req)
		if err != nil {
			return err
		}
		template := p.templateOf(v.Form)
		view = &View{
			Summary:  summaryOf(v.Form, req.WorkflowID, v.Nodes, req.InstanceID, v.When),
			Category: categoryOf(v.Form, p.o.Clock(), p.o.ArchiveAfter),
			Template: template, Data: v.Public, Draft: v.Draft, States: v.States,
			SubmittedAt: v.Form.SubmittedAt, Editable: v.Editable, Sequence: v.Sequence,
		}
		return nil
	})
	return view, err
}

// load reads the form. A workflow that the caller has no right to is ErrNotFound
// here: nobody gets to know of somebody else's forms.
func (p *Portal) load(ctx context.Context, req *FormRequest) (*workflow.FormView, error) {
	v, err := p.o.Workflows.Form(ctx, p.formRequest(req))
	if errors.Is(err, failure.ErrForbidden) {
		return nil, failure.ErrNotFound
	}
	return v, err
}

func (p *Portal) formRequest(req *FormRequest) *workflow.FormRequest {
	return &workflow.FormRequest{
		Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID, WithoutDraft: req.withoutDraft,
		Event: func(f *form.Form) (string, error) {
			template, err := p.mayWrite(req, f)
			if err != nil {
				return "", err
			}
			return submitEvent(req.WorkflowID, template), nil
		},
	}
}

// templateOf returns a form's template, also one that is not offered any more.
func (p *Portal) templateOf(f *form.Form) *Template { return p.o.Templates.Get(f.Kind, f.TemplateID) }

// mayWrite asks for the privilege of the form's kind, and for its template.
func (p *Portal) mayWrite(req *FormRequest, f *form.Form) (*Template, error) {
	privilege := identity.Form
	if f.Kind == form.Checklist {
		privilege = identity.Checklist
	}
	if !req.Caller.Has(privilege) {
		return nil, failure.ErrForbidden
	}
	template := p.templateOf(f)
	if template == nil {
		return nil, failure.Errorf(failure.ErrNotAllowed, "its template is gone")
	}
	return template, nil
}

// submitEvent is the event that submits a form; empty: none does.
func submitEvent(workflowID string, t *Template) string {
	if workflowID == PlainWorkflow {
		return plainSubmit
	}
	return t.Submit
}

// DraftRequest asks to keep a draft of a form.
type DraftRequest struct {
	FormRequest
	// Data is a checked, compact object; absent drops the draft. It need not fit
	// the template yet.
	Data data.Value
	form.DraftCondition
}

// SaveDraft keeps or drops the caller's draft; it is durable when SaveDraft
// returns. Errors besides those of Form: ErrForbidden without the privilege,
// ErrPrecondition, and ErrNotAllowed when there is something to keep and the form
// cannot be submitted now.
func (p *Portal) SaveDraft(ctx context.Context, req *DraftRequest) (draft form.Draft, err error) {
	err = p.do(ctx, req.Caller, "draft", func(ctx context.Context) error {
		if _, err := p.load(ctx, req.FormRequest.alone()); err != nil { // who may not see it learns nothing else
			return err
		}
		var err error
		draft, err = p.o.Workflows.SaveDraft(ctx, &workflow.DraftRequest{
			FormRequest: *p.formRequest(&req.FormRequest), Data: req.Data, DraftCondition: req.DraftCondition,
		})
		return err
	})
	return draft, err
}

// SubmitRequest asks to submit a form.
type SubmitRequest struct {
	FormRequest
	Data  data.Value // a checked, compact object
	Retry workflow.Retry
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
}

// Submit checks the data against the template as it is now and sends it with the
// event that submits the form; the caller's draft goes in the same commit. Errors
// besides those of Form: ErrInvalid when the data does not fit, ErrForbidden,
// ErrNotAllowed when nothing takes the event now, and those of workflow.Send.
func (p *Portal) Submit(ctx context.Context, req *SubmitRequest) (reply *workflow.Reply, err error) {
	err = p.do(ctx, req.Caller, "submit", func(ctx context.Context) error {
		event, refusal := p.submission(ctx, req)
		if refusal != nil && (req.Retry.Key == "" || errors.Is(refusal, failure.ErrForbidden)) {
			return refusal
		}
		var err error
		reply, err = p.o.Workflows.Send(ctx, &workflow.EventRequest{
			Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID, Name: event, Data: req.Data,
			Retry: req.Retry, Refusal: refusal, WithHistory: req.WithHistory, MustBeTaken: true, DropDraft: true, NoQuota: true,
		})
		if refusal != nil && errors.Is(err, failure.ErrForbidden) { // who may not see it learns nothing else
			return refusal
		}
		return err
	})
	return reply, err
}

// submission returns the event that submits the form, or why this caller cannot
// do that now.
func (p *Portal) submission(ctx context.Context, req *SubmitRequest) (event string, err error) {
	v, err := p.load(ctx, req.FormRequest.alone())
	if err != nil {
		return "", err
	}
	template, err := p.mayWrite(&req.FormRequest, v.Form)
	if err != nil {
		return "", err
	}
	if event = submitEvent(req.WorkflowID, template); event == "" {
		return "", failure.Errorf(failure.ErrNotAllowed, "no event submits this form")
	}
	if err := template.Check(req.Data); err != nil {
		return "", failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	return event, nil
}
