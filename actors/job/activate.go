package job

import (
	"context"
	"errors"
	"slices"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/actors/job/line"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Activate gives jobs to their caller, whose leases are durable: the highest priority first, of that the workflows in turn,
// and of those the oldest; of a cluster in one node after the other. Without any it waits, for the time that the caller
// says; when ctx ends meanwhile, nothing was given and the error is that of ctx. failure.ErrNotFound: no definition has
// such jobs. failure.ErrForbidden: the caller may have none of them. failure.ErrInvalid: a bound.
func (s *Service) Activate(ctx context.Context, a *Activation) ([]Leased, error) {
	switch {
	case len(a.Types) == 0:
		return nil, failure.Refuse(failure.ErrInvalid, "types must have at least one type")
	case a.Max < 1 || a.Max > ActivatedMax:
		return nil, failure.Refuse(failure.ErrInvalid, "max must be 1 to %d", ActivatedMax)
	case a.Wait < 0 || a.Wait > WaitMax:
		return nil, failure.Refuse(failure.ErrInvalid, "wait must be 0 to %s", WaitMax)
	case a.Lease != 0 && a.Lease < LeaseMin:
		return nil, failure.Refuse(failure.ErrInvalid, "lease must be at least %s", LeaseMin)
	}
	w := s.listen(a)
	defer s.ignore(w)
	for {
		leased, at, err := s.try(ctx, a)
		if err != nil || len(leased) > 0 || a.Wait == 0 {
			return leased, err
		}
		if err := s.wait(ctx, w, at); err != nil {
			return nil, err
		}
		if w.isOver {
			return nil, nil
		}
	}
}

// listen has a call told of jobs that come from now on.
func (s *Service) listen(a *Activation) *waiter {
	w := &waiter{rung: make(chan struct{}, 1), end: wait.NewDeadline(time.Now().Add(a.Wait)), types: a.Types}
	known := slices.DeleteFunc(slices.Clone(a.Types), func(typ string) bool { // NB: names that nobody knows would fill the memory
		return len(s.o.Types(typ)) == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, typ := range known {
		k := s.kindLocked(typ)
		if a.Wait > 0 {
			k.waiters[w] = struct{}{}
		}
	}
	if w.follows = s.kinds != nil && a.Wait > 0; w.follows {
		s.rings.Follow()
	}
	return w
}

func (s *Service) ignore(w *waiter) {
	s.waits.Remove(w.end)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, typ := range w.types {
		if k := s.types[typ]; k != nil {
			delete(k.waiters, w)
		}
	}
	if w.follows {
		s.rings.Ignore()
	}
}

// wait returns when there may be jobs, at a time, or when the wait is over, which it notes; the error is that of ctx.
func (s *Service) wait(ctx context.Context, w *waiter, at time.Time) error {
	s.waits.Add(w.end)
	var until <-chan time.Time
	if !at.IsZero() { // NB: a limit holds back what waits
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		until = t.C
	}
	select {
	case <-w.rung:
	case <-until:
	case <-w.end.Over:
		w.isOver = true
	case <-s.stopped.Done():
		return failure.ErrUnavailable
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// asked are jobs that a node is to give.
type asked struct {
	Grants []Grant
	Max    int
	Lease  time.Duration // 0: as long as the type says
	Worker string
}

// try looks for jobs once. at is when limits let more be given, zero when that is not known.
func (s *Service) try(ctx context.Context, a *Activation) (leased []Leased, at time.Time, err error) {
	grants, err := s.o.grants(a.Caller, a.Types)
	if err != nil {
		return nil, at, err
	}
	if s.Paused() != nil {
		return nil, at, nil
	}
	in := &asked{grants, a.Max, a.Lease, a.Worker}
	if s.kinds != nil {
		return s.tryCluster(ctx, in)
	}
	return s.within(in, s.localRunning, func(in *asked) ([]Leased, error) { return s.take(ctx, in) })
}

// Paused is nil, or why no job is given now.
func (s *Service) Paused() error {
	if s.o.Held == nil {
		return nil
	}
	return s.o.Held()
}

// Resumed has those who wait look again, after Paused.
func (s *Service) Resumed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for typ := range s.types {
		s.ringLocked(typ)
	}
}

// take gives jobs of the shards that are led here.
func (s *Service) take(ctx context.Context, in *asked) ([]Leased, error) {
	if err := failure.OfStore(s.o.Store.Accepting()); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		<-s.turn
		return nil, err
	}
	s.mu.Lock()
	for i := range in.Grants {
		g := &in.Grants[i]
		k := s.kindLocked(g.Type)
		k.sawLocked(in.Worker, s.o.Clock().UnixMilli())
		k.shareOf(g.Workflow).isBounded = g.Running > 0
	}
	s.mu.Unlock()
	g := &giving{service: s, in: in, by: map[*shard]*given{}}
	err := g.choose()
	for _, of := range g.by { // NB: also after an error, so that what was taken is not lost
		of.done = make(chan error, 1)
		s.o.Store.Append(of.w, of)
	}
	<-s.turn
	leased, failed := g.settle()
	if err = errors.Join(err, failed); err != nil && len(leased) == 0 {
		return nil, err
	}
	return leased, nil
}

// activatedBytes is how much data the jobs of one activation have, on each node: those that follow it are given the next time.
const activatedBytes = 8 << 20

// giving is one call of take.
type giving struct {
	service *Service
	in      *asked
	by      map[*shard]*given
	bytes   int      // of their data
	leased  []Leased // in their order; what is not durable has no lease in the end
}

// given are leases of one shard that become durable together.
type given struct {
	w       *persistence.Batch
	entries []*entry
	leased  []int // their places in giving.leased
	done    chan error
}

// Committed implements persistence.Waiter.
func (g *given) Committed(err error) { g.done <- err }

// choose takes jobs out of their lines, and writes their leases.
func (g *giving) choose() error {
	for len(g.leased) < g.in.Max && g.bytes < activatedBytes {
		e, grant, err := g.next()
		if e == nil || err != nil {
			return err
		}
		if err := g.lease(e, grant); err != nil {
			return err
		}
	}
	return nil
}

// next takes the job whose turn it is out of its line; nil: there is none.
func (g *giving) next() (*entry, *Grant, error) {
	s := g.service
	for {
		s.mu.Lock()
		k, name, grant := g.bestLocked()
		if k == nil {
			s.mu.Unlock()
			return nil, nil, nil
		}
		at := key.Offer{Type: grant.Type, Priority: name.Priority, Workflow: name.Workflow}
		first, sh, unread := k.lines[name].First()
		if len(unread) == 0 {
			of, o := s.led[sh], first.Take()
			k.lines.Prune(sh, &o)
			row := of.rows[o.Job]
			e := s.takeLocked(of, o, attempt{State: waits})
			e.busy, e.row = true, row
			s.servings++
			k.shareOf(o.Workflow).served = s.servings
			s.mu.Unlock()
			return e, grant, nil
		}
		empty := make([]*shard, len(unread))
		for i, sh := range unread {
			empty[i] = s.led[sh]
		}
		s.mu.Unlock()
		for _, x := range empty {
			if err := s.fill(x, k, &at); err != nil {
				return nil, nil, err
			}
		}
	}
}

// bestLocked is the line of the highest priority; of those that have it, the one of the workflow that was served the longest
// time ago, and of those that never were the one of the oldest job.
func (g *giving) bestLocked() (best *kind, at line.Name, grant *Grant) {
	var served uint64
	for i := range g.in.Grants {
		of := &g.in.Grants[i]
		k := g.service.types[of.Type]
		if k == nil || of.Most == 0 {
			continue
		}
		for name, l := range k.lines {
			if name.Workflow != of.Workflow || best != nil && name.Priority < at.Priority {
				continue
			}
			turn := k.shareOf(name.Workflow).served
			if best == nil || name.Priority > at.Priority || turn < served || turn == served && l.Front() < best.lines[at].Front() {
				best, at, grant, served = k, name, of, turn
			}
		}
	}
	return best, at, grant
}

// lease writes the lease of a job that was taken out of its line. One that has ended is passed over.
func (g *giving) lease(e *entry, grant *Grant) error {
	s, x := g.service, e.shard
	of := g.by[x]
	if of == nil {
		of = &given{w: s.o.Store.NewBatchIn(x.number, x.epoch)}
		g.by[x] = of
	}
	name := e.offer.Job
	var r row
	var a attempt
	var err error
	if e.row != nil { // nobody has had it
		r, err = parseRow(e.row)
	} else if r, err = loadOpen(s.rows.Load, x.number, name); err == nil {
		a, err = loadAttempt(s.rows.Load, x.number, &e.offer)
	}
	switch {
	case errors.Is(err, failure.ErrNotFound):
		of.w.Delete(e.offer.Key(nil, x.number))
		s.mu.Lock()
		s.dropLocked(e)
		s.mu.Unlock()
		return nil
	case err != nil:
		s.mu.Lock()
		s.dropLocked(e)
		s.offerLocked(x, e.offer)
		s.mu.Unlock()
		return err
	}
	now := s.o.Clock()
	length := grant.Timeout
	if g.in.Lease != 0 {
		length = min(length, g.in.Lease)
	}
	waited := r.Created
	if a.State == waits {
		waited = a.At
	}
	a = attempt{State: leased, Attempts: a.Attempts + 1, Lease: newLease(), Worker: g.in.Worker, At: now.Add(length).Truncate(time.Millisecond), Message: a.Message}
	of.w.Set(e.offer.Key(nil, x.number), a.append(nil))
	s.mu.Lock()
	s.countLocked(e, -1)
	e.attempt, e.row = a, nil
	s.countLocked(e, 1)
	s.o.follow(e, &r, waited)
	s.mu.Unlock()
	of.entries = append(of.entries, e)
	of.leased = append(of.leased, len(g.leased))
	g.leased = append(g.leased, Leased{
		JobID: IDOf(name.ID, elementOf(name)), Lease: a.Lease, Type: r.Type, WorkflowID: r.Workflow, Version: r.Version, InstanceID: instanceid.Text(name.ID),
		StateMachineID: r.Machine, NodeID: r.Node, Attempt: a.Attempts, AttemptsLeft: left(grant.Retries, a.Attempts), Priority: r.Priority,
		Created: r.Created, Deadline: a.At.UTC(), Data: r.Data, Traceparent: e.trace,
	})
	g.bytes += len(r.Data)
	if grant.Most > 0 {
		grant.Most--
	}
	return nil
}

// settle waits until the leases are durable. What is not goes back into its line.
func (g *giving) settle() (durable []Leased, failed error) {
	s := g.service
	for x, of := range g.by {
		err := failure.OfStore(<-of.done)
		failed = errors.Join(failed, err)
		var ghosts []*entry
		s.mu.Lock()
		for i, e := range of.entries {
			switch e.busy = false; {
			case err == nil && !e.gone:
				s.counts.Activated++
				s.moveLocked(e, e.attempt)
				continue
			case err == nil:
				ghosts = append(ghosts, e)
			default:
				if s.dropLocked(e); !e.gone {
					s.offerLocked(x, e.offer)
				}
			}
			g.leased[of.leased[i]].Lease = ""
		}
		s.mu.Unlock()
		s.sweep(x, ghosts)
	}
	return slices.DeleteFunc(g.leased, func(l Leased) bool { return l.Lease == "" }), failed
}
