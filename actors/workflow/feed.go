package workflow

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// A feed hands the entries that become durable to those who watch. It keeps the
// newest ones, each watcher reads at its own place, and a watcher that falls
// behind what is kept has lost its place: nobody waits for anybody, and the
// memory of a feed is bounded however many watch.
//
// There is a feed only while somebody watches, and a while longer, so that a
// watcher who was cut off can go on where it was.
const (
	feedItemsMax = 4096
	feedBytesMax = 8 << 20
	// feedKeptFor is how long a feed outlives its last watcher.
	feedKeptFor = time.Minute
)

// feedKey names what is watched: one instance, or all of a workflow when id is
// zero.
type feedKey struct {
	workflow string
	id       persistence.ID
}

// feedItem is one durable entry. Its bytes are shared and never changed.
type feedItem struct {
	id       persistence.ID
	name     string // the id as text
	sequence uint64
	entry    data.Value
	states   []byte
	state    statemachine.Instance // as the entry left it
	of       *statemachine.Definition
	gap      bool // here, entries may be missing; all else is zero
}

func (i *feedItem) size() int {
	return len(i.entry) + len(i.states) + len(i.state.Public) + len(i.state.Private) + 256
}

// feed is the newest items and who waits for more.
type feed struct {
	key   feedKey
	epoch string // tells the feed's places from those of an earlier one
	// settled says that every commit that is not durable yet knows of the feed.
	settled atomic.Bool

	mu       sync.Mutex
	items    []*feedItem   // guarded by mu; oldest first
	next     uint64        // guarded by mu; the place of the next item
	bytes    int           // guarded by mu
	wake     chan struct{} // guarded by mu; closed and replaced with each item
	watchers int           // guarded by mu
	left     time.Time     // guarded by mu; when the last watcher went
}

func newFeed(key feedKey) *feed {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand never returns an error; it ends the program
	return &feed{key: key, epoch: hex.EncodeToString(random[:]), wake: make(chan struct{})}
}

// publish adds an item. It never waits for a watcher.
func (f *feed) publish(item *feedItem) {
	f.mu.Lock()
	f.items = append(f.items, item)
	f.bytes += item.size()
	f.next++
	for len(f.items) > feedItemsMax || f.bytes > feedBytesMax && len(f.items) > 1 {
		f.bytes -= f.items[0].size()
		f.items[0] = nil
		f.items = f.items[1:]
	}
	wake := f.wake
	f.wake = make(chan struct{})
	f.mu.Unlock()
	close(wake)
}

// read appends the items from place on to dst. lost says that some before the
// first are gone. wake is closed when there is more.
func (f *feed) read(dst []*feedItem, place uint64) (items []*feedItem, next uint64, lost bool, wake <-chan struct{}) {
	const most = 256
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.next - uint64(len(f.items))
	if place < oldest {
		place, lost = oldest, true
	}
	kept := f.items[place-oldest:]
	kept = kept[:min(len(kept), most)]
	return append(dst, kept...), place + uint64(len(kept)), lost, f.wake
}

// holds reports whether a watcher can go on at a place without losing anything.
func (f *feed) holds(place uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return place <= f.next && place >= f.next-uint64(len(f.items))
}

func (f *feed) end() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// feeds are all feeds of a router.
type feeds struct {
	byKey *xsync.Map[feedKey, *feed]
}

// join returns the feed of a key, and counts a watcher.
func (fs *feeds) join(key feedKey) *feed {
	f, _ := fs.byKey.Compute(key, func(old *feed, loaded bool) (*feed, xsync.ComputeOp) {
		if !loaded {
			old = newFeed(key)
		}
		old.mu.Lock()
		old.watchers++
		old.mu.Unlock()
		return old, xsync.UpdateOp
	})
	return f
}

func (fs *feeds) leave(f *feed, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers--
	f.left = now
}

// of lists the feeds that an instance's entries go to.
func (fs *feeds) of(workflow string, id persistence.ID) []*feed {
	if fs.byKey.Size() == 0 {
		return nil
	}
	var out []*feed
	for _, key := range [...]feedKey{{workflow: workflow}, {workflow, id}} {
		if f, ok := fs.byKey.Load(key); ok {
			out = append(out, f)
		}
	}
	return out
}

// sweep forgets feeds that nobody has watched for a while.
func (fs *feeds) sweep(now time.Time) {
	fs.byKey.Range(func(key feedKey, _ *feed) bool {
		fs.byKey.Compute(key, func(f *feed, loaded bool) (*feed, xsync.ComputeOp) {
			if !loaded {
				return f, xsync.CancelOp
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.watchers > 0 || now.Sub(f.left) < feedKeptFor {
				return f, xsync.CancelOp
			}
			return f, xsync.DeleteOp
		})
		return true
	})
}
