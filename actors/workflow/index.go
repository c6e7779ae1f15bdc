package workflow

import (
	"errors"
	"fmt"
	"math"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// EnterIndex implements catalog.Instances.
func (r *Router) EnterIndex(workflowID string, id key.ID, ix *catalog.Index) (wait func() error, err error) {
	return r.have(workflowID, id, enterIndex{ix})
}

// have has an instance write something that nobody waits for. One that it wakes goes back to sleep as soon as that is durable, when wait
// returns.
func (r *Router) have(workflowID string, id key.ID, write request) (wait func() error, err error) {
	epoch, err := r.epochOf(r.store.ShardOf(id))
	if err != nil {
		return nil, err
	}
	for {
		woken := false
		if a, ok := r.awake.Load(id); ok && a.isOver() {
			a.abandon()
		}
		a, _ := r.awake.Compute(id, func(old *activation, loaded bool) (*activation, xsync.ComputeOp) {
			if loaded {
				return old, xsync.CancelOp
			}
			woken = true
			return r.spawn(&instance{workflowID: workflowID, id: id}, epoch), xsync.UpdateOp
		})
		switch err := a.acquire(); {
		case errors.Is(err, errAsleep):
			r.forget(a)
			continue
		case err != nil:
			return nil, err
		}
		r.inFlight.Add(1)
		c := r.send(a, write, nil)
		return func() error {
			_, err := r.wait(c)
			if woken {
				r.letSleep(a, math.MaxInt64)
			}
			return err
		}, nil
	}
}

// enterIndex is the request of EnterIndex. It needs no definition, which may be
// unreadable.
type enterIndex struct{ index *catalog.Index }

func (m enterIndex) run(i *instance, c *call) (err error) {
	r := i.router
	stored := &filter.Document{Public: i.state.Public, Private: i.state.Private}
	if !i.loaded {
		if _, err = i.rows(); err != nil {
			return err
		}
		if stored, err = r.storedDocument(i.shard, i.workflowID, i.id); err != nil {
			return failure.OfStore(err)
		}
	}
	c.commit = r.catalog.BeginCommit(i.shard)
	if stored == nil || !r.catalog.Maintains(i.workflowID, m.index) {
		c.endCommit()
		i.deliver(c, &message.Reply{})
		return nil
	}
	w := i.writes()
	i.scratch = m.index.Enter(w, i.scratch, i.shard, i.id, *stored)
	i.handOver(w, c, &message.Reply{})
	return nil
}

// storedDocument returns what indexes see of an instance in the store; nil when it was deleted,
// and when it cannot be read: a query that meets it says so, and the others must go on.
func (r *Router) storedDocument(sh key.Shard, workflow string, id key.ID) (*filter.Document, error) {
	stored, err := r.store.Load(key.Record(nil, sh, workflow, id))
	var record statemachine.Record
	if err == nil {
		record, err = statemachine.ParseRecord(stored)
	}
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return nil, nil
	case errors.Is(err, statemachine.ErrRecord), errors.Is(err, persistence.ErrCorrupt):
		r.metrics.damaged.Add(1)
		r.log.Error().Err(err).Str("workflow", workflow).Str("instance", instanceid.Text(id)).
			Msg("stored instance cannot be read and is in no index")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("instance %s: %w", instanceid.Text(id), err)
	}
	return &filter.Document{States: record.States, Public: record.Public, Private: record.Private}, nil
}
