package portal

import (
	"encoding/json"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

func taskRequest(x *kernel.Exchange) formportal.TaskRequest {
	return formportal.TaskRequest{Caller: x.Caller, TaskID: x.Params.ByName("taskId")}
}

// taskView reads the form of the task that the path names.
func (g *Group) taskView(x *kernel.Exchange) (*formportal.TaskView, error) {
	request := taskRequest(x)
	return g.Portal.Task(x.Request.Context(), &request)
}

func (g *Group) showTaskForm(x *kernel.Exchange) error {
	view, err := g.taskView(x)
	if err != nil {
		return err
	}
	x.NoteInstance(&message.Load{WorkflowID: view.Task.WorkflowID, InstanceID: view.Task.InstanceID, ByPrivilege: view.ByPrivilege})
	answer := api.TaskForm{
		Task: show.Task(view.Task, x.Languages(), show.Names{Users: g.Users}), Events: []string{}, Template: templateOf(view.Template, x.Languages()), Data: json.RawMessage(view.Data), States: json.RawMessage(view.States),
		Draft: draftOf(view.Draft, view.TemplateChanged, view.Strays), Editable: view.Editable,
	}
	for _, name := range view.Events {
		answer.Events = append(answer.Events, string(name))
	}
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(view.Sequence)}
	return x.AnswerJSON(answer)
}

func (g *Group) showTaskDraft(x *kernel.Exchange) error {
	view, err := g.taskView(x)
	if err == nil && view.Draft == nil {
		err = failure.ErrNotFound
	}
	if err != nil {
		return err
	}
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(view.Draft.Revision)}
	return x.AnswerJSON(draftOf(view.Draft, view.TemplateChanged, view.Strays))
}

func (g *Group) saveTaskDraft(x *kernel.Exchange) (err error) {
	request := formportal.TaskDraftRequest{TaskRequest: taskRequest(x)}
	if request.Data, request.Template, request.DraftCondition, err = parseDraft(x); err != nil {
		return err
	}
	draft, err := g.Portal.SaveTaskDraft(x.Request.Context(), &request)
	if err != nil {
		return err
	}
	return answerDraftSaved(x, &draft)
}

func (g *Group) dropTaskDraft(x *kernel.Exchange) (err error) {
	request := formportal.TaskDraftRequest{TaskRequest: taskRequest(x)}
	if request.DraftCondition, err = draftConditions(x); err != nil {
		return err
	}
	if _, err := g.Portal.SaveTaskDraft(x.Request.Context(), &request); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

var taskSubmitShape = parse.NewShape("", parse.Field{Name: "event", Kind: data.String}, parse.Field{Name: "data", Kind: data.Object, Required: true})

// submitTask answers POST form-runtime/api/v1/task/{taskId}/submit, as POST event does.
func (g *Group) submitTask(x *kernel.Exchange) error {
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	request := &formportal.TaskSubmitRequest{TaskRequest: taskRequest(x), WithHistory: !parse.PrefersMinimal(x.Request.Header["Prefer"])}
	if request.IfMatch, err = parse.IfMatch(x.Request.Header["If-Match"]); err != nil {
		return err
	}
	var members [2]data.Value
	if err := taskSubmitShape.Read(body, members[:]); err != nil {
		return err
	}
	request.Event, request.Data = members[0].Text(), members[1]
	// NB: the same for another task is another request.
	what := append(data.AppendString(data.Value(nil), request.TaskID), body...)
	if request.Retry, err = kernel.RetryOf(x, key, "", what); err != nil {
		return err
	}
	reply, err := g.Portal.SubmitTask(x.Request.Context(), request)
	if err != nil {
		return err
	}
	x.AnswerInstance(reply)
	return nil
}
