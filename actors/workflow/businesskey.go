package workflow

import (
	"cmp"
	"errors"

	"troupe/actors/failure"
	"troupe/actors/instance"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/shard"
	"troupe/persistence/key"
	"troupe/statemachine/data"
)

// An event that names its instance by the business key goes where the key has its row (package businesskey):
//
//	first answer? ──► row? ──► the instance takes the event ──► it has ended: once more
//	                   │
//	                   └─ none ──► hold the key, look again ──► create the instance with the event, in one commit
//
// What is read without the hold may be old: the instance itself says when it has ended, and a create looks again.

// keyTriesMax is how many instances with a key may end while an event is on its way to the one that has it.
const keyTriesMax = 16

func (r *Router) sendByKey(req *message.Event) (*message.Reply, error) {
	reply, err := r.toKey(req)
	if reply != nil {
		reply.ByKey = true
	}
	return reply, err
}

func (r *Router) toKey(req *message.Event) (*message.Reply, error) {
	at, err := r.maySend(req)
	if err != nil {
		return nil, err
	}
	for range keyTriesMax {
		first, err := r.firstToKey(at, req)
		var id key.ID
		found := false
		if first == nil && err == nil {
			id, found, err = businesskey.Find(r.o.Store, at.Shard(), req.WorkflowID, req.Key)
		}
		switch {
		case err != nil:
			return nil, err
		case first != nil:
			return r.firstAnswer(req.WorkflowID, first, req.WithHistory)
		}
		var reply *message.Reply
		if found {
			at.ID = id
			reply, err = r.askAt(at, req.WorkflowID, instance.Send{Event: req})
			if errors.Is(err, failure.ErrNotFound) { // it was deleted, or the caller may not see it
				err = r.hidden(at, req, id)
			}
		} else {
			reply, err = r.createByKey(at, req)
		}
		if !errors.Is(err, instance.ErrReleased) {
			return reply, err
		}
	}
	return nil, failure.ErrBusy
}

// firstToKey is the first answer to an event with a business key, if it has one. What its instance had of it is gone with the instance, or
// was forgotten.
func (r *Router) firstToKey(at shard.Place, req *message.Event) (*retry.First, error) {
	if req.Retry.Key == "" {
		return nil, nil
	}
	digest := retry.DigestOf(string(req.Caller.ID), req.Retry.Key)
	row, err := retry.LoadDurable(r.o.Store, key.Reply(nil, at.Shard(), key.ID{}, digest), req.Retry.Fingerprint)
	if row == nil || err != nil {
		return nil, err
	}
	first, err := retry.Load(r.o.Store, key.Reply(nil, at.Shard(), row.Instance, digest), req.Retry.Fingerprint)
	if first == nil && err == nil && row.At >= r.env.ForgetBefore() {
		err = failure.ErrNotFound // the instance was deleted
	}
	return first, err
}

// hasKey reports whether an instance has the key of an event still.
func (r *Router) hasKey(at shard.Place, req *message.Event, id key.ID) bool {
	now, found, err := businesskey.Find(r.o.Store, at.Shard(), req.WorkflowID, req.Key)
	return err != nil || found && now == id
}

// hidden is the answer where an instance has the key and the caller may not see it: that of a key that no instance has.
func (r *Router) hidden(at shard.Place, req *message.Event, id key.ID) error {
	if !r.hasKey(at, req, id) {
		return instance.ErrReleased
	}
	return cmp.Or(r.mayCreateByKey(at, req), error(failure.ErrNotFound))
}

