package watch

import (
	linked "container/list"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/changefeed"
	"troupe/actors/internal/concurrent"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// A feed keeps the newest entries, and each watcher reads at its own position: nobody waits for anybody, and its memory
// is bounded. A feed exists only while somebody watches, and a while longer, so that who was cut off can go on.
const (
	feedItemsMax = 4096
	feedBytesMax = 8 << 20
	// feedsBytesMax bounds all feeds together, watched or not. Above it the oldest items go, no matter who has them.
	feedsBytesMax = 64 << 20
	// readBytesMax bounds what a watcher takes at a time, unless one item is larger: it holds that while its reader
	// waits.
	readBytesMax = 256 << 10
	feedKeptFor  = time.Minute // how long a feed outlives its last watcher
)

type feedKey struct {
	workflow string
	id       key.ID
}

// Item is one durable entry. Its bytes are shared and never changed.
type Item struct {
	ID       key.ID
	Name     string // the id as text
	Sequence uint64
	Entry    data.Value
	States   []byte
	State    statemachine.Instance // as the entry left it
	Of       *statemachine.Definition
	Shard    key.Shard
	Place    key.FeedPlace // in the feed of the shard in the store; 0 without a row there
	Gap      bool          // here, entries may be missing; all else is zero
	Gone     bool          // the instance was deleted; all but Shard is zero
}

func (i *Item) size() int {
	return len(i.Entry) + len(i.States) + len(i.State.Public) + len(i.State.Private) + 256
}

// Feed is the newest items and who waits for more.
type Feed struct {
	key     feedKey
	all     *feeds
	settled atomic.Bool   // settled says that every commit that is not durable yet knows of the feed
	broken  chan struct{} // closed when entries have passed the feed by: all watchers end, and come back to another one

	mu     sync.Mutex
	items  []keptItem // guarded by mu; oldest first
	next   uint64     // guarded by mu; the place of the next item
	newest uint64     // guarded by mu; the sequence of the last item that has one
	gone   bool       // guarded by mu; the feed is forgotten and keeps nothing
	// dropped is how far a reader of the store is who needs nothing but the items that are kept; nil: no such place.
	dropped  changefeed.Cursor // guarded by mu
	bytes    int               // guarded by mu
	wake     chan struct{}     // guarded by mu; closed and replaced with each item
	watchers int               // guarded by mu
	left     time.Time         // guarded by mu; when the last watcher went
}

type keptItem struct {
	*Item
	age *linked.Element
}

func newFeed(key feedKey, all *feeds) *Feed {
	return &Feed{key: key, all: all, wake: make(chan struct{}), broken: make(chan struct{})}
}

// Publish adds an item. It never waits for a watcher.
func (f *Feed) Publish(item *Item) {
	f.mu.Lock()
	f.items = append(f.items, keptItem{item, f.all.keep(f, item.size())})
	f.bytes += item.size()
	f.next++
	f.newest = max(f.newest, item.Sequence)
	for len(f.items) > feedItemsMax || f.bytes > feedBytesMax && len(f.items) > 1 || f.gone && len(f.items) > 0 {
		f.drop()
	}
	wake := f.wake
	f.wake = make(chan struct{})
	f.mu.Unlock()
	close(wake)
	f.all.trim()
}

func (f *Feed) drop() {
	size := f.items[0].size()
	f.all.release(f.items[0].age, size)
	f.bytes -= size
	if item := f.items[0]; item.Place == 0 {
		f.dropped = nil
	} else if f.dropped != nil {
		f.dropped.Saw(item.Shard, item.Place)
	}
	f.items[0] = keptItem{}
	f.items = f.items[1:]
}

func (f *Feed) dropAged(age *linked.Element) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.items) > 0 && f.items[0].age == age {
		f.drop()
	}
}

