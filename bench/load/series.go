package load

import (
	"context"
	"sync"
	"time"
)

// Interval is what happened in a part of the window.
type Interval struct {
	// Began and Ended count from the begin of the window. What happened is counted by when
	// the answers came. There may be one more interval behind the window: for answers of an
	// open loop to what was due in it, and for requests that had no answer.
	Began, Ended time.Duration
	// Operations are those that were answered as they should be, each event of a batch
	// one.
	Operations int64
	// Latency is that of the requests that were answered as they should be.
	Latency Summary
	Shed    int64 // each event of a batch one, as in Errors
	Errors  map[string]int64
}

// Failed is the number of errors.
func (i *Interval) Failed() int64 { return total(i.Errors) }

// recent is what a worker counts in an interval.
type recent struct {
	answered   Histogram
	operations int64
	shed       int64
	errors     causes
}

// sampler joins what the workers count in each interval.
type sampler struct {
	workers []*worker
	window  window
	every   time.Duration
	tick    func(*Interval)
	done    []Interval
}

// run takes an interval at a time until over is closed. The last one ends early when ctx
// has ended.
func (s *sampler) run(ctx context.Context, over <-chan struct{}) {
	if s.every <= 0 {
		return
	}
	length := s.window.end.Sub(s.window.begin)
	for at := s.every; at < length && s.wait(over, at); at += s.every {
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
	n, late := len(s.done), time.Since(s.window.begin)
	if ctx.Err() != nil {
		length = min(length, late)
	}
	switch {
	case length <= 0: // it was over before the window
	case n == 0 || s.done[n-1].Ended < length:
		s.take(length)
	case s.pending():
		s.take(max(late, s.done[n-1].Ended))
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

// pending reports whether something was counted since the last interval.
func (s *sampler) pending() bool {
	for _, w := range s.workers {
		w.tally.mu.Lock()
		r := &w.tally.mu.recent
		found := r.operations+r.shed+total(r.errors.of) > 0
		w.tally.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// take ends an interval.
func (s *sampler) take(ended time.Duration) {
	all := recent{answered: Histogram{coarse: true}}
	for _, w := range s.workers {
		w.tally.drain(&all)
	}
	i := Interval{Ended: ended, Operations: all.operations, Shed: all.shed, Errors: all.errors.of}
	if n := len(s.done); n > 0 {
		i.Began = s.done[n-1].Ended
	}
	i.Latency = all.answered.Summary(i.Ended - i.Began)
	s.done = append(s.done, i)
	s.tick(&i)
}

// tally is what one worker counts.
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
		r.errors.add(f.Error(), max(1, f.count))
	}
}

// drain moves what was counted since the last time.
func (t *tally) drain(into *recent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.mu.recent
	into.answered.Merge(&r.answered)
	into.operations += r.operations
	into.shed += r.shed
	for text, n := range r.errors.of {
		into.errors.add(text, n)
	}
	r.answered.Reset()
	r.operations, r.shed, r.errors.of = 0, 0, nil
}

// causesMax bounds the different errors that are counted by themselves.
const causesMax = 20

// causes counts errors by their texts.
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

func total(errors map[string]int64) (n int64) {
	for _, count := range errors {
		n += count
	}
	return n
}