// mayCreateByKey reports whether an event may create an instance with its key: what does not depend on whether another one has the key.
func (r *Router) mayCreateByKey(at shard.Place, req *message.Event) error {
	rules, err := r.o.Catalog.Newest(req.WorkflowID)
	switch {
	case err != nil:
		return err
	case !rules.HasKeys():
		return failure.Refuse(failure.ErrInvalid, "instances of %s have no keys: its definition has no \"key\"", req.WorkflowID)
	case req.Create == nil:
		return cmp.Or(at.Confirm(), error(failure.ErrNotFound))
	}
	create := req.Create
	create.Caller, create.WorkflowID, create.Retry, create.WithHistory = req.Caller, req.WorkflowID, req.Retry, req.WithHistory
	if err := r.env.MayCreate(create); err != nil {
		return err
	}
	made, err := rules.KeyOf(create.Public)
	switch {
	case err != nil:
		return failure.OfStep(err)
	case made != req.Key:
		return failure.Refuse(failure.ErrInvalid, "the key is %s, and create makes it %s", data.Quote(req.Key), data.Quote(made))
	}
	return nil
}

// createByKey creates the instance that an event asks for. It is instance.ErrReleased when another request has created it meanwhile.
func (r *Router) createByKey(at shard.Place, req *message.Event) (*message.Reply, error) {
	if err := r.mayCreateByKey(at, req); err != nil {
		return nil, err
	}
	claimed, err := r.holdKey(req.WorkflowID, req.Key, r.waitFor)
	if errors.Is(err, failure.ErrKeyTaken) {
		return nil, instance.ErrReleased
	}
	if err != nil {
		return nil, err
	}
	if first, err := r.firstToKey(claimed.at, req); first != nil || err != nil { // it was answered meanwhile, and its instance has ended
		claimed.release()
		return nil, cmp.Or(err, instance.ErrReleased)
	}
	claimed.event = req
	c, err := r.postCreate(req.Create, claimed, nil)
	if err != nil {
		return nil, err
	}
	return r.shards.Wait(c)
}

// claimKey is claim for an instance with a business key: failure.ErrKeyTaken when another instance has it.
func (r *Router) claimKey(req *message.Create, business string, wait func(<-chan struct{}) error) (*claimed, *retry.First, error) {
	claimed, err := r.holdKey(req.WorkflowID, business, wait)
	if req.Retry.Key == "" || err != nil && !errors.Is(err, failure.ErrKeyTaken) {
		return claimed, nil, err
	}
	sh := businesskey.ShardOf(r.o.Store, req.WorkflowID, business)
	row := key.Reply(nil, sh, key.ID{}, retry.DigestOf(string(req.Caller.ID), req.Retry.Key))
	first, again := retry.LoadDurable(r.o.Store, row, req.Retry.Fingerprint)
	if first == nil && again == nil {
		return claimed, nil, err
	}
	if claimed != nil {
		claimed.release()
	}
	return nil, first, again
}

// HoldKey keeps a business key from creates until release is called, for one who writes an instance that has it.
func (r *Router) HoldKey(workflowID, business string) (release func(), err error) {
	return r.businessKeys.Hold(retry.DigestOf(workflowID, business), r.waitFor)
}

// holdKey holds a business key that no instance has, and draws the id of one that is to have it: failure.ErrKeyTaken.
func (r *Router) holdKey(workflowID, business string, wait func(<-chan struct{}) error) (*claimed, error) {
	sh := businesskey.ShardOf(r.o.Store, workflowID, business)
	at, err := r.shards.Lead(sh) // NB: before the rows are read
	if err != nil {
		return nil, err
	}
	release, err := r.businessKeys.Hold(retry.DigestOf(workflowID, business), wait)
	if err != nil {
		return nil, err
	}
	_, found, err := businesskey.Find(r.o.Store, sh, workflowID, business)
	if found {
		err = at.Confirm()
	}
	if found && err == nil {
		err = failure.Refuse(failure.ErrKeyTaken, "another instance of %s has the key %s", workflowID, data.Quote(business))
	}
	if err != nil {
		release()
		return nil, err
	}
	at.ID = r.env.IDs.DrawWhere(r.o.Clock(), func(id key.ID) bool { return r.o.Store.ShardOf(id) == sh })
	return &claimed{at: at, release: release, key: business}, nil
}
