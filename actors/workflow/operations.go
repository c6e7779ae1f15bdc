package workflow

import (
	"context"
	"errors"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Pending lists what an instance waits for. The errors are those of Load.
func (r *Router) Pending(ctx context.Context, req *message.Load) (*message.Pending, error) {
	out := &message.Pending{}
	var id key.ID
	err := r.look(ctx, req, func(i *instance) error {
		id, out.Version = i.id, i.of.Version
		out.IsDone, out.IsEnded = i.of.IsDone(&i.state), i.state.IsEnded()
		for _, c := range i.state.Children() {
			out.Children = append(out.Children, message.Child{WorkflowID: c.Workflow, InstanceID: instanceid.Text(child.ID(i.id, c.ID, c.Begun)), Status: c.Status})
		}
		for _, t := range i.state.Timers() {
			out.Timers = append(out.Timers, message.Timer{ID: instanceid.PartText(i.id, t.ID.Sequence, t.ID.Number), Timer: t})
		}
		return nil
	})
	if err == nil {
		out.Deliveries, err = r.OfInstance(id)
	}
	return out, failure.In("pending of", req.WorkflowID+"/"+req.InstanceID, err)
}

// ChangeDelivery retries or drops a delivery, as outbox.Service says.
func (r *Router) ChangeDelivery(ctx context.Context, id string, action outbox.Action) error {
	err := r.accepting()
	if err == nil && r.outbox == nil {
		err = failure.ErrUnavailable
	}
	if err == nil {
		err = r.outbox.Change(ctx, id, action)
	}
	return failure.In(string(action), "delivery "+id, err)
}

// ChangeIncident gives an instance the event that failed once more, or drops it: failure.ErrNotFound, ErrConflict when nothing keeps
// the event, ErrExecution when it fails again, which says why to a caller who may read it, and otherwise the errors of Send.
func (r *Router) ChangeIncident(ctx context.Context, caller *identity.Principal, id string, drop bool) error {
	err := r.accepting()
	var in pending.Incident
	if err == nil {
		in, err = r.Incident(id)
	}
	if err == nil && in.Row != nil {
		err = r.incidents.Change(ctx, id, in.Row.Kind, drop)
	} else if err == nil {
		_, err = r.ask(in.Workflow, in.InstanceID, changeIncident{caller, in.Timer, drop})
	}
	return failure.In("change", "incident "+id, err)
}

// StopTree ends an instance that no other one has invoked, and all that it has invoked, and returns when it is durable that none of them
// will go on: each is cancelled, and so are its own children. An instance that has ended is not asked again. failure.ErrConflict names the
// parent of one that has one.
func (r *Router) StopTree(_ context.Context, workflowID, instanceID, user string) error {
	err := r.accepting()
	if err == nil {
		_, err = r.ask(workflowID, instanceID, stopTree{user})
	}
	return failure.In("stop", workflowID+"/"+instanceID, err)
}

// stopTree is the request of that. The commit that ends the instance has what cancels its children, so that nothing is left to
// remember: a child that was not created yet never will be.
type stopTree struct{ user string }

func (req stopTree) run(i *instance, c *call) error {
	if err := i.ensureLoaded(); err != nil {
		return err
	}
	if p := i.state.Parent(); p != nil {
		return failure.Refuse(failure.ErrConflict, "it was invoked by %s/%s: stop that one", p.Workflow, p.Instance)
	}
	result, err := i.of.Cancel(&i.state, req.user, i.router.o.Clock())
	if errors.Is(err, statemachine.ErrEnded) || err == nil && result.Outcome == statemachine.Ignored {
		i.deliver(c, nil)
		return nil
	}
	if err != nil {
		return failure.OfStep(err)
	}
	i.router.log.Info().Str("workflow", i.workflowID).Str("instance", i.name).Str("user", req.user).Msg("a tree of instances is stopped")
	return i.commitResult(c, &result, nil, 0)
}

// undone is the error of a step that failed for whoever asked for it. event is "" for a create.
func (i *instance) undone(err error, event, user string) error {
	f := i.of.FaultOf(err)
	if f == nil {
		return failure.OfStep(err)
	}
	i.router.metrics.incidents.Add(1)
	return i.router.incidents.Undone(f, &incident.Row{Workflow: i.workflowID, Version: i.of.Version, Instance: i.name, Event: event, User: user, Last: i.router.o.Clock()})
}

// PutIncidents is incident.Service.Put.
func (r *Router) PutIncidents(ctx context.Context, shard uint16, rows []incident.Row) error {
	return r.incidents.Put(ctx, shard, rows)
}
