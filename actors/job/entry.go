package job

import (
	"context"
	"time"

	"troupe/actors/internal/wait"
	"troupe/persistence/key"
)

// shard is what is known of the jobs of one shard in one epoch. Service.mu guards what can change.
type shard struct {
	number key.Shard
	epoch  uint64
	ctx    context.Context //nolint:containedctx // of the epoch
	wake   chan struct{}   // has room for one
	loaded chan struct{}   // closed when its rows were read

	isLoaded bool
	over     bool
	early    []Change // that came before
	taken    map[key.Job]*entry
	rows     map[key.Job][]byte // of jobs in lines that nobody has had; not of all
	seized   uint64 // counts what came to taken
	due      wait.Heap[*entry]
}

// entry is a job that is not offered.
type entry struct {
	shard *shard
	offer key.Offer
	attempt
	row   []byte        // that it had in its line; nil: it is read
	busy  bool          // a write is on its way, or its instance is being told
	gone  bool          // it has ended while it was busy
	pause time.Duration // before its instance is told again
	place int           // in the heap; -1: it is not there
}

// Time is when something is to be done.
func (e *entry) Time() time.Time { return e.At }

// Place implements wait.Timed.
func (e *entry) Place() *int { return &e.place }

// Metrics are counts since the start.
type Metrics struct {
	Activated, Completed, Failed, Expired int64 // Failed are attempts
}
