package workflow

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/grace"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/watch"
	"troupe/persistence"
)

// request is a request to an instance.
type request interface {
	// run carries it out inside receive. It answers c, hands it to the journal, or
	// returns why nothing was done.
	run(i *instance, c *call) error
}

// call is one request on its way through an instance's mailbox, and the place
// for its answer.
//
// It is answered once: by the actor when it is refused or needs no commit, by the journal
// when the commit is durable; not at all when its caller has abandoned it. end releases
// the activation in each case.
type call struct {
	request    request
	activation *activation
	// prepared is the answer that leaves when the commit is durable. Written
	// by the actor before it hands the call to the journal.
	prepared *message.Reply
	// refusal is the error that leaves instead. Written like prepared.
	refusal error
	// news is for others than the caller; nil: none. Written like prepared.
	news *news
	// replies has room for one, so that an answer never waits for a caller who
	// gave up. It is nil with a recipient, who gets the answer instead.
	replies   chan answer
	recipient message.Recipient
	// done gives back what a create or a migration holds.
	done func()
	// commit is under way since catalog.BeginCommit. Written like prepared.
	commit grace.Reader
	// taken says who owns the outcome: see the constants.
	taken atomic.Int32
}

// news is what most commits do not have.
type news struct {
	// feeds get item when the commit is durable.
	feeds []*watch.Feed
	item  *watch.Item
	// began is the earliest deadline of the timers that begin with the commit; zero for none.
	began time.Time
	// sent are the queues of what the commit sends out, and sentAt is when its first attempts are due.
	sent   []string
	sentAt time.Time
	// tasks are those that the commit changes, for who watches them.
	tasks *task.Change
}

// withNews returns the news of the call, to be added to.
func (c *call) withNews() *news {
	if c.news == nil {
		c.news = &news{}
	}
	return c.news
}

// A call starts as waiting; the actor makes it running, or the caller, who
// cannot wait any longer, makes it abandoned. Only one of them succeeds, so a
// caller who gave up knows whether anything can still happen.
const (
	waiting int32 = iota
	running
	abandoned
)

type answer struct {
	reply *message.Reply
	err   error
}

func newCall(a *activation, m request, to message.Recipient) *call {
	c := &call{request: m, activation: a, recipient: to}
	c.done, _ = creates(m)
	if to == nil {
		c.replies = make(chan answer, 1)
	}
	return c
}

// creates reports whether a request makes its instance, and what is to be done when the request has ended; nil for nothing.
func creates(m request) (done func(), ok bool) {
	switch m := m.(type) {
	case createInstance:
		return m.done, true
	case createUnasked:
		return m.done, true
	case migrateInstance:
		return m.done, false
	}
	return nil, false
}

// begin is the actor's side: false when the caller has gone.
func (c *call) begin() bool { return c.taken.CompareAndSwap(waiting, running) }

// answer ends the call. What the call holds is free before the caller knows, so
// that nobody meets a call of their own that was answered already.
func (c *call) answer(r *message.Reply, err error) {
	c.end()
	_, create := creates(c.request)
	if _, deletes := c.request.(deleteInstance); create && err != nil || deletes && err == nil {
		a := c.activation
		a.router.letSleep(a, math.MaxInt64) // there is no such instance: nobody will ask for this id
	}
	if c.recipient != nil {
		c.recipient.Answered(r, err)
		return
	}
	c.replies <- answer{r, err}
}

// notApplied tells a recipient early that nothing is done, and why.
func (c *call) notApplied(err error) {
	if c.recipient != nil {
		c.recipient.Refused(err)
	}
}

// end gives back what the call holds.
func (c *call) end() {
	if c.done != nil {
		c.done()
	}
	c.activation.release()
}

// Applied implements persistence.VisibleWaiter: a Publish, which waits for commits that
// are under way, sees what this one wrote.
func (c *call) Applied() {
	c.endCommit()
	if c.news != nil {
		c.activation.router.tellServices(c)
	}
}

// publish tells those who watch.
func (n *news) publish(err error) {
	for _, f := range n.feeds {
		switch {
		case err == nil:
			f.Publish(n.item)
		case errors.Is(err, persistence.ErrOutcomeUnknown), errors.Is(err, persistence.ErrLost):
			f.Publish(&watch.Item{Gap: true})
		}
	}
}

// endCommit ends the commit that is under way, if there is one.
func (c *call) endCommit() {
	if c.commit != (grace.Reader{}) {
		c.activation.router.catalog.EndCommit(c.commit)
		c.commit = grace.Reader{} // NB: an answer that waits for the journal is told Applied, too
	}
}

// Committed implements persistence.Waiter: the journal says whether what the
// prepared reply shows is durable.
func (c *call) Committed(err error) {
	if errors.Is(err, persistence.ErrOutcomeUnknown) {
		// NB: the instance stays uncommitted and awake: its state must not be shown
		// as durable before it is, and the store may not have it.
		// Nor may a create be tried again, or its definition go, before it is visible.
		c.activation.pending.Add(1)
		c.activation.barrier(unsettled{c.activation, c.done})
		c.done = nil
	} else {
		c.activation.uncommitted.Add(-1)
	}
	if err != nil && !c.activation.router.store.Alone() {
		c.endCommit()              // NB: if the next leader has it all the same, it stands before all that this one may write
		if c.activation.isOver() { // NB: else it was refused here, and earlier ones may be on their way
			c.activation.abandon()
		}
	}
	if c.news != nil {
		c.news.publish(err)
		c.activation.router.publishTasks(c.news.tasks, err)
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
	activation *activation
	done       func() // of a create
}

// Committed implements persistence.Waiter. Any other error means that the store is
// closed: nothing is shown any more.
func (u unsettled) Committed(err error) {
	if errors.Is(err, persistence.ErrOutcomeUnknown) {
		u.activation.barrier(u)
		return
	}
	if err == nil { // what was in front is durable too
		u.activation.uncommitted.Add(-1)
		u.activation.pending.Add(-1)
	}
	if u.done != nil {
		u.done()
	}
}

// undecided is the answer when the journal did not answer in time.
func (c *call) undecided() error {
	switch c.request.(type) {
	case loadInstance, inspect:
		return failure.ErrUnavailable // a read has no outcome to be in doubt about
	}
	return failure.ErrOutcomeUnknown
}

var _ persistence.VisibleWaiter = (*call)(nil)

// wait returns the answer, or an error when it does not come in time. It does
// not look at the request's context: the outcome is decided within
// milliseconds, and a caller who leaves early would only not hear of it.
func (r *Router) wait(c *call) (*message.Reply, error) {
	var deadline time.Time
	for {
		ticked := r.ticks()
		select {
		case a := <-c.replies:
			return a.reply, a.err
		case <-ticked:
		}
		now := time.Now()
		switch {
		case deadline.IsZero():
			deadline = now.Add(r.o.ReplyWaitMax - time.Second)
		case now.After(deadline):
			return nil, c.giveUp()
		}
	}
}

// giveUp is the caller's end of a call that is not answered in time.
func (c *call) giveUp() error {
	if c.taken.CompareAndSwap(waiting, abandoned) {
		return failure.ErrBusy
	}
	return c.undecided()
}
