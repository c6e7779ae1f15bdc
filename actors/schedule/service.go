// Package schedule creates instances when the schedules of their workflows are due. A schedule belongs to a shard,
// which its workflow and name choose, and runs where that is led; its instances are in that shard, too. Its row says up
// to which time all runs were made, so that each is made once. Create makes an instance under an id, with writes in its
// commit, and is asked again after an error that may pass; when the instance is there it has nothing to do. Stop before
// the store is closed.
package schedule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

const (
	lookMax = time.Second // the longest pause between two looks at the clock and the definitions
	runsMax = 4           // how many runs are made at a time, so that those of events have the rest of the room
)

// Options configures a Service. All fields are required.
type Options struct {
	Store     *persistence.Store
	Clock     func() time.Time
	Schedules func() []catalog.Schedule // Schedules returns all that there are now
	// Create makes an instance. It returns when that is durable, and nil when it is there already.
	Create func(ctx context.Context, c *Creation) error
	// Held says that all schedules are paused now. What came due while they were is missed, as while no server ran.
	Held func() bool
	Log  zerolog.Logger
}

// Creation is an instance that a schedule creates.
type Creation struct {
	Workflow string
	Schedule *statemachine.Schedule
	ID       key.ID
	At       time.Time                // for which it is due
	Writes   func(*persistence.Batch) // Writes adds what happens to the schedule
}

// Service runs the schedules of all shards that are led here.
type Service struct {
	o Options
	// pool has the places of runs. Workflows share it as users share other semaphores.
	pool *semaphore.Semaphore[identity.UserID]
	// gate has one place, for the run that waits for the quota.
	gate *semaphore.Semaphore[identity.UserID]
	led  []atomic.Pointer[shard] // by number: in the latest epoch; nil: in none yet

	mu     sync.Mutex
	placed map[key.Shard][]catalog.Schedule // guarded by mu; all that there were at that time
	at     time.Time

	zones sync.Map // by their names, *time.Location
}

// shard is what is known of the schedules of one shard in one epoch.
type shard struct {
	*Service
	number  key.Shard
	epoch   uint64
	ctx     context.Context //nolint:containedctx // of the epoch
	running sync.WaitGroup  // work

	mu    sync.Mutex
	known map[name]*entry // guarded by mu
	since time.Time       // guarded by mu; when the epoch was noticed; zero: not yet
}

type name struct{ workflow, schedule string }

// New returns a service that creates nothing before Begin.
func New(o Options) *Service {
	return &Service{
		o: o, pool: semaphore.New[identity.UserID](runsMax), gate: semaphore.New[identity.UserID](1), led: make([]atomic.Pointer[shard], o.Store.Shards()),
	}
}

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, epoch uint64) (run func()) {
	x := &shard{Service: s, number: sh, epoch: epoch, ctx: ctx, known: map[name]*entry{}}
	s.led[sh].Store(x)
	return x.run
}

func (x *shard) run() {
	for x.ctx.Err() == nil {
		wait.Sleep(x.ctx, x.look())
	}
	x.running.Wait()
}

// schedules returns those of a shard. All shards look about once a second, and share what they find.
func (s *Service) schedules(sh key.Shard) []catalog.Schedule {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placed == nil || time.Since(s.at) >= lookMax/2 {
		placed := map[key.Shard][]catalog.Schedule{}
		for _, sc := range s.o.Schedules() {
			of := s.shardOf(name{sc.Workflow, sc.Name})
			placed[of] = append(placed[of], sc)
		}
		s.placed, s.at = placed, time.Now()
	}
	return s.placed[sh]
}

// look reads and writes nothing of the store, so that no schedule waits for another one here.
func (x *shard) look() time.Duration {
	pause, now, all := lookMax, x.o.Clock(), x.schedules(x.number)
	seen := make(map[name]bool, len(all))
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.o.Held() {
		x.since = now
		x.forgetLocked(nil)
		return pause
	}
	for _, sc := range all {
		n := name{sc.Workflow, sc.Name}
		seen[n] = true
		switch e := x.entryLocked(n, now); {
		case e.users > 0: // at work
		case e.row == nil || e.mustRead || e.times != timesOf(sc.Schedule) || e.isDue(now):
			e.users++
			x.running.Go(func() {
				_ = guard.Try(x.o.Log, "runs of a schedule", func() { x.work(e, sc.Schedule, now) }) // it is tried again at the next look
			})
		case !e.row.paused && !e.next.IsZero():
			pause = min(pause, e.next.Sub(now))
		}
	}
	x.forgetLocked(seen)
	return max(pause, time.Millisecond)
}

// forgetLocked drops what is known of schedules that were not seen and that nobody works with.
func (x *shard) forgetLocked(seen map[name]bool) {
	for n, e := range x.known {
		if !seen[n] && e.users == 0 {
			delete(x.known, n)
		}
	}
}

// entryLocked returns what is known of a schedule, and notes when the epoch was noticed.
func (x *shard) entryLocked(n name, now time.Time) *entry {
	if x.since.IsZero() {
		x.since = now
	}
	e := x.known[n]
	if e == nil {
		e = &entry{name: n, shard: x.number, epoch: x.epoch, since: x.since}
		x.known[n] = e
	}
	return e
}

func (x *shard) leave(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e.users--
}

