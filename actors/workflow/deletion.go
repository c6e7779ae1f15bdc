package workflow

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"troupe/actors/child"
	"troupe/actors/failure"
	"troupe/actors/instance"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

const (
	// hearMin and hearMax are how long a deletion waits at first, and at last, before it looks again whether those that
	// an instance has invoked have heard that it ends; hearAll is how long in all.
	hearMin, hearMax = 5 * time.Millisecond, 500 * time.Millisecond
	hearAll          = 10 * time.Second
	// OfInstance is the action of Options.Audit for a deletion; its target is WORKFLOW/INSTANCE.
	OfInstance = "instance.delete"
	// ByRetention, with a workflow behind it, is the actor of a deletion that its definition asks for. No user is called so.
	ByRetention = "retention:"
)

// Delete deletes an instance with all that the store has of it, in one commit, and returns when that is durable. who is
// noted, and asked for no right. failure.ErrInUse: another one needs it, its parent or one that it has invoked. With
// cascade its parent hears that it has failed, and those that it has invoked are ended and deleted before it, in commits
// of their own, so that who repeats a deletion that was broken off finds the rest. The other errors are those of Send.
func (r *Router) Delete(ctx context.Context, who, workflowID, instanceID string, cascade bool) error {
	return r.delete(ctx, who, workflowID, instanceID, cascade, nil, &r.deleted.request)
}

// deletions counts instances that were deleted, by cause.
type deletions struct{ request, cascade, bulk, retention atomic.Int64 }

func (r *Router) delete(ctx context.Context, who, workflowID, instanceID string, cascade bool, may func(*instance.Actor) error, count *atomic.Int64) error {
	err := r.accepting()
	if err == nil {
		err = r.erase(ctx, who, child.Ref{Workflow: workflowID, Instance: instanceID}, cascade, may, count)
	}
	return failure.In("delete", workflowID+"/"+instanceID, err)
}

// erase asks may twice, unless it is nil: before anything is done, and in the turn in which the instance goes.
func (r *Router) erase(ctx context.Context, who string, at child.Ref, cascade bool, may func(*instance.Actor) error, count *atomic.Int64) error {
	kin, err := r.kinOf(at, may)
	if err != nil {
		return err
	}
	awaited := false
	if kin.Parent != nil && !kin.IsOver {
		if awaited, err = r.invokes.IsAwaited(ctx, kin.Parent, at); err != nil {
			return err
		}
	}
	switch {
	case cascade:
		err = r.sever(ctx, who, at, kin, awaited)
	case awaited:
		err = failure.Refuse(failure.ErrInUse, "%s/%s invoked it and waits for it", kin.Parent.Workflow, kin.Parent.Instance)
	default:
		err = kin.Refusal
	}
	if err == nil {
		err = r.Incidents.Forget(ctx, at.Instance)
	}
	if err == nil {
		_, err = r.ask(at.Workflow, at.Instance, instance.Delete{May: may})
	}
	if err == nil {
		count.Add(1)
	}
	if err == nil && r.o.Audit != nil {
		err = r.o.Audit(ctx, who, OfInstance, at.Workflow+"/"+at.Instance)
	}
	return err
}

// expire deletes an instance that was done for as long as its workflow says, since a time.
func (r *Router) expire(ctx context.Context, workflowID string, id key.ID, since int64) error {
	return r.delete(ctx, ByRetention+workflowID, workflowID, instanceid.Text(id), false, instance.IfDone(since), &r.deleted.retention)
}

func (r *Router) kinOf(at child.Ref, may func(*instance.Actor) error) (*instance.Kin, error) {
	kin := &instance.Kin{}
	_, err := r.ask(at.Workflow, at.Instance, instance.KinOf{Kin: kin, May: may})
	return kin, err
}

// sever parts an instance from its parent, which waits for it if awaited, and deletes what it has invoked.
func (r *Router) sever(ctx context.Context, who string, at child.Ref, kin *instance.Kin, awaited bool) error {
	if awaited {
		p := kin.Parent
		parent := child.Ref{Workflow: p.Workflow, Instance: p.Instance}
		why := data.AppendString(nil, "the instance was deleted by "+who)
		err := r.tell(ctx, &child.Message{From: at, Part: child.Part(p.Child), News: &child.News{Parent: parent, Failed: true, Output: []byte(why)}})
		if err != nil {
			return err
		}
	}
	if !kin.IsOver {
		if _, err := r.ask(at.Workflow, at.Instance, instance.StopTree{User: who, Part: true}); err != nil {
			return err
		}
	}
	kin, err := r.heard(ctx, at)
	if err != nil {
		return err
	}
	id, _ := instanceid.Parse(at.Instance)
	for _, c := range kin.Children {
		of := child.Ref{Workflow: c.Workflow, Instance: instanceid.Text(child.ID(id, c.ID, c.Begun))}
		err := r.tell(ctx, &child.Message{From: at, Part: child.Part(c.ID), Erase: &child.Erase{Child: of, By: who}})
		if err != nil && !errors.Is(err, failure.ErrNotFound) {
			return err
		}
	}
	return nil
}

// heard waits until all messages of an instance to its parent and children have arrived: then none is created any more.
func (r *Router) heard(ctx context.Context, at child.Ref) (*instance.Kin, error) {
	end := time.Now().Add(hearAll)
	for pause := hearMin; ; pause = min(2*pause, hearMax) {
		kin, err := r.kinOf(at, nil)
		switch {
		case err != nil:
			return nil, err
		case !kin.Tells:
			return kin, nil
		case ctx.Err() != nil, time.Now().After(end):
			return nil, failure.Refuse(failure.ErrUnavailable, "%s/%s has ended, but the instances that it invoked do not know yet: repeat the deletion", at.Workflow, at.Instance)
		}
		wait.Sleep(ctx, pause)
	}
}

func (r *Router) tell(ctx context.Context, m *child.Message) error {
	refused, err := r.carry(ctx, m)
	if err == nil && refused != "" {
		err = failure.Refuse(failure.ErrExecution, "%s", refused)
	}
	return err
}
