package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"troupe/gateway/api"
)

// Instance is an instance as the service answered it.
type Instance struct {
	api.Instance
	// Sequence is the number of its history entries, for SendRequest.IfMatch. It is 0 in lists, which do not say it.
	Sequence uint64
	Raw      json.RawMessage // the record as it came
	Created  bool            // Send has created it
}

// CreateRequest asks for a new instance.
type CreateRequest struct {
	WorkflowID      string
	Public, Private json.RawMessage // Public and Private are JSON objects; nil is none
	// Key is the idempotency key: 1 to 255 visible ASCII characters that do not
	// begin with a quote. Empty: one is drawn.
	Key     string
	Minimal bool // Minimal asks for the answer without its history
}

// Create makes an instance; it is durable when Create returns. Errors wrap
// *Error, ErrInvalid, ErrProtocol, ErrOutcomeUnknown, or the context's.
func (c *Client) Create(ctx context.Context, r CreateRequest) (made *Instance, err error) {
	defer asking(&err, "create %s", r.WorkflowID)
	if err := checkWorkflow(r.WorkflowID); err != nil {
		return nil, err
	}
	body := api.CreateRequest{WorkflowID: r.WorkflowID}
	if r.Public != nil || r.Private != nil {
		body.Data = &api.CreateData{Public: r.Public, Private: r.Private}
	}
	return c.change(ctx, &request{path: []string{"create"}, key: r.Key, minimal: r.Minimal}, &body)
}

// SendRequest asks to send an event to an instance.
type SendRequest struct {
	WorkflowID, InstanceID string
	// BusinessKey names the instance in place of InstanceID. If none has the key, one that begins with Create is created, with the event
	// as its first; nil: none is, and the error's status is 404.
	BusinessKey string
	Create      *api.CreateData
	Event       string          // the event's name
	Data        json.RawMessage // a JSON object; nil is none
	// IfMatch is the Sequence that the instance must have; otherwise nothing is
	// done and the error's status is 412. 0: any.
	IfMatch uint64
	Key     string // Key and Minimal are as in CreateRequest
	Minimal bool
}

// Send sends an event; its outcome is durable when Send returns. Errors are those of Create.
func (c *Client) Send(ctx context.Context, r SendRequest) (moved *Instance, err error) {
	defer asking(&err, "send %s to %s/%s", r.Event, r.WorkflowID, cmp.Or(r.InstanceID, r.BusinessKey))
	if r.BusinessKey == "" {
		err = checkInstance(r.WorkflowID, r.InstanceID)
	} else {
		err = checkWorkflow(r.WorkflowID)
	}
	if err != nil {
		return nil, err
	}
	body := api.EventRequest{
		WorkflowID: r.WorkflowID, InstanceID: r.InstanceID, Event: api.SentEvent{Name: r.Event, Data: r.Data}, Key: r.BusinessKey, Create: r.Create,
	}
	return c.change(ctx, &request{path: []string{"event"}, key: r.Key, ifMatch: r.IfMatch, minimal: r.Minimal, instance: r.InstanceID}, &body)
}

func (c *Client) change(ctx context.Context, r *request, body any) (*Instance, error) {
	if r.key == "" {
		r.key = NewKey()
	}
	if err := checkKey(r.key); err != nil {
		return nil, err
	}
	var err error
	if r.body, err = encode(body); err != nil {
		return nil, err
	}
	r.method = http.MethodPost
	return c.instance(ctx, r)
}

func (c *Client) instance(ctx context.Context, r *request) (*Instance, error) {
	var reply api.InstanceReply
	a, err := c.ask(ctx, r, &reply)
	if err != nil {
		return nil, err
	}
	i := &Instance{Sequence: a.sequence(), Created: reply.Created}
	if err := i.read(reply.State); err != nil {
		return nil, err
	}
	return i, nil
}

// ask reads an answer into to.
func (c *Client) ask(ctx context.Context, r *request, to any) (*answer, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return &answer{}, err
	}
	return a, decode(a.body, to)
}