// For each it stands in line for the pool again, so that workflows take turns however many schedules each has, and so
// do the schedules of one.
func (x *shard) work(e *entry, sc *statemachine.Schedule, noticed time.Time) {
	defer x.leave(e)
	workflow := identity.UserID(e.name.workflow)
	place, gate := x.pool.Slot(workflow), x.gate.Slot(workflow)
	defer gate.Release()
	defer place.Release() // of a panic
	for more := true; more && place.Acquire(x.ctx) == nil; place.Release() {
		_ = gate.Acquire(x.ctx) // NB: it is closed while another run waits for the quota, and this one must not be faster
		gate.Release()
		var pause time.Duration
		more, pause = x.step(e, sc, noticed)
		for waited := false; pause > 0; waited = true {
			if _ = gate.Acquire(x.ctx); waited {
				wait.Sleep(x.ctx, pause)
			}
			more, pause = x.step(e, sc, noticed)
		}
		gate.Release()
	}
}

// step makes one run that is due, and reports whether another one is. When the quota is used up it returns how long to
// wait.
func (x *shard) step(e *entry, sc *statemachine.Schedule, noticed time.Time) (more bool, pause time.Duration) {
	if x.ctx.Err() != nil {
		return false, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err := x.load(e, sc, noticed)
	now := x.o.Clock()
	if err == nil && e.isDue(now) {
		err = x.runNext(x.ctx, e, sc, now)
	}
	if err != nil {
		e.mustRead = true // at the next look
	}
	x.log(e, err)
	if failure.Of(err).Kind == failure.ErrQuota {
		return true, cmp.Or(failure.Of(err).Wait, lookMax)
	}
	return err == nil && e.isDue(now), 0
}

func (x *shard) log(e *entry, err error) {
	if err == nil || errors.Is(err, failure.ErrNotLeader) || errors.Is(err, persistence.ErrClosed) || x.ctx.Err() != nil {
		e.trouble = ""
		return
	}
	if text := err.Error(); text != e.trouble {
		e.trouble = text
		x.o.Log.Warn().Err(err).Str("workflow", e.name.workflow).Str("schedule", e.name.schedule).Msg("a schedule is not run now, and is tried again")
	}
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

func (s *Service) shardOf(n name) key.Shard {
	sum := sha256.Sum256([]byte(n.workflow + "\x00" + n.schedule))
	return s.o.Store.ShardOf(key.ID(sum[:16]))
}

// idOf is that of the instance of a run: the same however often it is made, and in the schedule's shard.
func (s *Service) idOf(n name, at time.Time, sh key.Shard) key.ID {
	for i := uint64(0); ; i++ {
		text := fmt.Sprintf("%s\x00%s\x00", n.workflow, n.schedule)
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(text), uint64(at.UnixMilli())), i))
		var id ulid.ULID
		_ = id.SetTime(uint64(max(at.UnixMilli(), 0))) // NB: no later than what a record can hold
		_ = id.SetEntropy(sum[:10])                    // it has 10 bytes
		if s.o.Store.ShardOf(key.ID(id)) == sh {
			return key.ID(id)
		}
	}
}

type row struct {
	paused    bool
	upTo      time.Time // the time up to which all runs were made or left out
	last      time.Time // when an instance was created last; zero: never. lastError is why the last run created none
	lastError string
	times     string // the zone and the expression for which upTo counts
}

const (
	rowFormat    = 1
	lastErrorMax = 1 << 10
)

// ErrDamaged: the row of a schedule cannot be read.
var ErrDamaged = errors.New("a schedule cannot be read")

// append appends the stored form: format(1) paused(1) upTo last (varints, in ms; a last of 0 is none) the error and the
// times.
func (r *row) append(dst []byte) []byte {
	paused, last := byte(0), int64(0)
	if r.paused {
		paused = 1
	}
	if !r.last.IsZero() {
		last = r.last.UnixMilli()
	}
	dst = binary.AppendVarint(append(dst, rowFormat, paused), r.upTo.UnixMilli())
	return packed.AppendText(packed.AppendText(binary.AppendVarint(dst, last), data.Clip(r.lastError, lastErrorMax)), r.times)
}

func parseRow(stored []byte) (*row, error) {
	r := packed.NewReader(stored)
	format, paused := r.Byte(), r.Byte()
	out := &row{paused: paused == 1, upTo: time.UnixMilli(r.Varint()).UTC()}
	if last := r.Varint(); last != 0 {
		out.last = time.UnixMilli(last).UTC()
	}
	out.lastError, out.times = string(r.Text()), string(r.Text())
	if format != rowFormat || paused > 1 || !r.Whole() {
		return nil, fmt.Errorf("%w: layout", ErrDamaged)
	}
	return out, nil
}

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
	if e.row.times != times { // from now on it can miss runs: those of other times, or of none, are not missed ones
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

func (s *Service) runNext(ctx context.Context, e *entry, sc *statemachine.Schedule, now time.Time) error {
	zone, err := s.zone(sc.Zone)
	if err != nil {
		return err
	}
	if at, last := e.firstOf(sc, zone); !at.IsZero() {
		_, err = s.create(ctx, e, sc, at, s.idOf(e.name, at, e.shard), at)
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
func (s *Service) create(ctx context.Context, e *entry, sc *statemachine.Schedule, at time.Time, id key.ID, upTo time.Time) (refused, err error) {
	next := *e.row
	next.upTo, next.last, next.lastError = upTo, s.o.Clock(), ""
	e.mustRead = true // NB: when it panics
	err = s.o.Create(ctx, &Creation{
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
