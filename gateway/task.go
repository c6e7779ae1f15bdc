package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"troupe/actors/activity"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// Tasks has what waits for people, and what they say. Errors are those of package failure.
type Tasks interface {
	Tasks(context.Context, *task.ListRequest) (*task.Page, error)
	Task(ctx context.Context, caller *identity.Principal, taskID string) (*task.Item, error)
	// ChangeTask and AddComment return when it is durable.
	ChangeTask(context.Context, *message.TaskChange) (*task.Item, error)
	AddComment(context.Context, *message.Comment) (*activity.Row, error)
	Activity(context.Context, *message.Activity) (*activity.Page, error)
	// WatchTasks is as Watches.Watch.
	WatchTasks(ctx context.Context, request *task.WatchRequest, deliver func(*task.Event) error) error
}

// Users says who there is.
type Users interface {
	// Directory is that of now.
	Directory() *identity.Directory
}

// taskRoutes are worklists, and what happens beside histories.
func taskRoutes() []route {
	const path = "/workflow/api/v1"
	row := func(name, method, path string, handle func(*exchange) error, query ...string) route {
		return route{
			name: name, method: method, path: path, group: groupWorkflow, access: signedIn(identity.Token | identity.Session), query: query, handle: handle,
		}
	}
	watch := row("watch-tasks", http.MethodGet, path+"/tasks/watch", watchTasks)
	watch.strict = true
	return []route{
		row("tasks", http.MethodGet, path+"/tasks", listTasks, "scope", "workflowId", "filter", "q", "sort", "limit", "cursor", "count"),
		row("task", http.MethodGet, path+"/task/:taskId", showTask),
		row("change-task", http.MethodPost, path+"/task", changeTask),
		watch,
		row("comment", http.MethodPost, path+"/instance/:workflowId/:instanceId/comments", addComment),
		row("activity", http.MethodGet, path+"/instance/:workflowId/:instanceId/activity", listActivity, "order", "limit", "cursor"),
	}
}

// taskPageDefault is the page of a list of tasks.
const taskPageDefault = 50

// listTasks answers GET workflow/api/v1/tasks.
func listTasks(x *exchange) (err error) {
	list := task.ListRequest{Caller: x.caller, Languages: x.languages(), NameOf: x.nameOf}
	if list.Scope, err = parse.Choice(x.query, "scope", task.ScopeMine, task.ScopeOpen, task.ScopeAll, task.ScopeDone, task.ScopeEvery); err != nil {
		return err
	}
	if list.Scope == "" {
		list.Scope = task.ScopeAll
	}
	for name, to := range map[string]*string{"workflowId": &list.WorkflowID, "filter": &list.Filter, "q": &list.Query, "sort": &list.Sort} {
		if *to, err = parse.Text(x.query, name); err != nil {
			return err
		}
	}
	if err = checkWords(list.Query); err != nil {
		return err
	}
	if list.Limit, err = parse.Limit(x.query, taskPageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	if list.Count, err = parse.Flag(x.query, "count"); err != nil {
		return err
	}
	page, err := x.services.Workflows.Tasks(x.r.Context(), &list)
	if err != nil {
		return err
	}
	return x.answerJSON(api.TaskList{Tasks: x.tasksIn(page.Items, list.Languages), Next: x.linkNext(page.Next), Count: page.Count})
}

// showTask answers GET workflow/api/v1/task/{taskId}.
func showTask(x *exchange) error {
	item, err := x.services.Workflows.Task(x.r.Context(), x.caller, x.params.ByName("taskId"))
	if err != nil {
		return err
	}
	return x.answerJSON(x.taskOf(item))
}

// changeTask answers POST workflow/api/v1/task.
func changeTask(x *exchange) error {
	change, to, err := parseTaskChange(x.body)
	if err != nil {
		return err
	}
	change.Caller = x.caller
	if to != "" && x.services.Users != nil {
		change.To = x.services.Users.Directory().Principal(identity.UserID(to))
	}
	item, err := x.services.Workflows.ChangeTask(x.r.Context(), change)
	if err != nil {
		return err
	}
	return x.answerJSON(x.taskOf(item))
}

// parseTaskChange reads {"taskId", "action", "to"}.
func parseTaskChange(body []byte) (change *message.TaskChange, to string, err error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, "", err
	}
	change = &message.TaskChange{}
	for key, v := range value.Members() {
		text := ""
		if text, err = parse.StringMember(v, key); err != nil {
			return nil, "", err
		}
		switch key {
		case "taskId":
			change.TaskID = text
		case "action":
			change.Action = message.TaskAction(text)
		case "to":
			to = text
		default:
			return nil, "", parse.UnknownMember("", key, "taskId", "action", "to")
		}
	}
	known := []message.TaskAction{message.Claim, message.Release, message.Assign}
	switch {
	case change.TaskID == "":
		return nil, "", parse.MissingMember("taskId")
	case !slices.Contains(known, change.Action):
		return nil, "", parse.Malformed(`"action" must be %s`, parse.ChoiceText(known))
	case (to != "") != (change.Action == message.Assign):
		return nil, "", parse.Malformed(`"to" names the user of "assign", and of no other action`)
	}
	return change, to, nil
}

