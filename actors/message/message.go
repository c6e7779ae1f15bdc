// Package message is what callers ask of instances, and what they are answered: plain data, which the gateway fills in
// and the actors read, and who may have a task. It knows neither an actor nor a mailbox.
package message

import (
	"slices"
	"strconv"
	"time"

	"troupe/actors/activity"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/actors/pending"
	"troupe/actors/task"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Retry identifies a request that may be repeated. The zero value means that the caller gave no key.
type Retry struct {
	// Key is the Idempotency-Key or event.id: 1 to 255 visible ASCII characters.
	Key string
	// Fingerprint is a hash of what was asked; the same key with another fingerprint is failure.ErrKeyReused.
	Fingerprint [32]byte
}

// Create asks for a new instance.
type Create struct {
	Caller     *identity.Principal
	WorkflowID string
	// Public and Private are the objects of the body's data; absent when it had none. They are checked and compact.
	Public, Private data.Value
	// Form makes the instance a form; nil: it is none.
	Form  *form.Form
	Retry Retry
	// Refusal answers a new request; nil: it is done. A repetition still gets its first answer, while its caller has
	// the right to the workflow.
	Refusal error
	// NoQuota: quotas do not apply. It is for people at forms (group A).
	NoQuota bool
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool

	// Counted: the caller's quota has counted it. It is the router's, in another package.
	Counted bool
	Span    *trace.Span // of who asks; nil: nobody follows it
}

// May asks the workflow's rules of now whether the caller may create instances at all: failure.ErrForbidden.
func (req *Create) May(rules *statemachine.Definition, now time.Time) error {
	if rules.CreateRight(catalog.CallerOf(req.Caller), now) == statemachine.Denied {
		return failure.Refuse(failure.ErrForbidden, "permission denied: you may not create instances of %s (allow.create)", req.WorkflowID)
	}
	return nil
}

// Submit asks to submit a form. Its Refusal answers a new request; a repetition still gets its first answer.
type Submit struct {
	form.Request
	// Data is a checked, compact object.
	Data  data.Value
	Retry Retry
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
	Span        *trace.Span // of who asks; nil: nobody follows it
}

// Load asks for one instance.
type Load struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	WithHistory            bool
	At                     uint64 // the entry after which it is asked for; 0: as it is now

	// ByPrivilege is set with the answer: the caller is an operator who sees the instance only because of a privilege.
	ByPrivilege bool
	Looked
}

// Looked is what was looked up for a request on its way. The router writes it, so a request is asked once at a time.
type Looked struct {
	rules *statemachine.Definition // nil: nothing is looked up yet
	as    statemachine.Caller
}

// See notes the rules of the workflow as of now, and returns the caller as they see it.
func (l *Looked) See(rules *statemachine.Definition, caller *identity.Principal) *statemachine.Caller {
	l.rules = rules
	catalog.SetCaller(&l.as, caller)
	return &l.as
}

// Seen returns the rules and the caller as they see it; nil when nothing is looked up yet.
func (l *Looked) Seen() (*statemachine.Definition, *statemachine.Caller) {
	if l.rules == nil {
		return nil, nil
	}
	return l.rules, &l.as
}

// View is an instance as those see it who read it inside its actor. It is valid during the call.
type View struct {
	ID       key.ID
	Of       *statemachine.Definition
	Instance *statemachine.Instance
	// Form is nil when the instance is none. It never changes, so that it may be kept.
	Form *form.Form
}

// Events is what a caller may send to an instance now.
type Events struct {
	Sequence uint64
	// Of is the definition that the instance runs under.
	Of     *statemachine.Definition
	Events []statemachine.Available
}

// Permission is whether somebody may send an event to an instance, and why: sentences for those who run the service.
type Permission struct {
	Allowed bool
	Why     []string
}

// History asks for a part of an instance's history.
type History struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Limit is the most entries that the page may have, 1 to 1,000.
	Limit int
	// Cursor is Page.Next of the page before; empty is the first page.
	Cursor string
	// WithData asks for what the events brought.
	WithData bool
	// Descending: the newest entry comes first. A cursor is of one order.
	Descending bool
	// ByPrivilege is that of Load.
	ByPrivilege bool
}

// Page is a part of a history, in the order that was asked for.
type Page struct {
	// Entries is the JSON of the entries, joined by commas.
	Entries []byte
	// Next is the cursor of the next page; empty when there is none.
	Next string
}

// Migration gives an instance another version of its workflow.
type Migration struct {
	Plan   *statemachine.Plan
	Caller *statemachine.Caller
	// DryRun: nothing changes.
	DryRun bool
}

// Reset asks to have an instance become what it was after entry To of its history.
type Reset struct {
	Load
	To     uint64 // 1 or more
	Reason string // not empty; its bounds are the caller's to hold
	Retry  Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil means any.
	IfMatch []uint64
	Span    *trace.Span // of who asks; nil: nobody follows it
}

