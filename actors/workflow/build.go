package workflow

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// The builder fills declared indexes in the background and frees those that no
// definition declares any more.
//
// Filling goes over all instances of the workflow while they live on. An
// instance that is awake enters its values itself, as a message among others. For
// one that is asleep the builder does it, holding the map's entry so that it
// cannot wake up meanwhile. Either way nothing moves between the look at the data
// and the entry. Instances that are made meanwhile enter themselves, because
// commits keep an index up from the moment that it is declared.
const (
	// buildWindow is how many entries of sleeping instances may be on their way
	// to the disk, buildPending how many instances may be asked at a time. They
	// are what the builder takes from the events.
	buildWindow  = 256
	buildPending = 32
	// buildRetry is how long the builder waits after a failure.
	buildRetry = 5 * time.Second
	// buildLogEvery is how often progress is logged.
	buildLogEvery = 5 * time.Second
)

var errStopping = errors.New("stopping")

// buildLoop is the builder's goroutine.
func (r *Router) buildLoop() {
	defer r.done.Done()
	for {
		var again <-chan time.Time
		for _, row := range r.catalog.unfinished() {
			if err := r.finishIndex(row); errors.Is(err, errStopping) {
				return
			} else if err != nil {
				r.log.Warn().Err(err).Str("workflow", row.Workflow).Str("index", row.Path).Msg("index is not finished, trying again")
				again = time.After(buildRetry)
			}
		}
		select {
		case <-r.stop:
			return
		case <-again:
		case <-r.catalog.indexesChanged:
		}
	}
}

// finishIndex builds or drops one index.
func (r *Router) finishIndex(row storedIndex) error {
	if row.State == dropping {
		return r.dropIndex(row)
	}
	ix := (*r.catalog.indexes.Load()).find(row.Workflow, row.Path)
	if ix == nil || ix.number != row.Number {
		return nil // it was dropped in the meantime
	}
	b := &build{router: r, row: row, index: ix, begun: time.Now(), window: newWindow(buildWindow)}
	for sh := range persistence.Shard(r.store.ShardCount()) {
		n, err := r.store.CountAll(persistence.CountPrefix(nil, sh, row.Workflow))
		if err != nil {
			return err
		}
		b.total += n
	}
	err := b.run()
	if drained := b.drain(); err == nil {
		err = drained
	}
	if err == nil {
		err = r.store.AwaitDurable()
	}
	if err == nil {
		err = r.catalog.setIndexState(row.Number, building, whole)
	}
	if errors.Is(err, errDropped) {
		return nil
	}
	if err != nil {
		return err
	}
	r.log.Info().Str("workflow", row.Workflow).Str("index", row.Path).Int64("instances", b.seen).
		Dur("took", time.Since(b.begun)).Msg("index is whole")
	return nil
}

// dropIndex frees what an index takes.
func (r *Router) dropIndex(row storedIndex) error {
	for sh := range persistence.Shard(r.store.ShardCount()) {
		prefix := persistence.IndexPrefix(nil, sh, row.Number)
		w := r.store.NewWrites(sh)
		w.DeleteRange(prefix, persistence.PrefixEnd(prefix))
		w.Delete(appendMark(nil, sh, row.Number))
		if err := r.store.Commit(w); err != nil {
			return err
		}
	}
	if err := r.catalog.setIndexState(row.Number, dropping, ""); err != nil {
		return err
	}
	r.log.Info().Str("workflow", row.Workflow).Str("index", row.Path).Msg("index is gone")
	return nil
}

// build is one filling of an index. It belongs to the builder's goroutine.
type build struct {
	router      *Router
	row         storedIndex
	index       *index
	begun       time.Time
	logged      time.Time
	total, seen int64
	window      *window // entries of sleeping instances
	pending     []*call // awake instances that were asked, oldest first
	key         []byte
}

