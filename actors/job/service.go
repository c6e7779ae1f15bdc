package job

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/internal/wait"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Options configures a Service. All fields but the last two are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	Log   zerolog.Logger
	// Types returns what the newest versions say of a type, by workflow.
	Types func(typ string) []catalog.JobType
	// Finish gives an instance the end of a job, and Again has it begin one again that has failed for good. done is called once, when that is
	// durable, or with the reason why it is not. They must not block.
	Finish  func(f *Finish, done func(error))
	Again   func(workflow string, of key.Job, done func(error))
	Queries *query.Service
	// MayRead reports whether a caller may read an instance.
	MayRead func(caller *identity.Principal, workflow, instance string) bool
	// Fanout and Peers reach the nodes that lead other shards. Nil: the store is standalone.
	Fanout *fanout.Service
	Peers  fanout.Peers
}

// Finish is the end of a job, by the holder of a lease.
type Finish struct {
	Workflow string
	Job      key.Job
	Lease    string
	Failed   bool
	Output   data.Value // nil for none
}

// Service gives jobs of the shards that are led here to programs. Its methods are safe for concurrent use.
//
// What is in memory decides who has a job; the rows beside it are what the next leader begins with, and no lease leaves
// before its row is durable. In memory are the first offers of each line (line.go), and the jobs that are not offered: those
// that somebody has, that come later, and that have failed.
type Service struct {
	o     Options
	turn  chan struct{} // has an entry while somebody takes jobs: one after the other, since that reads the store
	waits waiting
	kinds *kinds // nil: standalone

	stopped   context.Context //nolint:containedctx // of all that waits
	stop      context.CancelFunc
	following sync.WaitGroup

	mu       sync.Mutex
	led      map[key.Shard]*shard // in the latest epoch
	types    map[string]*kind
	limits   map[typeOf]*limit
	servings uint64 // jobs that were given
	counts   Metrics
}

// shard is what is known of the jobs of one shard in one epoch. Service.mu guards what can change.
type shard struct {
	number key.Shard
	epoch  uint64
	ctx    context.Context //nolint:containedctx // of the epoch
	wake   chan struct{}   // has room for one
	loaded chan struct{}   // closed when its rows were read

	isLoaded bool
	over     bool
	early    []Change // that came before
	taken    map[key.Job]*entry
	seized   uint64 // counts what came to taken
	due      dueHeap
}

// entry is a job that is not offered.
type entry struct {
	shard *shard
	offer key.Offer
	attempt
	busy  bool          // a write is on its way, or its instance is being told
	gone  bool          // it has ended while it was busy
	pause time.Duration // before its instance is told again
	place int           // in the heap; -1: it is not there
}

// New returns a service that has no jobs before Begin.
func New(o Options) *Service {
	s := &Service{
		o: o, turn: make(chan struct{}, 1),
		led: map[key.Shard]*shard{}, types: map[string]*kind{}, limits: map[typeOf]*limit{},
	}
	s.stopped, s.stop = context.WithCancel(context.Background())
	if o.Fanout != nil {
		s.share()
	}
	return s
}

// Stop ends all waits with failure.ErrUnavailable.
func (s *Service) Stop() {
	s.stop()
	s.following.Wait()
}

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, epoch uint64) (run func()) {
	x := s.enter(ctx, sh, epoch)
	return func() {
		if x.over { // after a panic
			x = s.enter(ctx, sh, epoch)
		}
		s.run(x)
	}
}

func (s *Service) enter(ctx context.Context, sh key.Shard, epoch uint64) *shard {
	x := &shard{
		number: sh, epoch: epoch, ctx: ctx, wake: make(chan struct{}, 1), loaded: make(chan struct{}), taken: map[key.Job]*entry{},
	}
	s.mu.Lock()
	if before := s.led[sh]; before != nil {
		s.leaveLocked(before)
	}
	s.led[sh] = x
	s.mu.Unlock()
	return x
}

