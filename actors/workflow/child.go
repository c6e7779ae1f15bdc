package workflow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/invoke"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/schedule"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// deliverInside implements outbox.Options.Inside.
func (r *Router) deliverInside(ctx context.Context, key key.Delivery, row *outbox.Delivery) outbox.Answer {
	m, err := child.Parse(row.Body)
	if err != nil {
		return outbox.Answer{Err: err, Final: true}
	}
	m.From = child.Ref{Workflow: row.Workflow, Instance: instanceid.Text(key.ID)}
	if m.Start != nil || m.Event != nil {
		var sender invoke.Sender
		if _, err := r.ask(m.From.Workflow, m.From.Instance, senderOf{m.PartID(), &sender}); err != nil && !errors.Is(err, failure.ErrNotFound) {
			return outbox.Answer{Err: err}
		}
		if m.Start != nil && !sender.Wants { // its node was left meanwhile: what it would create is cancelled already
			return outbox.Answer{}
		}
		if err := r.invokes.Prepare(ctx, &m, &sender); err != nil {
			return outbox.Answer{Err: err, Final: errors.Is(err, failure.ErrForbidden)}
		}
	}
	m.SetMark(key)
	refused, err := r.Inside(ctx, &m)
	if errors.Is(err, failure.ErrElsewhere) && r.o.Elsewhere != nil {
		refused, err = r.o.Elsewhere(ctx, failure.Of(err).Shard, &m)
	}
	if err == nil && refused != "" {
		return outbox.Answer{Err: errors.New(refused), Final: true}
	}
	return outbox.Answer{Err: err}
}

// Inside carries out a message between a parent and its child where the shard of its instance is led, else failure.ErrElsewhere. It
// may be carried out again and again. refused says why it never will be.
func (r *Router) Inside(ctx context.Context, m *child.Message) (refused string, err error) {
	if err := m.Check(); err != nil {
		return err.Error(), nil
	}
	if m.Join != nil {
		return r.invokes.Join(ctx, m.Join)
	}
	turn, err := r.work.Begin(ctx, m.From.Workflow)
	if err != nil {
		return "", err
	}
	defer turn.End()
	to := m.To()
	if m.Start != nil {
		err = r.startChild(m, turn)
	} else if _, err = r.ask(to.Workflow, to.Instance, inside{m, turn}); errors.Is(err, failure.ErrNotFound) {
		err = nil // who is not there needs no end and no news
	}
	if invoke.IsRefusal(err) {
		return failure.In("invoke", to.Workflow, err).Error(), nil
	}
	return "", err
}

