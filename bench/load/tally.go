package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

type sent struct {
	kind       Kind
	operations int64  // done, each event of a batch one
	shed       int64  // refused because the server was too busy, likewise
	fault      *fault // nil: everything else is as it should be
}

func sentOne(k Kind, f *fault) sent {
	switch {
	case f == nil:
		return sent{kind: k, operations: 1}
	case f.shed:
		return sent{kind: k, shed: 1, fault: f}
	}
	return sent{kind: k, fault: f}
}

type recent struct {
	answered   Histogram
	operations int64
	shed       int64
	errors     int64
}

type tally struct {
	answered   [kinds]Histogram // of those that were due in the window, as shed is
	shed       Histogram
	requests   int64 // answered in the window, as operations are
	operations int64
	refused    int64 // due or answered in the window, as those in errors are
	errors     causes

	mu struct {
		sync.Mutex
		recent recent
	}
}

// record counts a request that has to do with the window, or an error.
func (t *tally) record(s *sent, took time.Duration, p part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.mu.recent
	if s.operations > 0 {
		if p.due {
			t.answered[s.kind].Record(took)
		}
		if p.came {
			t.requests++
			t.operations += s.operations
		}
		r.answered.coarse = true
		r.answered.Record(took)
		r.operations += s.operations
	}
	if s.shed > 0 {
		if p.due {
			t.shed.recordTimes(took, s.shed)
		}
		t.refused += s.shed
		r.shed += s.shed
	}
	if f := s.fault; f != nil && !f.shed {
		t.errors.add(f.Error(), max(1, f.count))
		r.errors += max(1, f.count)
	}
}

func (t *tally) drain(into *recent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.mu.recent
	into.answered.Merge(&r.answered)
	into.operations += r.operations
	into.shed += r.shed
	into.errors += r.errors
	r.answered.Reset()
	r.operations, r.shed, r.errors = 0, 0, 0
}

// causesMax bounds the different errors that are counted on their own.
const causesMax = 20

type causes struct{ of map[string]int64 }

func (c *causes) add(text string, n int64) {
	if c.of == nil {
		c.of = map[string]int64{}
	}
	if _, known := c.of[text]; !known && len(c.of) >= causesMax {
		text = "others"
	}
	c.of[text] += n
}

type sampler struct {
	workers []*worker
	window  window
	options *Options
	used    usages // at the begin of the next interval
	done    []Interval
	ended   time.Duration // of the last of these
}

// run takes an interval at a time until over is closed. The last one ends early when ctx has ended.
func (s *sampler) run(ctx context.Context, over <-chan struct{}) {
	every := s.options.Every
	if every <= 0 {
		return
	}
	s.wait(over, 0)
	s.used = s.options.usages()
	length := s.window.end.Sub(s.window.begin)
	for at := every; at < length && s.wait(over, at); at += every {
		now := time.Since(s.window.begin)
		if now >= length { // it came that late
			break
		}
		s.take(now)
	}
	if s.window.open && s.wait(over, length) {
		s.take(length)
	}
	<-over
	late := time.Since(s.window.begin)
	if ctx.Err() != nil {
		length = min(length, late)
	}
	switch {
	case length <= 0: // it was over before the window
	case s.ended < length:
		s.take(length)
	default:
		s.take(max(late, s.ended))
	}
}

// wait waits for a moment of the window. It is false when the run was over before.
func (s *sampler) wait(over <-chan struct{}, at time.Duration) bool {
	timer := time.NewTimer(time.Until(s.window.begin.Add(at)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-over:
		return false
	}
}

func (s *sampler) take(ended time.Duration) {
	all := recent{answered: Histogram{coarse: true}}
	for _, w := range s.workers {
		w.tally.drain(&all)
	}
	if late := s.ended >= s.window.end.Sub(s.window.begin); late && all.operations+all.shed+all.errors == 0 {
		return
	}
	length, answered, used := ended-s.ended, all.answered.Summary(0), s.options.usages()
	i := Interval{
		BeganSeconds: s.ended.Seconds(), EndedSeconds: ended.Seconds(), Operations: all.operations, OperationsPerSecond: perSecond(all.operations, length),
		Requests: answered.Count, Latency: answered.Latency, Shed: all.shed, Errors: all.errors,
		ServerCPUCores: cores(s.used.server, used.server, length), ServerResidentBytes: residentBytes(s.options.PID),
	}
	s.used, s.ended, s.done = used, ended, append(s.done, i)
	s.options.Tick(&i)
}

// Gap is a time without a right answer.
type Gap struct {
	Began  time.Duration // since the begin of the window
	Length time.Duration
}

// gapGrain is how exact a gap is. Answers that come sooner after another cost a read.
const gapGrain = time.Millisecond

// gap finds the longest time of a window in which no connection got an answer. All workers use it.
type gap struct {
	window  window
	last    atomic.Int64 // the last answer, at most gapGrain ago; in ns since the begin
	longest atomic.Pointer[Gap]
}

func (g *gap) answered(at time.Time) {
	now := int64(at.Sub(g.window.begin))
	last := g.last.Load()
	if now-last < int64(gapGrain) || !g.window.contains(at) {
		return
	}
	if g.last.CompareAndSwap(last, now) { // otherwise somebody else had an answer
		g.note(last, now)
	}
}

func (g *gap) note(began, ended int64) {
	found := &Gap{time.Duration(began), time.Duration(ended - began)}
	for {
		old := g.longest.Load()
		if old != nil && old.Length >= found.Length || g.longest.CompareAndSwap(old, found) {
			return
		}
	}
}

// end returns the longest gap. Nobody may use g meanwhile.
func (g *gap) end() Gap {
	if length := int64(g.window.end.Sub(g.window.begin)); length-g.last.Load() >= int64(gapGrain) {
		g.note(g.last.Load(), length)
	}
	if longest := g.longest.Load(); longest != nil {
		return *longest
	}
	return Gap{}
}