// Event asks to send one event to an instance.
type Event struct {
	Caller     *identity.Principal
	WorkflowID string
	InstanceID string
	// Key names the instance in place of InstanceID. If none has it, Create creates one with the event as its first;
	// nil: none is created.
	Key    string
	Create *Create
	Name   string
	// ID is event.id as given; expressions can see it.
	ID string
	// Data is event.data: a checked, compact object; absent when there is none.
	Data  data.Value
	Retry Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil means any.
	IfMatch []uint64
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
	Span        *trace.Span // of who asks; nil: nobody follows it

	// Counted: the caller's quota has counted it. It and what follows are set on the way.
	Counted bool
	Looked
}

// May asks the workflow's rules of now whether the caller may send events at all, and notes them: failure.ErrForbidden.
func (req *Event) May(rules *statemachine.Definition, now time.Time) error {
	if rules.SendRight(req.See(rules, req.Caller), now) == statemachine.Denied {
		return failure.Refuse(failure.ErrForbidden, "permission denied: you may not send events to instances of %s (allow.send)", req.WorkflowID)
	}
	return nil
}

// Draft asks to keep a draft, or to drop it.
type Draft struct {
	form.Request
	// Data is a checked, compact object; absent drops the draft.
	Data data.Value
	// Template is what the draft was written for; zero: unknown.
	Template form.Digest
	form.DraftCondition
	Span *trace.Span // of who asks; nil: nobody follows it

	// Saved is what the actor made of it.
	Saved form.Draft
}

// Recipient gets the answer to a request that was posted. Its methods must not block.
type Recipient interface {
	// Begin is called when the instance comes to the request; never for a create whose key was held or had an answer.
	// An error is the answer, and nothing is done.
	Begin(Turn) error
	// Refused is called when nothing was done, before the instance comes to its next request, and perhaps again;
	// Answered comes before or after it.
	Refused(err error)
	// Answered is called once; never when GiveUp has said failure.ErrBusy.
	Answered(reply *Reply, err error)
}

// Turn is when an instance comes to a request.
type Turn struct {
	// Shard is that of the instance.
	Shard uint16
	// Life is the same for requests of which none is done unless all before it are, or their outcome is not known; an
	// instance that is read again has another one. nil without replicas, where nobody comes to a request before what
	// happened to the one in front is told.
	Life any
}

// Reply is what an instance answers. Its bytes belong to the reader, but may be shared with other readers: they must
// not be changed.
type Reply struct {
	WorkflowID string
	InstanceID string
	// Sequence is the number of history entries: the entity tag.
	Sequence uint64
	// Public and Private are svcPublic and svcPrivate, States is the JSON array of states, and Redirect is svcRedirect;
	// "" when it is not set.
	Public, Private, States data.Value
	Redirect                string
	Key                     string // the business key; "" for none
	// ByKey: it answers an event with a Key. Created: that has created the instance.
	ByKey, Created bool
	// History is the JSON of the entries, separated by commas, without brackets. It is meant only when the request
	// asked WithHistory.
	History []byte
	// HistoryFrom is the number of the first entry in it: above 1 it is too long for an answer, and has the newest part.
	HistoryFrom uint64
	// WithHistory repeats what was asked.
	WithHistory bool
	// IsEnded: it was stopped, or its parent has cancelled it.
	IsEnded bool
	// ByPrivilege: it answers an event of an operator who could not read the instance without privileges.
	ByPrivilege bool
}

// AppendRecord appends the instance record (gateway/INTERFACE.md, "The record") as JSON to dst.
func (r *Reply) AppendRecord(dst []byte) []byte {
	size := len(r.Public) + len(r.Private) + len(r.States) + len(r.WorkflowID) + len(r.Redirect) + 192
	if r.WithHistory {
		size += len(r.History)
	}
	dst = append(slices.Grow(dst, size), '{')
	dst = r.AppendHead(dst)
	if r.WithHistory {
		dst = append(dst, `,"svcHistory":[`...)
		dst = append(dst, r.History...)
		dst = append(dst, ']')
		if r.HistoryFrom > 1 {
			dst = strconv.AppendUint(append(dst, `,"historyFrom":`...), r.HistoryFrom, 10)
		}
	}
	dst = append(dst, ',')
	dst = r.AppendTail(dst)
	return append(dst, '}')
}

// AppendHead appends the record's members before svcHistory, without a trailing comma.
func (r *Reply) AppendHead(dst []byte) []byte {
	dst = append(dst, `"_id":"`...)
	dst = append(dst, r.InstanceID...)
	dst = append(dst, `","workflowId":"`...)
	dst = append(dst, r.WorkflowID...)
	dst = append(dst, `","svcPublic":`...)
	dst = append(dst, r.Public...)
	dst = append(dst, `,"svcPrivate":`...)
	return append(dst, r.Private...)
}

