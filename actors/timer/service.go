// Package timer fires the events of timers. A timer is a part of its instance, which alone decides what it means; the
// row beside it says when to look. A goroutine for each shard reads the rows that are due, a few at a time, and waits
// for them, so that callers have room; it remembers only those whose event could not be handled. No timer fires before
// its deadline, and none twice: the row goes in the commit of the event. After a start, overdue ones fire in the order
// of their deadlines. Call Began when a timer's row is visible; Fire calls done when the row is gone, or says why not;
// Begin's work ends before the store is closed.
package timer

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	firedAtOnce = 32 // all shards together leave most of a router's room to callers
	// A timer whose event cannot be taken now is tried again after againMin, and at last every againMax.
	againMin = 50 * time.Millisecond
	againMax = 10 * time.Second
	laterMax = 1000 // how many of them a shard remembers before it looks at no others
)

// Options configures a Service. All fields are required.
type Options struct {
	Store *persistence.Store
	Clock func() time.Time
	// Fire gives an instance the event of a timer. done is called once, when the timer is gone for good (nil), or why
	// it is still there; it must not block.
	Fire func(row Row, done func(error))
	Log  zerolog.Logger
}

// Row is a timer that is due.
type Row struct {
	Workflow string
	Instance key.ID
	Timer    statemachine.ElementID
	Due      time.Time
	Trace    string // that of the event that has begun it, as trace.Header has it; "": nobody follows it
}

// Service lets the timers of all shards that are led here come.
type Service struct {
	o       Options
	led     []atomic.Pointer[shard] // by number: in the latest epoch; nil: in none yet
	metrics metrics
}

// shard is what is known of the timers of one shard in one epoch.
type shard struct {
	number key.Shard
	ctx    context.Context //nolint:containedctx // of the epoch
	// begun is the earliest deadline of those that have begun since the last look, and until that for which
	// its goroutine sleeps: who begins an earlier one wakes it. Both in Unix milliseconds.
	begun, until atomic.Int64
	wake         chan struct{} // has room for one
}

// New returns a service that nothing comes from before Begin.
func New(o Options) *Service {
	return &Service{o: o, led: make([]atomic.Pointer[shard], o.Store.Shards())}
}

// Begin is that of shard.Background.
func (s *Service) Begin(ctx context.Context, sh key.Shard, _ uint64) (run func()) {
	x := &shard{number: sh, ctx: ctx, wake: make(chan struct{}, 1)}
	x.begun.Store(wait.Never)
	x.until.Store(wait.Never)
	s.led[sh].Store(x)
	return func() { s.run(x) }
}

// Began says that a timer has begun in a shard, and is visible there.
func (s *Service) Began(sh key.Shard, due time.Time) {
	x, ms := s.led[sh].Load(), due.UnixMilli()
	if x == nil {
		return // NB: of a commit that was under way; whoever leads next reads what is there from the beginning
	}
	for {
		before := x.begun.Load()
		if ms >= before || x.begun.CompareAndSwap(before, ms) {
			break
		}
	}
	if ms < x.until.Load() {
		wait.Notify(x.wake)
	}
}

// run is the goroutine of a shard. What is there is read from the beginning, once.
func (s *Service) run(x *shard) {
	at := &place{later: map[Row]*later{}}
	for x.ctx.Err() == nil {
		if begun := x.begun.Swap(wait.Never); begun < at.due() {
			at.from = key.TimePlace(begun)
		}
		rows, next, err := s.due(x, at)
		switch {
		case err != nil:
			if !errors.Is(err, persistence.ErrClosed) {
				s.o.Log.Error().Err(err).Uint16("shard", uint16(x.number)).Msg("timers cannot be read")
			}
			s.sleep(x, s.o.Clock().Add(againMax).UnixMilli())
		case len(rows) == 0:
			s.sleep(x, min(next, at.nextTry()))
		case !s.fire(at, rows): // another node has them
			at = &place{later: map[Row]*later{}}
			s.sleep(x, s.o.Clock().Add(againMax).UnixMilli())
		}
	}
}

// sleep waits for a deadline, for who begins an earlier one, or for the end of the epoch.
func (s *Service) sleep(x *shard, until int64) {
	x.until.Store(until)
	defer x.until.Store(wait.Never)
	if x.begun.Load() < until { // NB: begun after the look, and before until could be seen
		return
	}
	at, stop := wait.Until(until, s.o.Clock)
	defer stop()
	select {
	case <-x.wake:
	case <-at:
	case <-x.ctx.Done():
	}
}

var errEnough = errors.New("enough")

