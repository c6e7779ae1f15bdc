package workflow

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine"
)

// latch makes requests with the same idempotency key wait for each other.
type latch struct{ open chan struct{} }

// Create makes a new instance.
func (r *Router) Create(_ context.Context, req *CreateRequest) (*Reply, error) {
	offered := r.catalog.offered
	if req.Retry.Key != "" {
		offered = r.catalog.newest // a retry is answered also when the file has gone
	}
	d, err := offered(req.WorkflowID)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", req.WorkflowID, err)
	}
	if d.CreateRight(callerOf(req.Caller), r.o.Clock()) == statemachine.Denied {
		return nil, fmt.Errorf("create %s: %w", req.WorkflowID, failure.ErrForbidden)
	}
	create := r.createNew
	if req.Retry.Key != "" {
		create = r.createOnce
	} else if req.Refusal != nil {
		return nil, req.Refusal
	}
	reply, err := create(req)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", req.WorkflowID, err)
	}
	return reply, nil
}

// createNew creates with an id drawn freely.
func (r *Router) createNew(req *CreateRequest) (*Reply, error) {
	return r.createAs(req, r.ids.draw(r.o.Clock()))
}

// createOnce creates under an idempotency key. The key chooses the shard, so
// that the row that remembers it is written in the same batch as the instance
// and a retry finds it without a global index
// (gateway/INTERFACE.md, "Instance identifiers").
func (r *Router) createOnce(req *CreateRequest) (*Reply, error) {
	digest := digestOf(string(req.Caller.ID), req.Retry.Key)
	sh := persistence.Shard(binary.BigEndian.Uint64(digest[:8]) % uint64(r.store.ShardCount()))
	own := &latch{make(chan struct{})}
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
		close(own.open)
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

// waitFor waits until the latch opens, or failure.ErrBusy.
func (r *Router) waitFor(l *latch) error {
	for range int(r.o.ReplyWaitMax/sweepEvery) + 1 {
		select {
		case <-l.open:
			return nil
		case <-r.ticks():
		}
	}
	return failure.ErrBusy
}

// firstCreation returns what the key was answered before; nil when it is new.
func (r *Router) firstCreation(req *CreateRequest, sh persistence.Shard, digest replyDigest) (*Reply, error) {
	first, err := r.firstAnswer(persistence.ReplyKey(nil, sh, persistence.ID{}, digest), req.Retry.Fingerprint)
	if first == nil || err != nil {
		return nil, err
	}
	// The first request may have given up before its commit was durable.
	if err := r.store.AwaitDurable(); err != nil {
		return nil, failure.OfStore(err)
	}
	i := &instance{router: r, id: first.instance, name: instanceName(first.instance), workflowID: req.WorkflowID, shard: sh}
	return i.reply(first.head, first.tail, first.sequence, req.WithHistory)
}

// mayCreate is maySend for a create that repeats none.
func (r *Router) mayCreate(req *CreateRequest) error {
	if err := r.accepting(); err != nil || req.NoQuota {
		return err
	}
	return r.countRefusal(r.creates.Take(req.Caller.ID, r.o.Clock()))
}

// createAs starts an actor under a new id and lets it create the instance.
func (r *Router) createAs(req *CreateRequest, id persistence.ID) (*Reply, error) {
	offer, err := r.catalog.claim(req.WorkflowID)
	if err != nil {
		return nil, err
	}
	if err = r.mayCreate(req); err == nil {
		err = r.admit()
	}
	if err != nil {
		offer.release()
		return nil, err
	}
	e, _ := r.awake.Compute(id, func(*entry, bool) (*entry, xsync.ComputeOp) {
		e := r.spawn(&instance{workflowID: req.WorkflowID, id: id, of: offer.Definition})
		err = e.acquire() // before the sweep can see it
		return e, xsync.UpdateOp
	})
	if err != nil {
		offer.release()
		r.inFlight.Add(-1)
		return nil, err
	}
	c := newCall(e)
	c.create, c.claim = req, offer
	r.o.System.Root().Send(e.pid, c)
	reply, err := r.wait(c)
	if err != nil && e.close() {
		r.remove(e) // nothing was created: nobody will ask for this id
	}
	return reply, err
}