// read appends the items from place on to dst, which is empty. lost: some before the first are gone. wake is closed
// when there is more.
func (f *Feed) read(dst []*Item, place uint64) (items []*Item, next uint64, lost bool, wake <-chan struct{}) {
	const most = 256
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.next - uint64(len(f.items))
	if place < oldest {
		place, lost = oldest, true
	}
	size := 0
	for _, item := range f.items[place-oldest:] {
		if size += item.size(); len(dst) == most || size > readBytesMax && len(dst) > 0 {
			break
		}
		dst = append(dst, item.Item)
		place++
	}
	return dst, place, lost, f.wake
}

func (f *Feed) sequence() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// beginAt says that the feed gets every entry behind a cursor of the store, once.
func (f *Feed) beginAt(c changefeed.Cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == uint64(len(f.items)) && f.dropped == nil { // NB: nothing was dropped
		f.dropped = c
	}
}

// behind returns the place of the first item that is kept, if anyone who has seen all up to a cursor needs nothing else.
func (f *Feed) behind(c changefeed.Cursor) (place uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next - uint64(len(f.items)), f.dropped != nil && c.Has(f.dropped)
}

func (f *Feed) end() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

type feeds struct {
	byKey concurrent.Map[feedKey, *Feed]

	mu    sync.Mutex  // NB: taken while a feed's is held, never the other way round
	ages  linked.List // guarded by mu; of *Feed, one for each item that is kept, oldest first
	bytes int         // guarded by mu; of all of them
}

func (fs *feeds) keep(f *Feed, size int) *linked.Element {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.bytes += size
	return fs.ages.PushBack(f)
}

func (fs *feeds) release(age *linked.Element, size int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.bytes -= size
	fs.ages.Remove(age)
}

func (fs *feeds) trim() {
	for {
		f, age := fs.tooMuch()
		if f == nil {
			return
		}
		f.dropAged(age)
	}
}

func (fs *feeds) tooMuch() (*Feed, *linked.Element) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.bytes <= feedsBytesMax || fs.ages.Len() == 1 {
		return nil, nil
	}
	age := fs.ages.Front()
	f, _ := age.Value.(*Feed)
	return f, age
}

func (fs *feeds) join(key feedKey) *Feed {
	f, _ := fs.byKey.Compute(key, func(old *Feed, loaded bool) (*Feed, xsync.ComputeOp) {
		if !loaded {
			old = newFeed(key, fs)
		}
		old.mu.Lock()
		old.watchers++
		old.mu.Unlock()
		return old, xsync.UpdateOp
	})
	return f
}

func (fs *feeds) leave(f *Feed, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers--
	f.left = now
}

func (fs *feeds) of(workflow string, id key.ID) []*Feed {
	if fs.byKey.Size() == 0 {
		return nil
	}
	var out []*Feed
	for _, key := range [...]feedKey{{workflow: workflow}, {workflow, id}} {
		if f, ok := fs.byKey.Load(key); ok {
			out = append(out, f)
		}
	}
	return out
}

func (fs *feeds) breakAll() {
	fs.byKey.Range(func(key feedKey, _ *Feed) bool {
		fs.byKey.Compute(key, func(f *Feed, loaded bool) (*Feed, xsync.ComputeOp) {
			if !loaded {
				return f, xsync.CancelOp
			}
			f.mu.Lock()
			f.forgetLocked()
			f.mu.Unlock()
			close(f.broken)
			return f, xsync.DeleteOp
		})
		return true
	})
}

func (f *Feed) forgetLocked() {
	f.gone = true // NB: a commit that still knows it may come
	for len(f.items) > 0 {
		f.drop()
	}
}

func (fs *feeds) sweep(now time.Time) {
	fs.byKey.Range(func(key feedKey, _ *Feed) bool {
		fs.byKey.Compute(key, func(f *Feed, loaded bool) (*Feed, xsync.ComputeOp) {
			if !loaded {
				return f, xsync.CancelOp
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.watchers > 0 || now.Sub(f.left) < feedKeptFor {
				return f, xsync.CancelOp
			}
			f.forgetLocked()
			return f, xsync.DeleteOp
		})
		return true
	})
}
