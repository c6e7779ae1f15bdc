package workflow

import (
	"context"
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/instance"
	"troupe/actors/internal/instanceid"
	"troupe/actors/invoke"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/query"
	"troupe/actors/schedule"
	"troupe/actors/trace"
	"troupe/persistence/key"
	"troupe/statemachine"
)

func (r *Router) deliverInside(ctx context.Context, key key.Delivery, row *outbox.Delivery) outbox.Answer {
	m, err := child.Parse(row.Body)
	if err != nil {
		return outbox.Answer{Err: err, Final: true}
	}
	m.From = child.Ref{Workflow: row.Workflow, Instance: instanceid.Text(key.ID)}
	if m.Start != nil || m.Event != nil {
		var sender invoke.Sender
		if _, err := r.ask(m.From.Workflow, m.From.Instance, instance.SenderOf{Part: m.ElementID(), Sender: &sender}); err != nil && !errors.Is(err, failure.ErrNotFound) {
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
	m.Trace = row.Trace
	refused, err := r.carry(ctx, &m)
	if err == nil && refused != "" {
		return outbox.Answer{Err: errors.New(refused), Final: true}
	}
	return outbox.Answer{Err: err}
}

// carry has a message carried out where the shard of its instance is led.
func (r *Router) carry(ctx context.Context, m *child.Message) (refused string, err error) {
	refused, err = r.Inside(ctx, m)
	if errors.Is(err, failure.ErrNotLeader) && r.o.Elsewhere != nil {
		refused, err = r.o.Elsewhere(ctx, failure.Of(err).Shard, m)
	}
	return refused, err
}

// Inside carries out a message between a parent and its child where the shard of its instance is led, else
// failure.ErrNotLeader. It may be carried out again and again. refused says why it never will be.
func (r *Router) Inside(ctx context.Context, m *child.Message) (refused string, err error) {
	if err := m.Check(); err != nil {
		return err.Error(), nil
	}
	if m.Join != nil {
		return r.invokes.Join(ctx, m.Join)
	}
	if m.Erase != nil {
		return "", r.erase(ctx, m.Erase.By, m.Erase.Child, true, nil, &r.deleted.cascade)
	}
	piece, err := r.env.Work.Begin(ctx, m.From.Workflow)
	if err != nil {
		return "", err
	}
	defer piece.End()
	to, span := m.To(), r.o.Tracer.Continue(m.Trace, "message", trace.Internal)
	span.Set("troupe.workflow", to.Workflow, "troupe.instance", to.Instance)
	if m.Start != nil {
		err = r.startChild(m, piece, span)
	} else if _, err = r.ask(to.Workflow, to.Instance, instance.Inside{Message: m, Piece: piece, Span: span}); errors.Is(err, failure.ErrNotFound) {
		err = nil // who is not there needs no end and no news
	}
	span.End(err) // NB: where its instance has not come to it
	if invoke.IsRefusal(err) {
		return failure.In("invoke", to.Workflow, err).Error(), nil
	}
	return "", err
}

func (r *Router) startChild(m *child.Message, piece *pace.Piece, span *trace.Span) error {
	id, ok := instanceid.Parse(m.Start.Child)
	if !ok {
		return failure.ErrNotFound
	}
	public, private, err := m.Start.Data()
	if err != nil {
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	req := instance.CreateUnasked{Piece: piece, Span: span, Of: statemachine.Creation{
		Public: public, Private: private,
		Parent: &statemachine.Parent{Workflow: m.From.Workflow, Instance: m.From.Instance, Child: m.ElementID(), Depth: m.Start.Depth},
	}}
	req.May = func() error { return r.invokes.May(m, req.Of) }
	return r.createUnasked(m.Start.To, m.Start.Version, id, req)
}

// createUnasked creates an instance that nobody has asked for, unless it is there.
func (r *Router) createUnasked(workflowID string, version uint64, id key.ID, req instance.CreateUnasked) error {
	at, err := r.shards.At(id) // NB: before anything of the shard is read
	if err == nil {
		err = r.accepting()
	}
	if err != nil {
		return err
	}
	ended := at.Ended()
	if _, err := at.Load(workflowID); !errors.Is(err, failure.ErrNotFound) {
		return err
	}
	if req.May != nil { // NB: behind that, because one that is there was created
		if err := req.May(); err != nil {
			return err
		}
	}
	pin, err := r.o.Catalog.PinVersion(workflowID, version)
	if err != nil {
		return err
	}
	req.Done = pin.Release
	err = r.shards.Admit()
	var c *instance.Call
	if err == nil {
		c, err = r.shards.CreateUnless(at, ended, workflowID, pin.Definition(), req)
	}
	if err != nil {
		pin.Release()
		return err
	}
	_, err = r.shards.Wait(c)
	return err
}

// createScheduled implements schedule.Options.Create. Runs count towards a quota of their own, no matter who creates them.
func (r *Router) createScheduled(ctx context.Context, c *schedule.Creation) (err error) {
	span := r.o.Tracer.Begin(trace.Of(ctx).Parent(), "schedule", trace.Internal)
	if span != nil {
		span.Set("troupe.workflow", c.Workflow, "troupe.instance", instanceid.Text(c.ID), "troupe.schedule", c.Schedule.Name)
		defer func() { span.End(err) }() // NB: where it is refused
	}
	if err := r.env.CountRefusal(r.createQuota.Take(statemachine.System, r.o.Clock())); err != nil {
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
		d, err := r.o.Catalog.Creatable(c.Workflow)
		if err != nil {
			return err
		}
		if of.Caller = catalog.CallerOf(p); d.CreateRight(of.Caller, r.o.Clock()) == statemachine.Denied {
			return failure.Refuse(failure.ErrForbidden, "%s may not create instances of %s", as, c.Workflow)
		}
	}
	return r.createUnasked(c.Workflow, 0, c.ID, instance.CreateUnasked{Of: of, Writes: c.Writes, Span: span})
}

func (r *Router) principal(user identity.UserID) (*identity.Principal, error) {
	if r.o.Principal != nil {
		if p := r.o.Principal(user); p != nil {
			return p, nil
		}
	}
	return nil, failure.Refuse(failure.ErrForbidden, "there is no user %s, or the user is disabled", user)
}

// Schedules lists all schedules. The errors are failure.ErrUnavailable and failure.ErrNotLeader.
func (r *Router) Schedules(ctx context.Context) ([]schedule.State, error) {
	list, err := r.schedules.List(func(keys [][]byte, do func(func([]byte) ([]byte, error)) error) error {
		return r.Queries.ReadKeys(ctx, statemachine.System, keys, func(from query.Loader) error { return do(from.Load) })
	})
	return list, failure.In("list", "schedules", err)
}

// ChangeSchedule pauses, resumes or runs a schedule, as schedule.Service says.
func (r *Router) ChangeSchedule(ctx context.Context, workflowID, name string, action schedule.Action) error {
	err := r.accepting()
	if err == nil {
		err = r.schedules.Change(ctx, workflowID, name, action)
	}
	return failure.In(string(action), "schedule "+workflowID+"/"+name, err)
}
