// Package ring tells the nodes of a cluster of which types there are jobs, so that a program that waits at one of them is
// woken by the jobs of all. One stream from each other node is enough, however many programs wait.
package ring

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
)

// Options configures Rings.
type Options struct {
	Fanout  *fanout.Service
	Leads   func([]key.Shard) error // failure.ErrNotLeader unless this node leads all of them
	Present func() []string         // the types of which there are jobs here
	Wake    func(typ string)        // a node has jobs of a type
}

// Rings are what a node tells and is told. Its methods are safe for concurrent use, and those that tell do nothing for nil.
type Rings struct {
	o         Options
	kind      *fanout.Kind[struct{}, string, struct{}]
	stopped   context.Context //nolint:containedctx // of all that goes on
	stop      context.CancelFunc
	following sync.WaitGroup

	mu        sync.Mutex
	waiting   int                // calls that wait for jobs
	linger    *time.Timer        // ends the following when no call waits; nil: calls wait
	unfollow  context.CancelFunc // ends it at once; nil: nobody follows
	followers map[*follower]struct{}
}

// follower is another node, or this one, that is told of jobs.
type follower struct {
	rung  chan struct{} // has room for one
	types map[string]struct{}
}

// New registers the question of a node that follows.
func New(o Options) *Rings {
	r := &Rings{o: o, followers: map[*follower]struct{}{}}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.kind = fanout.NewKind(o.Fanout, "rings of jobs", r.tell)
	r.kind.Live = true
	return r
}

// Stop ends all that goes on.
func (r *Rings) Stop() {
	if r != nil {
		r.stop()
		r.following.Wait()
	}
}

// Ring tells all nodes that there are jobs of a type here.
func (r *Rings) Ring(typ string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers {
		f.types[typ] = struct{}{}
		wait.Notify(f.rung)
	}
}

// Moved has the shards looked at of which others are told: some may be led elsewhere now.
func (r *Rings) Moved() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers {
		wait.Notify(f.rung)
	}
}

const (
	lingerFor = 10 * time.Second // how long others are followed when no call waits any more
	pause     = time.Second      // before they are followed again, when a shard has no leader
)

// Follow has this node told of the jobs of all, for one more call that waits, until Ignore.
func (r *Rings) Follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	if r.linger != nil {
		r.linger.Stop()
		r.linger = nil
	}
	if r.unfollow != nil || r.stopped.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(r.stopped)
	r.unfollow = cancel
	r.following.Go(func() {
		for ctx.Err() == nil {
			err := r.kind.Follow(ctx, nil, func([]key.Shard) *struct{} { return &struct{}{} }, func(typ string) error {
				r.o.Wake(typ)
				return nil
			})
			if err != nil && ctx.Err() == nil {
				wait.Sleep(ctx, pause)
			}
		}
	})
}

// Ignore is the end of a call that has waited.
func (r *Rings) Ignore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting--; r.waiting > 0 || r.unfollow == nil {
		return
	}
	r.linger = time.AfterFunc(lingerFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.waiting == 0 && r.unfollow != nil {
			r.unfollow()
			r.unfollow, r.linger = nil, nil
		}
	})
}

// tell yields the types of which there are jobs, and then of which there come some.
func (r *Rings) tell(ctx context.Context, shards []key.Shard, _ *struct{}, yield func(string) error) (end struct{}, err error) {
	f := &follower{rung: make(chan struct{}, 1), types: map[string]struct{}{}}
	r.mu.Lock()
	r.followers[f] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.followers, f)
	}()
	types := r.o.Present() // NB: those that come meanwhile are told of
	for {
		if err := r.o.Leads(shards); err != nil {
			return end, err
		}
		for _, typ := range types {
			if err := yield(typ); err != nil {
				return end, err
			}
		}
		select {
		case <-f.rung:
		case <-ctx.Done():
			return end, ctx.Err()
		case <-r.stopped.Done():
			return end, failure.ErrUnavailable
		}
		r.mu.Lock()
		types = slices.Collect(maps.Keys(f.types))
		clear(f.types)
		r.mu.Unlock()
	}
}
