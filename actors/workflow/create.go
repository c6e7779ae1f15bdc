package workflow

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/persistence"
	"troupe/statemachine"
)

// Create makes a new instance.
func (r *Router) Create(_ context.Context, req *CreateRequest) (*Reply, error) {
	reply, err := r.create(req)
	return reply, failure.In("create", req.WorkflowID, err)
}

func (r *Router) create(req *CreateRequest) (*Reply, error) {
	if err := r.mayAskToCreate(req); err != nil {
		return nil, err
	}
	switch {
	case req.Retry.Key != "":
		return r.createOnce(req)
	case req.Refusal != nil:
		return nil, req.Refusal
	}
	return r.createAs(req, r.ids.Draw(r.o.Clock()))
}

// PostCreate is Create for a caller who does not wait, as PostEvent is Send.
func (r *Router) PostCreate(req *CreateRequest, to Recipient) (Posted, error) {
	if req.Retry.Key != "" { // NB: it may wait for another request with the key
		go func() { to.Answered(r.create(req)) }()
		return Posted{}, nil
	}
	var c *call
	err := r.mayAskToCreate(req)
	if err == nil {
		c, err = r.postCreate(req, r.ids.Draw(r.o.Clock()), to)
	}
	return Posted{c, r.round.Load()}, err
}

// mayAskToCreate makes the checks of a create that come before its key.
func (r *Router) mayAskToCreate(req *CreateRequest) error {
	definition := r.catalog.Creatable
	if req.Retry.Key != "" {
		definition = r.catalog.Newest // a retry is answered also when the file has gone
	}
	d, err := definition(req.WorkflowID)
	if err != nil {
		return err
	}
	if d.CreateRight(catalog.CallerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return failure.ErrForbidden
	}
	return nil
}

// createOnce creates under an idempotency key. The key chooses the shard, so
// that the row that remembers it is written in the same batch as the instance
// and a retry finds it without a global index.
func (r *Router) createOnce(req *CreateRequest) (*Reply, error) {
	digest, sh := r.placeOf(req.Caller, req.Retry.Key)
	release, err := r.keys.Hold(digest, r.waitFor)
	if err != nil {
		return nil, err
	}
	defer release()
	first, err := r.firstCreation(req, sh, digest)
	if first == nil && err == nil {
		err = req.Refusal
	}
	if first != nil || err != nil {
		return first, err
	}
	return r.createAs(req, r.drawIn(r.o.Clock(), sh))
}

// placeOf returns the digest of a key that belongs to no instance, and the shard of its row.
func (r *Router) placeOf(caller *identity.Principal, key string) (retry.Digest, persistence.Shard) {
	digest := retry.DigestOf(string(caller.ID), key)
	// NB: a part of the format on disk: the row of a first answer is found only where it
	// was put.
	return digest, persistence.Shard(binary.BigEndian.Uint64(digest[:8]) % uint64(r.store.ShardCount()))
}

// KeepKey remembers that a key of the caller's stands for all that fingerprint is of, and
// returns when that is durable: failure.ErrKeyReused when it stands for something else.
func (r *Router) KeepKey(caller *identity.Principal, key Retry) error {
	digest, sh := r.placeOf(caller, key.Key)
	release, err := r.keys.Hold(digest, r.waitFor)
	if err != nil {
		return err
	}
	defer release()
	if err := r.Accepting(); err != nil {
		return err
	}
	return retry.Keep(r.store, sh, digest, &retry.First{Fingerprint: key.Fingerprint, At: r.o.Clock().UnixMilli()})
}

// waitFor waits until the request that holds a key has its answer, or failure.ErrBusy.
func (r *Router) waitFor(done <-chan struct{}) error {
	for range int(r.o.ReplyWaitMax/sweepEvery) + 1 {
		select {
		case <-done:
			return nil
		case <-r.ticks():
		}
	}
	return failure.ErrBusy
}

// firstCreation returns the first answer to the key; nil when the key is new.
func (r *Router) firstCreation(req *CreateRequest, sh persistence.Shard, digest retry.Digest) (*Reply, error) {
	if err := r.store.AwaitVisible(); err != nil { // the first request may have given up before that
		return nil, failure.OfStore(err)
	}
	first, err := retry.Load(r.store, persistence.ReplyKey(nil, sh, persistence.ID{}, digest), req.Retry.Fingerprint)
	if first == nil || err != nil {
		return nil, err
	}
	// Nor need it be durable.
	if err := r.store.AwaitDurable(); err != nil {
		return nil, failure.OfStore(err)
	}
	i := &instance{router: r, id: first.Instance, name: instanceid.Text(first.Instance), workflowID: req.WorkflowID, shard: sh}
	return i.repeated(first, req.WithHistory)
}

// drawIn draws until the id lies in the shard.
func (r *Router) drawIn(now time.Time, sh persistence.Shard) persistence.ID {
	for {
		if id := r.ids.Draw(now); r.store.ShardOf(id) == sh {
			return id
		}
	}
}

// mayCreate says whether the service and the caller's quota allow a create that
// repeats no other.
func (r *Router) mayCreate(req *CreateRequest) error {
	err := r.Accepting()
	if err == nil && !req.NoQuota && !req.Counted {
		err = r.countRefusal(r.createQuota.Take(req.Caller.ID, r.o.Clock()))
		req.Counted = err == nil
	}
	return err
}

// createAs creates under a new id.
func (r *Router) createAs(req *CreateRequest, id persistence.ID) (*Reply, error) {
	c, err := r.postCreate(req, id, nil)
	if err != nil {
		return nil, err
	}
	return r.wait(c)
}

// postCreate starts an actor under a new id and lets it create the instance.
func (r *Router) postCreate(req *CreateRequest, id persistence.ID, to Recipient) (*call, error) {
	pin, err := r.catalog.Pin(req.WorkflowID)
	if err != nil {
		return nil, err
	}
	if err = r.mayCreate(req); err == nil {
		err = r.admit()
	}
	if err != nil {
		pin.Release()
		return nil, err
	}
	a, _ := r.awake.Compute(id, func(*activation, bool) (*activation, xsync.ComputeOp) {
		a := r.spawn(&instance{workflowID: req.WorkflowID, id: id, of: pin.Definition()})
		err = a.acquire() // before the sweep can see it
		return a, xsync.UpdateOp
	})
	if err != nil {
		pin.Release()
		r.inFlight.Add(-1)
		return nil, err
	}
	return r.send(a, createInstance{req, pin}, to), nil
}
