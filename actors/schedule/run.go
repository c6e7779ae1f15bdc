package schedule

import (
	"errors"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	missedAfter = time.Minute // how late the service can begin without a run having been missed
	missedMax   = 100
)

type entry struct {
	name  name
	shard key.Shard
	epoch uint64
	since time.Time // what was due by then was missed; what comes later can only be late
	users int       // guarded by shard.mu: who work with it; without any, the shard may read and forget it

	mu       sync.Mutex // held while it runs or is changed; guards the rest
	row      *row       // nil: it was not read yet
	mustRead bool       // and it must be read again
	times    string     // for which next is
	next     time.Time  // zero: never
	trouble  string     // why it was not run at last
}

func (e *entry) isDue(now time.Time) bool {
	return e.row != nil && !e.row.paused && !e.next.IsZero() && !now.Before(e.next)
}

// A schedule that is new, or has other times, has missed nothing before it was noticed.
func (s *Service) load(e *entry, sc *statemachine.Schedule, noticed time.Time) error {
	if s.o.Store.Epoch(e.shard) != e.epoch {
		return failure.Elsewhere(uint16(e.shard))
	}
	if e.row == nil || e.mustRead {
		stored, err := s.o.Store.Load(key.Schedule(nil, e.shard, e.name.workflow, e.name.schedule))
		r := &row{}
		if err == nil {
			r, err = parseRow(stored)
		}
		if err != nil && !errors.Is(err, persistence.ErrNotFound) {
			return failure.OfStore(err)
		}
		e.row, e.mustRead, e.times = r, false, ""
	}
	times := timesOf(sc)
	if e.row.times != times { // from now on it can miss runs: those of other times, or of none, are no missed ones
		next := *e.row
		next.upTo, next.times = noticed, times
		if err := s.write(e, &next); err != nil {
			return err
		}
	}
	if e.times == times {
		return nil
	}
	err := s.plan(e, sc)
	if err == nil {
		e.times = times
	}
	return err
}

func timesOf(sc *statemachine.Schedule) string { return sc.Zone + " " + sc.Cron }

func (s *Service) plan(e *entry, sc *statemachine.Schedule) error {
	zone, err := s.zone(sc.Zone)
	if err == nil {
		e.next = sc.Spec.Next(e.row.upTo, zone)
	}
	return err
}

// After an error it must be read.
func (s *Service) write(e *entry, r *row) error {
	w := s.o.Store.NewBatchIn(e.shard, e.epoch)
	w.Set(key.Schedule(nil, e.shard, e.name.workflow, e.name.schedule), r.append(nil))
	err := failure.OfStore(s.o.Store.Commit(w))
	e.row, e.mustRead = r, err != nil
	return err
}

func (s *Service) runNext(e *entry, sc *statemachine.Schedule, now time.Time) error {
	zone, err := s.zone(sc.Zone)
	if err != nil {
		return err
	}
	if at, last := e.firstOf(sc, zone); !at.IsZero() {
		_, err = s.create(e, sc, at, s.idOf(e.name, at, e.shard), at)
	} else {
		next := *e.row
		next.upTo = last
		err = s.write(e, &next)
	}
	if err != nil {
		return err
	}
	return s.plan(e, sc)
}

// firstOf returns the first run to make after row.upTo; zero when those up to last were missed and are left out.
func (e *entry) firstOf(sc *statemachine.Schedule, zone *time.Location) (at, last time.Time) {
	served := e.since.Add(-missedAfter) // from then on nothing is missed
	var missed []time.Time
	sc.Spec.Each(e.row.upTo, zone, func(due time.Time) bool {
		if !due.Before(served) {
			at = due
			return false
		}
		last = due
		if missed = append(missed, due); len(missed) > 2*missedMax {
			missed = slices.Clone(missed[len(missed)-missedMax:])
		}
		return true
	})
	keep := map[statemachine.Missed]int{statemachine.MissedSkip: 0, statemachine.MissedOne: 1, statemachine.MissedAll: missedMax}[sc.Missed]
	switch missed = missed[len(missed)-min(keep, len(missed)):]; {
	case len(missed) > 0:
		at = missed[0]
	case !last.IsZero():
		at = time.Time{}
	}
	return at, last
}

// A run that is refused is over, and the list shows why.
func (s *Service) create(e *entry, sc *statemachine.Schedule, at time.Time, id key.ID, upTo time.Time) (refused, err error) {
	next := *e.row
	next.upTo, next.last, next.lastError = upTo, s.o.Clock(), ""
	e.mustRead = true // NB: when it panics
	err = s.o.Create(&Creation{
		Workflow: e.name.workflow, Schedule: sc, ID: id, At: at,
		Writes: func(w *persistence.Batch) {
			w.Set(key.Schedule(nil, e.shard, e.name.workflow, e.name.schedule), next.append(nil))
		},
	})
	if err != nil && mayPass(err) {
		return nil, err
	}
	e.mustRead = false
	if refused = err; refused != nil {
		s.o.Log.Warn().Err(err).Str("workflow", e.name.workflow).Str("schedule", e.name.schedule).Time("due", at).Msg("a schedule has created nothing")
		next.last, next.lastError = e.row.last, failure.Why(err) // of a schedule's own data
		return refused, s.write(e, &next)
	}
	e.row = &next
	return nil, nil
}

func mayPass(err error) bool {
	kind := failure.Of(err).Kind
	return slices.Contains([]failure.Kind{
		failure.ErrBusy, failure.ErrInstanceBusy, failure.ErrQuota, failure.ErrUnavailable, failure.ErrNotLeader, failure.ErrOutcomeUnknown, failure.ErrInternal,
	}, kind)
}
