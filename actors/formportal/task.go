package formportal

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

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
}

// Task returns the form of a task as everything acknowledged before has left it: ErrNotFound when the task is gone, has
// no form or its instance may not be read, ErrForbidden for who is no candidate.
func (p *Portal) Task(ctx context.Context, req *TaskRequest) (view *TaskView, err error) {
	err = p.do(ctx, req.Caller, "task", func(ctx context.Context) error {
		ask, template, err := p.taskForm(ctx, req)
		if err != nil {
			return err
		}
		v, err := p.o.Workflows.TaskForm(ctx, &ask)
		if err != nil {
			return err
		}
		view = &TaskView{Task: v.Item, Template: template, Data: v.Public, States: v.States, Draft: v.Draft, Editable: v.Editable, Sequence: v.Sequence}
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
	name, err := p.o.Workflows.LocateForm(ctx, req.TaskID)
	if err != nil {
		return message.TaskForm{}, nil, err
	}
	ask := message.TaskForm{Caller: req.Caller, Task: name}
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
		draft, err = p.o.Workflows.SaveTaskDraft(ctx, &message.TaskDraft{
			TaskForm: ask, Data: req.Data, Template: writtenFor(req.Template, template), DraftCondition: req.DraftCondition,
		})
		return err
	})
	return draft, err
}

// TaskSubmitRequest asks to send what was filled in for a task.
type TaskSubmitRequest struct {
	TaskRequest
	Event       string     // Event brings the task on; empty: the one that the template names
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
		reply, err = p.o.Workflows.SubmitTask(ctx, &message.TaskSubmit{
			TaskForm: ask, Event: event, Data: req.Data, Retry: req.Retry, IfMatch: req.IfMatch, WithHistory: req.WithHistory,
		})
		return err
	})
	return reply, err
}
