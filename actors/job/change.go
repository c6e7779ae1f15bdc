package job

import (
	"context"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/persistence/key"
)

// Change carries out an action, and has one error for each item, in order; nil: done, and durable. Of an item: failure.ErrNotFound without such
// a job, failure.ErrForbidden for who may not have jobs of its type, failure.ErrLeaseLost and failure.ErrEnded,
// failure.ErrConflict for a job to be retried that somebody has, failure.ErrUnprocessable for output that does not fit its schema, and
// failure.ErrBusy while another change of the job goes on.
func (s *Service) Change(ctx context.Context, req *Request) ([]error, error) {
	in := &changing{Caller: req.Caller, Action: req.Action, Items: req.Items}
	out := make([]error, len(req.Items))
	for i := range req.Items {
		it := &req.Items[i]
		switch name, ok := parseID(it.JobID); {
		case !ok:
			out[i] = failure.ErrNotFound
		case it.RetryIn != nil && *it.RetryIn < 0, req.Action == Extend && it.By < LeaseMin:
			out[i] = failure.Refuse(failure.ErrInvalid, "a time must not be negative, and a lease be extended by %s at least", LeaseMin)
		default:
			it.Message = shortened(it.Message)
			in.places = append(in.places, place{i, s.o.Store.ShardOf(name.ID), name})
		}
	}
	if s.kinds != nil {
		return out, s.changeCluster(ctx, in, out)
	}
	s.changeHere(ctx, in, in.places, out)
	return out, nil
}

// changing is a Request with where its jobs are.
type changing struct {
	Caller *identity.Principal
	Action Action
	Items  []Item
	places []place // of those that can be
}

type place struct {
	at    int // among the items
	shard key.Shard
	name  key.Job
}

// changeHere carries out what is about jobs of shards that are led here. What stands there about the same job comes one after the other.
func (s *Service) changeHere(ctx context.Context, in *changing, places []place, out []error) {
	for len(places) > 0 {
		seen, now, later := map[key.Job]bool{}, places[:0:0], places[:0:0]
		for _, p := range places {
			if seen[p.name] {
				later = append(later, p)
			} else {
				now, seen[p.name] = append(now, p), true
			}
		}
		s.changeEach(ctx, in, now, out)
		places = later
	}
}

// changeEach is changeHere for different jobs.
func (s *Service) changeEach(ctx context.Context, in *changing, places []place, out []error) {
	by := map[key.Shard][]place{}
	for _, p := range places {
		by[p.shard] = append(by[p.shard], p)
	}
	var all sync.WaitGroup
	for sh, places := range by {
		if in.Action == Complete { // NB: it waits for no commit, and new goroutines have small stacks
			s.changeIn(ctx, sh, in, places, out, &all)
		} else {
			all.Go(func() { s.changeIn(ctx, sh, in, places, out, &all) })
		}
	}
	all.Wait()
}

// changeIn carries out what is about jobs of one shard; what it does not wait for, all does.
func (s *Service) changeIn(ctx context.Context, sh key.Shard, in *changing, places []place, out []error, all *sync.WaitGroup) {
	err := failure.OfStore(s.o.Store.Accepting())
	x, of := (*shard)(nil), error(nil)
	if err == nil {
		if x, of = s.ready(ctx, sh); of != nil {
			err = of
		}
	}
	if err != nil {
		for _, p := range places {
			out[p.at] = err
		}
		return
	}
	var updates []*update
	var items []int
	for _, p := range places {
		it := &in.Items[p.at]
		var u *update
		switch in.Action {
		case Complete:
			all.Add(1)
			s.complete(in, it, x, p.name, func(err error) { out[p.at] = err; all.Done() })
		case Retry:
			all.Add(1)
			u = s.retry(in, x, p.name, func(err error) { out[p.at] = err; all.Done() })
		case Fail, Extend, Cancel:
			u, out[p.at] = s.change(in, it, x, p.name)
		default:
			out[p.at] = failure.Errorf(failure.ErrInvalid, "action %q", in.Action)
		}
		if u != nil {
			updates, items = append(updates, u), append(items, p.at)
		}
	}
	err = s.write(x, updates)
	for i, u := range updates {
		switch out[items[i]] = err; {
		case err != nil:
		case u.over:
			out[items[i]] = errEnded
		case u.next.State == failing:
			all.Add(1)
			s.tellNow(u.e, func(err error) { out[items[i]] = err; all.Done() })
		}
	}
}

