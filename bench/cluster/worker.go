package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"troupe/bench/load"
	"troupe/gateway/client"
)

const (
	// held is how many instances a worker sends to, and entriesMax how long their histories get
	// before others take their place.
	held, entriesMax = 4, 250
	// attemptMax is the patience of a first attempt; later ones have more.
	attemptMax = time.Second
	// outageMax is how long one event may take with all its attempts.
	outageMax = 2 * wholeMax
	// pace is the pause after an event: the cluster shall be loaded and not overloaded.
	pace = 5 * time.Millisecond
)

// instance is what one must be like.
type instance struct {
	id    string
	acked uint64 // history entries, that of its creation included
}

// ledger is what workers know and found.
type ledger struct {
	mu      sync.Mutex
	last    time.Time     // of the last acknowledgement
	gap     time.Duration // the longest time without one
	slowest time.Duration // the longest time that one event took, with all its attempts
	acks    int
	made    []*instance // all, in any order; each belongs to one worker
}

// acked notes an acknowledgement of something that was begun at a time.
func (l *ledger) acked(begun time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.gap = max(l.gap, now.Sub(l.last))
	l.slowest = max(l.slowest, now.Sub(begun))
	l.last = now
	l.acks++
}

// begin forgets the times of what was before.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.gap, l.slowest = time.Now(), 0, 0
}

// times are those since begin.
func (l *ledger) times() (gap, slowest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.gap, time.Since(l.last)), l.slowest
}

// worker sends to instances of its own.
type worker struct {
	fleet     *fleet
	ledger    *ledger
	node      *node
	instances []*instance
	// between is held while something is under way. Who locks it finds everything acknowledged.
	between sync.RWMutex
}

// run sends events until ctx ends or something is wrong.
func (w *worker) run(ctx context.Context) error {
	w.instances = make([]*instance, held)
	for ctx.Err() == nil {
		w.between.RLock()
		err := w.one(ctx, rand.IntN(held))
		w.between.RUnlock()
		if err != nil {
			return err
		}
		wait(ctx, pace)
	}
	return nil
}

// one sends an event to an instance, or makes it.
func (w *worker) one(ctx context.Context, i int) error {
	// NB: what was begun is carried through, so that nothing stays unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outageMax)
	defer cancel()
	at := w.instances[i]
	if at == nil || at.acked >= entriesMax {
		made, err := w.create(ctx)
		if err == nil {
			w.instances[i] = made
		}
		return err
	}
	event, _, _ := load.Turn(int(at.acked - 1))
	data := fmt.Sprintf(`{"days":3,"n":%d}`, at.acked)
	key := client.NewKey()
	var moved *client.Instance
	err := w.insist(ctx, func(ctx context.Context, c *client.Client) (err error) {
		moved, err = c.Send(ctx, client.SendRequest{WorkflowID: load.WorkflowID, InstanceID: at.id, Event: event, Data: json.RawMessage(data), Key: key, Minimal: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("event %d of %s, key %s: %w", at.acked, at.id, key, err)
	}
	if moved.Sequence != at.acked+1 {
		return fmt.Errorf("event %d of %s, key %s, was acknowledged as entry %d", at.acked, at.id, key, moved.Sequence)
	}
	at.acked++
	if rand.IntN(20) > 0 {
		return nil
	}
	// NB: without insist: a node that cannot answer may refuse, and one that answers must know it.
	n := w.fleet.nodes[rand.IntN(nodeCount)]
	ctx, cancel = context.WithTimeout(ctx, attemptMax)
	defer cancel()
	found, err := n.client.Instance(ctx, client.InstanceRequest{WorkflowID: load.WorkflowID, InstanceID: at.id, Minimal: true})
	if err == nil && found.Sequence != at.acked {
		return fmt.Errorf("%s was read through %s with %d entries, and has %d", at.id, n.home, found.Sequence, at.acked)
	}
	if err != nil && !passing(err) {
		return fmt.Errorf("read %s through %s: %w", at.id, n.home, err)
	}
	return nil
}

func (w *worker) create(ctx context.Context) (*instance, error) {
	key := client.NewKey()
	made := &instance{acked: 1}
	err := w.insist(ctx, func(ctx context.Context, c *client.Client) error {
		public, _ := load.CreateData()
		reply, err := c.Create(ctx, client.CreateRequest{WorkflowID: load.WorkflowID, Public: json.RawMessage(public), Key: key, Minimal: true})
		if err == nil {
			made.id = reply.ID
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create, key %s: %w", key, err)
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	w.ledger.made = append(w.ledger.made, made)
	return made, nil
}

// insist does something at one node, and at others, until it is acknowledged.
func (w *worker) insist(ctx context.Context, do func(context.Context, *client.Client) error) error {
	begun := time.Now()
	for patience := attemptMax; ; patience = min(2*patience, 15*time.Second) {
		if w.node == nil || rand.IntN(10) == 0 {
			w.node = w.fleet.nodes[rand.IntN(nodeCount)]
		}
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := do(attempt, w.node.client)
		cancel()
		if err == nil {
			w.ledger.acked(begun)
			return nil
		}
		if !passing(err) {
			return fmt.Errorf("through %s, after %s: %w", w.node.home, time.Since(begun), err)
		}
		w.node = nil
		if !wait(ctx, 20*time.Millisecond) {
			return fmt.Errorf("not acknowledged for %s: %w", time.Since(begun), err)
		}
	}
}

// passing reports whether an error is one that a cluster under faults may give.
func passing(err error) bool {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return !errors.Is(err, client.ErrInvalid) && !errors.Is(err, client.ErrProtocol)
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
