package job

import (
	"errors"
	"sync"

	"troupe/actors/failure"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// handle does what is to be done with jobs whose time has come.
func (s *Service) handle(x *shard, late []*entry) {
	var updates []*update
	var told sync.WaitGroup
	for _, e := range late {
		if _, err := loadOpen(s.rows.Load, x.number, e.offer.Job); errors.Is(err, failure.ErrNotFound) {
			s.sweep(x, []*entry{e}) // NB: of an instance that was deleted
			continue
		}
		switch u := (&update{e: e, next: e.attempt}); e.State {
		case leased:
			s.mu.Lock()
			s.counts.Expired++
			s.mu.Unlock()
			s.fail(u, &Item{Message: "the lease ran out"})
			u.next.Returned = false // its holder may complete it still
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
	if len(ghosts) == 0 {
		return
	}
	w := s.o.Store.NewBatchIn(x.number, x.epoch)
	s.mu.Lock()
	for _, e := range ghosts {
		w.Delete(e.offer.Key(nil, x.number))
		s.dropLocked(e)
	}
	s.mu.Unlock()
	s.o.Store.Append(w, unheard{})
}

// tell tells the instance of a job that has failed for good. What it cannot take now, it is told again.
func (s *Service) tell(e *entry, done func(error)) {
	f := &Finish{Workflow: e.offer.Workflow, Job: e.offer.Job, Lease: e.Lease, Failed: true, Trace: e.trace}
	s.o.Finish(f, func(err error) {
		isOver := err == nil || errors.Is(err, failure.ErrLeaseLost) || errors.Is(err, failure.ErrEnded) || errors.Is(err, failure.ErrNotFound)
		s.mu.Lock()
		e.busy = false
		switch {
		case !e.taken || e.State != failing:
		case isOver:
			s.dropLocked(e)
		default:
			e.pause = max(againMin, min(2*e.pause, againMax))
			e.At = s.o.Clock().Add(e.pause)
			if e.shard.due.Put(e) {
				wait.Notify(e.shard.wake)
			}
		}
		s.mu.Unlock()
		if errors.Is(err, failure.ErrNotFound) || errors.Is(err, failure.ErrLeaseLost) {
			err = errEnded // meanwhile
		}
		done(err)
	})
}

// Settle says whether a lease may end a job now, in an epoch of its shard. j is the job as its instance has it; nil: it has no such job. load
// reads rows, of which it has all that the instance and the holders of leases were told. Without an error, nil: the lease has ended it before
// in the same way. The errors are failure.ErrNotFound, failure.ErrLeaseLost and failure.ErrEnded.
func (s *Service) Settle(load func(key []byte) ([]byte, error), sh key.Shard, epoch uint64, f *Finish, j *statemachine.Job) (*Settled, error) {
	if j == nil {
		_, over, err := loadRow(load, sh, f.Job)
		if err == nil && over == nil {
			err = failure.ErrNotFound
		}
		if err == nil {
			err = over.settles(f.Lease, f.Failed)
		}
		return nil, err
	}
	a, known := s.leaseOf(sh, epoch, f)
	if !known {
		var err error
		r := row{Type: j.Type, Workflow: f.Workflow, Priority: j.Priority, Created: j.Begun}
		o := r.offer(f.Job)
		if a, err = loadAttempt(load, sh, &o); err != nil {
			return nil, err
		}
	}
	if !f.Failed && a.isOver() {
		return nil, errFailed
	}
	mayComplete := !a.Returned && (a.State == leased || a.State == waits)
	if a.Lease != f.Lease || a.Lease == "" || f.Failed && a.State != failing || !f.Failed && !mayComplete {
		return nil, errLeaseLost
	}
	return &Settled{ID: elementOf(f.Job), Failed: f.Failed, Attempts: a.Attempts, Message: a.Message, attempt: a}, nil
}

// leaseOf returns the attempt of the holder of a lease. What is not known for certain is to be read.
func (s *Service) leaseOf(sh key.Shard, epoch uint64, f *Finish) (a attempt, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.led[sh]
	if x == nil || x.over || x.epoch != epoch {
		return a, false
	}
	e := x.taken[f.Job]
	if e == nil || e.busy || e.State != leased || e.Lease != f.Lease { // NB: what is written by one that is busy may be visible
		return a, false
	}
	return e.attempt, true
}

// write makes updates durable. After an error nothing is changed.
func (s *Service) write(x *shard, updates []*update) error {
	if len(updates) == 0 {
		return nil
	}
	w := s.o.Store.NewBatchIn(x.number, x.epoch)
	for _, u := range updates {
		w.Set(u.e.offer.Key(nil, x.number), u.next.append(nil))
	}
	err := failure.OfStore(s.o.Store.Commit(w))
	var ghosts []*entry
	s.mu.Lock()
	for _, u := range updates {
		e := u.e
		e.busy = false
		switch {
		case e.gone:
			if u.over = true; err == nil {
				ghosts = append(ghosts, e)
			}
		case x.over:
		case err != nil && u.pulled:
			s.dropLocked(e)
			s.offerLocked(x, e.offer)
		case err != nil:
			s.moveLocked(e, e.attempt)
		case u.offer:
			e.span.End(errAttempt)
			s.dropLocked(e)
			s.offerLocked(x, e.offer)
		default:
			s.moveLocked(e, u.next)
		}
	}
	s.mu.Unlock()
	s.sweep(x, ghosts)
	return err
}
