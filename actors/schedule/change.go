package schedule

import (
	"cmp"
	"context"
	"errors"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Action is what a person can do with a schedule.
type Action string

const (
	Pause  Action = "pause" // Pause ends its runs until Resume, behind which it has missed nothing
	Resume Action = "resume"
	Run    Action = "run" // Run creates an instance now
)

// State is a schedule as people see it.
type State struct {
	Workflow string
	*statemachine.Schedule
	Paused bool
	// Last is when an instance was created last, Next when one will be; zero: never. LastError: why the last run
	// created none.
	Last, Next time.Time
	LastError  string
}

// List returns all schedules as read gives their rows, of which it calls back with what has those of some keys. It does not
// wait for runs that are under way.
func (s *Service) List(read func(keys [][]byte, do func(load func(key []byte) ([]byte, error)) error) error) (out []State, err error) {
	all := s.o.Schedules()
	keys := make([][]byte, len(all))
	for i, sc := range all {
		keys[i] = key.Schedule(nil, s.shardOf(name{sc.Workflow, sc.Name}), sc.Workflow, sc.Name)
	}
	err = read(keys, func(load func([]byte) ([]byte, error)) (err error) {
		out, err = s.states(all, keys, load)
		return err
	})
	return out, err
}

func (s *Service) states(all []catalog.Schedule, keys [][]byte, load func([]byte) ([]byte, error)) (out []State, err error) {
	held := s.o.Held()
	for i, sc := range all {
		state := State{Workflow: sc.Workflow, Schedule: sc.Schedule}
		r := &row{}
		stored, err := load(keys[i])
		if err == nil {
			r, err = parseRow(stored)
		}
		if err != nil && !errors.Is(err, persistence.ErrNotFound) {
			return nil, failure.Errorf(failure.ErrExecution, "%w", err)
		}
		if r.times != timesOf(sc.Schedule) {
			r.upTo = s.o.Clock()
		}
		zone, err := s.zone(sc.Zone)
		if err == nil && !r.paused {
			state.Next = sc.Spec.Next(r.upTo, zone)
		}
		if held {
			state.Next = time.Time{}
		}
		state.Paused, state.Last, state.LastError = r.paused || held, r.last, r.lastError
		if err != nil {
			state.LastError = err.Error()
		}
		out = append(out, state)
	}
	return out, nil
}

// Change does what a person wants with a schedule where its shard is led: failure.ErrNotFound, failure.ErrNotLeader,
// and with Run the reason for which nothing was created.
func (s *Service) Change(ctx context.Context, workflow, schedule string, action Action) error {
	if action == Resume && s.o.Held() {
		return failure.Refuse(failure.ErrConflict, "the store was restored from a backup, and all schedules are paused: resume all of them at once (`troupe schedule resume --all`)")
	}
	n := name{workflow, schedule}
	var sc *statemachine.Schedule
	for _, of := range s.o.Schedules() {
		if of.Workflow == workflow && of.Name == schedule {
			sc = of.Schedule
		}
	}
	if sc == nil {
		return failure.ErrNotFound
	}
	sh := s.shardOf(n)
	x := s.led[sh].Load()
	if x == nil || x.ctx.Err() != nil {
		return failure.Elsewhere(uint16(sh))
	}
	now := s.o.Clock()
	x.mu.Lock()
	e := x.entryLocked(n, now)
	e.users++
	x.mu.Unlock()
	defer x.leave(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := s.load(e, sc, now); err != nil {
		return err
	}
	if action == Run { // beside those that are due
		refused, err := s.create(ctx, e, sc, now, s.idOf(name{n.workflow, n.schedule + "\x00now"}, now, e.shard), e.row.upTo)
		return cmp.Or(err, refused)
	}
	next := *e.row
	next.paused = action == Pause
	if e.row.paused && !next.paused {
		next.upTo = now
	}
	if next == *e.row {
		return nil
	}
	if err := s.write(e, &next); err != nil {
		return err
	}
	return s.plan(e, sc)
}
