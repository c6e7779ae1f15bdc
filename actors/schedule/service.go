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
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
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
	Create func(c *Creation) error
	Log    zerolog.Logger
}

// Creation is an instance that a schedule creates.
type Creation struct {
	Workflow string
	Schedule *statemachine.Schedule
	ID       key.ID
	At       time.Time                // for which it is due
	Writes   func(*persistence.Batch) // Writes adds what becomes of the schedule
}

// Service runs the schedules of all shards that are led here.
type Service struct {
	o       Options
	ctx     context.Context //nolint:containedctx // of the service's goroutines
	cancel  context.CancelFunc
	running sync.WaitGroup
	pool    *semaphore.Semaphore[identity.UserID] // Workflows share it as users share other semaphores
	gate    *semaphore.Semaphore[identity.UserID] // gate has one place, for the run that waits for the quota

	mu    sync.Mutex
	known map[name]*entry    // guarded by mu
	leads map[key.Shard]lead // guarded by mu

	zones sync.Map // by their names, *time.Location
}

type name struct{ workflow, schedule string }

// lead is an epoch of a shard, and when this service saw it first.
type lead struct {
	epoch uint64
	since time.Time
}

// New returns a service that creates nothing before Start.
func New(o Options) *Service {
	s := &Service{o: o, pool: semaphore.New[identity.UserID](runsMax), gate: semaphore.New[identity.UserID](1), known: map[name]*entry{}, leads: map[key.Shard]lead{}}
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
		pause := lookMax
		_ = guard.Try(s.o.Log, "schedules", func() { pause = s.look() }) // the log has it
		timer.Reset(pause)
	}
}

// It reads and writes nothing of the store, so that no schedule waits for another one here.
func (s *Service) look() time.Duration {
	pause, now, all := lookMax, s.o.Clock(), s.o.Schedules()
	seen := make(map[name]bool, len(all))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sc := range all {
		n := name{sc.Workflow, sc.Name}
		seen[n] = true
		e := s.entryLocked(n)
		l := s.leadLocked(e.shard, now)
		switch {
		case l.epoch == 0 || e.users > 0: // of another node, or at work
		case e.epoch != l.epoch || e.times != timesOf(sc.Schedule) || e.isDue(now):
			e.users++
			s.running.Go(func() {
				_ = guard.Try(s.o.Log, "runs of a schedule", func() { s.work(e, sc.Schedule, l, now) }) // it is tried again at the next look
			})
		case !e.next.IsZero():
			pause = min(pause, e.next.Sub(now))
		}
	}
	for n, e := range s.known {
		if !seen[n] && e.users == 0 {
			delete(s.known, n)
		}
	}
	return max(pause, time.Millisecond)
}

func (s *Service) entryLocked(n name) *entry {
	e := s.known[n]
	if e == nil {
		e = &entry{name: n, shard: s.shardOf(n)}
		s.known[n] = e
	}
	return e
}

func (s *Service) leadLocked(sh key.Shard, now time.Time) lead {
	l := s.leads[sh]
	if epoch := s.o.Store.Epoch(sh); l.epoch != epoch {
		l = lead{epoch, now}
		s.leads[sh] = l
	}
	return l
}

func (s *Service) leave(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
}

// For each it stands in line for the pool again, so that workflows take turns however many schedules each has, and so
// do the schedules of one.
func (s *Service) work(e *entry, sc *statemachine.Schedule, l lead, noticed time.Time) {
	defer s.leave(e)
	workflow := identity.UserID(e.name.workflow)
	place, gate := s.pool.Slot(workflow), s.gate.Slot(workflow)
	defer gate.Release()
	defer place.Release() // of a panic
	for more := true; more && place.Acquire(s.ctx) == nil; place.Release() {
		_ = gate.Acquire(s.ctx) // NB: it is closed while another run waits for the quota, and this one must not be faster
		gate.Release()
		var wait time.Duration
		more, wait = s.step(e, sc, l, noticed)
		for waited := false; wait > 0; waited = true {
			if _ = gate.Acquire(s.ctx); waited {
				s.sleep(wait)
			}
			more, wait = s.step(e, sc, l, noticed)
		}
		gate.Release()
	}
}

func (s *Service) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// step makes one run that is due, and reports whether another one is. When the quota is used up it returns how long to
// wait.
func (s *Service) step(e *entry, sc *statemachine.Schedule, l lead, noticed time.Time) (more bool, wait time.Duration) {
	if s.ctx.Err() != nil {
		return false, 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	err := s.load(e, sc, l, noticed)
	now := s.o.Clock()
	if err == nil && e.isDue(now) {
		err = s.runNext(e, sc, now)
	}
	if err != nil {
		e.epoch = 0 // what is there is read again at the next look
	}
	s.log(e, err)
	if failure.Of(err).Kind == failure.ErrQuota {
		return true, cmp.Or(failure.Of(err).Wait, lookMax)
	}
	return err == nil && e.isDue(now), 0
}

func (s *Service) log(e *entry, err error) {
	if err == nil || errors.Is(err, failure.ErrElsewhere) || errors.Is(err, persistence.ErrClosed) || s.ctx.Err() != nil {
		e.trouble = ""
		return
	}
	if text := err.Error(); text != e.trouble {
		e.trouble = text
		s.o.Log.Warn().Err(err).Str("workflow", e.name.workflow).Str("schedule", e.name.schedule).Msg("a schedule is not run now, and is tried again")
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
