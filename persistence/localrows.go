package persistence

import (
	"errors"
	"fmt"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// localRows is the replica.Store of the group that begins with a shard: what a group writes goes through the same queue as
// the writes of a standalone store, so one sync serves the logs of all groups.
type localRows struct {
	s  *Store
	sh key.Shard
}

func (l localRows) Load(key []byte) ([]byte, error) {
	g := l.s.read()
	if g == nil {
		return nil, ErrClosed
	}
	defer g.Leave()
	return orNil(l.s.load(g, key))
}

func (l localRows) Scan(from, to []byte, visit func(key, value []byte) error) error {
	g := l.s.read()
	if g == nil {
		return ErrClosed
	}
	defer g.Leave()
	return l.s.scanPart(g, from, to, visit)
}

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
	w := l.s.newBatch(l.sh)
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

func (o localOutcome) Applied() { o <- localResult{visible: true} }

func (o localOutcome) Committed(err error) { o <- localResult{err: err} }

// rowsOf is a set of writes as a group fills it: a replica.Batch. Its keys are not all of one shard.
type rowsOf struct{ w *Batch }

func (r rowsOf) Set(key, value []byte) { r.w.must(r.w.ticket.Batch.Set(key, value, nil)) }

func (r rowsOf) DeleteRange(from, to []byte) { r.w.must(r.w.ticket.Batch.DeleteRange(from, to, nil)) }

func (r rowsOf) Apply(repr []byte) { r.w.must(engine.JoinRepr(r.w.ticket.Batch, repr)) }

func (l localRows) Snapshot() replica.Snapshot { return shardSnapshot{l.s.Snapshot(), l.sh} }

type shardSnapshot struct {
	*Snapshot
	first key.Shard
}

func (sn shardSnapshot) Load(key []byte) ([]byte, error) { return orNil(sn.Snapshot.Load(key)) }

// orNil makes nil of what is not there.
func orNil(value []byte, err error) ([]byte, error) {
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return value, err
}

func (sn shardSnapshot) Scan(last uint16, visit func(key, value []byte) error) error {
	for sh := int(sn.first); sh <= int(last); sh++ {
		if err := sn.Snapshot.Scan(key.ShardPrefix(nil, key.Shard(sh)), visit); err != nil {
			return err
		}
	}
	return nil
}

// rounds is the replica.Rounds of a store.
type rounds struct{ s *Store }

func (r rounds) Refusal() error { return r.s.commits.Gate.Refusal() }

func (r rounds) Append(synced bool, fill func(replica.Batch), visible, durable func(error)) {
	w := r.s.newBatch(key.Meta)
	w.ticket.Ungated, w.ticket.Unsynced = true, !synced
	fill(rowsOf{w})
	r.s.appendHere(w, &roundWaiter{s: r.s, visible: visible, durable: durable})
}

// roundWaiter tells a host how a round ended. While the disk hangs it asks for a place in the queue again and again:
// what was appended before is safe when that is.
type roundWaiter struct {
	s       *Store
	visible func(error) // nil when it was called
	durable func(error)
}

func (w *roundWaiter) Applied() { w.show(nil) }

func (w *roundWaiter) show(err error) {
	if visible := w.visible; visible != nil {
		w.visible = nil
		visible(err)
	}
}

func (w *roundWaiter) Committed(err error) {
	if errors.Is(err, ErrOutcomeUnknown) {
		w.s.appendHere(w.s.newBatch(key.Meta), w)
		return
	}
	w.show(err)
	w.durable(err)
}