// watchTasks answers GET workflow/api/v1/tasks/watch.
func watchTasks(x *exchange) error {
	languages := x.languages() // NB: the header Vary is sent with the first event
	return x.stream(func(send func(appendEvent) error) error {
		return x.services.Workflows.WatchTasks(x.r.Context(), &task.WatchRequest{Caller: x.caller, Reauthorize: x.reauthorize}, func(e *task.Event) error {
			return send(func(dst []byte) ([]byte, error) { return x.appendTaskEvent(dst, e, languages) })
		})
	})
}

// appendTaskEvent appends an event of a stream of tasks.
func (x *exchange) appendTaskEvent(dst []byte, e *task.Event, languages []string) ([]byte, error) {
	switch e.Kind {
	case task.Opened:
		dst = append(dst, streamOpening+": open\n"...)
	case task.Changed:
		text, err := encode(nil, api.TasksWatched{WorkflowID: e.WorkflowID, InstanceID: e.InstanceID, Tasks: x.tasksIn(e.Items, languages)})
		if err != nil {
			return dst, err
		}
		dst = appendData(append(dst, "event: tasks\n"...), text)
	case task.Lost:
		dst = append(dst, "event: lost\ndata: {\"message\":\"tasks are missing here; read the list again\"}\n"...)
	case task.Heartbeat:
		dst = append(dst, ": beat\n"...)
	}
	return append(dst, '\n'), nil
}

func (x *exchange) tasksIn(items []*task.Item, languages []string) []api.Task {
	out := make([]api.Task, len(items))
	for n, i := range items {
		out[n] = x.taskIn(i, languages)
	}
	return out
}

func (x *exchange) taskOf(i *task.Item) api.Task { return x.taskIn(i, x.languages()) }

