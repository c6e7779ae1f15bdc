// Package batch sends many requests of one caller without waiting for each, and gives
// their answers in the order of the requests.
//
//	Event, Create, Refuse ──► window of items ──► Next, oldest first
//	        │                       ▲
//	        └──► workflow.Router ───┘ Answered, in any order
//
// Requests of one instance are applied in their order. When one of them was not done for want
// of room (429, 503), or its outcome is not known (504), the later ones of its instance are
// not begun, so that none overtakes another. Those that were on their way already when a 504
// became known may be done, and are 504 too.
//
// # What the caller must do
//
// Use a Batch on one goroutine. Look at Len before something is added, and take answers
// with Next. While waiting, call GiveUp once a second.
package batch

import (
	"errors"
	"sync"
	"sync/atomic"

	"troupe/actors/failure"
	"troupe/actors/workflow"
)

// Router is what a batch needs of workflow.Router.
type Router interface {
	PostEvent(*workflow.EventRequest, workflow.Recipient) (workflow.Posted, error)
	PostCreate(*workflow.CreateRequest, workflow.Recipient) (workflow.Posted, error)
}

// Batch is a number of requests on their way. Its methods belong to one goroutine.
type Batch struct {
	router Router
	window []*item // not taken by Next yet, oldest first
	count  int     // items so far

	// awaited is the item whose answer gives ready an entry.
	awaited atomic.Pointer[item]
	ready   chan struct{}

	// failed says that mu.first is not empty.
	failed atomic.Bool
	mu     struct {
		sync.Mutex
		// first has the number of the first item that was not done, by instance.
		first map[string]int
	}
}

// New returns an empty batch.
func New(r Router) *Batch {
	return &Batch{router: r, ready: make(chan struct{}, 1)}
}

// item is one request. It is written by whoever answers it, before answered.
type item struct {
	batch    *Batch
	number   int
	instance string // empty for a create, which no other item can follow
	posted   workflow.Posted
	reply    *workflow.Reply
	err      error
	answered atomic.Bool
}

// errOvertakes answers items behind one that was not done.
var errOvertakes = failure.Refuse(failure.ErrUnavailable, "an earlier item of this instance was not done, so nothing was done")

// Len is the number of items whose answer was not taken.
func (b *Batch) Len() int { return len(b.window) }

// Event adds an event. It is false, and nothing is added, when there is no room for it
// before earlier items are answered.
func (b *Batch) Event(req *workflow.EventRequest) bool {
	m := b.newItem(req.InstanceID)
	err := m.Begin()
	if err == nil {
		m.posted, err = b.router.PostEvent(req, m)
	}
	return b.add(m, err)
}

// Create adds a create, as Event does an event.
func (b *Batch) Create(req *workflow.CreateRequest) (added bool) {
	m := b.newItem("")
	var err error
	m.posted, err = b.router.PostCreate(req, m)
	return b.add(m, err)
}

// Refuse adds an item that is answered already.
func (b *Batch) Refuse(err error) {
	m := b.newItem("")
	m.Answered(nil, err)
	b.add(m, nil)
}

func (b *Batch) newItem(instance string) *item {
	return &item{batch: b, number: b.count, instance: instance}
}

// add puts an item into the window; err is why it was not posted.
func (b *Batch) add(m *item, err error) bool {
	if err != nil {
		if len(b.window) > 0 && (errors.Is(err, failure.ErrBusy) || errors.Is(err, failure.ErrInstanceBusy)) {
			return false
		}
		m.Refused(err)
		m.Answered(nil, err)
	}
	b.count++
	b.window = append(b.window, m)
	return true
}

// Next returns the answer to the oldest item, and false when there is none yet.
func (b *Batch) Next() (reply *workflow.Reply, ok bool, err error) {
	if len(b.window) == 0 || !b.window[0].answered.Load() {
		return nil, false, nil
	}
	m := b.window[0]
	b.window[0] = nil
	b.window = b.window[1:]
	if m.err == nil && b.isBehindFailed(m) {
		// NB: it was on its way when the outcome of one before it was not known in time.
		return nil, true, failure.ErrOutcomeUnknown
	}
	return m.reply, true, m.err
}

// Ready returns a channel that gets an entry when it is worthwhile to call Next: when the
// oldest item is answered or, with many, when half of the window is, and the oldest if that
// is later. Entries may come early.
func (b *Batch) Ready(many bool) <-chan struct{} {
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
		if m.answered.Load() {
			continue
		}
		if err := m.posted.GiveUp(); err != nil {
			// NB: the answer may still come, to the item that nobody has any more.
			gone := b.newItem(m.instance)
			gone.number = m.number
			gone.Answered(nil, err)
			b.window[i] = gone
		}
	}
	b.signal()
}

// Begin implements workflow.Recipient.
func (m *item) Begin() error {
	if m.batch.isBehindFailed(m) {
		return errOvertakes
	}
	return nil
}

// Refused implements workflow.Recipient.
func (m *item) Refused(err error) {
	if m.instance == "" {
		return
	}
	switch failure.Of(err).Kind {
	case failure.ErrInstanceBusy, failure.ErrQuota, failure.ErrBusy, failure.ErrUnavailable, failure.ErrElsewhere, failure.ErrOutcomeUnknown:
		m.batch.fail(m)
	}
}

// Answered implements workflow.Recipient.
func (m *item) Answered(reply *workflow.Reply, err error) {
	if err != nil {
		m.Refused(err)
	}
	m.reply, m.err = reply, err
	m.answered.Store(true)
	if m.batch.awaited.Load() == m {
		m.batch.signal()
	}
}

// fail notes that an item was not done.
func (b *Batch) fail(m *item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.first == nil {
		b.mu.first = map[string]int{}
	}
	if n, ok := b.mu.first[m.instance]; !ok || m.number < n {
		b.mu.first[m.instance] = m.number
	}
	b.failed.Store(true)
}

// isBehindFailed reports whether an earlier item of the same instance was not done.
func (b *Batch) isBehindFailed(m *item) bool {
	if !b.failed.Load() || m.instance == "" {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.mu.first[m.instance]
	return ok && n < m.number
}
