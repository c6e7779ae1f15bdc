package job

import (
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
	if _, known := k.workers[worker]; worker == "" || !known && len(k.workers) == workersMax {
		return
	}
	k.workers[worker] = now
	for name, seen := range k.workers {
		if len(k.workers) > workersMax/2 && now-seen > seenFor.Milliseconds() {
			delete(k.workers, name)
		}
	}
}