// unless returns nil beside an error.
func unless[T any](err error, result *T) (*T, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

// get is ask for a GET; raw is the whole answer as it came.
func (c *Client) get(ctx context.Context, path []string, query url.Values, to any) (raw json.RawMessage, err error) {
	a, err := c.ask(ctx, &request{method: http.MethodGet, path: path, query: query}, to)
	return a.body, err
}

// post is ask for a POST of a struct of package api.
func (c *Client) post(ctx context.Context, path []string, body, to any) (raw json.RawMessage, err error) {
	text, err := encode(body)
	if err != nil {
		return nil, err
	}
	a, err := c.ask(ctx, &request{method: http.MethodPost, path: path, body: text}, to)
	return a.body, err
}

func (i *Instance) read(record json.RawMessage) error {
	i.Raw = record
	if err := decode(record, &i.Instance); err != nil {
		return err
	}
	if i.ID == "" {
		return fmt.Errorf("%w: an instance without _id", ErrProtocol)
	}
	return nil
}

// NewKey draws an idempotency key. Keep it and give it to Create or Send where
// a request must be done once although this process may end in the middle.
func NewKey() string { return rand.Text() }

const keyCharsMax = 255

func checkKey(key string) error {
	ok := len(key) <= keyCharsMax && key[0] != '"'
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] <= '~'
	}
	if !ok {
		return invalid("the idempotency key must have 1 to %d visible ASCII characters and not begin with a quote", keyCharsMax)
	}
	return nil
}

// InstanceRequest names an instance.
type InstanceRequest struct {
	WorkflowID, InstanceID string
	Minimal                bool   // Minimal asks for it without its history
	At                     uint64 // the entry after which it is asked for; 0: as it is now
}

