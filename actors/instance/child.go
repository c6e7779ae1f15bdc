package instance

import (
	"errors"
	"slices"
	"time"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/invoke"
	"troupe/actors/pace"
	"troupe/persistence"
	"troupe/statemachine"
)

// CreateUnasked is the request of that. Its actor is new. done is called when it is known what became of it.
type CreateUnasked struct {
	Turn   *pace.Turn               // nil: nobody is asked to rest behind it
	Of     statemachine.Creation    // without ID and Now
	Writes func(*persistence.Batch) // what else is in the commit; nil: nothing
	May    func() error             // asked before it is created; nil: nobody is
	Done   func()
}

func (req CreateUnasked) run(i *Actor, c *Call) error {
	defer req.Turn.Done(time.Now())
	of := req.Of
	of.ID, of.Now, of.Internal = i.name, i.env.Clock(), true
	result, err := i.of.Create(of)
	if err != nil {
		return i.undone(err, "", of.Caller.Name())
	}
	i.log(result.Logs)
	i.env.Counts.Creates.Add(1)
	return i.commit(c, &change{
		next: result.Instance, entry: result.Entry, hasEntry: true, out: result.Deliveries, caller: result.Entry.User, created: true, writes: req.Writes,
	}, false)
}

// SenderOf is the question what the sender of a message knows, and, where that is a parent, of a child. It is written before the answer.
type SenderOf struct {
	Part statemachine.ElementID
	*invoke.Sender
}

func (req SenderOf) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	req.Version, req.Parent = i.of.Version, i.state.Parent()
	req.Wants = slices.ContainsFunc(i.state.Children(), func(k statemachine.Child) bool { return k.ID == req.Part && k.Status == statemachine.ChildRuns })
	i.deliver(c, nil)
	return nil
}

// Inside is the request to take a message of a parent or child.
type Inside struct {
	*child.Message
	Turn *pace.Turn
}

func (req Inside) run(i *Actor, c *Call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	defer req.Turn.Done(time.Now())
	if req.News != nil {
		output, err := child.Value(req.News.Output)
		if err != nil {
			return failure.Refuse(failure.ErrInvalid, "%w", err)
		}
		return i.hearNotice(c, req.ElementID(), req.News.Failed, child.Brought(req.From, "output", output), nil)
	}
	if parent := i.state.Parent(); !req.IsForParent() && (parent == nil || parent.Instance != req.From.Instance || parent.Child != req.ElementID()) {
		i.deliver(c, nil) // it is nobody's, or another one's
		return nil
	}
	if req.Event != nil {
		return i.hear(c, req.Message)
	}
	result, err := i.of.Cancel(&i.state, req.End.By, i.env.Clock())
	if errors.Is(err, statemachine.ErrEnded) || err == nil && result.Outcome == statemachine.Ignored {
		i.deliver(c, nil)
		return nil
	}
	if err != nil {
		return failure.OfStep(err)
	}
	return i.commitResult(c, &result, nil, 0)
}

// hear takes an event of a child or of the parent.
func (i *Actor) hear(c *Call, m *child.Message) error {
	h, now := m.Heard(), i.env.Clock()
	result, err := i.of.Hear(&i.state, h, now)
	return i.commitInternal(c, result, err, nil, func() (statemachine.Instance, error) {
		return i.of.FailHear(&i.state, h, now)
	})
}

func (req CreateUnasked) traits() traits { return traits{done: req.Done, creates: true} }
