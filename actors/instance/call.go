package instance

import (
	"errors"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/trace"
	"troupe/actors/watch"
	"troupe/persistence"
)

// Request is a request to an instance: a type with a method run. Each file has those of one subject.
type Request interface {
	// run carries it out inside receive. It answers c, hands it to the journal, or returns why nothing was done.
	run(i *Actor, c *Call) error
}

// Call is one request on its way through an instance's mailbox, and the place for its answer.
//
// It is answered once: by the actor when it is refused or needs no commit, by the journal when the commit is durable;
// not at all when its caller has abandoned it. end releases the activation in each case.
type Call struct {
	request    Request
	activation *Activation

	// Written by the actor before it hands the call to the journal:

	prepared *message.Reply // the answer that leaves when the commit is durable
	refusal  error          // leaves instead
	notices  *notices       // for others than the caller; nil: none
	span     *trace.Span    // nil: nobody follows the request
	commit   wait.Reader    // under way since catalog.BeginCommit

	byPrivilege bool // that of the reply

	// replies has room for one, so that an answer never waits for a caller who gave up. It is nil with a recipient, who
	// gets the answer instead.
	replies   chan Answer
	recipient message.Recipient
	is        traits
	// taken says who owns the outcome: see the constants.
	taken atomic.Int32
}

// notices are what most commits do not have.
type notices struct {
	// feeds get the items when the commit is durable.
	feeds []*watch.Feed
	items []*watch.Item
	// began is the earliest deadline of the timers that begin with the commit; zero for none.
	began time.Time
	// sent are the queues of what the commit sends out, and sentAt is when its first attempts are due.
	sent   []string
	sentAt time.Time
	jobs   []job.Change // what it changes in jobs
	// tasks are those that the commit changes, for who watches them.
	tasks []*task.Change
}

func (c *Call) withNotices() *notices {
	if c.notices == nil {
		c.notices = &notices{}
	}
	return c.notices
}

// A call starts as waiting; the actor makes it running, or the caller, who cannot wait any longer, makes it abandoned.
// Only one of them succeeds, so a caller who gave up knows whether anything can still happen.
const (
	waiting int32 = iota
	running
	abandoned
)

// Answer is what a call came to.
type Answer struct {
	Reply *message.Reply
	Err   error
}

// Post sends a request that Acquire has admitted to the actor. A recipient gets the answer, and otherwise Answer has it.
func (a *Activation) Post(m Request, to message.Recipient) *Call {
	c := &Call{request: m, activation: a, recipient: to}
	if m, ok := m.(special); ok {
		c.is = m.traits()
	}
	if m, ok := m.(followed); ok {
		c.span = m.span()
	}
	if to == nil {
		c.replies = make(chan Answer, 1)
	}
	a.process.SendUserMessage(a.pid, c)
	return c
}

// Answer has the answer when it is there. NB: protoactor's Future races with a late one.
func (c *Call) Answer() <-chan Answer { return c.replies }

// traits are what a call must know of some requests.
type traits struct {
	// done is called when it is known what happened to the request; nil: nobody waits for that.
	done func()
	// creates: there is no instance unless it succeeds. deletes: there is none when it does. reads: it changes nothing,
	// so no outcome is unknown.
	creates, deletes, reads bool
}

type special interface{ traits() traits }

// followed are requests that may be a part of a trace: span begins theirs, which has their time in the mailbox too.
type followed interface{ span() *trace.Span }

// begin is the actor's side: false when the caller has gone.
func (c *Call) begin() bool { return c.taken.CompareAndSwap(waiting, running) }

// answer ends the call. What the call holds is free before the caller knows, so that nobody meets a call of their own
// that was answered already.
func (c *Call) answer(r *message.Reply, err error) {
	c.span.End(err)
	if r != nil {
		r.ByPrivilege = c.byPrivilege
	}
	c.end()
	if c.is.creates && err != nil || c.is.deletes && err == nil {
		a := c.activation
		a.Passivate() // there is no such instance: nobody will ask for this id
	}
	if c.recipient != nil {
		c.recipient.Answered(r, err)
		return
	}
	c.replies <- Answer{r, err}
}

// notApplied tells a recipient early that nothing is done, and why.
func (c *Call) notApplied(err error) {
	if c.recipient != nil {
		c.recipient.Refused(err)
	}
}

func (c *Call) end() {
	if c.is.done != nil {
		c.is.done()
	}
	c.activation.release()
}