// taskIn is a task in the reader's languages.
func (x *exchange) taskIn(i *task.Item, languages []string) api.Task {
	t := api.Task{
		TaskID: i.TaskID(), WorkflowID: i.WorkflowID, InstanceID: i.InstanceID, StateMachineID: string(i.At.Machine), NodeID: string(i.At.Node),
		Title: i.Title.For(languages...), Description: textOrNil(i.Description.For(languages...)), Status: string(i.Status),
		Created: timeText(i.Created), Due: timeOrNil(i.Due), Priority: i.Priority, Assignee: textOrNil(i.Assignee),
		Candidates: api.Candidates{Roles: orEmpty(i.Candidates.Roles), Users: orEmpty(i.Candidates.Users), Privileges: orEmpty(i.Candidates.Privileges)},
		Requester:  textOrNil(i.Requester), Form: textOrNil(i.Form), Events: []api.TaskEvent{},
	}
	if !i.IsBlind {
		t.RequesterName = textOrNil(x.nameOf(i.Requester))
	}
	if i.Assignee != "" {
		t.AssigneeName = textOrNil(x.nameOf(i.Assignee))
	}
	for n, e := range i.Events {
		of := i.EventLabels[n]
		t.Events = append(t.Events, api.TaskEvent{Name: string(e.Name), Label: of.Label.For(languages...), Style: of.Style.String()})
	}
	if d := i.Decided; d != nil {
		t.Done = &api.TaskEnd{User: d.By, UserName: x.nameOf(d.By), Event: d.Event, TS: timeText(d.When)}
	}
	return t
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// nameOf is the name of a user for people: the login name where there is no other.
func (x *exchange) nameOf(user string) string {
	if x.services.Users != nil {
		if name := x.services.Users.Directory().Name(identity.UserID(user)); name != "" {
			return name
		}
	}
	return user
}

// commentRunesMax is the longest comment, in characters.
const commentRunesMax = 10_000

// addComment answers POST workflow/api/v1/instance/{workflowId}/{instanceId}/comments.
func addComment(x *exchange) error {
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	key, body, err := x.keyedBody()
	if err != nil {
		return err
	}
	comment := message.Comment{Load: message.Load{Caller: x.caller, WorkflowID: x.params.ByName("workflowId"), InstanceID: x.params.ByName("instanceId")}}
	for name, v := range body.Members() {
		if name != "text" {
			return parse.UnknownMember("", name, "text")
		}
		if comment.Text, err = parse.StringMember(v, name); err != nil {
			return err
		}
	}
	if n := utf8.RuneCountInString(comment.Text); n > commentRunesMax || strings.TrimSpace(comment.Text) == "" {
		return parse.Malformed(`"text" must have 1 to %d characters, and not only blanks`, commentRunesMax)
	}
	// NB: the same text to another instance is another request.
	what := data.AppendString(data.AppendString(data.Value(nil), comment.WorkflowID+"/"+comment.InstanceID), comment.Text)
	if comment.Retry, err = retryOf(x, key, "", what); err != nil {
		return err
	}
	row, err := x.services.Workflows.AddComment(x.r.Context(), &comment)
	if err != nil {
		return err
	}
	return x.answerJSON(api.CommentReply{Comment: api.Comment{User: row.User, UserName: x.nameOf(row.User), Text: row.Text, TS: timeText(row.At)}})
}

// order is in which order a history or an activity comes.
type order string

const (
	ascending  order = "asc"
	descending order = "desc"
)

// listActivity answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/activity.
func listActivity(x *exchange) error {
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	by, err := parse.Choice(x.query, "order", ascending, descending)
	if err != nil {
		return err
	}
	list := message.Activity{
		Load:        message.Load{Caller: x.caller, WorkflowID: x.params.ByName("workflowId"), InstanceID: x.params.ByName("instanceId")},
		OldestFirst: by == ascending,
	}
	if list.Limit, err = parse.Limit(x.query, operationsPageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	page, err := x.services.Workflows.Activity(x.r.Context(), &list)
	if err != nil {
		return err
	}
	answer := api.ActivityList{Activity: []api.Activity{}, Next: x.linkNext(page.Next)}
	for _, i := range page.Items {
		answer.Activity = append(answer.Activity, x.activityOf(i, list.InstanceID))
	}
	return x.answerJSON(answer)
}

// activityOf is one line of what has happened to an instance.
func (x *exchange) activityOf(i *activity.Item, instanceID string) api.Activity {
	a := api.Activity{TS: timeText(i.At), User: textOrNil(i.User)}
	if i.User != "" {
		a.UserName = textOrNil(x.nameOf(i.User))
	}
	switch {
	case i.Row != nil && i.Row.Kind == activity.Comment:
		a.Kind, a.Text = "comment", i.Row.Text
	case i.Row != nil:
		a.Kind, a.Action, a.TaskID = "task", i.Row.Kind.String(), instanceID+"-"+i.Row.Task.String()
		a.StateMachineID, a.NodeID, a.To = string(i.Row.Node.Machine), string(i.Row.Node.Node), textOrNil(i.Row.To)
		if i.Row.To != "" {
			a.ToName = textOrNil(x.nameOf(i.Row.To))
		}
	case i.Timer != nil:
		timer := timerOf(i.Name, i.Timer)
		a.Kind, a.Timer = "timer", &timer
	case i.Delivery != nil:
		delivery := x.pendingDelivery(i.Delivery)
		a.Kind, a.Delivery = "delivery", &delivery
	default:
		a.Kind, a.Sequence = "history", i.Sequence
		addEntry(&a, i.Entry)
	}
	return a
}

// addEntry adds the members of a history entry.
func addEntry(a *api.Activity, entry data.Value) {
	texts := func(v data.Value) (list []string) {
		for _, e := range v.Elements() {
			list = append(list, e.Text())
		}
		return list
	}
	for name, v := range entry.Members() {
		switch name {
		case "startState":
			a.StartState = texts(v)
		case "endState":
			a.EndState = texts(v)
		case "transitionEvent":
			event := v.Text()
			a.TransitionEvent = &event
		case "ts":
			a.TS = v.Text()
		case "data":
			a.Data = []byte(v)
		case "dataDigest":
			a.DataDigest = []byte(v)
		case "attempt":
			a.Attempt = true
		}
	}
}
