package workflow

import (
	"context"
	"errors"

	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/instance"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Pending lists what an instance waits for. The errors are those of Load.
func (r *Router) Pending(req *message.Load) (*message.Pending, error) {
	out := &message.Pending{}
	var id key.ID
	var jobs []statemachine.Job
	err := r.View(req, func(v message.View) {
		id, out.Version, jobs = v.ID, v.Of.Version, v.Instance.Jobs()
		out.IsDone, out.IsEnded = v.Of.IsDone(v.Instance), v.Instance.IsEnded()
		for _, c := range v.Instance.Children() {
			out.Children = append(out.Children, message.Child{WorkflowID: c.Workflow, InstanceID: instanceid.Text(child.ID(v.ID, c.ID, c.Begun)), Status: c.Status})
		}
		for _, t := range v.Instance.Timers() {
			out.Timers = append(out.Timers, message.Timer{ID: instanceid.PartText(v.ID, t.ID.Sequence, t.ID.Number), Timer: t})
		}
	})
	if err == nil {
		out.Deliveries, err = r.Waiting.OfInstance(id)
	}
	if err == nil {
		out.Jobs, err = r.Jobs.OfInstance(&job.Origin{Workflow: req.WorkflowID, Version: out.Version, Instance: id}, jobs)
	}
	return out, failure.In("pending of", req.WorkflowID+"/"+req.InstanceID, err)
}

// ChangeDelivery retries or drops a delivery, as outbox.Service says.
func (r *Router) ChangeDelivery(ctx context.Context, id string, action outbox.Action) error {
	err := r.accepting()
	if err == nil && r.env.Outbox == nil {
		err = failure.ErrUnavailable
	}
	if err == nil {
		err = r.env.Outbox.Change(ctx, id, action)
	}
	return failure.In(string(action), "delivery "+id, err)
}

// Resume lets a restored store do what it holds back, durably. Without anything to resume it does nothing.
func (r *Router) Resume(what hold.What) error {
	err := r.accepting()
	if err == nil {
		err = r.hold.Resume(what)
	}
	if err == nil && r.env.Outbox != nil {
		r.env.Outbox.Resumed()
	}
	if err == nil {
		r.Jobs.Resumed()
	}
	return failure.In("resume", string(what), err)
}

// SendsNothing says that what would leave a restored store is held.
func (r *Router) SendsNothing() bool { return r.hold.Holds(hold.Outbox) }

// Held is nil, or says what a restored store does not do yet.
func (r *Router) Held() error { return r.hold.Ready() }

// ChangeIncident gives an instance the event that failed once more, or drops it: failure.ErrNotFound, ErrConflict when nothing keeps
// the event, ErrExecution when it fails again, which says why to a caller who may read it, and otherwise the errors of Send.
func (r *Router) ChangeIncident(ctx context.Context, caller *identity.Principal, id string, drop bool) error {
	err := r.accepting()
	var in pending.Incident
	if err == nil {
		in, err = r.Waiting.Incident(id)
	}
	if err == nil && in.Kind != incident.Event {
		err = r.Incidents.Change(ctx, id, in.Kind, drop)
	} else if err == nil {
		_, err = r.ask(in.Workflow, in.InstanceID, instance.ChangeIncident{Caller: caller, ID: in.Timer, Drop: drop})
	}
	return failure.In("change", "incident "+id, err)
}

// StopTree ends an instance that no other one waits for, and all that it has invoked, and returns when it is durable
// that none of them will go on: each is cancelled, and so are its own children. An instance that has ended is not asked
// again. failure.ErrConflict names the parent that waits.
func (r *Router) StopTree(ctx context.Context, workflowID, instanceID, user string) error {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(workflowID, instanceID, instance.StopTree{User: user})
	}
	if errors.Is(err, failure.ErrConflict) && !r.isAwaited(ctx, child.Ref{Workflow: workflowID, Instance: instanceID}) { // it was reset
		_, err = r.ask(workflowID, instanceID, instance.StopTree{User: user, Part: true})
	}
	return failure.In("stop", workflowID+"/"+instanceID, err)
}

// isAwaited reports whether the parent of an instance waits for it, also when that cannot be known.
func (r *Router) isAwaited(ctx context.Context, at child.Ref) bool {
	kin, err := r.kinOf(at, nil)
	if err != nil || kin.Parent == nil {
		return true
	}
	awaited, err := r.invokes.IsAwaited(ctx, kin.Parent, at)
	return err != nil || awaited
}

// EnterIndex implements catalog.Instances.
func (r *Router) EnterIndex(workflowID string, id key.ID, ix *catalog.Index) (wait func() error, err error) {
	return r.have(workflowID, id, instance.EnterIndex{Index: ix})
}

// have has an instance write something that nobody waits for. One that it wakes goes back to sleep as soon as that is
// durable, when wait returns.
func (r *Router) have(workflowID string, id key.ID, write instance.Request) (wait func() error, err error) {
	at, err := r.shards.At(id)
	if err != nil {
		return nil, err
	}
	c, a, woken, err := r.shards.Awaken(at, workflowID, write)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := r.shards.Wait(c)
		if woken {
			a.Passivate()
		}
		return err
	}, nil
}

// Migrate carries out a plan for one instance, in one commit. It is false when the instance has ended or does not have
// the version Plan.From, and failure.ErrNotAllowed says why it cannot be migrated. The other errors are those of Send.
func (r *Router) Migrate(workflowID, instanceID string, m *message.Migration) (bool, error) {
	if err := r.accepting(); err != nil {
		return false, err
	}
	pin, err := r.o.Catalog.PinVersion(workflowID, m.Plan.To())
	if err != nil {
		return false, err
	}
	had := false
	var c *instance.Call
	at, err := r.shards.Find(instanceID)
	if err == nil {
		c, err = r.post(at, workflowID, instance.Migrate{Migration: m, Had: &had, Done: pin.Release}, nil)
	}
	if err != nil {
		pin.Release()
		return false, err
	}
	_, err = r.shards.Wait(c)
	return err == nil && had, err // NB: without an answer the actor may be writing had
}
