package pending

import (
	"errors"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/outbox"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Counts is how much waits in the shards that this node leads.
type Counts struct {
	TasksOpen, IncidentsOpen int64
	TimersDue                int64 // whose deadline has passed, and whose events have not come yet
	// Pending and Dead count deliveries by outbox.Kinds.
	Pending, Dead map[string]int64
}

func newCounts() *Counts { return &Counts{Pending: map[string]int64{}, Dead: map[string]int64{}} }

func (c *Counts) add(of *Counts) {
	c.TasksOpen += of.TasksOpen
	c.IncidentsOpen += of.IncidentsOpen
	c.TimersDue += of.TimersDue
	for _, kind := range outbox.Kinds {
		c.Pending[kind] += of.Pending[kind]
		c.Dead[kind] += of.Dead[kind]
	}
}

// recountMax bounds the time of one call of Counter.Counts for shards that were counted before, so that a scrape takes as
// long in a store with millions of tasks as in one with thousands.
const recountMax = 50 * time.Millisecond

// Counter counts what waits. Nothing is counted as it changes, which would cost every commit something.
type Counter struct {
	store *persistence.Store
	clock func() time.Time

	mu   sync.Mutex
	of   []*Counts // by shard; nil: it was not led at the last look
	next int       // the shard that is counted first
}

// NewCounter returns a counter of what lists have.
func (l *Lists) NewCounter() *Counter {
	return &Counter{store: l.store, clock: l.clock, of: make([]*Counts, l.store.Shards())}
}

// Counts reads the rows of one shard after the other. When recountMax is over, it reads only those of shards that were not
// led before; of the others the counts are of an earlier call, and the next one begins with them.
func (c *Counter) Counts() (*Counts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total, began, first := newCounts(), time.Now(), c.next
	for i := range c.of {
		at := (first + i) % len(c.of)
		sh := key.Shard(at) //nolint:gosec // few
		if c.store.Epoch(sh) == 0 {
			c.of[at] = nil
			continue
		}
		if c.of[at] == nil || time.Since(began) < recountMax {
			counts, err := c.count(sh)
			switch {
			case errors.Is(err, failure.ErrNotLeader):
				c.of[at] = nil
				continue
			case err != nil:
				return nil, failure.In("count", "what waits", err)
			}
			c.of[at], c.next = counts, (at+1)%len(c.of)
		}
		total.add(c.of[at])
	}
	return total, nil
}

func (c *Counter) count(sh key.Shard) (counts *Counts, err error) {
	counts = newCounts()
	if counts.TasksOpen, err = task.CountOpen(c.store, sh); err != nil {
		return nil, err
	}
	err = c.store.Scan(key.IncidentPrefix(nil, sh), func(_, _ []byte) error {
		counts.IncidentsOpen++
		return nil
	})
	if err != nil {
		return nil, failure.OfStore(err)
	}
	err = c.store.Scan(key.DeliveriesPrefix(nil, sh), func(rowKey, value []byte) error {
		k, ok := key.ParseDelivery(rowKey)
		kind := outbox.QueueKind(k.Queue)
		switch state := outbox.StateOf(value); {
		case ok && state == outbox.Pending:
			counts.Pending[kind]++
		case ok && state == outbox.Dead:
			counts.Dead[kind]++
		default:
			return persistence.ErrCorrupt
		}
		return nil
	})
	if err != nil {
		return nil, failure.OfStore(err)
	}
	now := c.clock().UnixMilli()
	err = c.store.Scan(key.TimerPrefix(nil, sh), func(rowKey, _ []byte) error {
		if _, t, ok := key.ParseTimer(rowKey); !ok || t.Due > now {
			return errEnough // NB: they are in the order of their deadlines; who fires them reports damage
		}
		counts.TimersDue++
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, failure.OfStore(err)
	}
	return counts, nil
}