// Instance returns an instance as everything acknowledged before has left it, or as it was after an entry. That has no Sequence: it is nothing
// that an event could ask for.
func (c *Client) Instance(ctx context.Context, r InstanceRequest) (found *Instance, err error) {
	defer asking(&err, "load %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	of := &request{method: http.MethodGet, path: []string{"instance", r.WorkflowID, r.InstanceID}, minimal: r.Minimal}
	if r.At > 0 {
		of.query = url.Values{"at": {strconv.FormatUint(r.At, 10)}}
	}
	return c.instance(ctx, of)
}

// Choices lists the workflows that the caller may create.
func (c *Client) Choices(ctx context.Context) (choices []api.Choice, err error) {
	defer asking(&err, "list choices")
	var list api.ChoiceList
	_, err = c.get(ctx, []string{"choices"}, nil, &list)
	return list.Workflows, err
}

// Events is what can be sent to an instance.
type Events struct {
	Events   []api.Event
	Sequence uint64          // that of the instance for which this holds
	Raw      json.RawMessage // the whole answer as it came
}

// Events lists the events that the caller may send to an instance now.
func (c *Client) Events(ctx context.Context, workflowID, instanceID string) (events *Events, err error) {
	defer asking(&err, "list events of %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	var list api.EventList
	a, err := c.ask(ctx, &request{method: http.MethodGet, path: []string{"instance", workflowID, instanceID, "events"}}, &list)
	if err != nil {
		return nil, err
	}
	return &Events{Events: list.Events, Sequence: a.sequence(), Raw: a.body}, nil
}

// BatchMax is how many items a BatchRequest may have, and BatchBytesMax how many bytes in all.
const (
	BatchMax      = 10_000
	BatchBytesMax = 16 << 20
)

// BatchRequest asks for many events and creates at once.
type BatchRequest struct {
	// Items are JSON objects: {workflowId, instanceId, event: {name, data, id}} is an event, and {workflowId, data:
	// {svcPublic, svcPrivate}} a create. Those of one instance are done in their order.
	Items []json.RawMessage
	// Key is the idempotency key of the whole batch, as in CreateRequest: with it the
	// same items are done once, however often they are sent.
	Key string
}

// BatchResult is what one item was answered: Status 200 with the other members up to
// Sequence, or another status with Code and Message.
type BatchResult struct {
	Status     int    `json:"status"`
	WorkflowID string `json:"workflowId,omitempty"`
	InstanceID string `json:"instanceId,omitempty"`
	Sequence   uint64 `json:"sequence,omitempty"`
	Created    bool   `json:"created,omitempty"` // an event to a business key has created the instance
	Code       string `json:"error,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Err is nil for an item that was done, else an *Error.
func (r *BatchResult) Err() error {
	if r.Status == http.StatusOK {
		return nil
	}
	return &Error{Status: r.Status, Code: r.Code, Message: r.Message}
}

// Batch sends many events and creates. Each result stands where its item does, and is durable when Batch returns. An
// error is of the batch as a whole; it is one of those of Create. Items that were refused are tried again when the same
// batch is sent again with the same key.
func (c *Client) Batch(ctx context.Context, r BatchRequest) (results []BatchResult, err error) {
	defer asking(&err, "send a batch")
	var body bytes.Buffer
	body.WriteByte('[')
	for i, item := range r.Items {
		if i > 0 {
			body.WriteByte(',')
		}
		if !json.Valid(item) {
			return nil, invalid("item %d is not JSON", i+1)
		}
		body.Write(item)
	}
	body.WriteByte(']')
	if len(r.Items) > BatchMax || body.Len() > BatchBytesMax {
		return nil, invalid("a batch has at most %d items and %d bytes", BatchMax, BatchBytesMax)
	}
	if r.Key == "" {
		r.Key = NewKey()
	}
	if err := checkKey(r.Key); err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"events"}, key: r.Key, body: body.Bytes()})
	if err != nil {
		return nil, err
	}
	var reply struct{ Results []BatchResult }
	if err := decode(a.body, &reply); err != nil {
		return nil, err
	}
	if len(reply.Results) != len(r.Items) {
		return nil, ErrProtocol
	}
	return reply.Results, nil
}

// TasksRequest asks for a part of the caller's tasks.
type TasksRequest struct {
	Scope                     string // "mine", "open", "all" or "done"; empty is "all"
	WorkflowID, Filter, Query string // WorkflowID, Filter and Query narrow the list; empty: they do not
	Sort                      string // "due", "created", "priority" or "title", or one behind "-"; empty is "due"
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 50.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
	Count  bool   // Count asks for the number of all
}

// Tasks returns one page of the caller's tasks. It may be shorter than the limit, also empty, and not the last.
func (c *Client) Tasks(ctx context.Context, r TasksRequest) (page *Page[api.Task], err error) {
	defer asking(&err, "list tasks")
	q := url.Values{}
	setUnlessZero(q, "scope", r.Scope)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	setUnlessZero(q, "filter", r.Filter)
	setUnlessZero(q, "q", r.Query)
	setUnlessZero(q, "sort", r.Sort)
	if r.Count {
		q.Set("count", "true")
	}
	var list api.TaskList
	raw, err := c.list(ctx, []string{"tasks"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Tasks, textOf(list.Next), list.Count, raw, err)
}

// TasksPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) TasksPages(ctx context.Context, r TasksRequest) iter.Seq2[*Page[api.Task], error] {
	return pages(&r.Cursor, func() (*Page[api.Task], error) { return c.Tasks(ctx, r) })
}

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
	t.Raw, err = c.get(ctx, []string{"task", taskID}, nil, &t.Task)
	return unless(err, t)
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
	t = &Task{}
	t.Raw, err = c.post(ctx, []string{"task"}, api.TaskRequest{TaskID: taskID, Action: action, To: to}, &t.Task)
	return unless(err, t)
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
	var reply api.CommentReply
	_, err = c.ask(ctx, &request{method: http.MethodPost, path: []string{"instance", workflowID, instanceID, "comments"}, key: NewKey(), body: body}, &reply)
	return unless(err, &reply.Comment)
}

// ActivityRequest asks for a part of what has happened to an instance.
type ActivityRequest struct {
	WorkflowID, InstanceID string
	OldestFirst            bool // otherwise the newest come first
	// From is the history entry that the first page begins with, with OldestFirst. 0: the first.
	From uint64
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Activity returns one page of what has happened to an instance.
func (c *Client) Activity(ctx context.Context, r ActivityRequest) (page *Page[api.Activity], err error) {
	defer asking(&err, "activity of %s/%s", r.WorkflowID, r.InstanceID)
	if err := checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	q := url.Values{}
	if r.OldestFirst {
		q.Set("order", "asc")
	}
	if r.From > 0 {
		q.Set("from", strconv.FormatUint(r.From, 10))
	}
	var list api.ActivityList
	raw, err := c.list(ctx, []string{"instance", r.WorkflowID, r.InstanceID, "activity"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Activity, textOf(list.Next), nil, raw, err)
}

// ActivityPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) ActivityPages(ctx context.Context, r ActivityRequest) iter.Seq2[*Page[api.Activity], error] {
	return pages(&r.Cursor, func() (*Page[api.Activity], error) { return c.Activity(ctx, r) })
}
