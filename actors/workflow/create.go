package workflow

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/instance"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/shard"
	"troupe/persistence/key"
)

// Create makes a new instance.
func (r *Router) Create(_ context.Context, req *message.Create) (*message.Reply, error) {
	reply, err := r.create(req)
	return reply, failure.In("create", req.WorkflowID, err)
}

func (r *Router) create(req *message.Create) (*message.Reply, error) {
	if err := r.env.MayCreate(req); err != nil {
		return nil, err
	}
	claimed, first, err := r.claim(req, r.waitFor)
	switch {
	case first != nil:
		return r.firstAnswer(req.WorkflowID, first, req.WithHistory)
	case err != nil:
		return nil, err
	case req.Refusal != nil:
		claimed.release()
		return nil, req.Refusal
	}
	c, err := r.postCreate(req, claimed, nil)
	if err != nil {
		return nil, err
	}
	return r.shards.Wait(c)
}

// PostCreate is Create for a caller who does not wait, as PostEvent is Send.
func (r *Router) PostCreate(req *message.Create, to message.Recipient) (Posted, error) {
	if err := r.env.MayCreate(req); err != nil {
		return Posted{}, err
	}
	claimed, _, _ := r.claim(req, func(<-chan struct{}) error { return failure.ErrBusy })
	if claimed == nil { // it was answered before, or has to wait
		return Posted{}, r.answerLater(req.WorkflowID, to, func() (*message.Reply, error) { return r.create(req) })
	}
	c, err := r.postCreate(req, claimed, to)
	return r.posted(c), err
}

// answerLater does for a recipient what may wait for another request with the key. It is admitted: Stop waits for it.
func (r *Router) answerLater(workflowID string, to message.Recipient, do func() (*message.Reply, error)) error {
	if err := r.shards.Admit(); err != nil {
		return err
	}
	go r.answerFor(workflowID, to, do)
	return nil
}

func (r *Router) answerFor(workflowID string, to message.Recipient, do func() (*message.Reply, error)) {
	var reply *message.Reply
	err := error(failure.ErrInternal) // of a panic
	defer func() {
		if p := recover(); p != nil {
			r.env.NotePanic(p, workflowID, "")
		}
		r.shards.Dismiss()
		to.Answered(reply, err)
	}()
	reply, err = do()
}

// claimed is where an instance is about to be created, and a hold on the create's keys.
type claimed struct {
	at      shard.Place
	release func()
	key     string         // the business key; "" without one
	event   *message.Event // that names the key, and is to be the first of the instance; nil: there is none
}

// claim holds the key of a create, if it has one, and draws an id; it is nil when the key has a first answer or cannot
// be held. The key chooses the shard, so that the row that remembers it is written in the same batch as the instance
// and a retry finds it without a global index. Without a key the shard is one that is led here. An instance with a
// business key lies in the shard of that one.
func (r *Router) claim(req *message.Create, wait func(<-chan struct{}) error) (*claimed, *retry.First, error) {
	rules, err := r.o.Catalog.Newest(req.WorkflowID)
	if err != nil {
		return nil, nil, err
	}
	if business, err := rules.KeyOf(req.Public); business != "" || err != nil {
		if err != nil {
			return nil, nil, failure.OfStep(err)
		}
		return r.claimKey(req, business, wait)
	}
	if req.Retry.Key == "" {
		at, err := r.shards.At(r.env.IDs.Draw(r.o.Clock()))
		for range 8 * int(r.o.Store.Shards()) {
			if err == nil {
				return &claimed{at: at, release: func() {}}, nil, nil
			}
			at, err = r.shards.At(r.env.IDs.Draw(r.o.Clock()))
		}
		return nil, nil, err
	}
	digest, sh := retry.PlaceOf(r.o.Store, string(req.Caller.ID), req.Retry.Key)
	at, err := r.shards.Lead(sh) // NB: before the key's row is read
	if err != nil {
		return nil, nil, err
	}
	release, first, err := r.keys.Claim(r.o.Store, sh, digest, req.Retry.Fingerprint, wait)
	if release == nil {
		return nil, first, err
	}
	at.ID = r.env.IDs.DrawWhere(r.o.Clock(), func(id key.ID) bool { return r.o.Store.ShardOf(id) == sh })
	return &claimed{at: at, release: release}, nil, nil
}

// KeepKey remembers that a key of the caller's stands for all that fingerprint is of, and returns when that is durable:
// failure.ErrKeyReused when it stands for something else.
func (r *Router) KeepKey(caller *identity.Principal, key message.Retry) error {
	digest, sh := retry.PlaceOf(r.o.Store, string(caller.ID), key.Key)
	lead, err := r.shards.Lead(sh)
	if err != nil {
		return err
	}
	release, err := r.keys.Hold(digest, r.waitFor)
	if err != nil {
		return err
	}
	defer release()
	if err := r.accepting(); err != nil {
		return err
	}
	return retry.Keep(r.o.Store, sh, lead.Epoch(), digest, &retry.First{Fingerprint: key.Fingerprint, At: r.o.Clock().UnixMilli()})
}

// waitFor waits until the request that holds a key has its answer, or failure.ErrBusy.
func (r *Router) waitFor(done <-chan struct{}) error {
	for range int(r.o.ReplyWaitMax/shard.SweepEvery) + 1 {
		select {
		case <-done:
			return nil
		case <-r.shards.Ticks():
		}
	}
	return failure.ErrBusy
}

// firstAnswer is the first answer to a create, which is durable; failure.ErrNotFound when the instance was deleted
// since.
func (r *Router) firstAnswer(workflowID string, first *retry.First, withHistory bool) (*message.Reply, error) {
	at, err := r.shards.At(first.Instance)
	if err == nil {
		_, err = at.Load(workflowID)
	}
	if err != nil {
		return nil, err
	}
	return instance.Repeated(r.env, workflowID, first, withHistory)
}

// mayCreate says whether the service and the caller's quota allow a create that repeats no other.
func (r *Router) mayCreate(req *message.Create) error {
	err := r.accepting()
	if err == nil && !req.NoQuota && !req.Counted {
		err = r.env.CountRefusal(r.createQuota.Take(req.Caller.ID, r.o.Clock()))
		req.Counted = err == nil
	}
	return err
}

// postCreate starts an actor under a new id and lets it create the instance. What was claimed is released when it is
// known what happened to it, and with an error.
func (r *Router) postCreate(req *message.Create, of *claimed, to message.Recipient) (*instance.Call, error) {
	pin, err := r.o.Catalog.Pin(req.WorkflowID)
	if err != nil {
		of.release()
		return nil, err
	}
	done := func() { pin.Release(); of.release() }
	err = r.mayCreate(req)
	if key, _ := pin.Definition().KeyOf(req.Public); err == nil && key != of.key {
		err = failure.ErrBusy // the definition was replaced since the key was made
	}
	if err == nil {
		err = r.shards.Admit()
	}
	var c *instance.Call
	if err == nil {
		c, err = r.shards.Create(of.at, req.WorkflowID, pin.Definition(), instance.Create{Create: req, Key: of.key, Event: of.event, Done: done}, to)
	}
	if err != nil {
		done()
	}
	return c, err
}
