package load

import (
	"sync/atomic"
	"time"
)

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
