// Package commit is the way of a set of writes to the disk. Tickets wait in a queue; the applier gathers them into groups
// and has each applied; the committer waits for the group's sync and answers its tickets in order. A gate refuses new
// writes while the disk does not take them, and a watchdog answers the waiters when it hangs.
//
//	Append ──► queue ──► applier ──► committer ──► Waiter
//
// The applier and the committer are a goroutine each, so that anyone who appends waits for neither memory nor disk.
package commit

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
)

var (
	// ErrClosed: the pipeline takes nothing any more.
	ErrClosed = errors.New("store is closed")
	// ErrReadOnly: it only answers those who wait for nothing.
	ErrReadOnly = errors.New("store is read-only")
	// ErrStalled: commits do not get through.
	ErrStalled = errors.New("store is stalled")
	// ErrDiskFull: there is no room for more.
	ErrDiskFull = errors.New("disk is full")
	// ErrOutcomeUnknown: a commit was not confirmed in time.
	ErrOutcomeUnknown = errors.New("commit not confirmed in time, outcome unknown")

	// errReopened refuses writes that were begun before the database was opened again.
	errReopened = fmt.Errorf("%w: the store was reopened while the write waited, try again", ErrDiskFull)
)

const (
	// groupsMax is how many groups may wait for a sync. One sync serves all that are there
	// when it begins; what comes while that many wait gathers in larger groups.
	groupsMax = 64
	// groupTicketsMax and groupBytesMax are how much is enough for one group: what a group costs on its own is little
	// beside that, and its log record is written while the next group is gathered.
	groupTicketsMax = 256
	groupBytesMax   = 256 << 10
)

// Applier is where groups go.
type Applier interface {
	// Apply makes a batch visible, and with synced has the log synced too. It returns the newest log that there was before.
	Apply(db *engine.Generation, batch engine.Batch, synced bool) (log uint64, err error)
	// Sync waits for the sync of a batch that was applied when log was the newest.
	Sync(batch engine.Batch, log uint64) error
	// Answered is called when the tickets of a group that wrote something were answered.
	Answered()
}

// Options of a pipeline.
type Options struct {
	Applier Applier
	// DB is the opening of the database that new batches are made for.
	DB *atomic.Pointer[engine.Generation]
	// WaitMax is how long a commit may take before its waiter gets ErrOutcomeUnknown.
	WaitMax time.Duration
	Log     zerolog.Logger
	// Fatal ends the process; it must not return.
	Fatal func(reason string)
}

// Counters count sets of writes from New on.
type Counters struct {
	Appended, AppendedBytes, Committed, Refused, Unknown, Stalls atomic.Uint64
}

// Pipeline is the queue with everything that works on it.
type Pipeline struct {
	Gate     Gate
	Counters Counters
	// Backlog is how many bytes were appended that are not durable yet.
	Backlog atomic.Int64

	o     Options
	queue *queue
	// free has the groups that nobody uses, applied those that the committer has not passed. Both have room for all.
	free, applied chan *group
	committed     chan struct{} // closed when the committer has returned
	// writing counts the tickets with changes that were accepted and that the committer has not passed yet.
	writing atomic.Int64

	watchdog watchdog
}

// group is tickets that share one batch of the database and one sync. It belongs to the applier, then to the committer.
type group struct {
	tickets []*Ticket          // in the order of Append; changed under the queue's lock
	db      *engine.Generation // that the batch was made for
	batch   engine.Batch       // empty: the tickets only wait
	placed  []row              // of the tickets, not in the batch yet
	synced  bool               // somebody waits for a sync of the batch
	log     uint64             // the newest log when the group was applied
}

// row is a row that belongs to a ticket, see Owner.Place.
type row struct{ key, value []byte }

// New returns a pipeline that does nothing before Start.
func New(o Options) *Pipeline {
	p := &Pipeline{
		o: o, queue: newQueue(), committed: make(chan struct{}),
		free: make(chan *group, groupsMax), applied: make(chan *group, groupsMax),
	}
	p.watchdog.clock.Store(1) // NB: zero means "not waiting"
	p.watchdog.stop, p.watchdog.done = make(chan struct{}), make(chan struct{})
	for range groupsMax {
		p.free <- &group{}
	}
	return p
}

// Start begins the pipeline's goroutines. Close ends them.
func (p *Pipeline) Start() {
	go p.applyLoop()
	go p.commitLoop()
	go p.watch()
}

// Close refuses new writes, and ends what Start began once everything appended is answered. After Options.WaitMax it
// returns ErrStalled, and may be called again.
func (p *Pipeline) Close() error {
	p.Gate.close()
	p.queue.close()
	timer := time.NewTimer(p.o.WaitMax)
	defer timer.Stop()
	select {
	case <-p.committed:
	case <-timer.C:
		return ErrStalled
	}
	close(p.watchdog.stop)
	<-p.watchdog.done
	return nil
}

// Append hands a ticket over and returns at once. It is false when the writes were refused; the waiter gets the reason, in
// its turn.
func (p *Pipeline) Append(t *Ticket) (accepted bool) {
	if t.changes() { // waiting for what is there is always possible
		// NB: counted before the gate is asked, so that nobody is on the way in once
		// the gate is closed and the count is zero.
		p.writing.Add(1)
		if !t.Ungated {
			t.refusal = p.Gate.Refusal()
		}
		if t.refusal == nil && t.DB != p.o.DB.Load() {
			t.refusal = errReopened
		}
		if t.refusal != nil {
			p.writing.Add(-1)
		}
	}
	t.since = p.watchdog.clock.Load()
	accepted = t.refusal == nil
	if t.writes() {
		p.Backlog.Add(int64(t.Batch.Len()))
	}
	if p.queue.push(t) {
		return accepted // NB: t belongs to the applier
	}
	p.passed(t)
	waiter := t.Waiter
	t.Owner.Recycle()
	p.Counters.Refused.Add(1)
	waiter.Committed(ErrClosed)
	return false
}

