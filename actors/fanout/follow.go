package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"troupe/persistence/key"
)

// Follow calls yield with the items of some shards as they come, those of one shard in their order; nil: of all shards. A
// part that ends is asked again, of the node that leads then; in says what, which is its own, and is called between two
// calls of yield. Follow returns nil after ErrEnough, yield's other errors, ctx's, and failure.ErrUnavailable when a part
// cannot be read for LeaderMax.
func (k *Kind[In, Item, End]) Follow(ctx context.Context, shards []key.Shard, in func(shards []key.Shard) *In, yield func(Item) error) error {
	if shards == nil {
		shards = k.service.shards
	}
	inside, cancel := context.WithCancel(ctx)
	f := &follow[In, Item, End]{kind: k, ctx: inside, in: in, came: make(chan news[Item])}
	defer f.running.Wait()
	defer cancel()
	if err := f.open(shards, time.Now()); err != nil {
		return err
	}
	for {
		select {
		case n := <-f.came:
			err := f.take(&n, yield)
			if errors.Is(err, ErrEnough) {
				return nil
			}
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type follow[In, Item, End any] struct {
	kind    *Kind[In, Item, End]
	ctx     context.Context //nolint:containedctx // of the call
	in      func([]key.Shard) *In
	came    chan news[Item]
	running sync.WaitGroup
}

// news is an item, or the end of a part.
type news[Item any] struct {
	item     Item
	shards   []key.Shard // of the part that has ended; nil: none has
	failing  time.Time   // of it: since when no item has come
	err      error
	panicked any
}

func (f *follow[In, Item, End]) take(n *news[Item], yield func(Item) error) error {
	switch {
	case n.panicked != nil:
		panic(n.panicked) // whoever called Follow catches it
	case n.shards == nil:
		return yield(n.item)
	case f.ctx.Err() != nil:
		return f.ctx.Err()
	case n.err != nil && (!isAskedAgain(n.err) || time.Since(n.failing) > LeaderMax):
		return unavailable(n.err)
	}
	select { // NB: the others wait meanwhile
	case <-time.After(askPause):
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	return f.open(n.shards, n.failing)
}

// open asks the leaders of some shards. failing is since when none of these gave an item.
func (f *follow[In, Item, End]) open(shards []key.Shard, failing time.Time) error {
	ctx, cancel := context.WithTimeout(f.ctx, LeaderMax)
	defer cancel()
	by, err := f.kind.service.byLeader(ctx, shards)
	if err != nil {
		return err
	}
	for _, p := range by {
		in := f.in(p.shards)
		f.running.Go(func() { f.read(p, in, failing) })
	}
	return nil
}

func (f *follow[In, Item, End]) read(p led, in *In, failing time.Time) {
	give := func(n news[Item]) error {
		select {
		case f.came <- n:
			return nil
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
	end := news[Item]{shards: p.shards, failing: failing}
	defer func() {
		end.panicked = recover()
		_ = give(end) // nobody follows any more
	}()
	_, end.err = f.kind.readOf(f.ctx, p, in, func(item Item) error {
		end.failing = time.Now()
		return give(news[Item]{item: item})
	})
	if end.err == nil {
		end.failing = time.Now()
	}
}
