package job

import (
	"context"
	"errors"
	"time"

	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/wait"
	"troupe/actors/trace"
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
	seized   uint64             // counts what came to taken
	due      wait.Heap[*entry]
}

// entry is a job that is not offered.
type entry struct {
	shard *shard
	offer key.Offer
	attempt
	row   []byte        // that it had in its line; nil: it is read
	trace string        // the value of trace.Header for what comes of it; "": nobody follows it
	span  *trace.Span   // of the lease; nil likewise
	busy  bool          // a write is on its way, or its instance is being told
	gone  bool          // it has ended while it was busy
	taken bool          // it is in shard.taken
	of    *share        // that its lease counts for
	pause time.Duration // before its instance is told again
	place int           // in the heap; -1: it is not there
}

// Time is when something is to be done.
func (e *entry) Time() time.Time { return e.At }

// Place implements wait.Timed.
func (e *entry) Place() *int { return &e.place }

// rows are those of the store, which tests count.
type rows interface {
	Load(key []byte) ([]byte, error)
	Scan(prefix []byte, visit func(key, value []byte) error) error
	ScanRanges(visit func(key, value []byte) error, ranges ...key.Range) error
}

// unheard is the waiter of who removes what means nothing: it may be removed again.
type unheard struct{}

// Committed implements persistence.Waiter.
func (unheard) Committed(error) {}

// update is what happens to an entry that is busy.
type update struct {
	e      *entry
	next   attempt
	offer  bool // it is offered from now on
	pulled bool // it was taken out of its line
	over   bool // it has ended meanwhile
}

// Metrics are counts since the start.
type Metrics struct {
	Activated, Completed, Failed, Expired int64 // Failed are attempts
}

// follow begins the span of the lease that an entry has, waited is since when its job has waited.
func (o *Options) follow(e *entry, r *row, waited time.Time) {
	if e.trace = r.Trace; r.Trace == "" || o.Tracer == nil || e.State != leased {
		return
	}
	name := e.offer.Job
	e.span = o.Tracer.Leased(r.Trace, &trace.Job{
		Workflow: r.Workflow, Instance: instanceid.Text(name.ID), ID: IDOf(name.ID, elementOf(name)), Type: r.Type, Worker: e.Worker, Attempt: e.Attempts,
	}, waited)
	e.trace = e.span.Parent()
}

var errAttempt = errors.New("the attempt has failed")

// unfollow ends the span of a lease; next is what it becomes, 0 when its job has ended.
func (e *entry) unfollow(next byte) {
	var err error
	if next != 0 {
		err = errAttempt
	}
	e.span.End(err)
}
