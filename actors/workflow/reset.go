package workflow

import (
	"cmp"
	"context"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/instance"
	"troupe/actors/message"
	"troupe/actors/past"
	"troupe/actors/shard"
	"troupe/persistence/key"
)

// Reset has an instance become what it was after an entry of its history, as an entry of its own, in one commit: failure.ErrNotFound beyond the
// last entry, too, ErrNotKept when the history does not say all that it was, and ErrKeyTaken when it had ended and another instance has its
// business key by now. The other errors are those of Load and Send.
func (r *Router) Reset(ctx context.Context, req *message.Reset) (*message.Reply, error) {
	reply, err := r.reset(ctx, req)
	return reply, failure.In("reset", req.WorkflowID+"/"+req.InstanceID, err)
}

func (r *Router) reset(ctx context.Context, req *message.Reset) (*message.Reply, error) {
	at, err := r.shards.Find(req.InstanceID)
	if err = cmp.Or(r.env.MayRead(&req.Load), err, r.accepting()); err != nil {
		return nil, err
	}
	var id key.ID
	var business string
	for of := (instance.Reset{Reset: req, At: &id, Key: &business}); ; {
		reply, err := r.askReset(at, of)
		if !errors.Is(err, instance.ErrUnread) {
			return reply, err
		}
		if of.Then == nil {
			then, err := r.moment(ctx, &req.Load, id, req.To)
			if err != nil {
				return nil, err
			}
			of.Then = &then
		}
		of.Done, err = r.holdReset(req.WorkflowID, of.Then, business)
		if errors.Is(err, instance.ErrUnread) {
			of.Then = nil
		} else if err != nil {
			return nil, err
		}
	}
}

func (r *Router) askReset(at shard.Place, of instance.Reset) (*message.Reply, error) {
	c, err := r.post(at, of.WorkflowID, of, nil)
	if err != nil {
		if of.Done != nil {
			of.Done()
		}
		return nil, err
	}
	return r.shards.Wait(c)
}

// holdReset keeps the version that an instance gets from being retired or replaced, and a business key from creates; "" is none. It returns
// instance.ErrUnread when the version was replaced since the moment was read.
func (r *Router) holdReset(workflowID string, then *past.Moment, business string) (release func(), err error) {
	pin, err := r.o.Catalog.PinVersion(workflowID, then.Of.Version)
	if errors.Is(err, failure.ErrNotFound) {
		return nil, failure.Refuse(failure.ErrNotKept, "version %d of the workflow is not kept any more", then.Of.Version)
	}
	if err != nil {
		return nil, err
	}
	of, err := r.o.Catalog.Version(workflowID, then.Of.Version)
	if err == nil && of != then.Of {
		err = instance.ErrUnread
	}
	if err != nil {
		pin.Release()
		return nil, err
	}
	if business == "" {
		return pin.Release, nil
	}
	free, err := r.HoldKey(workflowID, business)
	if err != nil {
		pin.Release()
		return nil, err
	}
	return func() {
		free()
		pin.Release()
	}, nil
}
