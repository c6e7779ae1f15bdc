package timer

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	// together is how many timers of a shard come at once. All shards together leave most of a router's room
	// to callers.
	together = 32
	// lookMax is the longest sleep beside a timer that is pending: the clock may be set meanwhile.
	lookMax = time.Second
	// A timer whose event cannot be taken now is tried again after againMin, and at last every againMax.
	againMin = 50 * time.Millisecond
	againMax = 10 * time.Second
	// laterMax is how many of them a shard remembers before it looks at no others.
	laterMax = 1000
)

// Options configures a Service. All fields are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	// Fire gives an instance the event of a timer. done is called once, when the timer is gone for good (nil), or
	// why it is still there; it must not block.
	Fire func(row Row, done func(error))
	Log  zerolog.Logger
}

// Row is a timer that is due.
type Row struct {
	Workflow string
	Instance key.ID
	Timer    statemachine.ElementID
	Due      time.Time
}

// Service lets the timers of all shards that are led here come. It keeps none of them in memory but those that could not be taken, up to laterMax of a shard.
type Service struct {
	o       Options
	shards  []*shard
	ctx     context.Context //nolint:containedctx // of the service's goroutines
	cancel  context.CancelFunc
	running sync.WaitGroup
	metrics metrics
}

// shard is what is known of the timers of one shard.
type shard struct {
	number key.Shard
	// begun is the earliest deadline of those that have begun since the last look, and until that for which
	// its goroutine sleeps: who begins an earlier one wakes it. Both in Unix milliseconds; never is none.
	begun, until atomic.Int64
	wake         chan struct{} // has room for one
}

const never = math.MaxInt64

// New returns a service that nothing comes from before Start. Whoever it calls may call it from then on.
func New(o Options) *Service {
	s := &Service{o: o}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for sh := range key.Shard(o.Store.Shards()) {
		x := &shard{number: sh, wake: make(chan struct{}, 1)}
		x.begun.Store(never)
		x.until.Store(never)
		s.shards = append(s.shards, x)
	}
	return s
}

// Start begins.
func (s *Service) Start() {
	for _, x := range s.shards {
		s.running.Go(func() {
			guard.Loop(s.ctx.Done(), s.o.Log, "timers of a shard", func() { s.run(x) })
		})
	}
	s.o.Store.FollowLeads(leads{s})
}

// Stop returns when nothing comes any more.
func (s *Service) Stop() {
	s.cancel()
	s.running.Wait()
}

// Began says that a timer has begun in a shard, and is visible there.
func (s *Service) Began(sh key.Shard, due time.Time) {
	x, ms := s.shards[sh], due.UnixMilli()
	for {
		before := x.begun.Load()
		if ms >= before || x.begun.CompareAndSwap(before, ms) {
			break
		}
	}
	if ms < x.until.Load() {
		x.rouse()
	}
}

func (x *shard) rouse() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// leads wakes the goroutines of shards that are led here from now on.
type leads struct{ s *Service }

// Led implements persistence.LeadershipObserver.
func (l leads) Led(sh key.Shard, _ uint64) {
	if int(sh) < len(l.s.shards) {
		l.s.shards[sh].rouse()
	}
}

// Ended implements persistence.LeadershipObserver.
func (leads) Ended(key.Shard, uint64) {}

// run is the goroutine of a shard.
func (s *Service) run(x *shard) {
	at := &place{}
	for s.ctx.Err() == nil {
		epoch := s.o.Store.Epoch(x.number)
		if epoch == 0 {
			x.begun.Store(never) // NB: of commits that were under way; whoever leads next reads what is there from the beginning
			s.sleep(x, never)
			continue
		}
		if at.epoch != epoch { // what is there is read from the beginning, once
			*at = place{epoch: epoch, later: map[Row]*later{}}
		}
		if begun := x.begun.Swap(never); begun < at.due() {
			at.from = key.TimePlace(begun)
		}
		rows, next, err := s.due(x, at)
		switch {
		case err != nil:
			if !errors.Is(err, persistence.ErrClosed) {
				s.o.Log.Error().Err(err).Uint16("shard", uint16(x.number)).Msg("timers cannot be read")
			}
			s.sleep(x, s.o.Clock().Add(againMax).UnixMilli())
		case len(rows) > 0:
			s.fire(at, rows)
		default:
			s.sleep(x, min(next, at.nextTry()))
		}
	}
}

