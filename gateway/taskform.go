package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// TaskForms has the forms of tasks. Errors are those of package failure.
type TaskForms interface {
	// Task returns the form of a task with the caller's draft.
	Task(ctx context.Context, request *formportal.TaskRequest) (*formportal.TaskView, error)
	// SaveTaskDraft keeps or drops the caller's draft. It returns when that is durable.
	SaveTaskDraft(ctx context.Context, request *formportal.TaskDraftRequest) (form.Draft, error)
	// SubmitTask sends what was filled in. It returns when that is durable.
	SubmitTask(ctx context.Context, request *formportal.TaskSubmitRequest) (*message.Reply, error)
}

// taskFormRoutes are the forms of tasks.
func taskFormRoutes() []route {
	row := func(name, method, path string, handle func(*exchange) error) route {
		return route{
			name: name, method: method, path: runtimePath + "/task/:taskId" + path,
			group: groupPortal, access: signedIn(identity.Session), privilege: identity.FormPortal, handle: handle,
		}
	}
	return []route{
		row("task-form", http.MethodGet, "", showTaskForm),
		row("task-draft", http.MethodGet, "/draft", showTaskDraft),
		row("save-task-draft", http.MethodPut, "/draft", saveTaskDraft),
		row("drop-task-draft", http.MethodDelete, "/draft", dropTaskDraft),
		row("submit-task", http.MethodPost, "/submit", submitTask),
	}
}

func (x *exchange) taskRequest() formportal.TaskRequest {
	return formportal.TaskRequest{Caller: x.caller, TaskID: x.params.ByName("taskId")}
}

// taskView reads the form of the task that the path names.
func (x *exchange) taskView() (*formportal.TaskView, error) {
	request := x.taskRequest()
	return x.services.Portal.Task(x.r.Context(), &request)
}

// showTaskForm answers GET form-runtime/api/v1/task/{taskId}.
func showTaskForm(x *exchange) error {
	view, err := x.taskView()
	if err != nil {
		return err
	}
	answer := api.TaskForm{
		Task: x.taskOf(view.Task), Events: []string{}, Template: templateOf(view.Template, x.languages()), Data: json.RawMessage(view.Data), States: json.RawMessage(view.States),
		Draft: draftOf(view.Draft, view.TemplateChanged, view.Strays), Editable: view.Editable,
	}
	for _, name := range view.Events {
		answer.Events = append(answer.Events, string(name))
	}
	x.w.Header()["Etag"] = []string{parse.EntityTag(view.Sequence)}
	return x.answerJSON(answer)
}

// showTaskDraft answers GET form-runtime/api/v1/task/{taskId}/draft.
func showTaskDraft(x *exchange) error {
	view, err := x.taskView()
	if err == nil && view.Draft == nil {
		err = failure.ErrNotFound
	}
	if err != nil {
		return err
	}
	x.w.Header()["Etag"] = []string{parse.EntityTag(view.Draft.Revision)}
	return x.answerJSON(draftOf(view.Draft, view.TemplateChanged, view.Strays))
}

// saveTaskDraft answers PUT form-runtime/api/v1/task/{taskId}/draft.
func saveTaskDraft(x *exchange) (err error) {
	request := formportal.TaskDraftRequest{TaskRequest: x.taskRequest()}
	if request.Data, request.Template, request.DraftCondition, err = x.parseDraft(); err != nil {
		return err
	}
	draft, err := x.services.Portal.SaveTaskDraft(x.r.Context(), &request)
	if err != nil {
		return err
	}
	return x.answerDraftSaved(&draft)
}

// dropTaskDraft answers DELETE form-runtime/api/v1/task/{taskId}/draft.
func dropTaskDraft(x *exchange) (err error) {
	request := formportal.TaskDraftRequest{TaskRequest: x.taskRequest()}
	if request.DraftCondition, err = x.draftConditions(); err != nil {
		return err
	}
	if _, err := x.services.Portal.SaveTaskDraft(x.r.Context(), &request); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// submitTask answers POST form-runtime/api/v1/task/{taskId}/submit, as POST event does.
func submitTask(x *exchange) error {
	key, body, err := x.keyedBody()
	if err != nil {
		return err
	}
	request := &formportal.TaskSubmitRequest{TaskRequest: x.taskRequest(), WithHistory: !parse.PrefersMinimal(x.r.Header["Prefer"])}
	if request.IfMatch, err = parse.IfMatch(x.r.Header["If-Match"]); err != nil {
		return err
	}
	for name, v := range body.Members() {
		switch name {
		case "event":
			request.Event, err = parse.StringMember(v, name)
		case "data":
			request.Data, err = parse.ObjectMember(v, name)
		default:
			err = parse.UnknownMember("", name, "event", "data")
		}
		if err != nil {
			return err
		}
	}
	if request.Data == nil {
		return parse.MissingMember("data")
	}
	// NB: the same for another task is another request.
	what := append(data.AppendString(data.Value(nil), request.TaskID), body...)
	if request.Retry, err = retryOf(x, key, "", what); err != nil {
		return err
	}
	reply, err := x.services.Portal.SubmitTask(x.r.Context(), request)
	if err != nil {
		return err
	}
	x.answerInstance(reply)
	return nil
}