// leaveLocked forgets what was known of a shard.
func (s *Service) leaveLocked(x *shard) {
	if x.over {
		return
	}
	x.over = true
	if s.kinds != nil {
		for f := range s.kinds.followers { // NB: the shard may be led elsewhere now
			wait.Notify(f.rung)
		}
	}
	for _, e := range x.taken {
		s.countLocked(e, -1)
	}
	x.taken, x.due = map[key.Job]*entry{}, nil
	for _, k := range s.types {
		for name, l := range k.lines {
			delete(l.heads, x.number)
			if len(l.heads) == 0 {
				delete(k.lines, name)
			}
		}
	}
}

// Changed is told what a commit has changed, when it is visible.
func (s *Service) Changed(sh key.Shard, changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.led[sh]
	if x == nil || x.over {
		return // NB: whoever leads next reads what is there
	}
	if !x.isLoaded {
		x.early = append(x.early, changes...)
		return
	}
	for i := range changes {
		s.changeLocked(x, &changes[i])
	}
}

func (s *Service) changeLocked(x *shard, c *Change) {
	e := x.taken[c.offer.Job]
	switch {
	case c.how == hasBegun:
		if e != nil {
			s.dropLocked(e)
		}
		s.offerLocked(x, c.offer)
	case c.how == hasFailed:
		if e == nil {
			e = s.takeLocked(x, c.offer, attempt{})
		}
		s.countLocked(e, -1)
		e.State = failed
		x.due.remove(e)
	case e == nil:
		s.withdrawLocked(x, &c.offer)
	case e.busy:
		e.gone = true
		fallthrough
	default:
		s.dropLocked(e)
	}
}

// takeLocked makes an entry of a job.
func (s *Service) takeLocked(x *shard, o key.Offer, a attempt) *entry {
	e := &entry{shard: x, offer: o, attempt: a, place: -1}
	x.taken[o.Job] = e
	x.seized++
	s.countLocked(e, 1)
	return e
}

// dropLocked forgets the entry of a job.
func (s *Service) dropLocked(e *entry) {
	if x := e.shard; x.taken[e.offer.Job] == e {
		delete(x.taken, e.offer.Job)
		x.due.remove(e)
		s.countLocked(e, -1)
	}
}

// countLocked counts the leases of a workflow.
func (s *Service) countLocked(e *entry, by int) {
	if e.State == leased {
		s.kindLocked(e.offer.Type).shareOf(e.offer.Workflow).running += by
		if by < 0 {
			s.ringLocked(e.offer.Type) // there may be room for another one
		}
	}
}

// moveLocked gives an entry another attempt.
func (s *Service) moveLocked(e *entry, to attempt) {
	s.countLocked(e, -1)
	e.attempt = to
	s.countLocked(e, 1)
	if e.State == failed {
		e.shard.due.remove(e)
	} else if e.shard.due.put(e) {
		wait.Notify(e.shard.wake)
	}
}

const (
	// Instances that cannot be told that a job has failed are told again after againMin, and at last every againMax.
	againMin = 50 * time.Millisecond
	againMax = 10 * time.Second
	lateMax  = 256 // jobs whose time has come that are handled together
)

// run is the goroutine of a shard.
func (s *Service) run(x *shard) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leaveLocked(x)
	}()
	for x.ctx.Err() == nil && !x.isLoaded {
		if err := s.load(x); err != nil {
			if !errors.Is(err, persistence.ErrClosed) {
				s.o.Log.Error().Err(err).Uint16("shard", uint16(x.number)).Msg("jobs cannot be read")
			}
			wait.Sleep(x.ctx, againMax)
		}
	}
	for x.ctx.Err() == nil {
		late, next := s.late(x)
		if len(late) > 0 {
			s.handle(x, late)
			continue
		}
		at, stop := wait.Until(next, s.o.Clock)
		select {
		case <-x.wake:
		case <-at:
		case <-x.ctx.Done():
		}
		stop()
	}
}