// sleep waits for a deadline, for who begins an earlier one, or for the service to stop.
func (s *Service) sleep(x *shard, until int64) {
	x.until.Store(until)
	defer x.until.Store(never)
	if x.begun.Load() < until { // NB: begun after the look, and before until could be seen
		return
	}
	var timeout <-chan time.Time
	if until != never {
		wait := min(time.UnixMilli(until).Sub(s.o.Clock()), lookMax)
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-x.wake:
	case <-timeout:
	case <-s.ctx.Done():
	}
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// due returns timers that are due, the earliest first, and where none is, the next deadline. What could not be
// taken and waits for its next try is left out until then.
func (s *Service) due(x *shard, at *place) (rows []Row, next int64, err error) {
	now := s.o.Clock()
	next = never
	for row, l := range at.later {
		if len(rows) < together && !l.next.After(now) {
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 || len(at.later) >= laterMax {
		return rows, next, nil
	}
	err = s.o.Store.ScanRanges(func(rowKey, value []byte) error {
		place, k, ok := key.ParseTimer(rowKey)
		if !ok {
			return persistence.ErrCorrupt
		}
		if k.Due > now.UnixMilli() {
			next = k.Due
			return errEnough
		}
		row := Row{Workflow: string(value), Instance: k.ID, Timer: statemachine.ElementID{Sequence: k.Sequence, Number: k.Number}, Due: time.UnixMilli(k.Due)}
		at.from = append(append(at.from[:0], place...), 0) // behind it
		if at.later[row] == nil {
			rows = append(rows, row)
		}
		if len(rows) == together {
			return errEnough
		}
		return nil
	}, key.Range{Prefix: key.TimerPrefix(nil, x.number), From: at.from})
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		rows, at.from = nil, nil // they are looked for again
	}
	return rows, next, err
}

// fire has rows come, and waits until it is known what became of them.
func (s *Service) fire(at *place, rows []Row) {
	results := make([]error, len(rows))
	var all sync.WaitGroup
	all.Add(len(rows))
	for i, row := range rows {
		s.o.Fire(row, func(err error) {
			results[i] = err
			all.Done()
		})
	}
	all.Wait()
	now := s.o.Clock()
	for i, row := range rows {
		switch err := results[i]; {
		case err == nil:
			delete(at.later, row)
			s.metrics.fired.Add(1)
			s.metrics.late.Store(now.Sub(row.Due).Milliseconds())
		case errors.Is(err, failure.ErrElsewhere):
			at.epoch = 0 // another node has them
			return
		default:
			s.metrics.again.Add(1)
			if at.again(row, now) {
				s.o.Log.Warn().Err(err).Str("workflow", row.Workflow).Str("instance", instanceid.Text(row.Instance)).Msg("a timer is due, and its instance does not take it")
			}
		}
	}
}

// place is how far the timers of a shard were read in an epoch.
type place struct {
	epoch uint64
	from  []byte // of the row that comes next, behind the prefix
	later map[Row]*later
}

// later is a timer whose event could not be taken.
type later struct {
	next  time.Time
	pause time.Duration
}

// due is the deadline up to which all was read.
func (p *place) due() int64 {
	if len(p.from) == 0 {
		return math.MinInt64
	}
	return key.PlaceTime(p.from) + 1
}

// again has a timer come later. It reports whether it comes as seldom as any from now on.
func (p *place) again(row Row, now time.Time) (seldom bool) {
	l := p.later[row]
	if l == nil {
		l = &later{pause: againMin / 2}
		p.later[row] = l
	}
	before := l.pause
	l.pause = min(2*l.pause, againMax)
	l.next = now.Add(l.pause)
	return l.pause == againMax && before < againMax
}

// nextTry is the time of the earliest next try.
func (p *place) nextTry() int64 {
	next := int64(never)
	for _, l := range p.later {
		next = min(next, l.next.UnixMilli()+1)
	}
	return next
}
