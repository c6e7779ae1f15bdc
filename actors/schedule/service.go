package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine"
)

const (
	// lookMax is the longest pause between two looks at the clock and the definitions.
	lookMax = time.Second
	// missedAfter is how late a run can be without having been missed.
	missedAfter = time.Minute
	// missedMax bounds the missed runs that are made.
	missedMax = 100
)

// Options configures a Service. All fields are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	// Schedules returns all that there are now.
	Schedules func() []catalog.Schedule
	// Create makes an instance. It returns when that is durable, and nil when it is there already. The error is one of package
	// failure.
	Create func(c *Creation) error
	Log    zerolog.Logger
}

// Creation is an instance that a schedule creates.
type Creation struct {
	Workflow string
	Schedule *statemachine.Schedule
	ID       persistence.ID
	At       time.Time // for which it is due
	// Writes adds what becomes of the schedule.
	Writes func(*persistence.Writes)
}

// Service runs the schedules of all shards that are led here.
type Service struct {
	o       Options
	ctx     context.Context //nolint:containedctx // of the service's goroutine
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // held while a schedule runs or is changed
	known map[name]*known

	zones sync.Map // by their names, *time.Location
}

// name is that of a schedule.
type name struct{ workflow, schedule string }

// known is what is in memory of a schedule, in an epoch of its shard.
type known struct {
	epoch uint64
	row   *row
	times string    // for which next is
	next  time.Time // zero: never
}

