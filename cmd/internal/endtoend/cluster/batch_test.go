package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"

	"troupe/bench/load"
	"troupe/gateway/client"
)

// batched is an item of a batch and what it must be answered.
type batched struct {
	place    int       // of the instance, among the worker's
	at       *instance // nil: the item makes one
	sequence uint64
	id       string // of the instance; empty while it is not known
	done     bool   // it was acknowledged
}

// batch sends events to several instances in one request, some of them one after the other
// to the same, and makes those that are not there.
func (w *worker) batch(ctx context.Context) error {
	request, items := w.draw()
	err := w.insist(ctx, len(items), func(ctx context.Context, c *client.Client) error {
		results, err := c.Batch(ctx, request)
		if err != nil {
			return err
		}
		return acknowledge(items, results)
	})
	if err != nil {
		return fmt.Errorf("a batch of %d items, key %s: %w", len(items), request.Key, err)
	}
	for _, b := range items {
		if b.at == nil {
			w.instances[b.place] = w.ledger.created(b.id)
		} else {
			b.at.acked = b.sequence
		}
	}
	return nil
}

// draw chooses the items of a batch.
func (w *worker) draw() (client.BatchRequest, []batched) {
	request := client.BatchRequest{Key: client.NewKey()}
	var items []batched
	entries := map[int]uint64{} // that the instances have after the items so far
	for range 1 + rand.IntN(batchMax) {
		i := rand.IntN(held)
		at := w.instances[i]
		had, again := entries[i]
		switch {
		case at.full() && again: // its id is not known yet
			continue
		case at.full():
			public, _ := load.CreateData()
			entries[i] = 1
			items = append(items, batched{place: i, sequence: 1})
			request.Items = append(request.Items, fmt.Appendf(nil, `{"workflowId":%q,"data":{"svcPublic":%s}}`, load.WorkflowID, public))
			continue
		case !again:
			had = at.acked
		}
		event, data := next(had)
		entries[i] = had + 1
		items = append(items, batched{place: i, at: at, id: at.id, sequence: had + 1})
		request.Items = append(request.Items, fmt.Appendf(nil, `{"workflowId":%q,"instanceId":%q,"event":{"name":%q,"data":%s}}`, load.WorkflowID, at.id, event, data))
	}
	return request, items
}

// acknowledge notes which items are done. The error is that of one that is not yet, or that never
// can be.
func acknowledge(items []batched, results []client.BatchResult) (missing error) {
	for i := range items {
		b, r := &items[i], &results[i]
		err := r.Err()
		switch {
		case err == nil && (r.Sequence != b.sequence || b.id != "" && r.InstanceID != b.id):
			err = fmt.Errorf("%w: it was acknowledged as entry %d of %s", errWrong, r.Sequence, r.InstanceID)
		case err == nil:
			b.id, b.done = r.InstanceID, true
			continue
		case b.done && passing(err):
			continue // it was acknowledged by an earlier attempt
		}
		err = fmt.Errorf("item %d, entry %d of %q: %w", i, b.sequence, b.id, err)
		if !passing(err) {
			return err
		}
		missing = err
	}
	return missing
}
