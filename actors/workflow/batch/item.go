package batch

import (
	"sync/atomic"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
)

// Item is one request.
type Item struct {
	// Text is what the caller sent, and Number its place in the batch, from 0.
	Text   []byte
	Number int

	batch    *Batch
	instance string // empty for a create, which no other item can follow
	keyed    bool   // it may be sent twice
	// event or create is the request; the other is nil, and both are of a refused one.
	event  *message.Event
	create *message.Create
	posted workflow.Posted
	// place says where it is: see the constants. shard is the one that was led elsewhere.
	place atomic.Int32
	shard uint16
	// unknown: a node that did not answer may have done it.
	unknown bool
	begun   bool // it counts in Batch.mu.begun. Written when it is begun, and then when it is answered
	// answer and done are written by whoever answers it, before answered.
	answer   Answer
	done     bool
	answered atomic.Bool
}

// An item is posted here; or it waits for the Forwarder, is away with it, or came back because
// this node leads its shard.
const (
	here int32 = iota
	waits
	away
	back
)

// send posts the item, unless earlier ones of its instance say that it cannot be done now.
func (m *Item) send() error {
	err := m.mayBegin()
	switch {
	case err != nil:
	case m.event != nil:
		m.posted, err = m.batch.router.PostEvent(m.event, m)
	default:
		m.posted, err = m.batch.router.PostCreate(m.create, m)
	}
	return err
}

// mayBegin says why the item must not be begun now.
func (m *Item) mayBegin() error {
	if m.batch.isBehindFailed(m) {
		return errOvertakes
	}
	if shard, ok := m.batch.elsewhere(m.instance); ok {
		return failure.Elsewhere(shard)
	}
	return nil
}

// Begin implements message.Recipient.
func (m *Item) Begin(t message.Turn) error {
	if err := m.mayBegin(); err != nil {
		return err
	}
	return m.batch.begin(m, t)
}

// Refused implements message.Recipient.
func (m *Item) Refused(err error) {
	switch of := failure.Of(err); of.Kind {
	case failure.ErrNotLeader:
		m.batch.move(m.instance, of.Shard)
	case failure.ErrInstanceBusy, failure.ErrQuota, failure.ErrBusy, failure.ErrUnavailable, failure.ErrOutcomeUnknown:
		m.batch.fail(m)
	}
}

// Answered implements message.Recipient.
func (m *Item) Answered(reply *message.Reply, err error) {
	defer m.batch.ended(m)
	if of := failure.Of(err); err != nil && of.Kind == failure.ErrNotLeader && m.batch.forwarder != nil {
		m.Refused(err)
		m.shard = of.Shard
		m.place.Store(waits)
		m.batch.signal()
		return
	}
	if m.unknown && leavesOpen(err) {
		err = failure.Errorf(failure.ErrOutcomeUnknown, "%w", err)
	}
	if err != nil {
		m.Refused(err)
	}
	m.end(Answer{Reply: reply, Err: err}, err == nil)
}

// leavesOpen reports whether an error can come before the idempotency key is looked up, so that it
// says nothing of an earlier try.
func leavesOpen(err error) bool {
	switch failure.Of(err).Kind {
	case failure.ErrInstanceBusy, failure.ErrQuota, failure.ErrBusy, failure.ErrUnavailable, failure.ErrUnauthorized, failure.ErrForbidden:
		return err != nil
	}
	return false
}

// end answers the item for good.
func (m *Item) end(a Answer, done bool) {
	m.answer, m.done = a, done
	m.answered.Store(true)
	if m.batch.awaited.Load() == m {
		m.batch.signal()
	}
}
