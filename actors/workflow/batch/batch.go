// Package batch sends many requests of one caller without waiting for each, and gives
// their answers in the order of the requests.
//
//	Event, Create, Refuse ──► window of items ──► Next, oldest first
//	        │                       ▲
//	        └──► workflow.Router ───┘ Answered, in any order
//
// Requests of one instance are applied in their order. When one of them was not done because something
// was full (429, 503), or its outcome is not known (504), the later ones of its instance are
// not begun, so that none overtakes another. An instance that is named by its business key counts as one of its own. Those that were on their way already when a 504
// became known may be done, and are 504 too.
//
// # In a cluster
//
// A request whose shard another node leads has done nothing here. It stays in the window, and a
// Forwarder gets it with all others of that shard that wait:
//
//	posted ── ErrNotLeader ──► waiting ── Ready ──► away ──► answered
//	   ▲                                             │
//	   └──────── this node leads the shard ──────────┘
//
// A shard has one call of the Forwarder at a time, and an item goes when none of its instance is
// posted here. So each instance has its order whatever happens to leaderships. Without a
// Forwarder such items are answered failure.ErrNotLeader, and so are the later ones of their
// instances.
//
// # What the caller must do
//
// Use a Batch on one goroutine. Look at Len before something is added, and take answers
// with Next. Wait for Ready, and call GiveUp once a second.
package batch

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
)

// Router is what a batch needs of workflow.Router.
type Router interface {
	PostEvent(*message.Event, message.Recipient) (workflow.Posted, error)
	PostCreate(*message.Create, message.Recipient) (workflow.Posted, error)
}

// Batch is a number of requests on their way. Its methods belong to one goroutine.
type Batch struct {
	router    Router
	forwarder Forwarder
	window    []*Item          // not taken by Next yet, oldest first
	count     int              // items so far
	lanes     map[uint16]*lane // by shard

	// awaited is the item whose answer gives ready an entry.
	awaited atomic.Pointer[Item]
	ready   chan struct{}

	// failed says that mu.first is not empty, and moved that mu.shards was not.
	failed, moved atomic.Bool
	mu            struct {
		sync.Mutex
		// first has the number of the first item that was not done, by instance.
		first map[string]int
		// shards has those of the instances that another node leads, by instance.
		shards map[string]uint16
		// begun has the items that were begun and are not answered, by instance.
		begun map[string]begun
	}
}

// begun is how many items of an instance are begun and not answered, and in which of its lives.
type begun struct {
	life  any
	items int
}

// New returns an empty batch. A nil forwarder forwards nothing.
func New(r Router, f Forwarder) *Batch {
	return &Batch{router: r, forwarder: f, ready: make(chan struct{}, 1)}
}

// Answer is the answer to one item.
type Answer struct {
	Reply *message.Reply
	Err   error
	// Text is what another node answered, in place of Reply and Err; nil when it was this one.
	Text []byte
}

// errOvertakes answers items behind one that was not done.
var errOvertakes = failure.Refuse(failure.ErrUnavailable, "an earlier item for this instance failed, so this one was skipped")

// Len is the number of items whose answer was not taken.
func (b *Batch) Len() int { return len(b.window) }

// Event adds an event. It is false, and nothing is added, when there is no room for it
// before earlier items are answered.
// text is the item, for a Forwarder.
func (b *Batch) Event(req *message.Event, text []byte) bool {
	name := req.InstanceID
	if req.Key != "" {
		// NB: an event may end the instance that has the key, so the next one goes when it is known which has it.
		if name = req.WorkflowID + "/" + req.Key; b.waitsFor(name) {
			return false
		}
	}
	m := b.newItem(name)
	m.event, m.Text, m.keyed = req, text, req.Retry.Key != ""
	return b.add(m, m.send())
}

// waitsFor reports whether an item of an instance is not answered.
func (b *Batch) waitsFor(instance string) bool {
	return slices.ContainsFunc(b.window, func(m *Item) bool { return m.instance == instance && !m.answered.Load() })
}

// Create adds a create, as Event does an event.
func (b *Batch) Create(req *message.Create, text []byte) (added bool) {
	m := b.newItem("")
	m.create, m.Text, m.keyed = req, text, req.Retry.Key != ""
	return b.add(m, m.send())
}

// Refuse adds an item that is answered already.
func (b *Batch) Refuse(err error) {
	m := b.newItem("")
	m.Answered(nil, err)
	b.add(m, nil)
}

func (b *Batch) newItem(instance string) *Item {
	return &Item{batch: b, Number: b.count, instance: instance}
}

