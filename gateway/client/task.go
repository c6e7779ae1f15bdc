package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	"troupe/gateway/api"
)

// TasksRequest asks for a part of the caller's tasks.
type TasksRequest struct {
	Scope                     string // "mine", "open", "all" or "done"; empty is "all"
	WorkflowID, Filter, Query string // WorkflowID, Filter and Query narrow the list; empty: they do not
	Sort                      string // "due", "created", "priority" or "title", or one behind "-"; empty is "due"
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 50.
	Limit  int
	Cursor string // TasksPage.Next of the page before; empty is the first page
	Count  bool   // Count asks for the number of all
}

// TasksPage is a part of the caller's tasks.
type TasksPage struct {
	Tasks []api.Task
	Next  string          // the cursor of the page behind; empty on the last one
	Count *int64          // nil when it was not asked for, or would have taken too long
	Raw   json.RawMessage // the whole answer as it came
}

// Tasks returns one page of the caller's tasks. It may be shorter than the limit, also empty, and not the last.
func (c *Client) Tasks(ctx context.Context, r TasksRequest) (page *TasksPage, err error) {
	defer asking(&err, "list tasks")
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "scope", r.Scope)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "filter", r.Filter)
	setUnlessZero(q, "q", r.Query)
	setUnlessZero(q, "sort", r.Sort)
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	if r.Count {
		q.Set("count", "true")
	}
	var list api.TaskList
	a, err := c.get(ctx, []string{"tasks"}, q, &list)
	if err != nil {
		return nil, err
	}
	return &TasksPage{Tasks: list.Tasks, Next: textOf(list.Next), Count: list.Count, Raw: a.body}, nil
}

// TasksPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) TasksPages(ctx context.Context, r TasksRequest) iter.Seq2[*TasksPage, error] {
	return pages(r.Cursor, func(cursor string) (*TasksPage, error) {
		r.Cursor = cursor
		return c.Tasks(ctx, r)
	})
}

func (p *TasksPage) next() string { return p.Next }

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Task is a task as the caller sees it.
type Task struct {
	api.Task
	Raw json.RawMessage // the whole answer as it came
}

// Task returns a task of an instance that the caller may read.
func (c *Client) Task(ctx context.Context, taskID string) (t *Task, err error) {
	defer asking(&err, "show task %s", taskID)
	t = &Task{}
	a, err := c.get(ctx, []string{"task", taskID}, nil, &t.Task)
	if err != nil {
		return nil, err
	}
	t.Raw = a.body
	return t, nil
}

// EveryTask is the scope of all open tasks.
const EveryTask = "every"

// What can be done with a task besides sending its events.
const (
	ClaimTask   = "claim"
	ReleaseTask = "release"
	AssignTask  = "assign"
)

// ChangeTask claims, releases or assigns a task; to is the user of AssignTask. It may be repeated.
func (c *Client) ChangeTask(ctx context.Context, taskID, action, to string) (t *Task, err error) {
	defer asking(&err, "%s task %s", action, taskID)
	text, err := encode(api.TaskRequest{TaskID: taskID, Action: action, To: to})
	if err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"task"}, body: text})
	if err != nil {
		return nil, err
	}
	t = &Task{Raw: a.body}
	return t, decode(a.body, &t.Task)
}

// Comment writes a comment to an instance, once.
func (c *Client) Comment(ctx context.Context, workflowID, instanceID, text string) (comment *api.Comment, err error) {
	defer asking(&err, "comment on %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	body, err := encode(api.CommentRequest{Text: text})
	if err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"instance", workflowID, instanceID, "comments"}, key: NewKey(), body: body})
	if err != nil {
		return nil, err
	}
	var reply api.CommentReply
	return &reply.Comment, decode(a.body, &reply)
}

// ActivityRequest asks for a part of what has happened to an instance.
type ActivityRequest struct {
	WorkflowID, InstanceID string
	OldestFirst            bool // otherwise the newest come first
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // ActivityPage.Next of the page before; empty is the first page
}

// ActivityPage is a part of what has happened to an instance.
type ActivityPage struct {
	Activity []api.Activity
	Next     string          // the cursor of the page behind; empty on the last one
	Raw      json.RawMessage // the whole answer as it came
}

// Activity returns one page of what has happened to an instance.
func (c *Client) Activity(ctx context.Context, r ActivityRequest) (page *ActivityPage, err error) {
	defer asking(&err, "activity of %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	if err := checkLimit(r.Limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, "limit", r.Limit)
	setUnlessZero(q, "cursor", r.Cursor)
	if r.OldestFirst {
		q.Set("order", "asc")
	}
	var list api.ActivityList
	a, err := c.get(ctx, []string{"instance", r.WorkflowID, r.InstanceID, "activity"}, q, &list)
	if err != nil {
		return nil, err
	}
	return &ActivityPage{Activity: list.Activity, Next: textOf(list.Next), Raw: a.body}, nil
}

// ActivityPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) ActivityPages(ctx context.Context, r ActivityRequest) iter.Seq2[*ActivityPage, error] {
	return pages(r.Cursor, func(cursor string) (*ActivityPage, error) {
		r.Cursor = cursor
		return c.Activity(ctx, r)
	})
}

func (p *ActivityPage) next() string { return p.Next }
