package commit

import (
	"sync/atomic"
	"time"
)

const (
	// writeStallMax is how long the database may hold writers back before that counts as
	// stalled. Under a burst it does that for some milliseconds, which is healthy.
	writeStallMax = 500 * time.Millisecond
	// backgroundHold is how long one failed flush or compaction keeps the gate shut when no other attempt follows.
	backgroundHold = 5 * time.Second
)

// watchdog is what the watchdog knows.
type watchdog struct {
	// clock is how many nanoseconds the process had run at the last tick, so that a commit's age costs no system call,
	// and is not zero, which means "not waiting".
	clock  atomic.Int64
	ticked time.Time // when that was
	// writeStall is when the database began to hold writers back, on clock; zero while it does not.
	writeStall atomic.Int64

	stop, done chan struct{}
}

// watch is the watchdog. It asks nothing of the disk and takes no lock that somebody holds over I/O, so it runs on when
// the disk hangs. One ticker serves all commits; there is no timer for each.
func (p *Pipeline) watch() {
	w := &p.watchdog
	defer close(w.done)
	w.ticked = time.Now()
	ticker := time.NewTicker(watchdogInterval(p.o.WaitMax))
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
			p.checkCommits()
		}
	}
}

// watchdogInterval is the ticker's, and the error of every age measured with it.
func watchdogInterval(waitMax time.Duration) time.Duration {
	return min(max(waitMax/40, time.Millisecond), 250*time.Millisecond)
}

// WriteStalls is called when the database begins to hold writers back, and when it ends that.
func (p *Pipeline) WriteStalls(begins bool) {
	if begins {
		p.watchdog.writeStall.Store(p.watchdog.clock.Load())
	} else {
		p.watchdog.writeStall.Store(0)
	}
}

// advance sets the watchdog's clock. What the process did not run (SIGSTOP, a machine that
// was suspended) counts for a few ticks only: the disk is not to blame for it.
func (w *watchdog) advance(waitMax time.Duration) int64 {
	last := w.ticked
	w.ticked = time.Now()
	return w.clock.Add(int64(min(w.ticked.Sub(last), 4*watchdogInterval(waitMax))))
}

func (p *Pipeline) checkCommits() {
	now := p.watchdog.advance(p.o.WaitMax)
	p.Gate.forgetBackground(time.Now(), backgroundHold)

	since := p.queue.oldest()
	stalled := since != 0 && now-since > int64(p.o.WaitMax/4)
	if begun := p.watchdog.writeStall.Load(); begun != 0 && now-begun > int64(writeStallMax) {
		stalled = true
	}
	if p.Gate.setStalled(stalled) {
		if stalled {
			p.Counters.Stalls.Add(1)
			p.o.Log.Error().Msg("commits do not get through, refusing new writes")
		} else {
			p.o.Log.Info().Msg("commits get through again")
		}
	}
	if stalled {
		p.sweep(now)
	}
}

// sweep answers in the committer's place while that is stuck: tickets that wait
// too long, and refused ones that have nothing unanswered before them.
func (p *Pipeline) sweep(now int64) {
	tickets := p.queue.beginSweep()
	defer p.queue.endSweep()
	for _, t := range tickets {
		if t.state.Load() == answered {
			continue
		}
		err := t.refusal
		if err == nil {
			if now-t.since <= int64(p.o.WaitMax) {
				return
			}
			err = ErrOutcomeUnknown
		}
		if !answer(t, err) {
			return // the committer is at work again
		}
		if t.refusal != nil {
			p.Counters.Refused.Add(1)
		} else {
			p.Counters.Unknown.Add(1)
		}
	}
}
