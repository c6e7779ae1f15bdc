// Package shard has one actor for each shard that this node leads. Its life is the epoch, and the instances that are
// awake are its children, beside whatever works in the background for the shard.
//
//	Find ──► the shard's actor of now ──► activation ──► the instance's mailbox
//	              │ spawns, watches, restarts, ends
//	              ├─ instances, by their ids
//	              └─ background work: timers, what leaves, schedules
//
// An event finds its instance in a table and passes no mailbox but the instance's. The package knows no request: what
// callers may ask, and who they are, is above it, and what an instance does is in package instance.
package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/instance"
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// New returns shards of which none is led before Start, or the first call that needs it.
func New(o Options) *Shards {
	s := &Shards{
		o: o, props: actors.Props(instance.Receive),
		led: make([]atomic.Pointer[shard], o.Store.Shards()), pressure: make(chan struct{}, 1),
	}
	first := make(chan struct{})
	s.tick.Store(&first)
	s.swept, s.stopSweeps = context.WithCancel(context.Background())
	return s
}

// Start begins to lead what the store says that this node leads. Stop must be called.
func (s *Shards) Start() {
	s.loops.Go(s.relieveLoop)
	for sh := range key.Shard(s.o.Store.Shards()) {
		_, _ = s.lead(sh) // of another node
	}
	s.o.Store.FollowLeads(leads{s})
}

type leads struct{ s *Shards }

// Led implements persistence.Leads.
func (l leads) Led(sh key.Shard, _ uint64) {
	if int(sh) < len(l.s.led) {
		_, _ = l.s.lead(sh) // of another node by now
	}
}

// Ended implements persistence.Leads.
func (l leads) Ended(sh key.Shard, _ uint64) {
	if int(sh) < len(l.s.led) {
		if x := l.s.led[sh].Load(); x != nil && x.IsStale() {
			x.end()
		}
	}
}

