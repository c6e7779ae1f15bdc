package query

import (
	"context"
	"time"

	"troupe/actors/failure"
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

func (s *Service) enter(ctx context.Context, of *readers, user identity.UserID, wait time.Duration) (*slots, error) {
	got := &slots{of: of, user: user, open: of.open.Slot(user), busy: of.busy.Slot(user)}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := got.open.Acquire(waiting)
	if err == nil {
		err = got.resume(waiting)
	}
	if err != nil {
		got.leave()
		s.refused.Add(1)
		return nil, failure.ErrBusy
	}
	return got, nil
}

// One goroutine uses it.
type slots struct {
	of      *readers
	user    identity.UserID
	open    *semaphore.Slot[identity.UserID] // nil for the look of a watch, which has no snapshot
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
