package workflow

import (
	"sync/atomic"
	"time"

	"troupe/actors/guard"
	"troupe/actors/internal/breaks"
	"troupe/persistence/key"
)

// sweepEvery is the length of one round. Idle times are counted in rounds.
const sweepEvery = time.Second

// every calls do again and again until the router stops, also after a panic. It is the body of a
// goroutine.
func (r *Router) every(interval time.Duration, name string, do func()) {
	defer r.done.Done()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-ticker.C:
			_ = guard.Try(r.log, name, do) // the log has it
		}
	}
}

// sweep puts idle instances to sleep and wakes callers to look at their
// deadlines.
func (r *Router) sweep() {
	next := make(chan struct{})
	close(*r.tick.Swap(&next))
	r.watches.Sweep(time.Now())
	now := r.o.Clock()
	r.eventQuota.Sweep(now)
	r.createQuota.Sweep(now)
	round, idle := r.round.Add(1), r.idleRounds()
	pauses := breaks.New(0, 1, 64)
	r.awake.Range(func(_ key.ID, a *activation) bool {
		if a.isOver() {
			a.abandon()
		}
		r.letSleep(a, round-idle)
		pauses.Take(r.stop)
		return true
	})
	r.limitMemory()
}

// letSleep ends an activation that was used last before a round, and owes nothing.
func (r *Router) letSleep(a *activation, before int64) {
	if a.touched.Load() < before && a.close() {
		r.remove(a)
	}
}

// idleRounds is how many rounds an instance stays awake that nobody asks for.
func (r *Router) idleRounds() int64 { return int64(r.o.IdleAfter / sweepEvery) }

const (
	// instanceBytes is about what an awake instance takes without its data
	// (BenchmarkAwake of package bench).
	instanceBytes = 5 << 8
	// sizeStepBytes is how much the size of an instance changes before it is
	// counted anew.
	sizeStepBytes = 1 << 10
	// largeBytes is from where an instance goes to sleep before small ones do.
	largeBytes = 32 << 10
	// scratchBytesKept is the largest scratch that is kept for the next message.
	scratchBytesKept = 64 << 10
)

// memory counts what awake instances take.
type memory struct {
	bytes atomic.Int64 // beyond instanceBytes of each
	// pressure has an entry when that has become too much.
	pressure chan struct{}
}

// gone is the size of an instance that is counted no more.
const gone = -1

// count takes the size of an instance over. It is called by the instance's actor.
func (a *activation) count(size int64) {
	r := a.router
	for {
		before := a.size.Load()
		if before == gone || before-sizeStepBytes < size && size < before+sizeStepBytes {
			return
		}
		if a.size.CompareAndSwap(before, size) {
			r.memory.bytes.Add(size - before)
			r.limitMemory()
			return
		}
	}
}

// uncount is the end of count.
func (a *activation) uncount() {
	if before := a.size.Swap(gone); before != gone {
		a.router.memory.bytes.Add(-before)
	}
}

// size is about how many bytes the instance's data takes.
func (i *instance) size() int64 {
	return int64(len(i.state.Public) + len(i.state.Private) + cap(i.history) + len(i.attachment))
}

// settle is the end of a message.
func (i *instance) settle(room *[]byte) {
	if cap(i.scratch) <= scratchBytesKept {
		*room = i.scratch[:0]
	}
	i.scratch = nil
	scratches.Put(room)
	i.activation.count(i.size())
}

// awakeBytes is about what all awake instances take.
func (r *Router) awakeBytes() int64 {
	return r.memory.bytes.Load() + instanceBytes*int64(r.awake.Size())
}

// limitMemory has relieveLoop make room when awake instances take too much.
func (r *Router) limitMemory() {
	if r.awakeBytes() > r.o.AwakeBytesMax {
		select {
		case r.memory.pressure <- struct{}{}:
		default:
		}
	}
}

// relieveLoop makes room whenever awake instances take too much. It is the body of
// a goroutine.
func (r *Router) relieveLoop() {
	defer r.done.Done()
	for {
		select {
		case <-r.stop:
			return
		case <-r.memory.pressure:
			_ = guard.Try(r.log, "memory relief", r.relieve) // the log has it
		}
	}
}

// relieve puts instances to sleep before their time until awake ones take three
// quarters of what they may: large ones first, and of these, and of the others,
// those first that nobody has asked for long. An instance that owes an answer
// stays.
func (r *Router) relieve() {
	if r.awakeBytes() <= r.o.AwakeBytesMax {
		return
	}
	enough := r.o.AwakeBytesMax / 4 * 3
	for _, least := range []int64{largeBytes, 0} {
		for idle := r.idleRounds(); ; idle /= 2 {
			if r.putToSleep(idle, least, enough); r.awakeBytes() <= enough {
				return
			}
			if idle == 0 {
				break
			}
		}
	}
}

// putToSleep ends the instances of at least so many bytes that nobody has asked
// for in so many rounds, until awake ones take no more than enough.
func (r *Router) putToSleep(idle, least, enough int64) {
	round := r.round.Load()
	r.awake.Range(func(_ key.ID, a *activation) bool {
		if a.size.Load() >= least {
			r.letSleep(a, round-idle+1)
		}
		return r.memory.bytes.Load() > enough || r.awakeBytes() > enough
	})
}
