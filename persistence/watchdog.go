package persistence

import (
	"time"
)

const (
	// writeStallMax is how long Pebble may hold writers back before the store
	// says so. Under a burst it does that for some milliseconds, which is healthy.
	writeStallMax = 500 * time.Millisecond
	// backgroundHold is how long one failed flush or compaction keeps the store
	// shut when no other attempt follows.
	backgroundHold = 5 * time.Second
)

// watchdogLoop is the watchdog. It asks nothing of the disk and takes no lock that somebody
// holds over I/O, so it runs on when the disk hangs. One ticker serves all
// commits; there is no timer for each.
func (s *Store) watchdogLoop() {
	defer close(s.watchdogDone)
	s.ticked = time.Now()
	ticker := time.NewTicker(watchdogInterval(s.options.CommitWaitMax))
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.checkCommits()
		}
	}
}

// watchdogInterval is the ticker's, and the error of every age measured with it.
func watchdogInterval(commitWaitMax time.Duration) time.Duration {
	return min(max(commitWaitMax/40, time.Millisecond), 250*time.Millisecond)
}

// advanceClock sets the watchdog's clock. What the process did not run (SIGSTOP, a machine that
// was suspended) counts for a few ticks only: the disk is not to blame for it.
func (s *Store) advanceClock() int64 {
	last := s.ticked
	s.ticked = time.Now()
	return s.clock.Add(int64(min(s.ticked.Sub(last), 4*watchdogInterval(s.options.CommitWaitMax))))
}

func (s *Store) checkCommits() {
	now := s.advanceClock()
	s.gate.forgetBackground(time.Now(), backgroundHold)

	since := s.commits.queue.oldest()
	stalled := since != 0 && now-since > int64(s.options.CommitWaitMax/4)
	if begun := s.writeStall.Load(); begun != 0 && now-begun > int64(writeStallMax) {
		stalled = true
	}
	if s.gate.setStalled(stalled) {
		if stalled {
			s.metrics.stalls.Add(1)
			s.log.Error().Msg("commits do not get through, refusing new writes")
		} else {
			s.log.Info().Msg("commits get through again")
		}
	}
	if stalled {
		s.sweep(now)
	}
}

// sweep answers in the committer's place while that is stuck: tickets that wait
// too long, and refused ones that have nothing unanswered before them.
func (s *Store) sweep(now int64) {
	tickets := s.commits.queue.beginSweep()
	defer s.commits.queue.endSweep()
	for _, t := range tickets {
		if t.state.Load() == answered {
			continue
		}
		err := t.refusal
		if err == nil {
			if now-t.since <= int64(s.options.CommitWaitMax) {
				return
			}
			err = ErrOutcomeUnknown
		}
		if !answer(t, err) {
			return // the committer is at work again
		}
		if t.refusal != nil {
			s.metrics.refused.Add(1)
		} else {
			s.metrics.unknown.Add(1)
		}
	}
}
