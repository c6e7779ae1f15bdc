package job

import (
	"context"
	"errors"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/actors/job/line"
	"troupe/actors/job/ring"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Service gives jobs of the shards that are led here to programs. Its methods are safe for concurrent use.
//
// What is in memory decides who has a job; the rows beside it are what the next leader begins with, and no lease leaves
// before its row is durable. In memory are the first offers of each line (package line), and the jobs that are not offered: those
// that somebody has, that come later, and that have failed.
type Service struct {
	*lister
	o     *Options
	rows  rows           // those of the store
	turn  chan struct{}  // has an entry while somebody takes jobs: one after the other, since that reads the store
	waits wait.Deadlines // of all calls that wait
	kinds *kinds         // nil: standalone
	rings *ring.Rings    // likewise

	stopped context.Context //nolint:containedctx // of all that waits
	stop    context.CancelFunc

	mu       sync.Mutex
	led      map[key.Shard]*shard // in the latest epoch
	types    map[string]*kind
	limits   map[typeOf]*limit
	servings uint64 // jobs that were given
	rowBytes int    // of the rows in memory
	counts   Metrics
}

// New returns a service that has no jobs before Begin.
func New(o Options) *Service {
	s := &Service{
		lister: &lister{Options: &o}, o: &o, rows: o.Store, turn: make(chan struct{}, 1),
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
	s.rings.Stop()
}

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, epoch uint64) (run func()) {
	x := s.enter(ctx, sh, epoch)
	return func() {
		if x == nil { // after a panic
			x = s.enter(ctx, sh, epoch)
		}
		now := x
		x = nil
		s.run(now)
	}
}

func (s *Service) enter(ctx context.Context, sh key.Shard, epoch uint64) *shard {
	x := &shard{
		number: sh, epoch: epoch, ctx: ctx, wake: make(chan struct{}, 1), loaded: make(chan struct{}), taken: map[key.Job]*entry{},
		rows: map[key.Job][]byte{},
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
	s.rings.Moved()
	for _, e := range x.taken {
		s.countLocked(e, -1)
		e.taken = false
		e.span.End(nil) // NB: the next leader goes on with one of its own
	}
	for name := range x.rows {
		s.forgetRowLocked(x, name)
	}
	x.taken, x.due = map[key.Job]*entry{}, wait.Heap[*entry]{}
	for _, k := range s.types {
		k.lines.Leave(x.number)
	}
}

// Changed is told what a commit has changed, when it is visible.
func (s *Service) Changed(sh key.Shard, changes []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.led[sh]
	if x == nil || x.over {
		return // NB: the next leader reads what is there
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
		if e != nil && e.State != failed { // NB: it was read before this was told
			return
		}
		if e != nil {
			s.dropLocked(e)
		}
		s.offerLocked(x, c.offer)
		s.keepRowLocked(x, c)
	case c.how == hasMoved:
		if x.rows[c.offer.Job] != nil {
			s.forgetRowLocked(x, c.offer.Job)
			s.keepRowLocked(x, c)
		}
	case c.how == hasFailed:
		if e == nil {
			e = s.takeLocked(x, c.offer, attempt{})
		}
		s.countLocked(e, -1)
		e.State = failed
		x.due.Remove(e)
	case e == nil:
		s.withdrawLocked(x, &c.offer)
		s.forgetRowLocked(x, c.offer.Job)
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
	s.forgetRowLocked(x, o.Job)
	x.seized++
	s.enterLocked(e)
	return e
}

func (s *Service) enterLocked(e *entry) {
	e.shard.taken[e.offer.Job], e.taken = e, true
	e.of = s.kindLocked(e.offer.Type).shareOf(e.offer.Workflow)
	s.countLocked(e, 1)
}

// rowBytesMax bounds the rows in memory of all jobs, and rowBytesEach is about what one takes beside its bytes.
const rowBytesMax, rowBytesEach = 16 << 20, 128

// keepRowLocked keeps the row of a job that begins, so that it need not be read when the job is given.
func (s *Service) keepRowLocked(x *shard, c *Change) {
	if size := len(c.row) + rowBytesEach; c.row != nil && s.rowBytes+size <= rowBytesMax && !x.over && x.rows[c.offer.Job] == nil {
		x.rows[c.offer.Job] = c.row
		s.rowBytes += size
	}
}

func (s *Service) forgetRowLocked(x *shard, name key.Job) {
	if row := x.rows[name]; row != nil {
		delete(x.rows, name)
		s.rowBytes -= len(row) + rowBytesEach
	}
}

// dropLocked forgets the entry of a job.
func (s *Service) dropLocked(e *entry) {
	if e.taken {
		s.countLocked(e, -1)
		s.roomLocked(e, 0)
		delete(e.shard.taken, e.offer.Job)
		e.taken = false
		e.shard.due.Remove(e)
	}
}

// roomLocked ends the span of a lease that is over, and tells who waits for that.
func (s *Service) roomLocked(e *entry, next byte) {
	if e.State != leased || next == leased {
		return
	}
	e.unfollow(next)
	if e.of.isBounded {
		s.ringLocked(e.offer.Type)
	}
}

// countLocked counts the leases of a workflow, of entries that are not forgotten.
func (s *Service) countLocked(e *entry, by int) {
	if e.State == leased && e.taken {
		e.of.running += by
	}
}

// moveLocked gives an entry another attempt.
func (s *Service) moveLocked(e *entry, to attempt) {
	s.countLocked(e, -1)
	s.roomLocked(e, to.State)
	e.attempt = to
	s.countLocked(e, 1)
	if e.State == failed {
		e.shard.due.Remove(e)
	} else if e.shard.due.Put(e) {
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
	var taken []entry
	var ghosts []*entry
	lines, now := &line.Shard{Of: x.number, ByType: map[string]line.Lines{}}, s.o.Clock()
	err := s.rows.Scan(key.JobsPrefix(nil, x.number, key.JobOffer), func(rowKey, value []byte) error {
		o, ok := key.ParseOffer(rowKey)
		a, err := parseAttempt(value)
		if !ok || err != nil {
			return errors.Join(persistence.ErrCorrupt, err)
		}
		if a.State == 0 || a.State == waits && !a.At.After(now) {
			lines.Add(o)
			return nil
		}
		r, err := loadOpen(s.rows.Load, x.number, o.Job)
		if errors.Is(err, failure.ErrNotFound) {
			ghosts = append(ghosts, &entry{shard: x, offer: o})
			return nil
		}
		taken = append(taken, entry{shard: x, offer: o, attempt: a, place: -1})
		s.o.follow(&taken[len(taken)-1], &r, time.Time{})
		return err
	})
	if err != nil {
		return err
	}
	s.sweep(x, ghosts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.over {
		return nil
	}
	for i := range taken {
		e := &taken[i]
		s.enterLocked(e)
		if e.State != failed {
			x.due.Put(e)
		}
	}
	s.adoptLocked(x, lines)
	x.isLoaded = true
	close(x.loaded)
	for i := range x.early {
		s.changeLocked(x, &x.early[i])
	}
	x.early = nil
	return nil
}

// late returns jobs whose time has come, as busy, and the next time of the others.
func (s *Service) late(x *shard) (late []*entry, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock()
	for x.due.Len() > 0 && len(late) < lateMax {
		e := x.due.First()
		if e.At.After(now) {
			return late, e.At.UnixMilli() + 1
		}
		x.due.Remove(e) // NB: a busy one comes back with what it becomes
		if !e.busy {
			e.busy = true
			late = append(late, e)
		}
	}
	return late, wait.Never
}
