package query

import (
	"context"
	"runtime"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
)

// readers bounds the readers of one kind, queries or lists.
type readers struct {
	// open has a slot for each that has a snapshot. It is kept while the caller
	// reads, however slowly, so one user never has more than half.
	open *semaphore.Semaphore
	// busy has a slot for each that works now. It is given back whenever there is
	// something to wait for.
	busy *semaphore.Semaphore
	shares
}

func newReaders(open, busy int) *readers {
	return &readers{
		open: semaphore.NewReserving(open), busy: semaphore.New(busy),
		shares: newShares(),
	}
}

// count is how many slots are held. A query that works holds one of each kind.
func (r *readers) count() int { return r.open.Held() + r.busy.Held() }

// enter waits for the slots of a reader; leave must follow. failure.ErrBusy: they did not come
// before wait was over or ctx ended.
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

// slots are those of one reader. One goroutine uses it.
type slots struct {
	of      *readers
	user    identity.UserID
	open    *semaphore.Slot // nil for the look of a watch, which has no snapshot
	busy    *semaphore.Slot
	counted bool // in the shares, which is from resume to pause
}

// resume waits until work can go on.
func (s *slots) resume(ctx context.Context) error {
	if err := s.busy.Acquire(ctx); err != nil {
		return err
	}
	if !s.counted {
		s.counted = true
		s.of.shares.enter(s.user)
	}
	return nil
}

// pause lets others work. It can be called again.
func (s *slots) pause() {
	s.busy.Release()
	if s.counted {
		s.counted = false
		s.of.shares.leave(s.user)
	}
}

// leave gives the slots back.
func (s *slots) leave() {
	s.pause()
	if s.open != nil {
		s.open.Release()
	}
}

// throttle keeps long work to its share of the machine, and ends it.
type throttle struct {
	service *Service
	ctx     context.Context // of the whole work
	slots   *slots
	resumed time.Time // when it began, or last had a rest
}

// check ends the work when nobody waits for it any more, and lets events and other
// users go first. It is called after some milliseconds of work at the latest.
func (p *throttle) check() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	var err error
	if rest := p.service.restAfter(p.resumed, p.slots.user); rest > 0 {
		err = p.rest(rest)
	} else {
		err = p.slots.busy.Yield(p.ctx)
	}
	p.resumed = time.Now()
	return err
}

// rest waits without the slot: others may work meanwhile.
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

// resume waits for the slot again, if the reader paused.
func (p *throttle) resume() error {
	if p.slots.counted {
		return nil
	}
	err := p.slots.resume(p.ctx)
	p.resumed = time.Now()
	return err
}

// queryShare is how much of the machine all queries together may take while
// events keep it busy. With 0.1 a full scan slowed the events down by a third;
// with 0.02 they keep 0.97 of their rate (bench/results, "Beside events").
const queryShare = 0.02

// restAfter is how long a user's query rests after having worked since a moment, so
// that queries keep to their share. What the user has saved up is no reason to rest:
// few short queries are answered at once, whatever the machine has to do. While fewer
// calls are open than there are processors, nobody waits for a processor, and nobody
// rests.
func (s *Service) restAfter(since time.Time, user identity.UserID) time.Duration {
	processors := float64(runtime.GOMAXPROCS(0))
	if float64(s.o.InFlight.Load()) < processors {
		return 0
	}
	users, own := s.queries.parts(user)
	share := queryShare * processors / float64(users)
	mine := share / float64(own)
	if mine >= 1 {
		return 0
	}
	now := time.Now()
	owed := s.queries.spend(user, min(now.Sub(since), restWorkedMax), share, now)
	return time.Duration(float64(owed) * (1/mine - 1))
}

// restWorkedMax bounds what is taken for work: a query that was not let run for
// a while has not worked.
const restWorkedMax = 5 * time.Millisecond

// batchBytes is how much is read before it is handed over. As long as that takes,
// the reader has no slot.
const batchBytes = 64 << 10

// batch is what was read and not handed over yet.
type batch[T any] struct {
	items []T
	size  int // bytes
	yield func(T) error
}

// add puts an item into the batch, and hands the batch over when it is full.
func (b *batch[T]) add(p *throttle, item T, size int) error {
	b.items = append(b.items, item)
	if b.size += size; b.size < batchBytes {
		return nil
	}
	if err := b.flush(p); err != nil {
		return err
	}
	return p.resume()
}

// flush hands over what there is, until ctx ends. If there is anything, the reader
// has no slot then: who goes on with work resumes.
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
