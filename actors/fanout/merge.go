package fanout

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

const (
	// LeaderMax is how long a fan-out waits for leaders of all shards, and for nodes that answer.
	LeaderMax = 10 * time.Second
	askPause  = 50 * time.Millisecond // askPause is the time before a node is asked again that could not answer
)

// ErrEnough, returned by yield, ends Merge, which returns nil.
var ErrEnough = errors.New("seen enough")

// Merging says how parts become one list.
type Merging[Item any] struct {
	// Shards are those that are asked; nil: all.
	Shards []key.Shard
	Order  func(a, b Item) int // of the list; items that are equal come in the order of their parts' first shards
	// Ahead is how many items of each part are kept until the list comes to them: with as many as a part can have, no
	// leader ever waits for this node while it holds what its other readers need.
	Ahead int
	// Ends has the parts read to their end after ErrEnough.
	Ends bool
}

// Merge calls yield with the items of all shards in order, and returns the ends of the parts. Until the first item of a
// part is needed it may be asked again, of another node; after that its failure is that of the list, which
// would else be of two moments. failure.ErrUnavailable: a shard has had no leader for LeaderMax, or the node does not answer.
func (k *Kind[In, Item, End]) Merge(ctx context.Context, in *In, of Merging[Item], yield func(Item) error) ([]End, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &merge[In, Item, End]{kind: k, in: in, of: of, ctx: ctx, until: time.Now().Add(LeaderMax)}
	defer m.running.Wait()
	defer cancel()
	shards := of.Shards
	if shards == nil {
		shards = k.service.shards
	}
	if err := m.open(shards); err != nil {
		return nil, err
	}
	for i := 0; i < len(m.parts); i++ { // NB: a part that is asked again adds others
		if err := m.first(m.parts[i]); err != nil {
			return nil, err
		}
	}
	return m.run(yield)
}

type merge[In, Item, End any] struct {
	kind    *Kind[In, Item, End]
	in      *In
	of      Merging[Item]
	ctx     context.Context //nolint:containedctx // of the call
	until   time.Time       // a part is asked again before
	running sync.WaitGroup
	parts   []*part[Item, End]
	heap    partHeap[Item, End]
	ends    []End
}

// part is what one node answers.
type part[Item, End any] struct {
	shards []key.Shard
	items  chan Item // closed at the end
	item   Item      // the present one

	// Valid after items is closed.
	end      End
	err      error
	panicked any
}

// next takes the next item; false when there is none.
func (p *part[Item, End]) next() (ok bool) {
	if p.item, ok = <-p.items; !ok && p.panicked != nil {
		panic(p.panicked) // whoever called Merge catches it
	}
	return ok
}

// open asks the leaders of some shards.
func (m *merge[In, Item, End]) open(shards []key.Shard) error {
	ctx, cancel := context.WithDeadline(m.ctx, m.until)
	defer cancel()
	by, _, err := m.kind.service.byLeader(ctx, shards)
	if err != nil {
		return err
	}
	for _, of := range by {
		p := &part[Item, End]{shards: of.shards, items: make(chan Item, m.of.Ahead)}
		m.parts = append(m.parts, p)
		m.running.Go(func() { m.read(of, p) })
	}
	return nil
}

// led are shards that one node leads.
type led struct {
	node   string // "": this one
	shards []key.Shard
}

// byLeader is in the order of each node's first shard. It waits for leaders until ctx ends: err is why those in without
// have none.
func (s *Service) byLeader(ctx context.Context, shards []key.Shard) (by []led, without []key.Shard, err error) {
	for _, sh := range shards {
		node, none := s.peers.Leader(ctx, sh)
		if none != nil {
			without, err = append(without, sh), none
			continue
		}
		i := slices.IndexFunc(by, func(l led) bool { return l.node == node })
		if i < 0 {
			i, by = len(by), append(by, led{node: node})
		}
		by[i].shards = append(by[i].shards, sh)
	}
	return by, without, err
}