func (b *build) run() error {
	b.logged = b.begun
	snapshot := b.router.store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	for sh := range persistence.Shard(b.router.store.ShardCount()) {
		if err := b.shard(snapshot, sh); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) shard(snapshot *persistence.Snapshot, sh persistence.Shard) (err error) {
	prefix := persistence.RecordPrefix(nil, sh, b.row.Workflow)
	cursor := snapshot.Cursor(prefix, persistence.PrefixEnd(prefix))
	defer func() { err = errors.Join(err, cursor.Close()) }()
	for cursor.Next() {
		if b.router.stopping.Load() {
			return errStopping // NB: Stop waits for calls to end; no new ones
		}
		if !b.router.catalog.keepsUp(b.row.Workflow, b.index) {
			return errDropped
		}
		id, ok := persistence.RecordID(cursor.Key())
		if !ok {
			return persistence.ErrCorrupt
		}
		if err := b.instance(sh, id); err != nil {
			return err
		}
		b.seen++
		if b.seen%1024 == 0 && time.Since(b.logged) >= buildLogEvery {
			b.logged = time.Now()
			b.router.log.Info().Str("workflow", b.row.Workflow).Str("index", b.row.Path).
				Int64("done", b.seen).Int64("of", b.total).Msg("building index")
		}
	}
	return cursor.Err()
}

// instance enters one instance.
func (b *build) instance(sh persistence.Shard, id persistence.ID) error {
	for {
		if err := b.window.enter(b.router.stop); err != nil {
			return err
		}
		var err error
		e, awake := b.router.awake.Compute(id, func(old *entry, loaded bool) (*entry, xsync.ComputeOp) {
			if !loaded {
				err = b.sleeping(sh, id)
			}
			return old, xsync.CancelOp
		})
		if !awake {
			return err
		}
		b.window.leave()
		switch err := b.ask(e); {
		case errors.Is(err, errAsleep):
		case errors.Is(err, failure.ErrInstanceBusy):
			if err := b.collect(0); err != nil {
				return err
			}
			select {
			case <-b.router.ticks():
			case <-b.router.stop:
				return errStopping
			}
		default:
			return err
		}
	}
}

// sleeping enters an instance that cannot wake up while this runs. It gives the
// place in the window back when the entry is durable.
func (b *build) sleeping(sh persistence.Shard, id persistence.ID) error {
	stored, err := b.router.storedDocument(sh, b.row.Workflow, id)
	if err != nil || stored == nil {
		b.window.leave()
		return err
	}
	w := b.router.store.NewWrites(sh)
	b.key = b.index.enter(w, b.key, sh, id, *stored)
	b.router.store.Append(w, b.window)
	return nil
}

// storedDocument returns what indexes see of an instance in the store; nil when
// that cannot be read: a query that meets it says so, and the others must go on.
func (r *Router) storedDocument(sh persistence.Shard, workflow string, id persistence.ID) (*filter.Document, error) {
	stored, err := r.store.Load(persistence.RecordKey(nil, sh, workflow, id))
	var record statemachine.Record
	if err == nil {
		record, err = statemachine.ParseRecord(stored)
	}
	switch {
	case errors.Is(err, statemachine.ErrRecord), errors.Is(err, persistence.ErrCorrupt):
		r.metrics.damaged.Add(1)
		r.log.Error().Err(err).Str("workflow", workflow).Str("instance", instanceName(id)).
			Msg("stored instance cannot be read and is in no index")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("instance %s: %w", instanceName(id), err)
	}
	d := documentOf(record)
	return &d, nil
}

// ask sends an instance that is awake the message to enter itself.
func (b *build) ask(e *entry) error {
	if err := e.acquire(); err != nil {
		return err
	}
	b.router.inFlight.Add(1)
	c := newCall(e)
	c.index = b.index
	b.router.o.System.Root().Send(e.pid, c)
	b.pending = append(b.pending, c)
	return b.collect(buildPending)
}

// collect waits until at most keep instances have not answered. It returns the
// first error, when all that it had to wait for have answered.
func (b *build) collect(keep int) error {
	var failed error
	for len(b.pending) > keep {
		c := b.pending[0]
		b.pending = b.pending[1:]
		if _, err := b.router.wait(c); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// drain waits for everything that is on its way.
func (b *build) drain() error {
	return errors.Join(b.collect(0), b.window.drain())
}

// enterIndex is an awake instance's part of building an index. It needs no
// definition, which may be unreadable.
func (i *instance) enterIndex(c *call) (handed bool, err error) {
	stored := &filter.Document{}
	if i.loaded {
		*stored = indexed(&i.state)
	} else if stored, err = i.router.storedDocument(i.shard, i.workflowID, i.id); err != nil {
		return false, failure.OfStore(err)
	}
	catalog := i.router.catalog
	token := catalog.indexing.RLock()
	defer catalog.indexing.RUnlock(token)
	if stored == nil || !catalog.keepsUp(i.workflowID, c.index) {
		i.deliver(c, &Reply{})
		return true, nil
	}
	w := i.router.store.NewWrites(i.shard)
	i.scratch = c.index.enter(w, i.scratch, i.shard, i.id, *stored)
	c.prepared = &Reply{}
	i.entry.uncommitted.Add(1)
	i.router.store.Append(w, c)
	return true, nil
}

// window bounds the appends that are not durable yet. It is their waiter.
type window struct {
	slots chan struct{} // one entry for each append on its way
	err   atomic.Pointer[error]
}

func newWindow(size int) *window { return &window{slots: make(chan struct{}, size)} }

// enter waits for a place, and fails when an earlier append did.
func (w *window) enter(stop <-chan struct{}) error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-stop:
		return errStopping
	}
}

func (w *window) leave() { <-w.slots }

// drain waits until nothing is on its way.
func (w *window) drain() error {
	for range cap(w.slots) {
		w.slots <- struct{}{}
	}
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Committed implements persistence.Waiter.
func (w *window) Committed(err error) {
	if err != nil {
		w.err.CompareAndSwap(nil, &err)
	}
	w.leave()
}
