package load

import (
	"context"
	"time"
)

type sampler struct {
	workers []*worker
	window  window
	every   time.Duration
	tick    func(*Interval)
	done    []Interval
}

// run takes an interval at a time until over is closed. The last one ends early when ctx has ended.
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
