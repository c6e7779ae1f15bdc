package shard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"troupe/actors"
	"troupe/actors/guard"
	"troupe/actors/incident"
	"troupe/persistence/key"
)

// Background is work that nobody asks for, of each shard while it is led here: timers, what leaves, schedules.
type Background struct {
	Name string
	// Begin is called for each epoch of a shard, in the order of epochs, and must not block. What it returns works
	// until ctx ends, and returns when all that it has begun has ended. After a panic it is called again, even when ctx
	// has ended meanwhile: all that it knows it reads again from the store.
	Begin func(ctx context.Context, sh key.Shard, epoch uint64) (run func())
}

const (
	// A worker that has panicked pauses before it goes on: for pauseMin at first, then twice as long each time. Beyond
	// pauseMax it rests for restFor. When a run lasts restFor, the panics before no longer count.
	pauseMin = time.Second
	pauseMax = 16 * time.Second
)

// errEnded: a run has returned and nobody had ended it.
var errEnded = errors.New("it has ended without a reason")

// worker is the actor of one background work in one epoch of its shard. Its goroutine waits for whatever it wants; the actor does not.
type worker struct {
	of     *shard
	name   string
	ctx    context.Context //nolint:containedctx // of the goroutine
	cancel context.CancelFunc
	run    func()
	pid    *actor.PID // written by the shard's actor

	restarts atomic.Int64
	state    atomic.Pointer[string] // nil: it runs
	// pause is before the next run, and begun when that began. Anyone who is at work has them: the goroutine, or the shard's actor after a panic.
	pause time.Duration
	begun time.Time
}

type ended struct{ err error }

// hire makes the workers of a shard. Its actor starts them.
func (x *shard) hire() {
	for _, b := range x.of.o.Background {
		w := &worker{of: x, name: b.Name}
		w.ctx, w.cancel = context.WithCancel(context.Background())
		w.run = b.Begin(w.ctx, x.Shard, x.Epoch)
		x.workers = append(x.workers, w)
		x.of.working.Add(1)
	}
}

func (x *shard) begin(ctx actor.Context) {
	for _, w := range x.workers {
		var err error
		if w.pid, err = ctx.SpawnNamed(actors.Props(w.receive), w.name); err != nil { // NB: its name is free
			x.Log.Error().Err(err).Str("work", w.title()).Msg("background work cannot begin")
			w.cancel()
			x.of.working.Done()
		}
	}
}

func (x *shard) endWork() {
	for _, w := range x.workers {
		w.cancel()
	}
}

// worker returns the worker whose actor has an address; nil: it is an instance's.
func (x *shard) worker(who *actor.PID) *worker {
	for _, w := range x.workers {
		if w.pid != nil && w.pid.Id == who.Id {
			return w
		}
	}
	return nil
}

func (w *worker) title() string { return fmt.Sprintf("%s of shard %d", w.name, w.of.Shard) }

// receive is what the actor does with a message. A panic goes to the shard's actor, which restarts it.
func (w *worker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		self := ctx.Self()
		go func() {
			err := w.work()
			w.of.System.Root().Send(self, ended{err})
		}()
	case ended:
		if m.err != nil && w.ctx.Err() == nil {
			panic(m.err)
		}
		ctx.Stop(ctx.Self())
	}
}

func (w *worker) work() error {
	select {
	case <-time.After(w.pause):
	case <-w.ctx.Done():
	}
	w.state.Store(nil)
	w.begun = time.Now()
	err := guard.Try(w.of.Log, w.title(), w.run)
	if err == nil && w.ctx.Err() == nil {
		err = errEnded
	}
	return err
}

// failed is the rule for a worker that has panicked: it goes on after a pause. One that panics again and again rests, with an incident.
func (w *worker) failed(reason any) {
	n := w.restarts.Add(1)
	if time.Since(w.begun) >= restFor {
		w.pause = 0
	}
	w.pause = max(2*w.pause, pauseMin)
	state := "pausing"
	if w.pause > pauseMax {
		state = "resting"
	}
	w.state.Store(&state)
	if w.pause <= pauseMax {
		return
	}
	w.pause = restFor
	x, now := w.of, time.Now().UTC() // NB: a clock that panics would keep the supervisor from having it restarted
	x.of.rests.Add(1)
	x.Incidents.Note(&incident.Row{
		Kind: incident.Expression, Workflow: incident.OfService, Place: w.title(), Event: w.name, First: now, Last: now, Count: 1,
		Error: fmt.Sprintf("%s failed again and again by an error of the program, %d times since the start, and rests for a minute: %v; the log has more", w.title(), n, reason),
	})
	x.Log.Error().Str("work", w.title()).Msg("background work panics again and again; it rests")
}

func (w *worker) about() actors.Branch {
	of := uint16(w.of.Shard)
	b := actors.Branch{Kind: "background", Name: w.name, Shard: &of, State: actors.Running, Count: 1, Restarts: w.restarts.Load()}
	if state := w.state.Load(); state != nil {
		b.State = *state
	}
	return b
}