// lead returns the actor of a shard in the epoch of now, or failure.ErrNotLeader.
func (s *Shards) lead(sh key.Shard) (*shard, error) {
	epoch := s.o.Store.Epoch(sh)
	x := s.led[sh].Load()
	if x != nil && x.Epoch == epoch && epoch != 0 {
		return x, nil
	}
	if epoch == 0 {
		if x != nil {
			x.end()
		}
		return nil, failure.Elsewhere(uint16(sh))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x = s.led[sh].Load(); x != nil && x.Epoch >= epoch { // NB: somebody has seen a later one
		return x, nil
	}
	if s.stopping.Load() {
		return nil, failure.Errorf(failure.ErrUnavailable, "stopping")
	}
	if x != nil {
		x.end()
	}
	x = s.start(sh, epoch)
	s.led[sh].Store(x)
	return x, nil
}

// Place is where an instance is, or would be: its shard in one epoch, on this node.
type Place struct {
	ID key.ID
	of *shard
}

// Find returns the place of an instance: failure.ErrNotFound when it is not an id, and failure.ErrNotLeader when another
// node leads its shard.
func (s *Shards) Find(instanceID string) (Place, error) {
	id, ok := instanceid.Parse(instanceID)
	if !ok {
		return Place{}, failure.ErrNotFound
	}
	return s.At(id)
}

// At is Find of an id.
func (s *Shards) At(id key.ID) (Place, error) {
	x, err := s.lead(s.o.Store.ShardOf(id))
	return Place{id, x}, err
}

// Lead is At of an instance that has no id yet.
func (s *Shards) Lead(sh key.Shard) (Place, error) {
	x, err := s.lead(sh)
	return Place{of: x}, err
}

// Shard is its number.
func (p Place) Shard() key.Shard { return p.of.Shard }

// Epoch is that of the shard.
func (p Place) Epoch() uint64 { return p.of.Epoch }

// Confirm returns nil when no other node can have changed what was read in the epoch.
func (p Place) Confirm() error {
	return failure.OfStore(p.of.Store.AwaitLed(context.Background(), p.of.Shard, p.of.Epoch))
}

// Load reads the record of an instance, without an actor.
func (p Place) Load(workflowID string) ([]byte, error) {
	stored, err := p.of.Env.Load(workflowID, p.ID)
	if errors.Is(err, failure.ErrNotFound) {
		err = cmp.Or(p.Confirm(), err) // NB: another node may have it by now
	}
	return stored, err
}

// Waking is an instance that is about to be woken.
type Waking struct {
	place Place
	wake  *wake
}

// Read reads the record of an instance to wake it. What the store shows without an actor is durable: an actor only ends
// when all it wrote is.
func (p Place) Read(workflowID string) (w Waking, err error) {
	w = Waking{p, &wake{id: p.ID, workflowID: workflowID, ended: p.Ended()}}
	w.wake.stored, err = p.Load(workflowID)
	return w, err
}

// Wake returns the instance's activation, with one call admitted. The actor is started unless somebody else was faster.
func (w Waking) Wake() (*instance.Activation, error) { return w.place.of.ask(w.wake) }

// Admit counts one more call, or says why not.
func (s *Shards) Admit() error {
	if s.stopping.Load() {
		return failure.Errorf(failure.ErrUnavailable, "stopping")
	}
	if s.o.Counts.InFlight.Add(1) > int64(s.o.InFlightMax) {
		s.Dismiss()
		s.Refused()
		return failure.ErrBusy
	}
	return nil
}

// AdmitInternal is Admit of what nobody sent. It is not refused because many others ask: what comes on its own bounds
// its own number.
func (s *Shards) AdmitInternal() error {
	if s.stopping.Load() {
		return failure.ErrUnavailable
	}
	s.o.Counts.InFlight.Add(1)
	return nil
}

// Dismiss is the end of a call that was admitted and not posted.
func (s *Shards) Dismiss() { s.o.Counts.InFlight.Add(-1) }

// Refused counts a call that a limit of capacity has refused.
func (s *Shards) Refused() { s.refused.Add(1) }

// Post gives a request that was admitted to the instance's actor, waking it if needed.
func (s *Shards) Post(p Place, workflowID string, m instance.Request, to message.Recipient) (*instance.Call, error) {
	a, err := s.acquire(p, workflowID)
	if err != nil {
		s.Dismiss()
		return nil, err
	}
	return a.Post(m, to), nil
}

// acquire returns the activation of an instance that the store has, with one call admitted.
func (s *Shards) acquire(p Place, workflowID string) (*instance.Activation, error) {
	a, ok := p.of.awake.Load(p.ID)
	err := error(instance.ErrAsleep)
	if ok && a.WorkflowID() == workflowID {
		err = a.Acquire()
	} else if ok { // there is nothing by that name
		return nil, failure.ErrNotFound
	}
	if errors.Is(err, instance.ErrAsleep) {
		var w Waking
		if w, err = p.Read(workflowID); err == nil {
			a, err = w.Wake()
		}
	}
	if errors.Is(err, failure.ErrInstanceBusy) {
		s.Refused()
	}
	return a, err
}

// Create starts an actor for a new instance, whose call was admitted, and gives it the request. Nobody else has its id.
func (s *Shards) Create(p Place, workflowID string, of *statemachine.Definition, m instance.Request, to message.Recipient) (*instance.Call, error) {
	return s.create(&wake{id: p.ID, workflowID: workflowID, of: of}, p, m, to)
}

// CreateUnless is Create of an instance that may be there: failure.ErrBusy where its actor is, or was since Ended was asked.
func (s *Shards) CreateUnless(p Place, ended int64, workflowID string, of *statemachine.Definition, m instance.Request) (*instance.Call, error) {
	return s.create(&wake{id: p.ID, workflowID: workflowID, of: of, unless: true, ended: ended}, p, m, nil)
}

func (s *Shards) create(w *wake, p Place, m instance.Request, to message.Recipient) (*instance.Call, error) {
	a, err := p.of.ask(w)
	if err != nil {
		s.Dismiss()
		return nil, err
	}
	return a.Post(m, to), nil
}

// Ended is how many activations of the shard have ended. What the store shows is what an instance is like while that stays.
func (p Place) Ended() int64 { return p.of.ended.Load() }

// Awaken has an instance do something that nobody asks for, whether the store has it or not. woken: it was asleep.
func (s *Shards) Awaken(p Place, workflowID string, m instance.Request) (c *instance.Call, a *instance.Activation, woken bool, err error) {
	a, ok := p.of.awake.Load(p.ID)
	err = instance.ErrAsleep
	if ok {
		err = a.Acquire()
	}
	if errors.Is(err, instance.ErrAsleep) {
		w := &wake{id: p.ID, workflowID: workflowID}
		a, err = p.of.ask(w)
		woken = w.woken
	}
	if err != nil {
		return nil, nil, false, err
	}
	s.o.Counts.InFlight.Add(1)
	return a.Post(m, nil), a, woken, nil
}

// Wait returns the answer, or an error when it does not come in time. It does not look at the request's context: the
// outcome is decided within milliseconds, and a caller who leaves early would only not hear of it.
func (s *Shards) Wait(c *instance.Call) (*message.Reply, error) {
	select {
	case a := <-c.Answer(): // NB: of what needs no commit it is there, and nobody needs the clock that all look at
		return a.Reply, a.Err
	default:
	}
	var deadline time.Time
	for {
		ticked := s.Ticks()
		select {
		case a := <-c.Answer():
			return a.Reply, a.Err
		case <-ticked:
		}
		now := time.Now()
		switch {
		case deadline.IsZero():
			deadline = now.Add(s.o.ReplyWaitMax - time.Second)
		case now.After(deadline):
			return nil, c.GiveUp()
		}
	}
}

// Ticks returns a channel that is closed within the next second. Waiting on it costs no timer.
func (s *Shards) Ticks() <-chan struct{} { return *s.tick.Load() }

// Awake returns the activation of an instance; nil when it is asleep.
func (s *Shards) Awake(p Place) *instance.Activation {
	a, _ := p.of.awake.Load(p.ID)
	return a
}

// Round counts the sweeps since the start: seconds.
func (s *Shards) Round() int64 { return s.round.Load() }

// Refuse has new calls answered with failure.ErrUnavailable.
func (s *Shards) Refuse() { s.stopping.Store(true) }

// StopBackground returns when nothing happens on its own any more. Refuse comes before.
func (s *Shards) StopBackground() {
	s.mu.Lock() // NB: nobody begins to lead a shard any more
	for k := range s.led {
		if x := s.led[k].Load(); x != nil {
			x.endWork()
		}
	}
	s.mu.Unlock()
	s.working.Wait()
}

// Stop waits until every call is answered that was admitted, or ctx ends, and ends all actors. also reports what else
// is waited for, "" for nothing.
func (s *Shards) Stop(ctx context.Context, also func() string) error {
	var err error
	for err == nil {
		other := also()
		if s.o.Counts.InFlight.Load() == 0 && other == "" {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			err = fmt.Errorf("stop workflows: %d calls still open%s: %w", s.o.Counts.InFlight.Load(), other, ctx.Err())
		}
	}
	s.stopSweeps()
	s.loops.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.led {
		if x := s.led[k].Load(); x != nil {
			x.end()
		}
	}
	return err
}

// Metrics are the counters of Shards.
type Metrics struct {
	// Awake, AwakeBytes (about) and InFlight are what there is now; the rest is counted since the start.
	Awake, AwakeBytes, InFlight int64
	// Restarts are those of instances that panicked, and Rests how often one was given a pause.
	Woken, Refused, Restarts, Rests int64
}

// Metrics returns the counters as they are now.
func (s *Shards) Metrics() Metrics {
	return Metrics{
		Awake: s.awake.Load(), AwakeBytes: s.awakeBytes(), InFlight: s.o.Counts.InFlight.Load(),
		Woken: s.woken.Load(), Refused: s.refused.Load(), Restarts: s.restarts.Load(), Rests: s.rests.Load(),
	}
}

const (
	// SweepEvery is the length of one round. Idle times are counted in rounds.
	SweepEvery = time.Second
	// largeBytes is from where an instance is passivated before small ones are.
	largeBytes = 32 << 10
)

// Sweep passivates idle instances, and wakes callers to look at their deadlines.
func (s *Shards) Sweep() {
	next := make(chan struct{})
	close(*s.tick.Swap(&next))
	round, idle := s.round.Add(1), s.idleRounds()
	pauses := breaks.New(0, 1, 64)
	for k := range s.led {
		x := s.led[k].Load()
		if x == nil {
			continue
		}
		if x.IsStale() {
			x.end()
		}
		x.awake.Range(func(_ key.ID, a *instance.Activation) bool {
			a.PassivateIdle(round - idle)
			pauses.Take(s.swept.Done())
			return true
		})
	}
	s.limitMemory()
}

// Pass has as many rounds go by as there are in d.
func (s *Shards) Pass(d time.Duration) { s.round.Add(int64(d / SweepEvery)) }

// idleRounds is how many rounds an instance stays awake that nobody asks for.
func (s *Shards) idleRounds() int64 { return int64(s.o.IdleAfter / SweepEvery) }

// relieveLoop makes room whenever awake instances take too much. It is the body of a goroutine.
func (s *Shards) relieveLoop() {
	for {
		select {
		case <-s.swept.Done():
			return
		case <-s.pressure:
			_ = guard.Try(s.o.Log, "memory relief", s.relieve) // the log has it
		}
	}
}

// relieve passivates instances before their time until awake ones take three quarters of what they may: large ones
// first, and of these, and of the others, those first that nobody has asked for long. An instance that owes an answer
// stays.
func (s *Shards) relieve() {
	if s.awakeBytes() <= s.o.AwakeBytesMax {
		return
	}
	enough := s.o.AwakeBytesMax / 4 * 3
	for _, least := range []int64{largeBytes, 0} {
		for idle := s.idleRounds(); ; idle /= 2 {
			if s.passivate(idle, least, enough); s.awakeBytes() <= enough {
				return
			}
			if idle == 0 {
				break
			}
		}
	}
}

// passivate ends the instances of at least so many bytes that nobody has asked for in so many rounds, until awake ones
// take no more than enough.
func (s *Shards) passivate(idle, least, enough int64) {
	round := s.round.Load()
	for k := range s.led {
		x := s.led[k].Load()
		if x == nil {
			continue
		}
		x.awake.Range(func(_ key.ID, a *instance.Activation) bool {
			if a.Size() >= least {
				a.PassivateIdle(round - idle + 1)
			}
			return s.o.Counts.Bytes.Load() > enough || s.awakeBytes() > enough
		})
	}
}