// due returns timers that are due, the earliest first, and where none is, the next deadline.
func (s *Service) due(x *shard, at *place) (rows []Row, next int64, err error) {
	now := s.o.Clock()
	next = wait.Never
	for row, l := range at.later {
		if len(rows) < firedAtOnce && !l.next.After(now) {
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
		row := Row{Instance: k.ID, Timer: statemachine.ElementID{Sequence: k.Sequence, Number: k.Number}, Due: time.UnixMilli(k.Due)}
		row.Workflow, row.Trace = Parse(value)
		at.from = append(append(at.from[:0], place...), 0) // behind it
		if at.later[row] == nil {
			rows = append(rows, row)
		}
		if len(rows) == firedAtOnce {
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

// fire waits until it is known what happened to the rows. It is false when another node has them.
func (s *Service) fire(at *place, rows []Row) bool {
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
			late := now.Sub(row.Due).Milliseconds()
			s.metrics.late.Store(late)
			s.metrics.lateSum.Add(late)
		case errors.Is(err, failure.ErrNotLeader):
			return false
		default:
			s.metrics.again.Add(1)
			if at.backoff(row, now) {
				s.o.Log.Warn().Err(err).Str("workflow", row.Workflow).Str("instance", instanceid.Text(row.Instance)).Msg("a timer is due, but its instance does not accept it")
			}
		}
	}
	return true
}

type place struct {
	from  []byte // of the row that comes next, behind the prefix
	later map[Row]*later
}

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

// backoff reports whether it comes as seldom as any from now on.
func (p *place) backoff(row Row, now time.Time) (seldom bool) {
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

func (p *place) nextTry() int64 {
	next := int64(wait.Never)
	for _, l := range p.later {
		next = min(next, l.next.UnixMilli()+1)
	}
	return next
}

type metrics struct{ fired, again, late, lateSum atomic.Int64 }

// Metrics is a snapshot of a Service's counters.
type Metrics struct {
	Fired, Again     int64 // Fired and Again are counted since the start: events that came, and tries that were made again
	LateMilliseconds int64 // by how much the last one was late
	LateSum          int64 // by how much all of them together, in milliseconds
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	return Metrics{Fired: s.metrics.fired.Load(), Again: s.metrics.again.Load(), LateMilliseconds: s.metrics.late.Load(), LateSum: s.metrics.lateSum.Load()}
}

// Origin is the event that changes timers of an instance.
type Origin struct {
	Shard    key.Shard
	Workflow string
	Instance key.ID
	At       time.Time
	Fault    error // why it failed, if it did
	Of       *statemachine.Definition
	Trace    string // the value of trace.Header for the timers that it begins; "": nobody follows it
}

// Parse reads the value of a timer's row: the workflow, and behind a space what names the span above the timer's, if
// somebody follows that.
func Parse(value []byte) (workflow, trace string) {
	workflow, trace, _ = strings.Cut(string(value), " ")
	return workflow, trace
}

func (of *Origin) value() []byte {
	if of.Trace == "" {
		return []byte(of.Workflow)
	}
	return []byte(of.Workflow + " " + of.Trace)
}

// Put writes what an event changes in the timers of its instance, into the commit of that event.
func Put(w *persistence.Batch, of *Origin, ended, begun []statemachine.Timer) (first time.Time) {
	for _, t := range ended {
		stays := t.Failed && slices.ContainsFunc(begun, func(next statemachine.Timer) bool { return next.Failed && next.ID == t.ID })
		if !stays {
			w.Delete(of.key(t))
		}
	}
	for _, t := range begun {
		if t.Failed && of.Fault == nil { // an incident whose node has another name now: its row stays as it was
			continue
		}
		if t.Failed {
			w.Set(of.key(t), of.incident(t).Stored())
			continue
		}
		w.Set(of.key(t), of.value())
		if first.IsZero() || t.Due.Before(first) {
			first = t.Due
		}
	}
	return first
}

func (of *Origin) incident(t statemachine.Timer) *incident.Row {
	in := &incident.Row{
		Workflow: of.Workflow, Version: of.Of.Version, Instance: instanceid.Text(of.Instance), Event: string(t.Event), Error: of.Fault.Error(), First: of.At, Last: of.At, Count: 1,
	}
	if f := of.Of.FaultOf(of.Fault); f != nil {
		in.File, in.Line, in.Expression = f.File, f.Line, f.Expression
	}
	return in
}

func (of *Origin) key(t statemachine.Timer) []byte {
	if t.Failed {
		return key.Incident(nil, of.Shard, of.Instance, t.ID.Sequence, t.ID.Number)
	}
	pending := key.Timer{Due: t.Due.UnixMilli(), ID: of.Instance, Sequence: t.ID.Sequence, Number: t.ID.Number}
	return pending.Key(nil, of.Shard)
}
