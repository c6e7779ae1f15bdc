package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/instance"
	"troupe/actors/internal/concurrent"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	// panicsMax is how many panics of an instance within panicsWindow are followed by a restart at once. After one more it rests.
	panicsMax    = 10
	panicsWindow = time.Minute
	// restFor is how long an instance rests: callers are answered, and nothing of it runs.
	restFor = time.Minute
)

// Options configures Shards. All fields are required.
type Options struct {
	*instance.Env
	// InFlightMax bounds the calls of all instances.
	InFlightMax int
	// ReplyWaitMax is how long a caller waits, and IdleAfter how long an instance stays awake after its last request.
	ReplyWaitMax, IdleAfter time.Duration
	// AwakeBytesMax is about how much memory awake instances may take.
	AwakeBytesMax int64
	// Background is what works for each shard while it is led.
	Background []Background
}

// Shards are those that this node leads. Its methods are safe for concurrent use.
type Shards struct {
	o          Options
	props      *actor.Props            // of every instance
	led        []atomic.Pointer[shard] // by number; nil: not yet, or not any more
	mu         sync.Mutex              // who changes led has it
	swept      context.Context         //nolint:containedctx // of the relief and the sweep
	stopSweeps context.CancelFunc
	loops      sync.WaitGroup                // the relief
	working    sync.WaitGroup                // background work
	tick       atomic.Pointer[chan struct{}] // closed and replaced once a second
	round      atomic.Int64                  // sweeps since the start
	// pressure has an entry when awake instances take too much.
	pressure chan struct{}
	stopping atomic.Bool

	awake, woken, refused, restarts, rests atomic.Int64
}

type shard struct {
	instance.Lead
	of   *Shards
	name string
	pid  *actor.PID // written before others find the shard

	// awake has the instances that have an actor. Only the shard's actor adds and removes.
	awake concurrent.Map[key.ID, *instance.Activation]
	// ended are activations that were in awake and are no longer.
	ended atomic.Int64
	// sending is held by who sends a wake: none follows end.
	sending  sync.RWMutex
	over     bool         // end was called; guarded by sending
	restarts atomic.Int64 // of instances
	resting  atomic.Int64 // len(rests)
	workers  []*worker    // written before the actor is started

	// Only the actor touches these:
	ending  bool
	waiting map[key.ID][]*wake // for the end of the activation before
	rests   map[key.ID]time.Time
	lately  [64]key.ID // of the last activations that ended, by their number
}

// wake asks the shard's actor for an activation, with one call admitted.
type wake struct {
	id         key.ID
	workflowID string
	of         *statemachine.Definition // of an instance that is created; nil: it is there
	stored     []byte                   // its record when so many had ended; nil: not known
	ended      int64
	unless     bool // it is created unless its actor is there, or was

	woken    bool // there was none
	answered chan error
	a        *instance.Activation
}

// end is the message that the epoch is over, or the node stops.
type end struct{}

func (s *Shards) start(sh key.Shard, epoch uint64) *shard {
	x := &shard{
		of: s, awake: xsync.NewMap[key.ID, *instance.Activation](),
		waiting: map[key.ID][]*wake{}, rests: map[key.ID]time.Time{},
	}
	x.Lead = instance.Lead{Env: s.o.Env, Shard: sh, Epoch: epoch, Round: &s.round, Resized: s.limitMemory, End: x.end}
	x.name = fmt.Sprintf("shard-%d", sh)
	x.hire()
	x.pid = s.o.System.Spawn("shard", x.name, x.receive, x.supervise, x.about)
	return x
}

// end has the actor end its children, and then itself.
func (x *shard) end() {
	x.sending.Lock()
	was := x.over
	x.over = true
	x.sending.Unlock()
	if !was {
		x.System.Root().Send(x.pid, end{})
	}
}

// ask asks for an activation. NB: the actor reads nothing, so that nobody waits for a disk behind it.
func (x *shard) ask(w *wake) (*instance.Activation, error) {
	w.answered = make(chan error, 1)
	x.sending.RLock()
	if x.over {
		x.sending.RUnlock()
		return nil, failure.Elsewhere(uint16(x.Shard))
	}
	x.System.Root().Send(x.pid, w)
	x.sending.RUnlock()
	err := <-w.answered
	return w.a, err
}

func (x *shard) receive(ctx actor.Context) {
	w, _ := ctx.Message().(*wake)
	defer func() {
		if p := recover(); p != nil { // NB: protoactor would stop the children, and drop what they have been sent
			x.NotePanic(p, "", x.name)
			if w != nil {
				w.answered <- failure.ErrInternal
			}
		}
	}()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		x.begin(ctx)
	case *wake:
		x.find(ctx, m)
	case *actor.Terminated:
		x.gone(ctx, m.Who)
	case end:
		x.ending = true
		x.endWork()
		x.awake.Range(func(_ key.ID, a *instance.Activation) bool { a.Evict(); return true })
	default:
		return // protoactor's own
	}
	if x.ending && len(ctx.Children()) == 0 {
		ctx.Stop(ctx.Self())
	}
}

func (x *shard) find(ctx actor.Context, w *wake) {
	a, ok := x.awake.Load(w.id)
	var err error
	switch {
	case ok && w.of != nil:
		err = failure.ErrBusy
	case ok && a.WorkflowID() != w.workflowID: // there is nothing by that name
		err = failure.ErrNotFound
	case ok:
		if err = a.Acquire(); errors.Is(err, instance.ErrAsleep) && !x.ending {
			x.waiting[w.id] = append(x.waiting[w.id], w)
			return
		}
		w.a = a
	case x.ending:
		err = failure.Elsewhere(uint16(x.Shard))
	case w.unless && x.hasEndedSince(w.ended, w.id):
		// NB: an actor that was there until a moment ago may have created it: its sender looks again later.
		err = failure.ErrBusy
	default:
		if err = x.mayWake(w.id); err == nil {
			w.a, err = x.spawn(ctx, w)
		}
	}
	if errors.Is(err, instance.ErrAsleep) {
		err = failure.Elsewhere(uint16(x.Shard))
	}
	w.answered <- err
}