// startChild creates a child, unless it is there.
func (r *Router) startChild(m *child.Message, turn *pace.Turn) error {
	id, ok := instanceid.Parse(m.Start.Child)
	if !ok {
		return failure.ErrNotFound
	}
	public, private, err := m.Start.Data()
	if err != nil {
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	req := createUnasked{turn: turn, of: statemachine.Creation{
		Public: public, Private: private,
		Parent: &statemachine.Parent{Workflow: m.From.Workflow, Instance: m.From.Instance, Child: m.PartID(), Depth: m.Start.Depth},
	}}
	req.may = func() error { return r.invokes.May(m, req.of) }
	return r.createUnasked(m.Start.To, m.Start.Version, id, req)
}

// createUnasked creates an instance that nobody has asked for, unless it is there.
func (r *Router) createUnasked(workflowID string, version uint64, id key.ID, req createUnasked) error {
	epoch, err := r.epochOf(r.store.ShardOf(id)) // NB: before anything of the shard is read
	if err == nil {
		err = r.accepting()
	}
	if err != nil {
		return err
	}
	ended := r.ended.Load()
	if _, err := r.loadLed(workflowID, id, epoch); !errors.Is(err, failure.ErrNotFound) {
		return err
	}
	if req.may != nil { // NB: behind that, because one that is there was created
		if err := req.may(); err != nil {
			return err
		}
	}
	pin, err := r.catalog.PinVersion(workflowID, version)
	if err != nil {
		return err
	}
	if err := r.admit(); err != nil {
		pin.Release()
		return err
	}
	req.done = pin.Release
	// NB: an actor that is there, or was until a moment ago, may have created it: look again later.
	err = failure.ErrBusy
	a, _ := r.awake.Compute(id, func(old *activation, loaded bool) (*activation, xsync.ComputeOp) {
		if loaded || r.ended.Load() != ended {
			return old, xsync.CancelOp
		}
		a := r.spawn(&instance{workflowID: workflowID, id: id, of: pin.Definition()}, epoch)
		err = a.acquire() // before the sweep can see it
		return a, xsync.UpdateOp
	})
	if err != nil {
		pin.Release()
		r.inFlight.Add(-1)
		return err
	}
	_, err = r.wait(r.send(a, req, nil))
	return err
}

// createUnasked is the request of that. Its actor is new. done is called when it is known what became of it.
type createUnasked struct {
	turn   *pace.Turn                // nil: nobody is asked to rest behind it
	of     statemachine.Creation     // without ID and Now
	writes func(*persistence.Writes) // what else is in the commit; nil: nothing
	may    func() error              // asked before it is created; nil: nobody is
	done   func()
}

func (req createUnasked) run(i *instance, c *call) error {
	defer req.turn.Done(time.Now())
	of := req.of
	of.ID, of.Now, of.ByItself = i.name, i.router.o.Clock(), true
	result, err := i.of.Create(of)
	if err != nil {
		return i.undone(err, "", of.Caller.Name())
	}
	i.log(result.Logs)
	i.router.metrics.creates.Add(1)
	return i.commit(c, &change{
		next: result.Instance, entry: result.Entry, hasEntry: true, out: result.Out, caller: result.Entry.User, created: true, writes: req.writes,
	}, false)
}

// createScheduled implements schedule.Options.Create. Runs count towards a quota of their own, whoever creates them.
func (r *Router) createScheduled(c *schedule.Creation) error {
	if err := r.countRefusal(r.createQuota.Take(statemachine.System, r.o.Clock())); err != nil {
		return err
	}
	public, private, err := c.Schedule.Data(c.At)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	of := statemachine.Creation{Public: public, Private: private}
	if as := c.Schedule.As; as != "" {
		p, err := r.principal(identity.UserID(as))
		if err != nil {
			return err
		}
		d, err := r.catalog.Creatable(c.Workflow)
		if err != nil {
			return err
		}
		if of.Caller = catalog.CallerOf(p); d.CreateRight(of.Caller, r.o.Clock()) == statemachine.Denied {
			return failure.Refuse(failure.ErrForbidden, "%s may not create instances of %s", as, c.Workflow)
		}
	}
	return r.createUnasked(c.Workflow, 0, c.ID, createUnasked{of: of, writes: c.Writes})
}

// principal returns a user by name.
func (r *Router) principal(user identity.UserID) (*identity.Principal, error) {
	if r.o.Principal != nil {
		if p := r.o.Principal(user); p != nil {
			return p, nil
		}
	}
	return nil, failure.Refuse(failure.ErrForbidden, "there is no user %s, or the user is disabled", user)
}

// Schedules lists all schedules. The errors are failure.ErrUnavailable and failure.ErrElsewhere.
func (r *Router) Schedules(ctx context.Context) ([]schedule.State, error) {
	if err := r.queries.AwaitCurrent(ctx, key.EveryShard); err != nil {
		return nil, failure.In("list", "schedules", err)
	}
	list, err := r.schedules.List()
	return list, failure.In("list", "schedules", err)
}

// ChangeSchedule pauses, resumes or runs a schedule, as schedule.Service says.
func (r *Router) ChangeSchedule(_ context.Context, workflowID, name string, action schedule.Action) error {
	err := r.accepting()
	if err == nil {
		err = r.schedules.Change(workflowID, name, action)
	}
	return failure.In(string(action), "schedule "+workflowID+"/"+name, err)
}

// senderOf is the question what the sender of a message knows, and, where that is a parent, of a child. It is written before the answer.
type senderOf struct {
	part statemachine.PartID
	*invoke.Sender
}

func (req senderOf) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	req.Version, req.Parent = i.of.Version, i.state.Parent()
	req.Wants = slices.ContainsFunc(i.state.Children(), func(k statemachine.Child) bool { return k.ID == req.part && k.Status == statemachine.ChildRuns })
	i.deliver(c, nil)
	return nil
}

// inside is the request to take a message of a parent or child.
type inside struct {
	*child.Message
	turn *pace.Turn
}

func (req inside) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	defer req.turn.Done(time.Now())
	if req.News != nil {
		output, err := child.Value(req.News.Output)
		if err != nil {
			return failure.Refuse(failure.ErrInvalid, "%w", err)
		}
		return i.takeNews(c, req.PartID(), req.News.Failed, child.Brought(req.From, "output", output), nil)
	}
	if parent := i.state.Parent(); !req.IsForParent() && (parent == nil || parent.Instance != req.From.Instance || parent.Child != req.PartID()) {
		i.deliver(c, nil) // it is nobody's, or another one's
		return nil
	}
	if req.Event != nil {
		return i.hear(c, req.Message)
	}
	result, err := i.of.Cancel(&i.state, req.End.By, i.router.o.Clock())
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
func (i *instance) hear(c *call, m *child.Message) error {
	h, now := m.Heard(), i.router.o.Clock()
	result, err := i.of.Hear(&i.state, h, now)
	return i.commitByItself(c, result, err, nil, func() (statemachine.Instance, error) {
		return i.of.FailHear(&i.state, h, now)
	})
}

// takeRefusal takes that a message will never be carried out.
func (i *instance) takeRefusal(c *call, o *outbox.Outcome, stored []byte) error {
	row, err := outbox.Parse(stored)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	m, err := child.Parse(row.Body)
	if err != nil || m.Start == nil {
		i.router.log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Str("reason", o.Refused).Msg("a message to another instance is dropped")
		return i.commit(c, &change{next: i.state, caller: statemachine.System, writes: o.Writes}, false)
	}
	brought := child.Brought(child.Ref{Workflow: m.Start.To, Instance: m.Start.Child}, "message", data.AppendString(nil, o.Refused))
	return i.takeNews(c, m.PartID(), true, brought, o.Writes)
}

// takeNews takes what has become of a child, in one commit with writes.
func (i *instance) takeNews(c *call, part statemachine.PartID, failed bool, brought data.Value, writes func(*persistence.Writes)) error {
	now := i.router.o.Clock()
	result, err := i.of.Told(&i.state, part, failed, brought, now)
	return i.commitByItself(c, result, err, writes, func() (statemachine.Instance, error) {
		return i.of.FailTold(&i.state, part, failed, brought, now)
	})
}
