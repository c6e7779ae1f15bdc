// Package supervise runs requests in actors of their own, below a supervisor that System.Tree shows. The supervisor never
// waits; a worker lives as long as its request and may wait for whatever that needs. Callers wait for a worker before the mailbox.
// A panic costs only the request in which it happens: its caller is answered, and the supervisor ends the worker.
package supervise

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
	"troupe/actors/trace"
)

// What Do returns besides the error of the work, each of the kind that the caller is told. Only after ErrPanicked had
// the work begun.
var (
	// ErrBusy: no worker came free for the user within Options.WaitMax.
	ErrBusy = failure.Errorf(failure.ErrBusy, "too many requests")
	// ErrStopped: Stop was called.
	ErrStopped = failure.Errorf(failure.ErrUnavailable, "supervisor is stopped")
	// ErrPanicked: the work panicked; the log has more.
	ErrPanicked = failure.Errorf(failure.ErrInternal, "request panicked")
)

// Options configures a Supervisor. System is required.
type Options struct {
	System *actors.System
	// Name is what the supervisor is called in logs.
	Name string
	// WorkersMax bounds the requests at a time. Default 256. More wait, and one user never has more than half (package
	// semaphore, NewReserving): a worker is held as long as its caller reads.
	WorkersMax int
	// WaitMax is how long a request waits for a worker. Default 2 s.
	WaitMax time.Duration
	Log     zerolog.Logger
}

// Supervisor is the way to one supervisor actor. Its methods are safe for concurrent use.
type Supervisor struct {
	o        Options
	pid      *actor.PID
	workers  *semaphore.Semaphore[identity.UserID]
	open     atomic.Int64 // requests that are not answered, those that wait for a worker included
	stopping atomic.Bool
	ended    sync.Once
	// waiting ends when Stop sends those away who wait.
	waiting    context.Context
	endWaiting context.CancelFunc

	begun, refused, panics atomic.Int64
}

// Metrics are the counters of a supervisor.
type Metrics struct {
	// Open is what there is now; the rest is counted since the start.
	Open, Begun, Refused, Panics int64
}

// Start spawns the supervisor. Stop must be called.
func Start(o Options) *Supervisor {
	if o.WorkersMax == 0 {
		o.WorkersMax = 256
	}
	if o.WaitMax == 0 {
		o.WaitMax = 2 * time.Second
	}
	s := &Supervisor{o: o, workers: semaphore.NewReserving[identity.UserID](o.WorkersMax)}
	s.waiting, s.endWaiting = context.WithCancel(context.Background())
	s.pid = o.System.Spawn("supervisor", o.Name, s.receive, end, func(b *actors.Branch) {
		b.Children = []actors.Branch{{Kind: "workers", Name: "workers", State: actors.Running, Count: int(s.open.Load()), Restarts: s.panics.Load()}}
	})
	return s
}

type job struct {
	ctx  context.Context
	name string
	work func(context.Context) error
	done chan error // has room for the answer
}

// Do waits for a worker for the user, runs work in an actor of its own and returns its error. It always waits for the
// end of the work, so that work may use what belongs to the caller; work has to look at ctx itself. When ctx ends
// before the work begins, Do returns its error. What the work does is below a span of the request.
func (s *Supervisor) Do(ctx context.Context, user identity.UserID, name string, work func(context.Context) error) (err error) {
	if of := trace.Of(ctx); of != nil {
		span := of.Below(s.o.Name + " " + name)
		ctx = span.In(ctx)
		defer func() { span.End(err) }()
	}
	// NB: the order matters to Stop, which sets stopping and then waits for open.
	s.open.Add(1)
	defer s.open.Add(-1)
	if s.stopping.Load() {
		return ErrStopped
	}
	worker := s.workers.Slot(user)
	if err := s.acquire(ctx, worker); err != nil {
		return err
	}
	defer worker.Release()
	s.begun.Add(1)
	t := &job{ctx: ctx, name: name, work: work, done: make(chan error, 1)}
	s.o.System.Root().Send(s.pid, t)
	return <-t.done
}

func (s *Supervisor) acquire(ctx context.Context, worker *semaphore.Slot[identity.UserID]) error {
	if worker.TryAcquire() {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, s.o.WaitMax)
	defer cancel()
	defer context.AfterFunc(s.waiting, cancel)()
	switch err := worker.Acquire(waiting); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.stopping.Load():
		return ErrStopped
	}
	s.refused.Add(1)
	return ErrBusy
}

func (s *Supervisor) receive(ctx actor.Context) {
	t, ok := ctx.Message().(*job)
	if !ok {
		return // protoactor's own messages
	}
	if err := t.ctx.Err(); err != nil { // it waited in the mailbox too long
		t.done <- err
		return
	}
	ctx.Send(ctx.Spawn(actor.PropsFromFunc(s.workOnce)), t)
}

// workOnce is a worker actor. Its mailbox is protoactor's own, so that the work has a goroutine.
func (s *Supervisor) workOnce(ctx actor.Context) {
	t, ok := ctx.Message().(*job)
	if !ok {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.panics.Add(1)
			s.o.Log.Error().Str("supervisor", s.o.Name).Str("request", t.name).
				Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("request panicked")
			t.done <- ErrPanicked
			panic(p)
		}
	}()
	err := t.work(t.ctx)
	ctx.Stop(ctx.Self()) // after this message
	t.done <- err
}

// end is the supervisor's rule for a worker that has panicked.
func end(workers actor.Supervisor, who *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	workers.StopChildren(who)
}

// Stop refuses new requests, waits until the open ones are answered or ctx ends, and ends the supervisor when none is
// open. It can be called again.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.endWaiting()
	var err error
	for s.open.Load() > 0 && err == nil {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			err = fmt.Errorf("stop %s: %d requests still open: %w", s.o.Name, s.open.Load(), ctx.Err())
		}
	}
	if err == nil { // NB: an actor that ends drops what is in its mailbox, and its Do would wait forever
		s.ended.Do(func() { s.o.System.Root().Poison(s.pid) })
	}
	return err
}

// Metrics returns the counters as they are now.
func (s *Supervisor) Metrics() Metrics {
	return Metrics{Open: s.open.Load(), Begun: s.begun.Load(), Refused: s.refused.Load(), Panics: s.panics.Load()}
}
