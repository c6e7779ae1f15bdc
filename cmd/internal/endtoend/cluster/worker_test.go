package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"troupe/bench/load"
	"troupe/gateway/client"
)

const (
	// held is how many instances a worker sends to, and entriesMax how long their histories get
	// before others take their place.
	held, entriesMax = 32, 250
	// batchMax is the most items of a batch.
	batchMax = 100
	// attemptMax is the patience of a first attempt; later ones have more. NB: with a second, what a loaded
	// cluster had still to do was repeated, and it did half as much.
	attemptMax = 3 * time.Second
	// outageMax is how long one event may take with all its attempts.
	outageMax = 2 * WholeMax
	// pace is the pause after a request: the cluster shall be loaded and not overloaded.
	pace = 20 * time.Millisecond
)

// instance is what one must be like.
type instance struct {
	id    string
	acked uint64 // history entries, that of its creation included
}

// ledger is what workers know and found.
type ledger struct {
	asked [Count]atomic.Int64 // requests that wait for an answer, by node

	mu      sync.Mutex
	last    time.Time     // of the last acknowledgement
	gap     time.Duration // the longest time without one
	slowest time.Duration // the longest time that one event took, with all its attempts
	acks    int
	made    []*instance // all, in any order; each belongs to one worker
}

// choose returns one of two nodes, the one that has fewer requests to answer, as balancers do: or all
// workers would soon wait for a node that is ill. It is not the one at not.
func (l *ledger) choose(not int) int {
	a := rand.IntN(Count)
	b := (a + 1 + rand.IntN(Count-1)) % Count
	if a == not || b != not && l.asked[b].Load() < l.asked[a].Load() {
		return b
	}
	return a
}

// acked notes the acknowledgement of some things that were begun at a time.
func (l *ledger) acked(begun time.Time, things int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.gap = max(l.gap, now.Sub(l.last))
	l.slowest = max(l.slowest, now.Sub(begun))
	l.last = now
	l.acks += things
}

// begin forgets the times of what was before.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.gap, l.slowest = time.Now(), 0, 0
}

// times are those since begin; acks is how many things were acknowledged so far.
func (l *ledger) times() (gap, slowest time.Duration, acks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.gap, time.Since(l.last)), l.slowest, l.acks
}

// worker sends to instances of its own, or to those of a pool.
type worker struct {
	fleet     *Fleet
	ledger    *ledger
	pool      *pool // nil: to its own
	number    int
	node      int // among those of the fleet: where it sends
	instances []*instance
	// between is held while something is under way. Who locks it finds everything acknowledged.
	between sync.RWMutex
}

// run sends until ctx ends or something is wrong.
func (w *worker) run(ctx context.Context) error {
	w.instances = make([]*instance, held)
	for ctx.Err() == nil {
		w.between.RLock()
		err := w.step(context.WithoutCancel(ctx)) // NB: what was begun is carried through, so that nothing stays unknown
		w.between.RUnlock()
		if err != nil {
			return err
		}
		load.Sleep(ctx, pace)
	}
	return nil
}

// step sends one request, until it is acknowledged.
func (w *worker) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outageMax)
	defer cancel()
	switch {
	case w.pool != nil:
		return w.share(ctx)
	case rand.IntN(5) > 0: // NB: a single event takes a multiple of the processor time, and says no more
		return w.batch(ctx)
	}
	return w.one(ctx, rand.IntN(held))
}

// full reports whether another instance takes the place of at.
func (at *instance) full() bool { return at == nil || at.acked >= entriesMax }

// next is the event that comes after some entries.
func next(entries uint64) (event string, data json.RawMessage) {
	event, _, _ = load.Turn(int(entries - 1))
	return event, fmt.Appendf(nil, `{"days":3,"n":%d}`, entries)
}

// one sends an event to an instance, or makes it.
func (w *worker) one(ctx context.Context, i int) error {
	at := w.instances[i]
	if at.full() {
		public, _ := load.CreateData()
		id, err := w.create(ctx, load.WorkflowID, public)
		if err == nil {
			w.instances[i] = w.ledger.created(id)
		}
		return err
	}
	event, data := next(at.acked)
	key := client.NewKey()
	var moved *client.Instance
	err := w.insist(ctx, 1, func(ctx context.Context, c *client.Client) (err error) {
		moved, err = c.Send(ctx, client.SendRequest{WorkflowID: load.WorkflowID, InstanceID: at.id, Event: event, Data: data, Key: key, Minimal: true})
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
	n, found, err := w.look(ctx, load.WorkflowID, at.id)
	if found != nil && found.Sequence != at.acked {
		return fmt.Errorf("%s was read through %s with %d entries, and has %d", at.id, n.Home, found.Sequence, at.acked)
	}
	return err
}

// look reads an instance through any node, once: a node that cannot answer may refuse, and one
// that answers must know it. found is nil when it did not answer.
func (w *worker) look(ctx context.Context, workflow, id string) (n *Node, found *client.Instance, err error) {
	n = w.fleet.Nodes[rand.IntN(Count)]
	ctx, cancel := context.WithTimeout(ctx, attemptMax)
	defer cancel()
	found, err = n.Client.Instance(ctx, client.InstanceRequest{WorkflowID: workflow, InstanceID: id, Minimal: true})
	switch {
	case err == nil:
		return n, found, nil
	case !passing(err):
		return n, nil, fmt.Errorf("read %s through %s: %w", id, n.Home, err)
	}
	return n, nil, nil
}

// create makes an instance.
func (w *worker) create(ctx context.Context, workflow, public string) (id string, err error) {
	key := client.NewKey()
	err = w.insist(ctx, 1, func(ctx context.Context, c *client.Client) error {
		reply, err := c.Create(ctx, client.CreateRequest{WorkflowID: workflow, Public: json.RawMessage(public), Key: key, Minimal: true})
		if err == nil {
			id = reply.ID
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create, key %s: %w", key, err)
	}
	return id, nil
}

// created notes an instance that was made.
func (l *ledger) created(id string) *instance {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := &instance{id: id, acked: 1}
	l.made = append(l.made, made)
	return made
}

// insist does some things at one node, and at others, until they are acknowledged.
func (w *worker) insist(ctx context.Context, things int, do func(context.Context, *client.Client) error) error {
	begun := time.Now()
	for patience := attemptMax; ; patience = min(2*patience, 15*time.Second) {
		if rand.IntN(10) == 0 {
			w.node = w.ledger.choose(-1)
		}
		node := w.fleet.Nodes[w.node]
		w.ledger.asked[w.node].Add(1)
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := do(attempt, node.Client)
		cancel()
		w.ledger.asked[w.node].Add(-1)
		if err == nil {
			w.ledger.acked(begun, things)
			return nil
		}
		if !passing(err) {
			return fmt.Errorf("through %s, after %s: %w", node.Home, time.Since(begun), err)
		}
		w.node = w.ledger.choose(w.node)
		if !load.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("not acknowledged for %s: %w", time.Since(begun), err)
		}
	}
}

// errWrong: an answer that no correct cluster gives.
var errWrong = errors.New("wrong")

// passing reports whether an error is one that a cluster under faults may give.
func passing(err error) bool {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return !errors.Is(err, errWrong) && !errors.Is(err, client.ErrInvalid) && !errors.Is(err, client.ErrProtocol)
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
