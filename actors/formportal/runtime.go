package formportal

import (
	"cmp"
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/trace"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

// FormRequest names one form. WorkflowID is PlainWorkflow for those without a workflow.
type FormRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
}

// View is a form as the page that it is filled in on needs it.
type View struct {
	Summary  *Summary
	Category form.Category
	Template *Template   // nil when there is none of that name any more
	Data     data.Value  // what was submitted: svcPublic
	Draft    *form.Draft // the caller's own; nil when there is none
	// TemplateChanged: the draft was written for another content of the template. Strays are then the places of the
	// draft that do not fit any more.
	TemplateChanged bool
	Strays          []schema.Unreachable
	States          []byte // the JSON of the positions
	SubmittedAt     int64  // the first submission, in Unix milliseconds; 0 before
	Editable        bool   // the caller may keep a draft and submit now
	Sequence        uint64 // the number of history entries
	ByPrivilege     bool   // as of message.Load
}

// Form returns a form as everything acknowledged before has left it. What the caller may not see is ErrNotFound.
func (p *Portal) Form(ctx context.Context, req *FormRequest) (view *View, err error) {
	err = p.do(ctx, req.Caller, "form", func(ctx context.Context) error {
		ask, template, err := p.request(req)
		if err != nil {
			return err
		}
		v, err := p.o.Workflows.Form(&ask)
		if errors.Is(err, failure.ErrForbidden) { // nobody gets to know of somebody else's forms
			return failure.ErrNotFound
		}
		if err != nil {
			return err
		}
		view = &View{
			Summary:  p.summaryOf(v.Form, req.WorkflowID, v.Nodes, req.InstanceID, v.When),
			Category: v.Form.CategoryAt(archivedBefore(p.o.Clock(), p.o.ArchiveAfter)),
			Template: template, Data: v.Public, Draft: v.Draft, States: v.States,
			SubmittedAt: v.Form.SubmittedAt, Editable: v.Editable, Sequence: v.Sequence, ByPrivilege: v.ByPrivilege,
		}
		view.TemplateChanged, view.Strays = straysOf(v.Draft, template)
		return nil
	})
	return view, err
}

// straysOf says whether a draft was written for another content of the template, and what of it does not fit then.
func straysOf(d *form.Draft, t *Template) (changed bool, strays []schema.Unreachable) {
	if d == nil || t == nil || !isForAnother(d, t) {
		return false, nil
	}
	return true, t.Strays(d.Data)
}

// Of a draft that does not know its own, the times of the files tell.
func isForAnother(d *form.Draft, t *Template) bool {
	if d.Template == (form.Digest{}) {
		return t.Modified.UnixMilli() > d.SavedAt
	}
	return d.Template != t.Digest
}

// The template is nil when it is gone; a disabled one is returned.
func (p *Portal) request(req *FormRequest) (form.Request, *Template, error) {
	ask := form.Request{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID, Privilege: identity.Form}
	f, err := p.o.Workflows.FormOf(req.WorkflowID, req.InstanceID)
	if err != nil {
		return ask, nil, err
	}
	if f.Kind == form.KindChecklist {
		ask.Privilege = identity.Checklist
	}
	var template *Template
	template, ask.Refusal = p.template(f.Kind, f.TemplateID)
	switch {
	case template == nil:
	case req.WorkflowID == PlainWorkflow:
		ask.Event = plainSubmit
	default:
		ask.Event = template.Submit
	}
	return ask, template, nil
}

func (p *Portal) template(kind form.Kind, id string) (*Template, error) {
	template := p.o.Templates.Get(kind, id)
	if template == nil {
		return nil, failure.Errorf(failure.ErrNotAllowed, "its template is gone")
	}
	return template, nil
}

// DraftRequest asks to keep a draft of a form.
type DraftRequest struct {
	FormRequest
	// Data is a checked, compact object; absent drops the draft. It need not fit the template yet.
	Data     data.Value
	Template form.Digest // the content of the template that the draft was written for, as the page had it; zero: that of now
	form.DraftCondition
}

// SaveDraft keeps or drops the caller's draft; it is durable when SaveDraft returns.
func (p *Portal) SaveDraft(ctx context.Context, req *DraftRequest) (draft form.Draft, err error) {
	err = p.do(ctx, req.Caller, "draft", func(ctx context.Context) error {
		ask, template, err := p.request(&req.FormRequest)
		if err != nil {
			return err
		}
		draft, err = p.o.Workflows.SaveDraft(&message.Draft{
			Request: ask, Data: req.Data, Template: writtenFor(req.Template, template), DraftCondition: req.DraftCondition,
			Span: trace.Of(ctx),
		})
		return err
	})
	return draft, err
}

func writtenFor(said form.Digest, t *Template) form.Digest {
	if said == (form.Digest{}) && t != nil {
		return t.Digest
	}
	return said
}

// Delete deletes a form that its creator has never submitted, with its instance and all drafts of it; it is durable
// when Delete returns.
func (p *Portal) Delete(ctx context.Context, req *FormRequest) error {
	return p.do(ctx, req.Caller, "delete", func(ctx context.Context) error {
		return p.o.Workflows.DeleteForm(req.Caller, req.WorkflowID, req.InstanceID)
	})
}

// SubmitRequest asks to submit a form.
type SubmitRequest struct {
	FormRequest
	Data        data.Value // a checked, compact object
	Retry       message.Retry
	WithHistory bool // WithHistory says whether the reply carries svcHistory
}

