package request

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
	errNotAssignees = failure.Refuse(failure.ErrForbidden, "only who has the task, or a holder of mod-workflows, assigns it: claim it first")
)

// Decide says who has the task then, and what that is. The errors are those of Router.ChangeTask.
func (req *TaskChange) Decide(of *task.Whole, t *statemachine.Task, now time.Time) (to string, kind activity.Kind, err error) {
	caller := catalog.CallerOf(req.Caller)
	mine, candidate := t.Assignee == caller.ID && t.Assignee != "", of.Of.IsCandidate(of.State, t, caller, now)
	switch {
	case !mine && !candidate && !(caller.OverridesClaims && req.Action != Claim):
		return "", 0, failure.ErrForbidden
	case t.Assignee != "" && !mine && !(caller.OverridesClaims && req.Action != Claim):
		return "", 0, failure.ErrClaimed
	}
	switch req.Action {
	case Claim:
		return caller.ID, activity.Claimed, nil
	case Release:
		return "", activity.Released, nil
	}
	if !mine && !caller.OverridesClaims {
		return "", 0, errNotAssignees
	}
	if req.To == nil {
		return "", 0, errNoCandidate
	}
	other := catalog.CallerOf(req.To)
	if !of.Of.IsCandidate(of.State, t, other, now) || !of.MayRead(other, now) {
		return "", 0, errNoCandidate
	}
	return other.ID, activity.Assigned, nil
}

// Comment asks to write a comment to an instance.
type Comment struct {
	Load
	Text  string
	Retry Retry
	// Counted: by the caller's quota, already.
	Counted bool
}

// Activity asks for a page of what has happened to an instance.
type Activity struct {
	Load
	OldestFirst bool
	Limit       int
	Cursor      string
}