// AppendTail appends the members behind it.
func (r *Reply) AppendTail(dst []byte) []byte {
	dst = append(dst, `"states":`...)
	dst = append(dst, r.States...)
	if r.Redirect != "" {
		dst = append(dst, `,"svcRedirect":`...)
		dst = data.AppendString(dst, r.Redirect)
	}
	if r.Key != "" {
		dst = append(dst, `,"key":`...)
		dst = data.AppendString(dst, r.Key)
	}
	if r.IsEnded {
		dst = append(dst, `,"cancelled":true`...)
	}
	return dst
}

// Pending is what an instance waits for.
type Pending struct {
	Timers     []Timer
	Jobs       []job.Listed
	Deliveries []pending.Delivery
	Children   []Child
	// Version is that of the definition that the instance runs under.
	Version uint64
	// IsDone: all its state machines have reached a final node. IsEnded: it was stopped, or its parent has cancelled it.
	IsDone, IsEnded bool
}

// Child is an instance that another one has invoked.
type Child struct {
	WorkflowID, InstanceID string
	Status                 statemachine.ChildStatus
}

// Timer is a timer of an instance.
type Timer struct {
	ID string
	statemachine.Timer
}

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
	// OfOther is set with the answer: an operator has changed what is not the operator's own.
	OfOther bool
}

var (
	errNoCandidate  = failure.Refuse(failure.ErrInvalid, "a task can be assigned only to users who can claim it and see its instance")
	errForOthers    = failure.Refuse(failure.ErrForbidden, "permission denied: you are not a candidate for this task")
	errNotAssignees = failure.Refuse(failure.ErrForbidden, "only the assignee or a holder of mod-workflows can assign the task: claim it first")
)

// Decide says who has the task then, and what that is. The errors are those of Router.ChangeTask.
func (req *TaskChange) Decide(of *task.Whole, t *statemachine.Task, now time.Time) (to string, kind activity.Kind, err error) {
	caller := catalog.CallerOf(req.Caller)
	if err := mayWork(of, t, caller, now, caller.OverridesClaims && req.Action != Claim); err != nil {
		return "", 0, err
	}
	req.OfOther = caller.OverridesClaims && req.Action != Claim && t.Assignee != caller.ID
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

// mayWork asks whether a task is, or could be, the caller's: failure.ErrForbidden for who is not a candidate,
// failure.ErrClaimed when somebody else has it. overrides: neither counts.
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
	// OldestFirst, From, Limit and Cursor are those of activity.Request.
	OldestFirst bool
	From        uint64
	Limit       int
	Cursor      string
}

// TaskForm names the form of a task that somebody fills in. What depends on the form's template the caller finds out before.
type TaskForm struct {
	Caller *identity.Principal
	// Task has the template for which Refusal was found out.
	Task *task.FormName
	// Refusal is why nobody can write this now; nil: it can be written.
	Refusal error
	Span    *trace.Span // of who asks; nil: nobody follows it
}

// Find returns the task, if it is there with its form: failure.ErrNotFound when it has gone, failure.ErrNotAllowed when
// it has another form by now.
func (req *TaskForm) Find(in *statemachine.Instance) (*statemachine.Task, error) {
	t := task.Find(in, req.Task.Task)
	switch {
	case t == nil, t.Form == "":
		return nil, failure.ErrNotFound
	case t.Form != req.Task.Form:
		return nil, failure.Errorf(failure.ErrNotAllowed, "the form of the task has changed")
	}
	return t, nil
}

// MayFill asks whether the caller may fill in the form: failure.ErrForbidden for who is not a candidate,
// failure.ErrClaimed when the task is assigned to someone else.
func (req *TaskForm) MayFill(of *task.Whole, t *statemachine.Task, now time.Time) error {
	c := catalog.CallerOf(req.Caller)
	return mayWork(of, t, c, now, c.OverridesClaims)
}

// TaskView is a task with its form, at one moment.
type TaskView struct {
	Item     *task.Item
	Of       *statemachine.Definition // that of the instance
	Sequence uint64
	Public   data.Value
	// States is the JSON of the positions.
	States []byte
	// Editable: the caller may keep a draft now, and the task offers the caller some event.
	Editable bool
	// Draft is the caller's; nil when there is none.
	Draft *form.Draft
	// ByPrivilege is that of Load.
	ByPrivilege bool
}

// TaskDraft asks to keep a draft for a task, or to drop it.
type TaskDraft struct {
	TaskForm
	// Data is a checked, compact object; absent drops the draft.
	Data data.Value
	// Template is what the draft was written for; zero: unknown.
	Template form.Digest
	form.DraftCondition
}

// TaskSubmit asks to send what was filled in. Its Refusal answers a new request; a repetition still gets its first answer.
type TaskSubmit struct {
	TaskForm
	// Event is one of those that complete the task.
	Event string
	// Data is a checked, compact object.
	Data  data.Value
	Retry Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil means any.
	IfMatch []uint64
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
}
