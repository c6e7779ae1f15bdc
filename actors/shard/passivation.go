package shard

import (
	"time"

	"troupe/actors/guard"
	"troupe/actors/instance"
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/wait"
	"troupe/persistence/key"
)

const (
	// SweepEvery is the length of one round. Idle times are counted in rounds.
	SweepEvery = time.Second
	// largeBytes is from where an instance is passivated before small ones are.
	largeBytes = 32 << 10
)

// Sweep passivates idle instances, and wakes callers to look at their deadlines.
func (s *Shards) Sweep() {
	next := make(chan struct{})
	close(*s.tick.Swap(&next))
	round, idle := s.round.Add(1), s.idleRounds()
	pauses := breaks.New(0, 1, 64)
	for k := range s.led {
		x := s.led[k].Load()
		if x == nil {
			continue
		}
		if x.IsStale() {
			x.end()
		}
		x.awake.Range(func(_ key.ID, a *instance.Activation) bool {
			a.PassivateIdle(round - idle)
			pauses.Take(s.swept.Done())
			return true
		})
	}
	s.limitMemory()
}

// Pass has as many rounds go by as there are in d.
func (s *Shards) Pass(d time.Duration) { s.round.Add(int64(d / SweepEvery)) }

// idleRounds is how many rounds an instance stays awake that nobody asks for.
func (s *Shards) idleRounds() int64 { return int64(s.o.IdleAfter / SweepEvery) }

// awakeBytes is about what all awake instances take.
func (s *Shards) awakeBytes() int64 {
	return s.o.Counts.Bytes.Load() + instance.InstanceBytes*s.awake.Load()
}

// limitMemory has the relief make room when awake instances take too much.
func (s *Shards) limitMemory() {
	if s.awakeBytes() > s.o.AwakeBytesMax {
		wait.Notify(s.pressure)
	}
}

// relieveLoop makes room whenever awake instances take too much. It is the body of a goroutine.
func (s *Shards) relieveLoop() {
	for {
		select {
		case <-s.swept.Done():
			return
		case <-s.pressure:
			_ = guard.Try(s.o.Log, "memory relief", s.relieve) // the log has it
		}
	}
}

// relieve passivates instances before their time until awake ones take three quarters of what they may: large ones
// first, and of these, and of the others, those first that nobody has asked for long. An instance that owes an answer
// stays.
func (s *Shards) relieve() {
	if s.awakeBytes() <= s.o.AwakeBytesMax {
		return
	}
	enough := s.o.AwakeBytesMax / 4 * 3
	for _, least := range []int64{largeBytes, 0} {
		for idle := s.idleRounds(); ; idle /= 2 {
			if s.passivate(idle, least, enough); s.awakeBytes() <= enough {
				return
			}
			if idle == 0 {
				break
			}
		}
	}
}

// passivate ends the instances of at least so many bytes that nobody has asked for in so many rounds, until awake ones
// take no more than enough.
func (s *Shards) passivate(idle, least, enough int64) {
	round := s.round.Load()
	for k := range s.led {
		x := s.led[k].Load()
		if x == nil {
			continue
		}
		x.awake.Range(func(_ key.ID, a *instance.Activation) bool {
			if a.Size() >= least {
				a.PassivateIdle(round - idle + 1)
			}
			return s.o.Counts.Bytes.Load() > enough || s.awakeBytes() > enough
		})
	}
}
