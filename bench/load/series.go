package load

import (
	"sync"
	"time"
)

// Interval is what happened in a part of the window.
type Interval struct {
	// Began and Ended count from the begin of the window. The last interval of an
	// open loop ends with its last answer.
	Began, Ended time.Duration
	// Operations are those that were answered as they should be, each event of a batch
	// one.
	Operations int64
	// Latency is that of the requests that were answered as they should be.
	Latency Summary
	Shed    int64
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

// run takes an interval at a time until over is closed.
func (s *sampler) run(over <-chan struct{}) {
	if s.every <= 0 {
		return
	}
	for k := 1; ; k++ {
		due := s.window.begin.Add(time.Duration(k) * s.every)
		if !due.Before(s.window.end) {
			<-over // the last one is for all that comes late
			ended := s.window.end.Sub(s.window.begin)
			if s.window.open { // what was due in the window may have been answered later
				ended = max(ended, time.Since(s.window.begin))
			}
			s.take(ended)
			return
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
			s.take(time.Since(s.window.begin))
		case <-over: // it was broken off
			timer.Stop()
			return
		}
	}
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
	answered   [kinds]Histogram
	operations int64
	shed       Histogram
	errors     causes

	mu struct {
		sync.Mutex
		recent recent
	}
}

// record counts a request.
func (t *tally) record(s *sent, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.mu.recent
	if s.operations > 0 {
		t.answered[s.kind].Record(took)
		r.answered.coarse = true
		r.answered.Record(took)
		t.operations += s.operations
		r.operations += s.operations
	}
	switch f := s.fault; {
	case f == nil:
	case f.shed:
		t.shed.Record(took)
		r.shed++
	default:
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
