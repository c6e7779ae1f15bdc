package workflow

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/persistence"
	"troupe/statemachine"
)

// inFlightKey makes requests with the same idempotency key wait for each other.
type inFlightKey struct{ done chan struct{} }

// Create makes a new instance.
func (r *Router) Create(_ context.Context, req *CreateRequest) (*Reply, error) {
	definition := r.catalog.Creatable
	if req.Retry.Key != "" {
		definition = r.catalog.Newest // a retry is answered also when the file has gone
	}
	d, err := definition(req.WorkflowID)
	if err != nil {
		return nil, failure.In("create", req.WorkflowID, err)
	}
	if d.CreateRight(catalog.CallerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return nil, failure.In("create", req.WorkflowID, failure.ErrForbidden)
	}
	create := r.createNew
	if req.Retry.Key != "" {
		create = r.createOnce
	} else if req.Refusal != nil {
		return nil, req.Refusal
	}
	reply, err := create(req)
	return reply, failure.In("create", req.WorkflowID, err)
}

// createNew creates with an id drawn freely.
func (r *Router) createNew(req *CreateRequest) (*Reply, error) {
	return r.createAs(req, r.ids.Draw(r.o.Clock()))
}

// createOnce creates under an idempotency key. The key chooses the shard, so
// that the row that remembers it is written in the same batch as the instance
// and a retry finds it without a global index.
func (r *Router) createOnce(req *CreateRequest) (*Reply, error) {
	digest := retry.DigestOf(string(req.Caller.ID), req.Retry.Key)
	// NB: a part of the format on disk: the row of a first answer is found only where it
	// was put.
	sh := persistence.Shard(binary.BigEndian.Uint64(digest[:8]) % uint64(r.store.ShardCount()))
	own := &inFlightKey{make(chan struct{})}
	for {
		held, loaded := r.creating.LoadOrStore(digest, own)
		if !loaded {
			break
		}
		if err := r.waitFor(held); err != nil {
			return nil, err
		}
	}
	defer func() {
		r.creating.Delete(digest)
		close(own.done)
	}()
	first, err := r.firstCreation(req, sh, digest)
	if first == nil && err == nil {
		err = req.Refusal
	}
	if first != nil || err != nil {
		return first, err
	}
	return r.createAs(req, r.drawIn(r.o.Clock(), sh))
}

// waitFor waits until the request with the key has its answer, or failure.ErrBusy.
func (r *Router) waitFor(k *inFlightKey) error {
	for range int(r.o.ReplyWaitMax/sweepEvery) + 1 {
		select {
		case <-k.done:
			return nil
		case <-r.ticks():
		}
	}
	return failure.ErrBusy
}

// firstCreation returns the first answer to the key; nil when the key is new.
func (r *Router) firstCreation(req *CreateRequest, sh persistence.Shard, digest retry.Digest) (*Reply, error) {
	first, err := retry.Load(r.store, persistence.ReplyKey(nil, sh, persistence.ID{}, digest), req.Retry.Fingerprint)
	if first == nil || err != nil {
		return nil, err
	}
	// The first request may have given up before its commit was durable.
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
	if err := r.accepting(); err != nil || req.NoQuota {
		return err
	}
	return r.countRefusal(r.createQuota.Take(req.Caller.ID, r.o.Clock()))
}

// createAs starts an actor under a new id and lets it create the instance.
func (r *Router) createAs(req *CreateRequest, id persistence.ID) (*Reply, error) {
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
	reply, err := r.wait(r.send(a, createInstance{req, pin}))
	if err != nil {
		r.letSleep(a, math.MaxInt64) // nothing was created: nobody will ask for this id
	}
	return reply, err
}
