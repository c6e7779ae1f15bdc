package persistence

import (
	"errors"
	"fmt"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// localRows is the store of a replica: what a group writes goes through the same queue as
// the writes of a store that stands alone, so one sync serves the logs of all groups.
type localRows struct {
	s  *Store
	sh key.Shard
}

// Load implements replica.Store.
func (l localRows) Load(key []byte) ([]byte, error) {
	value, err := l.s.Load(key)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// Scan implements replica.Store.
func (l localRows) Scan(from, to []byte, visit func(key, value []byte) error) error {
	g := l.s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return l.s.scanPart(g, from, to, visit)
}

// Write implements replica.Store.
func (l localRows) Write(how replica.Write, fill func(replica.Batch)) error {
	for {
		err := l.write(how, fill)
		if how == replica.Vital && errors.Is(err, ErrOutcomeUnknown) {
			continue // the disk hangs: writing the same again waits for it
		}
		return err
	}
}

func (l localRows) write(how replica.Write, fill func(replica.Batch)) error {
	w := l.s.newWrites(l.sh)
	w.ticket.Ungated, w.ticket.Unsynced = how != replica.Synced, how == replica.Lazy
	fill(rowsOf{w})
	done := make(localOutcome, 2)
	l.s.appendHere(w, done)
	for {
		switch o := <-done; {
		case o.visible && how != replica.Lazy:
			continue
		case how == replica.Lazy && errors.Is(o.err, ErrOutcomeUnknown):
			continue // the disk hangs; it becomes visible when that has passed
		case errors.Is(o.err, ErrOutcomeUnknown):
			return o.err
		case o.err != nil:
			return fmt.Errorf("%w: %w", replica.ErrRefused, o.err)
		default:
			return nil
		}
	}
}

// localOutcome has room for both.
type localOutcome chan localResult

type localResult struct {
	visible bool
	err     error
}

// Applied implements VisibleWaiter.
func (o localOutcome) Applied() { o <- localResult{visible: true} }

// Committed implements Waiter.
func (o localOutcome) Committed(err error) { o <- localResult{err: err} }

// rowsOf is a set of writes as a group fills it. Its keys are not all of one shard.
type rowsOf struct{ w *Writes }

// Set implements replica.Batch.
func (r rowsOf) Set(key, value []byte) { r.w.must(r.w.ticket.Batch.Set(key, value, nil)) }

// DeleteRange implements replica.Batch.
func (r rowsOf) DeleteRange(from, to []byte) { r.w.must(r.w.ticket.Batch.DeleteRange(from, to, nil)) }

// Apply implements replica.Batch.
func (r rowsOf) Apply(repr []byte) { r.w.must(engine.JoinRepr(r.w.ticket.Batch, repr)) }

// Refusal implements replica.Store.
func (l localRows) Refusal() error { return l.s.commits.Gate.Refusal() }

// Snapshot implements replica.Store.
func (l localRows) Snapshot() replica.Snapshot { return shardSnapshot{l.s.Snapshot(), l.sh} }

type shardSnapshot struct {
	*Snapshot
	sh key.Shard
}

// Scan implements replica.Snapshot.
func (sn shardSnapshot) Scan(visit func(key, value []byte) error) error {
	return sn.Snapshot.Scan(key.ShardPrefix(nil, sn.sh), visit)
}
