package load

import (
	"sync"
	"time"
)

// sent is a request that was sent, and what became of it.
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
	errors     causes
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
		r.errors.add(f.Error(), max(1, f.count))
	}
}

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
