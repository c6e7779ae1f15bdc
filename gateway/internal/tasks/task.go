// Package tasks has the routes of worklists: tasks, comments and the activity beside histories.
package tasks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"troupe/actors/activity"
	"troupe/actors/audit"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Tasks
	Worklists Worklists
	Watches   Watches
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users
}

// Routes are worklists, and what happens beside histories.
func (g *Group) Routes() []kernel.Route {
	row := kernel.Route{Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath}.Row
	watch := row("watch-tasks", "GET", "/tasks/watch", g.watchTasks)
	watch.Strict = true
	return []kernel.Route{
		row("tasks", "GET", "/tasks", g.listTasks, "scope", "workflowId", "filter", "q", "sort", "limit", "cursor", "count"),
		row("task", "GET", "/task/:taskId", g.showTask),
		row("change-task", "POST", "/task", g.changeTask),
		watch,
		row("comment", "POST", "/instance/:workflowId/:instanceId/comments", g.addComment),
		row("activity", "GET", "/instance/:workflowId/:instanceId/activity", g.listActivity, "order", "from", "limit", "cursor"),
	}
}

// Tasks has what people do and say. Errors are those of package failure.
type Tasks interface {
	// ChangeTask and AddComment return when it is durable.
	ChangeTask(context.Context, *message.TaskChange) (*task.Item, error)
	AddComment(*message.Comment) (*activity.Row, error)
	Activity(*message.Activity) (*activity.Page, error)
}

// Worklists has what waits for people.
type Worklists interface {
	List(context.Context, *task.ListRequest) (*task.Page, error)
	Task(ctx context.Context, caller *identity.Principal, taskID string) (*task.Item, error)
}

// Watches tells what comes into worklists and goes from them, as instances.Watches does.
type Watches interface {
	Watch(ctx context.Context, request *task.WatchRequest, deliver func(*task.Event) error) error
}

const taskPageDefault = 50

func (g *Group) listTasks(x *kernel.Exchange) error {
	users := show.Names{Users: g.Users}
	q := parse.Parameters{Values: x.Query}
	list := task.ListRequest{
		Caller: x.Caller, Languages: x.Languages(),
		Scope:      cmp.Or(parse.Choice(&q, "scope", task.ScopeMine, task.ScopeOpen, task.ScopeAll, task.ScopeDone, task.ScopeEvery), task.ScopeAll),
		WorkflowID: q.Text("workflowId"), Filter: q.Text("filter"), Query: q.Text("q"), Sort: q.Text("sort"),
	}
	q.CheckWords(list.Query)
	list.Limit, list.Cursor, list.Count = q.Limit(taskPageDefault), q.Cursor(), q.Flag("count")
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Worklists.List(x.Request.Context(), &list)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.TaskList{Tasks: show.Tasks(page.Items, list.Languages, users), Next: x.LinkNext(page.Next), Count: page.Count})
}

func (g *Group) showTask(x *kernel.Exchange) error {
	item, err := g.Worklists.Task(x.Request.Context(), x.Caller, x.Params.ByName("taskId"))
	if err != nil {
		return err
	}
	return x.AnswerJSON(show.Task(item, x.Languages(), show.Names{Users: g.Users}))
}