// load reads the rows of a shard.
func (s *Service) load(x *shard) error {
	load := s.o.Store.Load
	var taken []entry
	var ghosts [][]byte
	err := s.o.Store.Scan(key.JobsPrefix(nil, x.number, key.JobAttempt), func(rowKey, value []byte) error {
		name, ok := key.ParseJob(rowKey)
		a, err := parseAttempt(value)
		if !ok || err != nil {
			return errors.Join(persistence.ErrCorrupt, err)
		}
		r, err := loadRow(load, x.number, name)
		if errors.Is(err, failure.ErrNotFound) {
			ghosts = append(ghosts, slices.Clone(rowKey))
			return nil
		}
		if err != nil {
			return err
		}
		e := entry{shard: x, offer: r.offer(name), attempt: a, place: -1}
		if a.State == waits {
			switch _, err := load(e.offer.Key(nil, x.number)); {
			case err == nil: // it is in a line
				return nil
			case !errors.Is(err, persistence.ErrNotFound):
				return err
			}
		}
		taken = append(taken, e)
		return nil
	})
	lines := newLines()
	if err == nil {
		err = s.o.Store.Scan(key.JobsPrefix(nil, x.number, key.JobOffer), func(rowKey, _ []byte) error {
			o, ok := key.ParseOffer(rowKey)
			if !ok {
				return persistence.ErrCorrupt
			}
			lines.add(o)
			return nil
		})
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.over {
		return nil
	}
	for i := range taken {
		e := &taken[i]
		s.withdrawnFrom(lines, e)
		x.taken[e.offer.Job] = e
		s.countLocked(e, 1)
		if e.State != failed {
			x.due.put(e)
		}
	}
	s.adoptLocked(x, lines)
	x.isLoaded = true
	close(x.loaded)
	for i := range x.early {
		s.changeLocked(x, &x.early[i])
	}
	x.early = nil
	if len(ghosts) > 0 {
		w := s.o.Store.NewBatchIn(x.number, x.epoch)
		for _, k := range ghosts {
			w.Delete(k)
		}
		s.o.Store.Append(w, unheard{})
	}
	return nil
}

// unheard is the waiter of who removes what means nothing: it may be removed again.
type unheard struct{}

// Committed implements persistence.Waiter.
func (unheard) Committed(error) {}

// late returns jobs whose time has come, as busy, and the next time of the others.
func (s *Service) late(x *shard) (late []*entry, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock()
	for len(x.due) > 0 && len(late) < lateMax {
		e := x.due[0]
		if e.At.After(now) {
			return late, e.At.UnixMilli() + 1
		}
		x.due.remove(e) // NB: a busy one comes back with what it becomes
		if !e.busy {
			e.busy = true
			late = append(late, e)
		}
	}
	return late, wait.Never
}

// handle does what is to be done with jobs whose time has come.
func (s *Service) handle(x *shard, late []*entry) {
	var updates []*update
	var told sync.WaitGroup
	for _, e := range late {
		if _, err := s.o.Store.Load(e.offer.Job.Key(nil, x.number, key.JobRow)); errors.Is(err, persistence.ErrNotFound) {
			s.sweep(x, []*entry{e}) // NB: of an instance that was deleted
			continue
		}
		switch u := (&update{e: e, next: e.attempt}); e.State {
		case leased:
			s.mu.Lock()
			s.counts.Expired++
			s.mu.Unlock()
			s.fail(u, &Item{Message: "the lease ran out"})
			u.next.Returned = false // whoever had it may complete it still
			updates = append(updates, u)
		case waits:
			u.offer = true
			updates = append(updates, u)
		case failing:
			told.Add(1)
			s.tell(e, func(error) { told.Done() })
		}
	}
	if err := s.write(x, updates); err != nil && x.ctx.Err() == nil {
		s.o.Log.Warn().Err(err).Uint16("shard", uint16(x.number)).Msg("jobs whose time has come cannot be changed")
		wait.Sleep(x.ctx, againMin) // NB: they are late still
	}
	told.Wait()
}

// sweep removes what is left of jobs that have ended.
func (s *Service) sweep(x *shard, ghosts []*entry) {
	w := s.o.Store.NewBatchIn(x.number, x.epoch)
	s.mu.Lock()
	for _, e := range ghosts {
		w.Delete(e.offer.Job.Key(nil, x.number, key.JobAttempt))
		w.Delete(e.offer.Key(nil, x.number))
		s.dropLocked(e)
	}
	s.mu.Unlock()
	s.o.Store.Append(w, unheard{})
}

// tell tells the instance of a job that has failed for good. What it cannot take now, it is told again.
func (s *Service) tell(e *entry, done func(error)) {
	f := &Finish{Workflow: e.offer.Workflow, Job: e.offer.Job, Lease: e.Lease, Failed: true}
	s.o.Finish(f, func(err error) {
		isOver := err == nil || errors.Is(err, failure.ErrLeaseLost) || errors.Is(err, failure.ErrEnded) || errors.Is(err, failure.ErrNotFound)
		s.mu.Lock()
		e.busy = false
		switch {
		case e.shard.taken[e.offer.Job] != e || e.State != failing:
		case isOver:
			s.dropLocked(e)
		default:
			e.pause = max(againMin, min(2*e.pause, againMax))
			e.At = s.o.Clock().Add(e.pause)
			if e.shard.due.put(e) {
				wait.Notify(e.shard.wake)
			}
		}
		s.mu.Unlock()
		if isOver {
			err = nil
		}
		done(err)
	})
}

// update is what becomes of an entry that is busy.
type update struct {
	e      *entry
	next   attempt
	offer  bool // it is offered from now on
	pulled bool // it was taken out of its line
	err    error
}

// write makes updates durable. After an error nothing is changed.
func (s *Service) write(x *shard, updates []*update) error {
	if len(updates) == 0 {
		return nil
	}
	w := s.o.Store.NewBatchIn(x.number, x.epoch)
	for _, u := range updates {
		w.Set(u.e.offer.Job.Key(nil, x.number, key.JobAttempt), u.next.append(nil))
		if u.offer {
			w.Set(u.e.offer.Key(nil, x.number), nil)
		} else if u.pulled {
			w.Delete(u.e.offer.Key(nil, x.number))
		}
	}
	err := failure.OfStore(s.o.Store.Commit(w))
	var ghosts []*entry
	s.mu.Lock()
	for _, u := range updates {
		e := u.e
		e.busy = false
		switch {
		case e.gone:
			if err == nil {
				ghosts = append(ghosts, e)
			}
		case x.over:
		case err != nil && u.pulled:
			s.dropLocked(e)
			s.offerLocked(x, e.offer)
		case err != nil:
			s.moveLocked(e, e.attempt)
		case u.offer:
			s.dropLocked(e)
			s.offerLocked(x, e.offer)
		default:
			s.moveLocked(e, u.next)
		}
	}
	s.mu.Unlock()
	if len(ghosts) > 0 {
		s.sweep(x, ghosts)
	}
	return err
}

// policyOf is what the newest version of a workflow says of a type. One that says nothing any more leaves what is usual.
func (s *Service) policyOf(o *key.Offer) *statemachine.JobType {
	for _, t := range s.o.Types(o.Type) {
		if t.Workflow == o.Workflow {
			return t.JobType
		}
	}
	return &statemachine.JobType{
		Retry:   statemachine.Retry{RetryLimit: 3, Delay: 5 * time.Second, MaxDelay: time.Hour, Backoff: 2, Jitter: true},
		Timeout: LeaseDefault,
	}
}
