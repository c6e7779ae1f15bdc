package instance

import (
	"errors"
	"slices"

	"troupe/actors/failure"
	"troupe/actors/internal/businesskey"
	"troupe/actors/message"
	"troupe/actors/past"
	"troupe/actors/retention"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// ErrUnread: nothing keeps the reset from being done, and what the instance was then must be found out. It never leaves the router.
var ErrUnread = errors.New("what the instance was then is to be read")

// Reset is the request of Router.Reset. Its error is ErrUnread when nothing refuses it and something is missing that is not found out in the
// turn of the instance: Then, or a hold on the business key that the instance takes back. Done is called when it is known what happened to it.
type Reset struct {
	*message.Reset
	Then *past.Moment
	// At is the instance, set with ErrUnread, and Key the business key that is held or, set with that, is to be; "" for none.
	At   *key.ID
	Key  *string
	Done func()
}

func (req Reset) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	first, err := i.firstReply(&message.Event{Caller: req.Caller, Retry: req.Retry, WithHistory: req.WithHistory})
	if err != nil {
		return err
	}
	a, err := i.visible(&req.Load)
	c.byPrivilege = req.ByPrivilege
	switch {
	case first != nil:
		i.deliver(c, first)
		return nil
	case err != nil:
		return err
	case req.IfMatch != nil && !slices.Contains(req.IfMatch, i.state.Sequence):
		return failure.ErrPrecondition
	case req.To > i.state.Sequence:
		return failure.Refuse(failure.ErrNotFound, "the history has %d entries", i.state.Sequence)
	case req.Then == nil, i.state.State.IsOver() && *req.Key != i.state.Key():
		if *req.At = i.id; i.state.State.IsOver() {
			*req.Key = i.state.Key()
		}
		return ErrUnread
	}
	of := req.Then.Of
	result, err := of.Reset(&i.state, statemachine.Reset{Then: &req.Then.Instance, To: req.To, Reason: req.Reason, Caller: a.as, Now: a.now})
	if err != nil {
		return i.undone(err, statemachine.ResetEvent, a.as.ID)
	}
	if err := i.mayAdd(&result); err != nil {
		return err
	}
	ch := &change{outcome: outcomeOf(&result), cause: cause{caller: a.as.ID, retry: req.Retry}}
	if of != i.of {
		ch.of = of
	}
	if ch.gone, err = i.revive(&result.Instance); err != nil {
		return err
	}
	if i.hasOwnSteps {
		i.env.Steps.Calm(i.id)
		i.hasOwnSteps = false
	}
	i.env.Counts.Events.Add(1)
	return i.commit(c, ch, req.WithHistory)
}

// revive returns the rows that go when an instance that is over goes on: failure.ErrKeyTaken when another one has its business key by now.
func (i *Actor) revive(next *statemachine.Instance) (gone [][]byte, err error) {
	if !i.state.State.IsOver() || next.State.IsOver() {
		return nil, nil
	}
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	if business := i.state.Key(); business != "" {
		other, found, err := businesskey.Find(store, i.shard, i.workflowID, business)
		if err != nil {
			return nil, err
		}
		if found && other != i.id {
			return nil, failure.Refuse(failure.ErrKeyTaken, "another instance of %s has the key %s by now", i.workflowID, data.Quote(business))
		}
	}
	return retention.Rows(store, i.shard, i.workflowID, i.id)
}

func (req Reset) span() *trace.Span { return below(req.Span, "reset", req.WorkflowID, req.InstanceID) }

func (req Reset) traits() traits { return traits{done: req.Done} }