// Submit checks the data against the template as it is now and sends it with the event that submits the form; the
// caller's draft goes in the same commit.
func (p *Portal) Submit(ctx context.Context, req *SubmitRequest) (reply *message.Reply, err error) {
	err = p.do(ctx, req.Caller, "submit", func(ctx context.Context) error {
		ask, template, err := p.request(&req.FormRequest)
		if err != nil {
			return err
		}
		ask.Refusal = cmp.Or(ask.Refusal, refusalOf(template, ask.Event, req.Data))
		reply, err = p.o.Workflows.Submit(&message.Submit{
			Request: ask, Data: req.Data, Retry: req.Retry, WithHistory: req.WithHistory, Span: trace.Of(ctx),
		})
		return err
	})
	return reply, err
}

func refusalOf(t *Template, event string, submitted data.Value) error {
	if t == nil || event == "" {
		return failure.Errorf(failure.ErrNotAllowed, "no event submits this form")
	}
	if err := t.Check(submitted); err != nil {
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	return nil
}

// TaskRequest names the form of a task.
type TaskRequest struct {
	Caller *identity.Principal
	TaskID string
}

// TaskView is the form of a task as the page that it is filled in on needs it.
type TaskView struct {
	Task     *task.Item
	Template *Template // nil when there is none of that name any more
	// Events are those of Task.Events that take what the form sends, as far as that can be told; the others are sent
	// without it.
	Events          []statemachine.EventName
	Data            data.Value // svcPublic, and States the JSON of the positions
	States          []byte
	Draft           *form.Draft // Draft, TemplateChanged, Strays and Editable are as those of View
	TemplateChanged bool
	Strays          []schema.Unreachable
	Editable        bool
	Sequence        uint64 // the number of history entries
	ByPrivilege     bool   // as of message.Load
}

// Task returns the form of a task as everything acknowledged before has left it: ErrNotFound when the task is gone, has
// no form or its instance may not be read, ErrForbidden for who is not a candidate.
func (p *Portal) Task(ctx context.Context, req *TaskRequest) (view *TaskView, err error) {
	err = p.do(ctx, req.Caller, "task", func(ctx context.Context) error {
		ask, template, err := p.taskForm(ctx, req)
		if err != nil {
			return err
		}
		v, err := p.o.Workflows.TaskForm(&ask)
		if err != nil {
			return err
		}
		view = &TaskView{
			Task: v.Item, Template: template, Data: v.Public, States: v.States, Draft: v.Draft, Editable: v.Editable, Sequence: v.Sequence, ByPrivilege: v.ByPrivilege,
		}
		view.TemplateChanged, view.Strays = straysOf(v.Draft, template)
		for _, e := range v.Item.Events {
			if template != nil && template.fits(v.Of, e.Name) {
				view.Events = append(view.Events, e.Name)
			}
		}
		view.Editable = view.Editable && len(view.Events) > 0
		return nil
	})
	return view, err
}

// The template is nil when it is gone.
func (p *Portal) taskForm(ctx context.Context, req *TaskRequest) (message.TaskForm, *Template, error) {
	name, err := p.o.Workflows.Worklists.LocateForm(ctx, req.TaskID)
	if err != nil {
		return message.TaskForm{}, nil, err
	}
	ask := message.TaskForm{Caller: req.Caller, Task: name, Span: trace.Of(ctx)}
	var template *Template
	template, ask.Refusal = p.template(form.KindForm, name.Form)
	return ask, template, nil
}

// TaskDraftRequest asks to keep a draft for a task, as DraftRequest does.
type TaskDraftRequest struct {
	TaskRequest
	Data     data.Value
	Template form.Digest
	form.DraftCondition
}

// SaveTaskDraft keeps or drops the caller's draft; it is durable when SaveTaskDraft returns.
func (p *Portal) SaveTaskDraft(ctx context.Context, req *TaskDraftRequest) (draft form.Draft, err error) {
	err = p.do(ctx, req.Caller, "task draft", func(ctx context.Context) error {
		ask, template, err := p.taskForm(ctx, &req.TaskRequest)
		if err != nil {
			return err
		}
		draft, err = p.o.Workflows.SaveTaskDraft(&message.TaskDraft{
			TaskForm: ask, Data: req.Data, Template: writtenFor(req.Template, template), DraftCondition: req.DraftCondition,
		})
		return err
	})
	return draft, err
}

// TaskSubmitRequest asks to send what was filled in for a task.
type TaskSubmitRequest struct {
	TaskRequest
	Event       string     // Event completes the task; empty: the one that the template names
	Data        data.Value // a checked, compact object
	Retry       message.Retry
	IfMatch     []uint64 // IfMatch and WithHistory are those of message.Event
	WithHistory bool
}

// SubmitTask checks the data against the template as it is now and sends it with an event of the task; the caller's
// draft goes in the same commit.
func (p *Portal) SubmitTask(ctx context.Context, req *TaskSubmitRequest) (reply *message.Reply, err error) {
	err = p.do(ctx, req.Caller, "task submit", func(ctx context.Context) error {
		ask, template, err := p.taskForm(ctx, &req.TaskRequest)
		if err != nil {
			return err
		}
		event := req.Event
		if event == "" && template != nil {
			event = template.Submit
		}
		switch {
		case ask.Refusal != nil:
		case event == "":
			ask.Refusal = failure.Refuse(failure.ErrInvalid, "the form names no event: %q is missing", "event")
		default:
			ask.Refusal = refusalOf(template, event, req.Data)
		}
		reply, err = p.o.Workflows.SubmitTask(&message.TaskSubmit{
			TaskForm: ask, Event: event, Data: req.Data, Retry: req.Retry, IfMatch: req.IfMatch, WithHistory: req.WithHistory,
		})
		return err
	})
	return reply, err
}