// Idle says whether all that was appended is answered and durable.
func (p *Pipeline) Idle() bool { return p.queue.empty() }

// Writing reports whether somebody is on the way to the database.
func (p *Pipeline) Writing() bool { return p.writing.Load() != 0 }

// Waiting is the number of tickets, those being answered included.
func (p *Pipeline) Waiting() int { return p.queue.length() }

// Die ends the process. If Options.Fatal returns in spite of its contract, the
// goroutine stops here: going on could acknowledge what is lost.
func (p *Pipeline) Die(reason string) {
	p.Gate.dead.Store(true)
	p.Gate.update()
	p.o.Fatal(reason)
	select {}
}

// applyLoop is the applier: it gathers tickets into groups until the queue is closed and empty.
func (p *Pipeline) applyLoop() {
	defer close(p.applied)
	for g := range p.free {
		// NB: those who can run and are about to append do so before the next look. That makes
		// groups as large as the processors are busy, and costs nothing when they are not.
		runtime.Gosched()
		if !p.queue.take(g) {
			return
		}
		p.apply(g)
		p.applied <- g
	}
}

// apply puts what the tickets of a group write into the log buffer and makes it visible.
func (p *Pipeline) apply(g *group) {
	defer func() {
		// Pebble panics, with its locks held, when the log cannot be written. A
		// caller that recovers would leave a store that never answers again.
		if r := recover(); r != nil {
			p.Die(fmt.Sprintf("apply batch: %v", r))
		}
	}()
	for _, t := range g.tickets {
		if t.writes() {
			g.add(t)
			p.Counters.Appended.Add(1)
		}
	}
	g.addPlaced()
	if g.writes() {
		p.Counters.AppendedBytes.Add(uint64(g.batch.Len()))
		var err error
		if g.log, err = p.o.Applier.Apply(g.db, g.batch, g.synced); err != nil {
			p.Die(fmt.Sprintf("apply batch: %v", err))
		}
	}
	for _, t := range g.tickets {
		if w, ok := t.Waiter.(VisibleWaiter); ok && t.refusal == nil {
			w.Applied()
		}
	}
}

// add appends what a ticket writes. Nothing but a mistake in this program makes it fail.
func (g *group) add(t *Ticket) {
	if g.db != t.DB {
		g.db, g.batch = t.DB, t.DB.EmptyBatch(2*groupBytesMax)
	}
	if g.batch.Count() == 0 {
		// Each batch begins with a stamp in the log only.
		if err := integrity.Reserve(g.batch); err != nil {
			panic(err)
		}
	}
	for key, value := t.Owner.Place(); key != nil; key, value = t.Owner.Place() {
		g.placed = append(g.placed, row{key, value})
	}
	if err := engine.Join(g.batch, t.Batch); err != nil {
		panic(err)
	}
	g.synced = g.synced || !t.Unsynced
}

// addPlaced adds the rows that Place has returned, in the order of their keys. NB: the memtable remembers where it has
// put the row before, and many of these are neighbours; each among the others of its ticket would be searched for.
func (g *group) addPlaced() {
	slices.SortFunc(g.placed, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	for _, r := range g.placed {
		if err := g.batch.Set(r.key, r.value, nil); err != nil {
			panic(err)
		}
	}
	clear(g.placed)
	g.placed = g.placed[:0]
}

// writes reports whether there is anything to apply.
func (g *group) writes() bool { return g.batch != nil && g.batch.Count() > 0 }

// commitLoop is the committer: it answers the tickets in order until the applier has ended.
func (p *Pipeline) commitLoop() {
	defer close(p.committed)
	for g := range p.applied {
		if g.writes() && g.synced {
			if err := p.o.Applier.Sync(g.batch, g.log); err != nil {
				p.Die(fmt.Sprintf("sync log: %v", err))
			}
		}
		for _, t := range g.tickets {
			p.complete(t)
		}
		if g.writes() {
			p.o.Applier.Answered()
		}
		if g.batch != nil {
			g.batch.Reset()
		}
		g.synced = false
		p.queue.release(g)
		p.free <- g
	}
}

// passed ends the counting of a ticket, and reports whether it writes.
func (p *Pipeline) passed(t *Ticket) (writes bool) {
	if writes = t.writes(); writes {
		p.writing.Add(-1)
		p.Backlog.Add(-int64(t.Batch.Len()))
	}
	return writes
}

// complete answers a ticket that is durable or was refused, unless the watchdog has. Once
// the process is about to end, nothing is acknowledged.
func (p *Pipeline) complete(t *Ticket) {
	writes := p.passed(t)
	if t.refusal == nil && p.Gate.dead.Load() {
		return // what was synced may stand in a file that is not ours any more
	}
	switch {
	case !answer(t, t.refusal):
		p.queue.awaitSweep()
	case t.refusal != nil:
		p.Counters.Refused.Add(1)
	case writes:
		p.Counters.Committed.Add(1)
	}
}
