package message

import (
	"time"

	"troupe/actors/activity"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/task"
	"troupe/statemachine"
)

// TaskAction is what somebody wants with a task.
type TaskAction string

// The words of the interface (gateway/INTERFACE.md, "Claiming tasks").
const (
	Claim   TaskAction = "claim"   // to have it
	Release TaskAction = "release" // to have it be nobody's
	Assign  TaskAction = "assign"  // to have it be somebody's
)

// TaskChange asks to change who has a task.
type TaskChange struct {
	Caller *identity.Principal
	TaskID string
	Action TaskAction
	// To has it then; only of Assign. Nil: there is no such user.
	To *identity.Principal
}

var (
	errNoCandidate  = failure.Refuse(failure.ErrInvalid, "a task is assigned to a user who may take it over and see its instance")
	errForOthers    = failure.Refuse(failure.ErrForbidden, "permission denied: the task is for others")
	errNotAssignees = failure.Refuse(failure.ErrForbidden, "only who has the task, or a holder of mod-workflows, assigns it: claim it first")
)

// Decide says who has the task then, and what that is. The errors are those of Router.ChangeTask.
func (req *TaskChange) Decide(of *task.Whole, t *statemachine.Task, now time.Time) (to string, kind activity.Kind, err error) {
	caller := catalog.CallerOf(req.Caller)
	if err := mayWork(of, t, caller, now, caller.OverridesClaims && req.Action != Claim); err != nil {
		return "", 0, err
	}
	switch req.Action {
	case Claim:
		return caller.ID, activity.Claimed, nil
	case Release:
		return "", activity.Released, nil
	}
	if t.Assignee != caller.ID && !caller.OverridesClaims {
		return "", 0, errNotAssignees
	}
	if req.To == nil {
		return "", 0, errNoCandidate
	}
	other := catalog.CallerOf(req.To)
	if !of.IsCandidate(t, other, now) || !of.MayRead(other, now) {
		return "", 0, errNoCandidate
	}
	return other.ID, activity.Assigned, nil
}

// mayWork asks whether a task is, or could be, the caller's: failure.ErrForbidden for who is no candidate, failure.ErrClaimed when
// somebody else has it. overrides: neither counts.
func mayWork(of *task.Whole, t *statemachine.Task, c *statemachine.Caller, now time.Time, overrides bool) error {
	switch {
	case overrides, t.Assignee != "" && t.Assignee == c.ID:
		return nil
	case !of.IsCandidate(t, c, now):
		return errForOthers
	case t.Assignee != "":
		return failure.ErrClaimed
	}
	return nil
}

// Comment asks to write a comment to an instance.
type Comment struct {
	Load
	// Text is not empty; its bounds are the caller's to hold (gateway/INTERFACE.md, "Comments").
	Text  string
	Retry Retry
	// Counted: by the caller's quota, already.
	Counted bool
}

// Activity asks for a page of what has happened to an instance.
type Activity struct {
	Load
	// OldestFirst, Limit and Cursor are those of activity.Request.
	OldestFirst bool
	Limit       int
	Cursor      string
}