// add puts an item into the window; err is why it was not posted.
func (b *Batch) add(m *Item, err error) bool {
	if err != nil {
		if len(b.window) > 0 && (errors.Is(err, failure.ErrBusy) || errors.Is(err, failure.ErrInstanceBusy)) {
			return false
		}
		m.Answered(nil, err)
	}
	b.count++
	b.window = append(b.window, m)
	return true
}

// Next returns the answer to the oldest item, and false when there is none yet.
func (b *Batch) Next() (answer Answer, ok bool) {
	if len(b.window) == 0 || !b.window[0].answered.Load() {
		return Answer{}, false
	}
	m := b.window[0]
	b.window[0] = nil
	b.window = b.window[1:]
	if m.done && b.isBehindFailed(m) {
		// NB: it was on its way when the outcome of one before it was not known in time.
		return Answer{Err: failure.ErrOutcomeUnknown}, true
	}
	return m.answer, true
}

// Ready returns a channel that gets an entry when it is worthwhile to call Next: when the
// oldest item is answered or, with many, when half of the window is, and the oldest if that
// is later. Entries may come early. Items that wait for another node go to the Forwarder.
func (b *Batch) Ready(many bool) <-chan struct{} {
	b.forward()
	k := 0
	if many {
		k = (len(b.window) - 1) / 2
	}
	for ; len(b.window) > 0; k = 0 {
		m := b.window[k]
		b.awaited.Store(m)
		if !m.answered.Load() {
			break
		}
		if k == 0 {
			b.signal()
			break
		}
	}
	return b.ready
}

func (b *Batch) signal() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// GiveUp answers items that have waited too long.
func (b *Batch) GiveUp() {
	for i, m := range b.window {
		if m.answered.Load() || m.place.Load() != here {
			continue
		}
		if err := m.posted.GiveUp(); err != nil {
			// NB: the answer may still come, to the item that nobody has any more.
			gone := b.newItem(m.instance)
			gone.Number = m.Number
			gone.Answered(nil, err)
			b.window[i] = gone
		}
	}
	b.signal()
}

// fail notes that an item was not done.
func (b *Batch) fail(m *Item) {
	if m.instance == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.first == nil {
		b.mu.first = map[string]int{}
	}
	if n, ok := b.mu.first[m.instance]; !ok || m.Number < n {
		b.mu.first[m.instance] = m.Number
	}
	b.failed.Store(true)
}

// isBehindFailed reports whether an earlier item of the same instance was not done.
func (b *Batch) isBehindFailed(m *Item) bool {
	if !b.failed.Load() || m.instance == "" {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.mu.first[m.instance]
	return ok && n < m.Number
}

// begin notes that an item is begun. The error says that what happened to those before it is not
// known yet, and that they may come back.
func (b *Batch) begin(m *Item, t message.Turn) error {
	if t.Life == nil || m.instance == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.mu.begun[m.instance]
	if before.items > 0 && before.life != t.Life {
		return failure.Elsewhere(t.Shard)
	}
	if b.mu.begun == nil {
		b.mu.begun = map[string]begun{}
	}
	b.mu.begun[m.instance] = begun{t.Life, before.items + 1}
	m.begun = true
	return nil
}

// ended ends what begin has begun.
func (b *Batch) ended(m *Item) {
	if !m.begun {
		return
	}
	m.begun = false
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.mu.begun[m.instance]
	before.items--
	b.mu.begun[m.instance] = before
}

// Item is one request.
type Item struct {
	// Text is what the caller sent, and Number its place in the batch, from 0.
	Text   []byte
	Number int

	batch    *Batch
	instance string // or its workflow and business key; empty for a create, which no other item can follow
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
	// answer and done are written by anyone who answers it, before answered.
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
	if err == nil {
		m.end(Answer{Reply: reply}, true)
		return
	}
	if of := failure.Of(err); of.Kind == failure.ErrNotLeader && m.batch.forwarder != nil {
		m.Refused(err)
		m.shard = of.Shard
		m.place.Store(waits)
		m.batch.signal()
		return
	}
	if m.unknown && leavesOpen(err) {
		err = failure.Errorf(failure.ErrOutcomeUnknown, "%w", err)
	}
	m.Refused(err)
	m.end(Answer{Reply: reply, Err: err}, false)
}

// leavesOpen reports whether an error can come before the idempotency key is looked up, so that it
// does not mention an earlier try.
func leavesOpen(err error) bool {
	switch failure.Of(err).Kind {
	case failure.ErrInstanceBusy, failure.ErrQuota, failure.ErrBusy, failure.ErrUnavailable, failure.ErrUnauthorized, failure.ErrForbidden:
		return true
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
