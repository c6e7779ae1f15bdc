package api

import "encoding/json"

// Task is work for people that an instance waits for.
type Task struct {
	TaskID         string     `json:"taskId"`
	WorkflowID     string     `json:"workflowId"`
	InstanceID     string     `json:"instanceId"`
	StateMachineID string     `json:"stateMachineId"`
	NodeID         string     `json:"nodeId"`
	Title          string     `json:"title"`       // Title and Description are in the reader's language
	Description    *string    `json:"description"` // nil: none
	Status         string     `json:"status"`      // "open", "claimed" or "done"
	Created        string     `json:"created"`
	Due            *string    `json:"due"` // nil: never
	Priority       int        `json:"priority"`
	Assignee       *string    `json:"assignee"` // Assignee has the task; nil: nobody
	AssigneeName   *string    `json:"assigneeName"`
	Candidates     Candidates `json:"candidates"`
	// Requester has created the instance; nil: the caller may not know.
	Requester     *string     `json:"requester"`
	RequesterName *string     `json:"requesterName"`
	Form          *string     `json:"form"`   // the template of a form for the data of the events; nil: none
	Events        []TaskEvent `json:"events"` // what the caller may send now to complete it
	// Done says who has completed a task, when, and with which event; nil while it is open.
	Done *TaskEnd `json:"done"`
}

// Candidates are who may take a task over: anyone who has one of the roles or privileges, or is one of the users.
type Candidates struct {
	Roles      []string `json:"roles"`
	Users      []string `json:"users"`
	Privileges []string `json:"privileges"`
}

// TaskEvent is an event that completes a task.
type TaskEvent struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Style string `json:"style"`
}

// TaskEnd is how somebody has completed a task.
type TaskEnd struct {
	User     string `json:"user"`
	UserName string `json:"userName"`
	Event    string `json:"event"`
	TS       string `json:"ts"`
}

// TaskList answers GET tasks.
type TaskList struct {
	Tasks []Task  `json:"tasks"`
	Next  *string `json:"next"`
	Count *int64  `json:"count"` // nil when it was not asked for, or would have taken too long
}

// TaskRequest asks POST task to change who has a task.
type TaskRequest struct {
	TaskID string `json:"taskId"`
	Action string `json:"action"` // "claim", "release" or "assign"
	To     string `json:"to,omitempty"`
}

// TasksWatched is the data of an event of GET tasks/watch: all tasks of an instance that the caller has or may take over.
type TasksWatched struct {
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
	Tasks      []Task `json:"tasks"`
}

// CommentRequest asks to comment on an instance.
type CommentRequest struct {
	Text string `json:"text"`
}

// Comment is what somebody has written beside a history.
type Comment struct {
	User     string `json:"user"`
	UserName string `json:"userName"`
	Text     string `json:"text"`
	TS       string `json:"ts"`
}

// CommentReply answers POST instance/{workflowId}/{instanceId}/comments.
type CommentReply struct {
	Comment Comment `json:"comment"`
}

// Activity is something that has happened to an instance. Kind says which of the other members there are.
type Activity struct {
	Kind     string  `json:"kind"` // "history", "comment", "task", "timer" or "delivery"
	TS       string  `json:"ts"`
	User     *string `json:"user"` // nil: nobody
	UserName *string `json:"userName"`

	Sequence        uint64          `json:"sequence,omitempty"` // Of a history entry
	StartState      []string        `json:"startState,omitempty"`
	TransitionEvent *string         `json:"transitionEvent,omitempty"`
	EndState        []string        `json:"endState,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	DataDigest      json.RawMessage `json:"dataDigest,omitempty"`
	Attempt         bool            `json:"attempt,omitempty"` // nothing took the event

	Text string `json:"text,omitempty"` // of a comment

	Action         string  `json:"action,omitempty"` // Of a task that was claimed, released or assigned
	TaskID         string  `json:"taskId,omitempty"`
	StateMachineID string  `json:"stateMachineId,omitempty"`
	NodeID         string  `json:"nodeId,omitempty"`
	To             *string `json:"to,omitempty"`
	ToName         *string `json:"toName,omitempty"`

	Timer    *Timer           `json:"timer,omitempty"`
	Delivery *PendingDelivery `json:"delivery,omitempty"`
}

// ActivityList answers GET instance/{workflowId}/{instanceId}/activity.
type ActivityList struct {
	Activity []Activity `json:"activity"`
	Next     *string    `json:"next"`
}