// ready returns what is known of a shard, when its rows were read.
func (s *Service) ready(ctx context.Context, sh key.Shard) (*shard, error) {
	s.mu.Lock()
	x := s.led[sh]
	s.mu.Unlock()
	if x == nil || x.epoch != s.o.Store.Epoch(sh) {
		if s.o.Store.Epoch(sh) != 0 {
			return nil, failure.ErrUnavailable // it is about to be led
		}
		return nil, failure.Elsewhere(uint16(sh))
	}
	select {
	case <-x.loaded:
		return x, nil
	case <-x.ctx.Done():
		return nil, failure.Elsewhere(uint16(sh))
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known returns an offer of a job, wherever it is; with whose trace it belongs to, and how it has ended.
func (s *Service) known(x *shard, name key.Job) (o key.Offer, of string, over *end, err error) {
	s.mu.Lock()
	if e := x.taken[name]; e != nil {
		defer s.mu.Unlock()
		return e.offer, e.trace, nil, nil
	}
	s.mu.Unlock()
	r, over, err := loadRow(s.rows.Load, x.number, name)
	if over != nil {
		return key.Offer{Type: over.Type, Workflow: over.Workflow, Job: name}, "", over, err
	}
	return r.offer(name), r.Trace, nil, err
}

func (s *Service) complete(in *changing, it *Item, x *shard, name key.Job, done func(error)) {
	o, of, over, err := s.known(x, name)
	if err == nil {
		err = s.o.may(in.Caller, in.Action, o.Type, o.Workflow)
	}
	if err == nil && over != nil {
		if err = over.settles(it.Lease, false); err == nil {
			err = failure.OfStore(s.o.Store.AwaitDurable())
		}
		done(err)
		return
	}
	if err != nil {
		done(err)
		return
	}
	s.o.Finish(&Finish{Workflow: o.Workflow, Job: name, Lease: it.Lease, Output: it.Output, Trace: of}, func(err error) {
		if err == nil {
			s.mu.Lock()
			s.counts.Completed++
			s.mu.Unlock()
		}
		done(err)
	})
}

// seize makes a job busy, whether it is in a line or not.
func (s *Service) seize(x *shard, name key.Job) (u *update, over *end, err error) {
	for {
		s.mu.Lock()
		seized, e := x.seized, x.taken[name]
		if e != nil {
			if e.busy {
				s.mu.Unlock()
				return nil, nil, failure.ErrBusy
			}
			e.busy = true
			s.mu.Unlock()
			return &update{e: e, next: e.attempt}, nil, nil
		}
		s.mu.Unlock()
		r, over, err := loadRow(s.rows.Load, x.number, name)
		if over != nil {
			return nil, over, err
		}
		var a attempt
		o := r.offer(name)
		if err == nil {
			a, err = loadAttempt(s.rows.Load, x.number, &o)
		}
		if err != nil {
			return nil, nil, err
		}
		s.mu.Lock()
		if x.over || x.seized == seized { // NB: else somebody may have had it meanwhile
			if x.over {
				s.mu.Unlock()
				return nil, nil, failure.Elsewhere(uint16(x.number))
			}
			a.State = waits
			s.withdrawLocked(x, &o)
			e := s.takeLocked(x, o, a)
			e.busy, e.trace = true, r.Trace
			s.mu.Unlock()
			return &update{e: e, next: a, pulled: true}, nil, nil
		}
		s.mu.Unlock()
	}
}

// release is the end of an update that is not written.
func (s *Service) release(u *update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := u.e
	e.busy = false
	switch {
	case e.gone:
	case u.pulled:
		s.dropLocked(e)
		s.offerLocked(e.shard, e.offer)
	case e.State != failed:
		s.moveLocked(e, e.attempt) // NB: its time may have come meanwhile
	}
}

// change makes the update of an action upon a job that its instance needs not hear of; nil without an error: there is nothing to do.
func (s *Service) change(in *changing, it *Item, x *shard, name key.Job) (*update, error) {
	u, over, err := s.seize(x, name)
	if err != nil {
		return nil, err
	}
	if over != nil {
		if err = s.o.may(in.Caller, in.Action, over.Type, over.Workflow); err != nil {
			return nil, err
		}
		switch err = over.settles(it.Lease, true); {
		case in.Action == Cancel && over.How == failedOver: // NB: it was said before, perhaps
			err = nil
		case in.Action == Cancel, in.Action == Extend && err == nil:
			err = errEnded
		}
		return nil, err
	}
	done := false
	e := u.e
	holds := e.Lease != "" && e.Lease == it.Lease
	switch err = s.o.may(in.Caller, in.Action, e.offer.Type, e.offer.Workflow); {
	case err != nil:
	case in.Action == Cancel:
		if done = e.State == failed || e.State == failing; !done {
			u.next.State, u.next.Returned, u.next.Lease, u.next.At, u.next.Message = failing, true, newLease(), s.o.Clock(), "cancelled"
			if in.Caller != nil {
				u.next.Message += " by " + string(in.Caller.ID)
			}
		}
	case in.Action == Fail && holds && e.Returned: // it was said before
		done = true
	case !holds && e.isOver():
		err = errFailed
	case !holds, e.Returned, e.State != leased && e.State != waits:
		err = errLeaseLost
	case in.Action == Fail:
		if s.fail(u, it); !it.Later {
			s.mu.Lock()
			s.counts.Failed++
			s.mu.Unlock()
		}
	default:
		by := min(it.By, s.o.policyOf(&e.offer).Timeout)
		u.next.State, u.next.At = leased, s.o.Clock().Add(by)
	}
	if err != nil || done {
		s.release(u)
		return nil, err
	}
	return u, nil
}

// fail makes the update of an attempt that has failed.
func (s *Service) fail(u *update, it *Item) {
	of, a := s.o.policyOf(&u.e.offer), &u.next
	now := s.o.Clock()
	a.Returned = true
	if !it.Later || it.Message != "" { // else that of the attempt before says more
		a.Message = it.Message
	}
	var pause time.Duration
	switch {
	case it.Later:
		a.Attempts, pause = max(a.Attempts-1, 0), of.Delay
	case it.Final || a.Attempts > of.RetryLimit:
		a.State, a.At = failing, now
		return
	default:
		pause = pauseBefore(&of.Retry, a.Attempts)
	}
	if it.RetryIn != nil {
		pause = *it.RetryIn
	}
	a.State, a.At = waits, now.Add(pause)
	u.offer = pause <= 0
}

// tellNow is tell for a job that has just failed for good, unless somebody is telling its instance already.
func (s *Service) tellNow(e *entry, done func(error)) {
	s.mu.Lock()
	isMine := !e.busy && e.State == failing && e.taken
	if isMine {
		e.busy = true
		e.shard.due.Remove(e)
	}
	s.mu.Unlock()
	if !isMine {
		done(nil) // it is durable that it has failed
		return
	}
	s.tell(e, done)
}

// retry has a job that has failed for good begin again, and one that comes later come now. Either it returns an update, whose error
// the caller sets, or it calls done.
func (s *Service) retry(in *changing, x *shard, name key.Job, done func(error)) *update {
	u, over, err := s.seize(x, name)
	switch {
	case err != nil:
	case over != nil:
		if err = s.o.may(in.Caller, in.Action, over.Type, over.Workflow); err == nil {
			err = errEnded
		}
	default:
		err = s.o.may(in.Caller, in.Action, u.e.offer.Type, u.e.offer.Workflow)
	}
	if err != nil || over != nil {
		if u != nil {
			s.release(u)
		}
		done(err)
		return nil
	}
	switch {
	case u.e.State == failed:
		s.release(u)
		s.o.Again(u.e.offer.Workflow, name, done)
		return nil
	case u.e.State == waits && !u.pulled:
		u.offer, u.next.At = true, s.o.Clock()
		done(nil) // NB: what the write comes to takes its place
		return u
	case u.e.State == leased:
		err = failure.Refuse(failure.ErrConflict, "somebody has the job")
	case u.e.State == failing:
		err = failure.Refuse(failure.ErrConflict, "the job has just failed, and its instance does not know yet")
	}
	s.release(u)
	done(err)
	return nil
}