// New returns a service that creates nothing before Start.
func New(o Options) *Service {
	s := &Service{o: o, known: map[name]*known{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start begins.
func (s *Service) Start() { s.running.Go(s.run) }

// Stop returns when nothing is created any more.
func (s *Service) Stop() {
	s.cancel()
	s.running.Wait()
}

func (s *Service) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
		timer.Reset(s.look())
	}
}

// look runs what is due, and returns how long to wait.
func (s *Service) look() time.Duration {
	pause := lookMax
	seen := map[name]bool{}
	for _, sc := range s.o.Schedules() {
		n := name{sc.Workflow, sc.Name}
		seen[n] = true
		if s.ctx.Err() != nil {
			break
		}
		if next := s.lookAt(n, sc.Schedule); !next.IsZero() {
			pause = min(pause, max(next.Sub(s.o.Clock()), 0))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.known {
		if !seen[n] {
			delete(s.known, n)
		}
	}
	return max(pause, time.Millisecond)
}

// lookAt runs a schedule when it is due, and returns when it will be next; zero when nothing here has to look.
func (s *Service) lookAt(n name, sc *statemachine.Schedule) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, sh, err := s.load(n, sc)
	if k == nil || err != nil {
		s.log(n, err)
		return time.Time{}
	}
	now := s.o.Clock()
	if k.row.paused || k.next.IsZero() {
		return time.Time{}
	}
	if now.Before(k.next) {
		return k.next
	}
	if err := s.runDue(n, sc, k, sh, now); err != nil {
		s.log(n, err)
		delete(s.known, n) // what is there is read again
		return time.Time{}
	}
	return k.next
}

func (s *Service) log(n name, err error) {
	if err != nil && !errors.Is(err, failure.ErrElsewhere) && !errors.Is(err, persistence.ErrClosed) && s.ctx.Err() == nil {
		s.o.Log.Warn().Err(err).Str("workflow", n.workflow).Str("schedule", n.schedule).Msg("a schedule is not run now")
	}
}

// load returns what is known of a schedule; nil when its shard is not led here.
func (s *Service) load(n name, sc *statemachine.Schedule) (*known, persistence.Shard, error) {
	sh := s.shardOf(n)
	epoch := s.o.Store.Epoch(sh)
	if epoch == 0 {
		delete(s.known, n)
		return nil, sh, nil
	}
	k := s.known[n]
	if k == nil || k.epoch != epoch {
		stored, err := s.o.Store.Load(persistence.ScheduleKey(nil, sh, n.workflow, n.schedule))
		r := &row{}
		if err == nil {
			r, err = parseRow(stored)
		}
		if err != nil && !errors.Is(err, persistence.ErrNotFound) {
			return nil, sh, err
		}
		k = &known{epoch: epoch, row: r}
	}
	times := timesOf(sc)
	if k.row.times != times { // from now on it can miss runs: those of other times, or of none, are no missed ones
		next := *k.row
		next.upTo, next.times = s.o.Clock(), times
		if err := s.write(sh, epoch, n, &next); err != nil {
			return nil, sh, err
		}
		k.row = &next
	}
	if s.known[n] = k; k.times != times {
		if err := s.plan(k, sc); err != nil {
			return nil, sh, err
		}
		k.times = times
	}
	return k, sh, nil
}

func timesOf(sc *statemachine.Schedule) string { return sc.Zone + " " + sc.Cron }

// plan finds the next run.
func (s *Service) plan(k *known, sc *statemachine.Schedule) error {
	zone, err := s.zone(sc.Zone)
	if err == nil {
		k.next = sc.Spec.Next(k.row.upTo, zone)
	}
	return err
}

func (s *Service) zone(of string) (*time.Location, error) {
	if z, ok := s.zones.Load(of); ok {
		return z.(*time.Location), nil //nolint:forcetypeassert // nothing else is in it
	}
	z, err := time.LoadLocation(of)
	if err == nil {
		s.zones.Store(of, z)
	}
	return z, err
}

func (s *Service) write(sh persistence.Shard, epoch uint64, n name, r *row) error {
	w := s.o.Store.NewWritesIn(sh, epoch)
	w.Set(persistence.ScheduleKey(nil, sh, n.workflow, n.schedule), r.append(nil))
	return failure.OfStore(s.o.Store.Commit(w))
}

// runDue makes the runs that are due. An error is one that may pass.
func (s *Service) runDue(n name, sc *statemachine.Schedule, k *known, sh persistence.Shard, now time.Time) error {
	zone, err := s.zone(sc.Zone)
	if err != nil {
		return err
	}
	times, last := s.dueTimes(sc, k.row.upTo, now, zone)
	for _, at := range times {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if _, err := s.create(n, sc, k, sh, at, s.idOf(n, at, sh), at); err != nil {
			return err
		}
	}
	if last.After(k.row.upTo) { // what was missed is left out
		next := *k.row
		next.upTo = last
		if err := s.write(sh, k.epoch, n, &next); err != nil {
			return err
		}
		k.row = &next
	}
	return s.plan(k, sc)
}

// dueTimes returns the runs to make, and the time of the last one that was due.
func (*Service) dueTimes(sc *statemachine.Schedule, upTo, now time.Time, zone *time.Location) (times []time.Time, last time.Time) {
	var missed []time.Time
	sc.Spec.Each(upTo, zone, func(at time.Time) bool {
		if at.After(now) {
			return false
		}
		last = at
		if now.Sub(at) <= missedAfter {
			times = append(times, at)
			return true
		}
		if missed = append(missed, at); len(missed) > 2*missedMax {
			missed = slices.Clone(missed[len(missed)-missedMax:])
		}
		return true
	})
	keep := map[statemachine.Missed]int{statemachine.MissedSkip: 0, statemachine.MissedOne: 1, statemachine.MissedAll: missedMax}[sc.Missed]
	missed = missed[len(missed)-min(keep, len(missed)):]
	return append(missed, times...), last
}

// create makes a run. One that is refused is over, and the list shows why.
func (s *Service) create(n name, sc *statemachine.Schedule, k *known, sh persistence.Shard, at time.Time, id persistence.ID, upTo time.Time) (refused, err error) {
	next := *k.row
	next.upTo, next.last, next.lastError = upTo, s.o.Clock(), ""
	err = s.o.Create(&Creation{
		Workflow: n.workflow, Schedule: sc, ID: id, At: at,
		Writes: func(w *persistence.Writes) {
			w.Set(persistence.ScheduleKey(nil, sh, n.workflow, n.schedule), next.append(nil))
		},
	})
	if err != nil && mayPass(err) {
		return nil, err
	}
	if refused = err; refused != nil {
		s.o.Log.Warn().Err(err).Str("workflow", n.workflow).Str("schedule", n.schedule).Time("due", at).Msg("a schedule has created nothing")
		next.last, next.lastError = k.row.last, err.Error()
		if err := s.write(sh, k.epoch, n, &next); err != nil {
			return nil, err
		}
	}
	k.row = &next
	return refused, nil
}

func mayPass(err error) bool {
	kind := failure.Of(err).Kind
	return slices.Contains([]failure.Kind{
		failure.ErrBusy, failure.ErrInstanceBusy, failure.ErrUnavailable, failure.ErrElsewhere, failure.ErrOutcomeUnknown, failure.ErrInternal,
	}, kind)
}

// shardOf is the shard that a schedule belongs to.
func (s *Service) shardOf(n name) persistence.Shard {
	sum := sha256.Sum256([]byte(n.workflow + "\x00" + n.schedule))
	return s.o.Store.ShardOf(persistence.ID(sum[:16]))
}

// idOf is that of the instance of a run: the same however often it is made, and in the schedule's shard.
func (s *Service) idOf(n name, at time.Time, sh persistence.Shard) persistence.ID {
	for i := uint64(0); ; i++ {
		text := fmt.Sprintf("%s\x00%s\x00", n.workflow, n.schedule)
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(text), uint64(at.UnixMilli())), i))
		var id ulid.ULID
		_ = id.SetTime(uint64(max(at.UnixMilli(), 0))) // NB: no later than what a record can hold
		_ = id.SetEntropy(sum[:10])                    // it has 10 bytes
		if s.o.Store.ShardOf(persistence.ID(id)) == sh {
			return persistence.ID(id)
		}
	}
}