func (g *Group) changeTask(x *kernel.Exchange) error {
	change, to, err := parseTaskChange(x.Body)
	if err != nil {
		return err
	}
	change.Caller = x.Caller
	if to != "" && g.Users != nil {
		change.To = g.Users.Directory().Principal(identity.UserID(to))
	}
	item, err := g.Workflows.ChangeTask(x.Request.Context(), change)
	if err != nil {
		return err
	}
	if change.OfOther {
		x.Note("task."+audit.Action(change.Action), change.TaskID)
	}
	return x.AnswerJSON(show.Task(item, x.Languages(), show.Names{Users: g.Users}))
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

func (g *Group) watchTasks(x *kernel.Exchange) error {
	languages, users := x.Languages(), show.Names{Users: g.Users} // NB: the header Vary is sent with the first event
	return x.Stream(func(send func(kernel.AppendEvent) error) error {
		return g.Watches.Watch(x.Request.Context(), &task.WatchRequest{Caller: x.Caller, Reauthorize: x.Reauthorize}, func(e *task.Event) error {
			return send(func(dst []byte) ([]byte, error) { return appendTaskEvent(dst, e, languages, users) })
		})
	})
}

func appendTaskEvent(dst []byte, e *task.Event, languages []string, users show.Names) ([]byte, error) {
	switch e.Kind {
	case task.Opened:
		dst = append(dst, kernel.StreamOpening+": open\n"...)
	case task.Changed:
		text, err := kernel.Encode(nil, api.TasksWatched{WorkflowID: e.WorkflowID, InstanceID: e.InstanceID, Tasks: show.Tasks(e.Items, languages, users)})
		if err != nil {
			return dst, err
		}
		dst = kernel.AppendData(append(dst, "event: tasks\n"...), text)
	case task.Lost:
		dst = append(dst, "event: lost\ndata: {\"message\":\"tasks are missing here; read the list again\"}\n"...)
	case task.Heartbeat:
		dst = append(dst, ": beat\n"...)
	}
	return append(dst, '\n'), nil
}

// commentRunesMax is the longest comment, in characters.
const commentRunesMax = 10_000

var commentShape = parse.NewShape("", parse.Field{Name: "text", Kind: data.String})

func (g *Group) addComment(x *kernel.Exchange) error {
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	key, body, err := x.KeyedBody()
	if err != nil {
		return err
	}
	var members [1]data.Value
	if err := commentShape.Read(body, members[:]); err != nil {
		return err
	}
	comment := message.Comment{
		Load: message.Load{Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId")}, Text: members[0].Text(),
	}
	if n := utf8.RuneCountInString(comment.Text); n > commentRunesMax || strings.TrimSpace(comment.Text) == "" {
		return parse.Malformed(`"text" must have 1 to %d characters, and not only blanks`, commentRunesMax)
	}
	// NB: the same text to another instance is another request.
	what := data.AppendString(data.AppendString(data.Value(nil), comment.WorkflowID+"/"+comment.InstanceID), comment.Text)
	if comment.Retry, err = kernel.RetryOf(x, key, "", what); err != nil {
		return err
	}
	row, err := g.Workflows.AddComment(&comment)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.CommentReply{Comment: api.Comment{User: row.User, UserName: show.Names{Users: g.Users}.Of(row.User), Text: row.Text, TS: show.Time(row.At)}})
}

func (g *Group) listActivity(x *kernel.Exchange) error {
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	q := parse.Parameters{Values: x.Query}
	list := message.Activity{
		Load:        message.Load{Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId")},
		OldestFirst: parse.Choice(&q, "order", parse.Ascending, parse.Descending) == parse.Ascending,
		From:        q.Number("from"),
		Limit:       q.Limit(parse.PageDefault), Cursor: q.Cursor(),
	}
	if list.From > 0 && !list.OldestFirst {
		q.Refuse(`the query parameter "from" needs "order=asc"`)
	}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Workflows.Activity(&list)
	if err != nil {
		return err
	}
	x.NoteInstance(&list.Load)
	users := show.Names{Users: g.Users}
	answer := api.ActivityList{Activity: []api.Activity{}, Next: x.LinkNext(page.Next)}
	for _, i := range page.Items {
		answer.Activity = append(answer.Activity, activityOf(i, list.InstanceID, users, x.Caller.Has(identity.Workflows)))
	}
	return x.AnswerJSON(answer)
}

// activityOf is one line of what has happened to an instance. isWhole shows deliveries whole.
func activityOf(i *activity.Item, instanceID string, users show.Names, isWhole bool) api.Activity {
	a := api.Activity{TS: show.Time(i.At), User: show.TextOrNil(i.User)}
	if i.User != "" {
		a.UserName = show.TextOrNil(users.Of(i.User))
	}
	switch {
	case i.Row != nil && i.Row.Kind == activity.Comment:
		a.Kind, a.Text = "comment", i.Row.Text
	case i.Row != nil:
		a.Kind, a.Action, a.TaskID = "task", i.Row.Kind.String(), instanceID+"-"+i.Row.Task.String()
		a.StateMachineID, a.NodeID, a.To = string(i.Row.Node.Machine), string(i.Row.Node.Node), show.TextOrNil(i.Row.To)
		if i.Row.To != "" {
			a.ToName = show.TextOrNil(users.Of(i.Row.To))
		}
	case i.Timer != nil:
		timer := show.Timer(i.Name, i.Timer)
		a.Kind, a.Timer = "timer", &timer
	case i.Delivery != nil:
		delivery := show.PendingDelivery(i.Delivery, isWhole)
		a.Kind, a.Delivery = "delivery", &delivery
	default:
		a.Kind, a.Sequence = "history", i.Sequence
		addEntry(&a, i.Entry)
	}
	return a
}

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