func (x *shard) mayWake(id key.ID) error {
	until, rests := x.rests[id]
	if !rests {
		return nil
	}
	if left := until.Sub(x.Clock()); left > 0 {
		return &failure.Error{Kind: failure.ErrUnavailable, Reason: fmt.Sprintf("the instance has failed %d times within a minute and rests", panicsMax+1), Wait: left}
	}
	delete(x.rests, id)
	x.resting.Store(int64(len(x.rests)))
	return nil
}

func (x *shard) spawn(ctx actor.Context, w *wake) (*instance.Activation, error) {
	stored := w.stored
	if x.hasEndedSince(w.ended, w.id) { // its actor may have written and gone
		stored = nil
	}
	a := instance.New(&x.Lead, w.workflowID, w.id, w.of, stored)
	pid, err := ctx.SpawnNamed(x.of.props, a.Name())
	if err != nil {
		return nil, failure.Errorf(failure.ErrInternal, "start %s: %w", a.Name(), err)
	}
	a.Started(pid)
	w.woken = true
	err = a.Acquire() // before the sweep can see it
	x.awake.Store(w.id, a)
	x.of.awake.Add(1)
	x.of.woken.Add(1)
	return a, err
}

func (x *shard) gone(ctx actor.Context, who *actor.PID) {
	if x.worker(who) != nil {
		x.of.working.Done()
		return
	}
	id, ok := x.child(who)
	if !ok {
		return
	}
	if _, ok := x.awake.LoadAndDelete(id); ok {
		x.lately[x.ended.Load()%int64(len(x.lately))] = id
		x.ended.Add(1) // NB: after all that it wrote, and before another can take its place
		x.of.awake.Add(-1)
	}
	waiting := x.waiting[id]
	delete(x.waiting, id)
	for _, w := range waiting {
		x.find(ctx, w)
	}
}

// hasEndedSince says whether an activation of id may have ended since that many had.
func (x *shard) hasEndedSince(ended int64, id key.ID) bool {
	now, known := x.ended.Load(), int64(len(x.lately))
	if now-ended > known {
		return true
	}
	for ; ended < now; ended++ {
		if x.lately[ended%known] == id {
			return true
		}
	}
	return false
}

// child returns the instance whose actor has an address.
func (x *shard) child(who *actor.PID) (key.ID, bool) {
	return instanceid.Parse(who.Id[strings.LastIndexByte(who.Id, '/')+1:])
}

// supervise is the rule for a child that has panicked. Its caller has its answer already. It is restarted, with what
// the store has; one that panics again and again is restarted too, so that all who wait are answered, and then rests,
// with an incident. Background work pauses before it goes on.
func (x *shard) supervise(children actor.Supervisor, who *actor.PID, failed *actor.RestartStatistics, reason, message any) {
	x.of.restarts.Add(1)
	if w := x.worker(who); w != nil {
		w.failed(reason)
		children.RestartChildren(who)
		return
	}
	x.restarts.Add(1)
	failed.Fail()
	if id, ok := x.child(who); ok && failed.NumberOfFailures(panicsWindow) > panicsMax {
		if a, ok := x.awake.Load(id); ok {
			failed.Reset()
			x.rest(a, reason, instance.EventOf(message))
		}
	}
	children.RestartChildren(who)
}

// rest has an instance end, and not begin again for a while.
func (x *shard) rest(a *instance.Activation, reason any, event string) {
	now := x.Clock()
	x.rests[a.ID()] = now.Add(restFor)
	x.resting.Store(int64(len(x.rests)))
	x.of.rests.Add(1)
	x.Incidents.Note(&incident.Row{
		Kind: incident.Expression, Workflow: a.WorkflowID(), Place: a.Name(), Instance: a.Name(), Event: event, First: now, Last: now, Count: 1,
		Error: fmt.Sprintf("the instance has failed %d times within a minute by an error of the program, and rests for a minute: %v", panicsMax+1, reason),
	})
	x.Log.Error().Str("workflow", a.WorkflowID()).Str("instance", a.Name()).Msg("an instance panics again and again; it rests")
	a.Evict()
}

// about says more of the actor, and what its children are.
func (x *shard) about(b *actors.Branch) {
	of := uint16(x.Shard)
	b.Shard = &of
	if x.IsStale() {
		b.State = "ending"
	}
	awake := actors.Branch{Kind: "instances", Name: "instances", Shard: &of, State: actors.Running, Restarts: x.restarts.Load()}
	if n := x.resting.Load(); n > 0 {
		awake.State = fmt.Sprintf("%d resting", n)
	}
	x.awake.Range(func(_ key.ID, a *instance.Activation) bool {
		awake.Count++
		awake.Mailbox += a.Calls()
		return true
	})
	b.Children = append(b.Children, awake)
	for _, w := range x.workers {
		b.Children = append(b.Children, w.about())
	}
}

// awakeBytes is about what all awake instances take.
func (s *Shards) awakeBytes() int64 {
	return s.o.Counts.Bytes.Load() + instance.InstanceBytes*s.awake.Load()
}

// limitMemory has the relief make room when awake instances take too much.
func (s *Shards) limitMemory() {
	if s.awakeBytes() > s.o.AwakeBytesMax {
		wait.Notify(s.pressure)
	}
}
