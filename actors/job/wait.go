package job

import (
	"maps"
	"time"

	"troupe/actors/internal/wait"
)

// waiter is a call that waits for jobs.
type waiter struct {
	rung   chan struct{} // has room for one: there may be jobs
	end    *wait.Deadline
	isOver bool
	// follows: it waits for the jobs of other nodes, too.
	follows bool
	types   []string
}

const (
	seenFor    = time.Minute
	workersMax = 1000 // that are remembered of a type
)

// sawLocked notes that a worker has asked for jobs.
func (k *kind) sawLocked(worker string, now int64) {
	if worker == "" {
		return
	}
	if _, known := k.workers[worker]; !known && len(k.workers) >= workersMax {
		maps.DeleteFunc(k.workers, func(_ string, seen int64) bool { return now-seen > seenFor.Milliseconds() })
		if len(k.workers) >= workersMax {
			return
		}
	}
	k.workers[worker] = now
}