// Applied implements persistence.VisibleWaiter: a Publish, which waits for commits that are under way, sees what this
// one wrote.
func (c *Call) Applied() {
	c.endCommit()
	if c.notices != nil {
		c.activation.lead.tell(c.activation.instance, c.notices)
	}
}

func (n *notices) publish(err error) {
	for _, f := range n.feeds {
		switch {
		case err == nil:
			for _, item := range n.items {
				f.Publish(item)
			}
		case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, persistence.ErrLost):
			f.Publish(&watch.Item{Gap: true})
		}
	}
}

// endCommit ends the commit that is under way, if there is one.
func (c *Call) endCommit() {
	if c.commit != (wait.Reader{}) {
		c.activation.lead.Catalog.EndCommit(c.commit)
		c.commit = wait.Reader{} // NB: an answer that waits for the journal is told Applied, too
	}
}

// Committed implements persistence.Waiter: the journal says whether what the prepared reply shows is durable.
func (c *Call) Committed(err error) {
	c.span.Committed(err)
	if errors.Is(err, persistence.ErrOutcomeUnknown) {
		// NB: the instance stays uncommitted and awake: its state must not be shown as durable before it is, and the
		// store may not have it. Nor may a create be tried again, or its definition go, before it is visible.
		c.activation.pending.Add(1)
		c.activation.barrier(unsettled{c.activation, c.is.done})
		c.is.done = nil
	} else {
		c.activation.uncommitted.Add(-1)
	}
	if err != nil && !c.activation.lead.Store.Standalone() {
		c.endCommit()                    // NB: if the next leader has it all the same, it stands before all that this one may write
		if c.activation.lead.IsStale() { // NB: else it was refused here, and earlier ones may be on their way
			c.activation.lead.End()
		}
	}
	if c.notices != nil {
		c.notices.publish(err)
		c.activation.lead.publishTasks(c.notices.tasks, err)
	}
	switch {
	case err == nil:
		c.answer(c.prepared, c.refusal)
	case errors.Is(err, persistence.ErrNotLed):
		c.answer(nil, failure.OfStore(err))
	case c.refusal != nil: // nothing was done
		c.answer(nil, failure.ErrUnavailable)
	case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, persistence.ErrLost):
		c.answer(nil, c.undecided())
	default:
		c.answer(nil, failure.OfStore(err))
	}
}

// unsettled waits for the end of a commit whose outcome is unknown.
type unsettled struct {
	activation *Activation
	done       func() // of a create
}

// Committed implements persistence.Waiter. Any other error means that the store is closed: nothing is shown any more.
func (u unsettled) Committed(err error) {
	if errors.Is(err, persistence.ErrOutcomeUnknown) {
		u.activation.barrier(u)
		return
	}
	if err == nil { // what was in front is durable too
		u.activation.uncommitted.Add(-1)
	}
	if err == nil || u.activation.evicted.Load() {
		u.activation.Free()
	}
	if u.done != nil {
		u.done()
	}
}

// undecided is the answer when the journal did not answer in time.
func (c *Call) undecided() error {
	if c.is.reads {
		return failure.ErrUnavailable // a read has no outcome to be in doubt about
	}
	return failure.ErrOutcomeUnknown
}

var _ persistence.VisibleWaiter = (*Call)(nil)

// GiveUp is the caller's end of a call that is not answered in time.
func (c *Call) GiveUp() error {
	if c.taken.CompareAndSwap(waiting, abandoned) {
		return failure.ErrBusy
	}
	return c.undecided()
}

// EventOf is the name of the event that a message to an instance brings; "" for others.
func EventOf(message any) string {
	if c, ok := message.(*Call); ok {
		if e, ok := c.request.(interface{ eventName() string }); ok {
			return e.eventName()
		}
	}
	return ""
}

// tell tells the timers, the jobs and the outbox of what a visible commit of an instance has added.
func (e *Env) tell(i *Actor, n *notices) {
	if !n.began.IsZero() {
		e.Timers.Began(i.shard, n.began)
	}
	if len(n.jobs) > 0 {
		e.Jobs.Changed(i.shard, n.jobs)
	}
	if e.Outbox == nil {
		return
	}
	for _, queue := range n.sent {
		e.Outbox.Began(i.shard, i.workflowID, queue, n.sentAt)
	}
}

// publishTasks tells who watches tasks what happened to a commit that changes some.
func (e *Env) publishTasks(changes []*task.Change, err error) {
	switch {
	case len(changes) == 0:
	case err == nil:
		for _, change := range changes {
			e.Tasks.Changed(change)
		}
	case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, persistence.ErrLost):
		e.Tasks.Missed()
	}
}