// readOf reads some shards where they are led.
func (k *Kind[In, Item, End]) readOf(ctx context.Context, of led, in *In, yield func(Item) error) (End, error) {
	if of.node == "" {
		return k.read(ctx, of.shards, in, yield)
	}
	return k.ask(ctx, of.node, of.shards, in, yield)
}

func (m *merge[In, Item, End]) read(of led, p *part[Item, End]) {
	defer func() {
		p.panicked = recover()
		close(p.items)
	}()
	p.end, p.err = m.kind.readOf(m.ctx, of, m.in, func(item Item) error {
		select {
		case p.items <- item:
			return nil
		case <-m.ctx.Done():
			return m.ctx.Err()
		}
	})
}

// first waits for the first item of a part. What could not be read is asked again.
func (m *merge[In, Item, End]) first(p *part[Item, End]) error {
	switch {
	case p.next():
		m.heap.parts = append(m.heap.parts, p)
		return nil
	case p.err == nil:
		m.ends = append(m.ends, p.end)
		return nil
	case m.ctx.Err() != nil:
		return m.ctx.Err()
	case !isAskedAgain(p.err) || time.Now().After(m.until):
		return unavailable(p.err)
	}
	select {
	case <-time.After(askPause):
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
	return m.open(p.shards)
}

// isAskedAgain: another node may lead by now, or this one may be there again.
func isAskedAgain(err error) bool {
	kind := failure.Of(err).Kind
	return kind == failure.ErrNotLeader || kind == failure.ErrUnavailable
}

// unavailable is err, but that no other node is to be asked: any would ask the same ones.
func unavailable(err error) error {
	if failure.Of(err).Kind == failure.ErrNotLeader {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	return err
}

func (m *merge[In, Item, End]) run(yield func(Item) error) ([]End, error) {
	m.heap.order = m.of.Order
	heap.Init(&m.heap)
	for len(m.heap.parts) > 0 {
		p := m.heap.parts[0]
		err := yield(p.item)
		if errors.Is(err, ErrEnough) {
			return m.rest()
		}
		if err != nil {
			return nil, err
		}
		switch {
		case p.next():
			heap.Fix(&m.heap, 0)
		case p.err != nil:
			return nil, m.failed(p.err)
		default:
			heap.Pop(&m.heap)
			m.ends = append(m.ends, p.end)
		}
	}
	return m.ends, nil
}

func (m *merge[In, Item, End]) failed(err error) error {
	if m.ctx.Err() != nil {
		return m.ctx.Err()
	}
	return unavailable(err)
}

// rest reads the parts to their end, where that is asked for.
func (m *merge[In, Item, End]) rest() ([]End, error) {
	if !m.of.Ends {
		return m.ends, nil
	}
	for _, p := range m.heap.parts {
		for p.next() {
		}
		if p.err != nil {
			return nil, m.failed(p.err)
		}
		m.ends = append(m.ends, p.end)
	}
	return m.ends, nil
}

type partHeap[Item, End any] struct {
	parts []*part[Item, End]
	order func(a, b Item) int
}

func (h *partHeap[Item, End]) Len() int { return len(h.parts) }

func (h *partHeap[Item, End]) Less(a, b int) bool {
	order := h.order(h.parts[a].item, h.parts[b].item)
	return order < 0 || order == 0 && h.parts[a].shards[0] < h.parts[b].shards[0]
}

func (h *partHeap[Item, End]) Swap(a, b int) { h.parts[a], h.parts[b] = h.parts[b], h.parts[a] }

func (h *partHeap[Item, End]) Push(x any) {
	h.parts = append(h.parts, x.(*part[Item, End])) //nolint:forcetypeassert // only parts are in it
}

func (h *partHeap[Item, End]) Pop() any {
	last := h.parts[len(h.parts)-1]
	h.parts = slices.Delete(h.parts, len(h.parts)-1, len(h.parts))
	return last
}
