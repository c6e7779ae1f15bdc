package query

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
)

type readers struct {
	// open has a slot for each that has a snapshot. It is kept while the caller reads, however slowly, so one user
	// never has more than half.
	open   *semaphore.Semaphore[identity.UserID]
	busy   *semaphore.Semaphore[identity.UserID] // It is given back whenever there is something to wait for
	shares *shares                               // shares has the work of queries; nil for lists, which never rest
}

func newReaders(open, busy int, shares *shares) *readers {
	return &readers{open: semaphore.NewReserving[identity.UserID](open), busy: semaphore.New[identity.UserID](busy), shares: shares}
}

// count is how many slots are held. A query that works holds one of each kind.
func (r *readers) count() int { return r.open.Held() + r.busy.Held() }

// slots returns those for a reader that may have to wait for its caller.
func (r *readers) slots(user identity.UserID) *slots {
	s := r.brief(user)
	s.open = r.open.Slot(user)
	return s
}

// brief returns the slot of a reader that waits for nobody. NB: so the holder of an open slot can wait for such a reader, on
// whatever node.
func (r *readers) brief(user identity.UserID) *slots {
	return &slots{of: r, user: user, busy: r.busy.Slot(user)}
}

// slots are used by one goroutine.
type slots struct {
	of      *readers
	user    identity.UserID
	open    *semaphore.Slot[identity.UserID] // nil for what is brief
	busy    *semaphore.Slot[identity.UserID]
	working bool      // from resume to pause
	since   time.Time // while working: what was done before is charged
}

func (s *slots) resume(ctx context.Context) error {
	if s.working {
		return nil
	}
	if err := s.busy.Acquire(ctx); err != nil {
		return err
	}
	s.working, s.since = true, time.Now()
	if s.of.shares != nil {
		s.of.shares.enter(s.user)
	}
	return nil
}

// pause charges the work and lets others work.
func (s *slots) pause() {
	s.busy.Release()
	if s.working && s.of.shares != nil {
		s.charge(tailMax)
		s.of.shares.leave(s.user)
	}
	s.working = false
}

func (s *slots) leave() {
	s.pause()
	if s.open != nil {
		s.open.Release()
	}
}

func (s *slots) charge(most time.Duration) (rest time.Duration) {
	now := time.Now()
	rest = s.of.shares.charge(s.user, min(now.Sub(s.since), most), now)
	s.since = now
	return rest
}

// What is taken for work is bounded: a query that was not let run for a while has not worked.
const (
	workedMax = 5 * time.Millisecond // between two checks
	tailMax   = time.Millisecond     // what less than checkEvery steps and checkBytes take
)

type throttle struct {
	ctx   context.Context // of the whole work
	slots *slots
}

// check ends the work when nobody waits for it any more, and lets events and other users go first.
func (p *throttle) check() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	var err error
	if rest := p.slots.charge(workedMax); rest > 0 {
		err = p.rest(rest)
	} else {
		err = p.slots.busy.Yield(p.ctx)
	}
	p.slots.since = time.Now()
	return err
}

func (p *throttle) rest(rest time.Duration) error {
	p.slots.busy.Release() // NB: it still has work to do, and so its part of the share
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	return p.slots.busy.Acquire(p.ctx)
}

// As long as that takes, the reader has no slot.
const batchBytes = 64 << 10

type batch[T any] struct {
	items []T
	size  int // bytes
	yield func(T) error
}

func (b *batch[T]) add(p *throttle, item T, size int) error {
	b.items = append(b.items, item)
	if b.size += size; b.size < batchBytes {
		return nil
	}
	if err := b.flush(p); err != nil {
		return err
	}
	return p.slots.resume(p.ctx)
}

// If there is anything, the reader has no slot then: who goes on with work resumes.
func (b *batch[T]) flush(p *throttle) error {
	if len(b.items) == 0 {
		return nil
	}
	p.slots.pause()
	err := b.handOver(p.ctx)
	clear(b.items)
	b.items, b.size = b.items[:0], 0
	return err
}

func (b *batch[T]) handOver(ctx context.Context) error {
	for _, item := range b.items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.yield(item); err != nil {
			return err
		}
	}
	return ctx.Err()
}

const (
	// queryShare is how much of the machine all long queries may take beside events: with 0.1 a scan slowed those down
	// by a third.
	queryShare = 0.02
	// allShare is how much all queries may take. It is more, or short queries would have to wait for long ones.
	allShare = 2 * queryShare
	// savedMax is the most work that a user can have saved up: fifty queries that find a hundred instances each.
	savedMax    = 50 * time.Millisecond
	allSavedMax = 4 * savedMax // the most that all users together can have
)

// shares counts the queries and looks that have work to do, by user, so that each user has the same share of the
// machine, whatever that is used for. What a user leaves of it is saved, up to savedMax.
type shares struct {
	inFlight   *atomic.Int64 // see Options
	processors func(int) int // runtime.GOMAXPROCS, which is asked with 0

	mu      sync.Mutex
	working map[identity.UserID]int // guarded by mu; none is 0
	all     balance                 // guarded by mu
	users   map[identity.UserID]own // guarded by mu; who is not in it has savedMax
}

type own struct {
	balance
	whole time.Time // when it will be savedMax again, if nothing is spent
}

func newShares(inFlight *atomic.Int64) *shares {
	return &shares{inFlight: inFlight, processors: runtime.GOMAXPROCS, working: map[identity.UserID]int{}, users: map[identity.UserID]own{}}
}

func (t *shares) enter(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working[user]++
}

func (t *shares) leave(user identity.UserID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working[user]--; t.working[user] == 0 {
		delete(t.working, user)
	}
}

// While fewer calls are open than there are processors, nobody waits for a processor, work costs nothing, and nobody
// rests.
func (t *shares) charge(user identity.UserID, work time.Duration, now time.Time) (rest time.Duration) {
	processors := float64(t.processors(0))
	if float64(t.inFlight.Load()) < processors {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o, known := t.users[user]
	if !known {
		for id, other := range t.users { // NB: so they are no more than users who asked lately
			if other.whole.Before(now) {
				delete(t.users, id)
			}
		}
	}
	share := queryShare * processors / float64(max(1, len(t.working)))
	rest = max(o.spend(work, savedMax, share, now), t.all.spend(work, allSavedMax, allShare*processors, now))
	o.whole = now.Add(time.Duration(float64(savedMax-o.work) / share))
	t.users[user] = o
	return rest
}

// balance is work that may be done without a rest; below zero it is a debt, for work that was done already.
type balance struct {
	work time.Duration
	at   time.Time // of work
}

// spend adds share in each unit of time, up to most, takes work away, and returns after what rest nothing is owed.
func (b *balance) spend(work, most time.Duration, share float64, now time.Time) (rest time.Duration) {
	if passed := now.Sub(b.at); passed > 0 {
		b.work, b.at = min(most, b.work+time.Duration(share*float64(passed))), now
	}
	b.work -= work
	return max(0, time.Duration(float64(-b.work)/share))
}
