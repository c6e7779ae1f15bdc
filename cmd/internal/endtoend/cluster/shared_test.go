package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"troupe/gateway/client"
)

// counter is a workflow that takes its event at any time, so that several may send to one instance.
const (
	counterID = "counter"
	counter   = `id: counter
name: Counter
version: 1
allow:
  create: {roles: [employee]}
  read: {roles: [employee]}
  send: {roles: [employee]}
stateMachines:
  main:
    initial: counting
    states:
      counting:
        on:
          count: counting
`
)

const (
	// sharers is how many workers use a pool, sharedNow how many instances it has at a time,
	// and sharedMax how many operations one sees before another one takes its place.
	sharers, sharedNow, sharedMax = 4, 3, 1000
	// judgeMax is how long the judgement of one history may take. One without an outcome is a
	// failure.
	judgeMax = time.Minute
)

// pool is the instances that several workers send to and read, and what they saw.
type pool struct {
	begun time.Time

	mu  sync.Mutex
	now [sharedNow]*shared
	all []*shared // all that were made

	operations int // that were judged
}

// shared is an instance of a pool.
type shared struct {
	id      string
	entries uint64 // after the last judgement

	mu      sync.Mutex
	history []porcupine.Operation // since then
}

// model is an instance as the number of its entries. The input of an operation says whether it
// is an event, which adds one; its output is the number that was seen, with that one. An event
// whose answer was lost is repeated with its key until there is one: it is one operation.
func model(entries uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return entries },
		Step: func(state, input, output any) (bool, any) {
			entries, event := state.(uint64), input.(bool)
			if event {
				entries++
			}
			return output.(uint64) == entries, entries
		},
	}
}

// share does one operation on an instance of the pool.
func (w *worker) share(ctx context.Context) error {
	in, err := w.chooseShared(ctx, rand.IntN(sharedNow))
	if err != nil {
		return err
	}
	event, called, seen := rand.IntN(2) == 0, time.Since(w.pool.begun), uint64(0)
	if event {
		key := client.NewKey()
		err = w.insist(ctx, 1, func(ctx context.Context, c *client.Client) error {
			moved, err := c.Send(ctx, client.SendRequest{WorkflowID: counterID, InstanceID: in.id, Event: "count", Data: json.RawMessage(`{}`), Key: key, Minimal: true})
			if err == nil {
				seen = moved.Sequence
			}
			return err
		})
	} else {
		var found *client.Instance
		if _, found, err = w.look(ctx, counterID, in.id); found == nil {
			return err
		}
		seen = found.Sequence
	}
	if err != nil {
		return fmt.Errorf("shared instance %s: %w", in.id, err)
	}
	in.saw(w.number, event, seen, called, time.Since(w.pool.begun))
	return nil
}

// saw notes an operation.
func (in *shared) saw(client int, event bool, seen uint64, called, returned time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.history = append(in.history, porcupine.Operation{ClientId: client, Input: event, Output: seen, Call: int64(called), Return: int64(returned)})
}

// chooseShared returns the instance at a place of the pool, which it may have to make.
func (w *worker) chooseShared(ctx context.Context, place int) (*shared, error) {
	p := w.pool
	p.mu.Lock()
	in := p.now[place]
	p.mu.Unlock()
	if in != nil {
		in.mu.Lock()
		full := len(in.history) >= sharedMax
		in.mu.Unlock()
		if !full {
			return in, nil
		}
	}
	id, err := w.create(ctx, counterID, "{}")
	if err != nil {
		return nil, err
	}
	in = &shared{id: id, entries: 1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[place] = in // NB: two may do this at once; then one has less to do
	p.all = append(p.all, in)
	return in, nil
}

// judge holds that what everybody saw of each instance is what a single one in one place would
// have shown them (linearizability). The workers stand still meanwhile, so what each node shows
// now belongs to it.
func (p *pool) judge(ctx context.Context, nodes []*Node) error {
	for _, in := range p.all {
		if len(in.history) == 0 {
			continue
		}
		for i, n := range nodes {
			called := time.Since(p.begun)
			found, err := read(ctx, n, counterID, in.id)
			if err != nil {
				return err
			}
			in.saw(-1-i, false, found.Sequence, called, time.Since(p.begun))
		}
		if err := in.judge(); err != nil {
			return err
		}
		p.operations += len(in.history)
		in.entries, in.history = in.history[len(in.history)-1].Output.(uint64), nil
	}
	return nil
}

// judge judges what was seen since the last judgement.
func (in *shared) judge() error {
	if verdict := porcupine.CheckOperationsTimeout(model(in.entries), in.history, judgeMax); verdict != porcupine.Ok {
		return fmt.Errorf("%w: what was seen of %s in %d operations is not that of one instance: %s", errWrong, in.id, len(in.history), verdict)
	}
	return nil
}

// check holds that a node has what was judged.
func (p *pool) check(ctx context.Context, n *Node) error {
	for _, in := range p.all {
		found, err := read(ctx, n, counterID, in.id)
		if err != nil {
			return err
		}
		if found.Sequence != in.entries {
			return fmt.Errorf("%w: %s, read through %s, has %d entries, and everybody saw %d", errWrong, in.id, n.Home, found.Sequence, in.entries)
		}
	}
	return nil
}
