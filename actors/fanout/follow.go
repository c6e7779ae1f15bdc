package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"troupe/persistence/key"
)

// Follow calls yield with the items of some shards as they come, those of one shard in their order; nil: of all shards. A
// part that ends is asked again, of the nodes that lead then, while the others go on; in says what, which is its own, and is
// called between two calls of yield. Follow returns nil after ErrEnough, yield's other errors, ctx's, and
// failure.ErrUnavailable when a part cannot be read for LeaderMax.
func (k *Kind[In, Item, End]) Follow(ctx context.Context, shards []key.Shard, in func(shards []key.Shard) *In, yield func(Item) error) error {
	if shards == nil {
		shards = k.service.shards
	}
	inside, cancel := context.WithCancel(ctx)
	f := &follow[In, Item, End]{kind: k, ctx: inside, in: in, came: make(chan news[Item])}
	defer f.running.Wait()
	defer cancel()
	f.running.Go(func() { f.find(shards, time.Time{}) })
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

// news is an item, the end of a part, or whom to ask for some.
type news[Item any] struct {
	item     Item
	found    []led
	shards   []key.Shard // of the part that has ended; nil: none has
	failing  time.Time   // of it, or of those that were found: since when they cannot be read; zero: they can
	err      error
	panicked any
}

func (f *follow[In, Item, End]) take(n *news[Item], yield func(Item) error) error {
	switch {
	case n.panicked != nil:
		panic(n.panicked) // whoever called Follow catches it
	case n.found != nil:
		for _, p := range n.found {
			in := f.in(p.shards)
			f.running.Go(func() { f.read(p, in, n.failing) })
		}
		return nil
	case n.shards == nil:
		return yield(n.item)
	case f.ctx.Err() != nil:
		return f.ctx.Err()
	case n.err != nil && (!isAskedAgain(n.err) || time.Since(n.failing) > LeaderMax):
		return unavailable(n.err)
	}
	f.running.Go(func() {
		select {
		case <-time.After(askPause):
			f.find(n.shards, n.failing)
		case <-f.ctx.Done():
		}
	})
	return nil
}

func (f *follow[In, Item, End]) give(n news[Item]) error {
	select {
	case f.came <- n:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// find tells who leads some shards, as it comes to know it. failing is since when these cannot be read.
func (f *follow[In, Item, End]) find(shards []key.Shard, failing time.Time) {
	begun := time.Now()
	for len(shards) > 0 {
		ctx, cancel := context.WithTimeout(f.ctx, askPause)
		by, without, err := f.kind.service.byLeader(ctx, shards)
		cancel()
		if err != nil && time.Since(begun) > LeaderMax {
			_ = f.give(news[Item]{shards: without, err: err, failing: begun}) // nobody follows any more
			return
		}
		if len(by) > 0 && f.give(news[Item]{found: by, failing: failing}) != nil || f.ctx.Err() != nil {
			return // nobody follows any more
		}
		shards = without
	}
}

// read reads a part until it ends. It could be read when it gave an item, and when it lasted longer than LeaderMax: many
// parts are quiet for long.
func (f *follow[In, Item, End]) read(p led, in *In, failing time.Time) {
	begun, end := time.Now(), news[Item]{shards: p.shards}
	defer func() {
		end.panicked = recover()
		_ = f.give(end) // nobody follows any more
	}()
	_, end.err = f.kind.readOf(f.ctx, p, in, func(item Item) error {
		failing = time.Time{}
		return f.give(news[Item]{item: item})
	})
	switch {
	case end.err == nil:
	case failing.IsZero(), time.Since(begun) > LeaderMax:
		end.failing = time.Now()
	default:
		end.failing = failing
	}
}
