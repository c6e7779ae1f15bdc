// Package groups knows which groups a store takes part in, and tells who leads them. A group keeps some shards in a row, and
// is known by the first of them; a [Table] has it at each of its shards, so that most know only of shards.
package groups

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Place has the group of a shard that this node takes part in, or nil.
type Place = atomic.Pointer[replica.Group]

// Table has a place for each shard. All methods are safe for concurrent use.
type Table struct {
	mu     sync.Mutex // held while places change
	places []Place    // by number; the last is Meta's
}

// NewTable returns a table for so many numbered shards.
func NewTable(shards int) *Table { return &Table{places: make([]Place, shards+1)} }

// At returns the place of a shard.
func (t *Table) At(sh key.Shard) *Place {
	if sh == key.Meta {
		return &t.places[len(t.places)-1]
	}
	return &t.places[sh]
}

// All are the groups, each with its first shard.
func (t *Table) All() iter.Seq2[key.Shard, *replica.Group] {
	return func(yield func(key.Shard, *replica.Group) bool) {
		var before *replica.Group
		for sh, place := range t.span(0, key.Meta) {
			g := place.Load()
			if g != nil && g != before && !yield(sh, g) {
				return
			}
			before = g
		}
	}
}

// span visits the places of the shards from first to last.
func (t *Table) span(first, last key.Shard) iter.Seq2[key.Shard, *Place] {
	return func(yield func(key.Shard, *Place) bool) {
		for i := range t.places {
			sh := key.Shard(i)
			if i == len(t.places)-1 {
				sh = key.Meta
			}
			if sh >= first && sh <= last && !yield(sh, &t.places[i]) {
				return
			}
		}
	}
}

// Cover puts a group at its shards, or returns replica.ErrOverlap.
func (t *Table) Cover(g *replica.Group) error {
	return t.put(g, key.Shard(g.First()), key.Shard(g.Last()))
}

// Claim puts the group of a shard at those up to last, which a copy of it has, or returns replica.ErrOverlap.
func (t *Table) Claim(first, last key.Shard) error { return t.put(t.At(first).Load(), first, last) }

// put changes nothing when one of the shards is another group's.
func (t *Table) put(g *replica.Group, first, last key.Shard) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sh, place := range t.span(first, last) {
		if other := place.Load(); other != nil && other != g {
			return fmt.Errorf("%w: shard %d", replica.ErrOverlap, sh)
		}
	}
	for _, place := range t.span(first, last) {
		place.Store(g)
	}
	return nil
}

// Uncover takes a group from all shards behind the last that it has; -1: from all.
func (t *Table) Uncover(g *replica.Group, last int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sh, place := range t.span(0, key.Meta) {
		if int(sh) > last && place.Load() == g {
			place.Store(nil)
		}
	}
}

// Clear takes whatever group is there from some shards.
func (t *Table) Clear(first, last key.Shard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, place := range t.span(first, last) {
		place.Store(nil)
	}
}

// Observer is told which shards a node leads. Its calls come one after the other and must not block.
type Observer interface {
	// Led is called when this node leads a shard: in this epoch it may read and write there.
	Led(sh key.Shard, epoch uint64)
	// Ended is called when an epoch that Led began is over. Everybody drops what they hold of the shard.
	Ended(sh key.Shard, epoch uint64)
}

// Leads tells observers. The zero value tells nobody.
type Leads struct {
	mu  sync.Mutex // held while they are told
	to  []Observer
	led map[key.Shard]uint64 // the epochs that they know of
}

// Follow has somebody told which shards are led, and of every change from now on.
func (l *Leads) Follow(o Observer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = append(l.to, o)
	for sh, epoch := range l.led {
		o.Led(sh, epoch)
	}
}

// Of returns who is told of the leadership of the group that begins with a shard.
func (l *Leads) Of(first key.Shard) replica.Observer { return &leadsOf{of: l, first: first} }

type leadsOf struct {
	of    *Leads
	first key.Shard
	last  int // of the epoch that they know of
}

func (l *leadsOf) Led(epoch uint64, last uint16) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.led == nil {
		l.of.led = map[key.Shard]uint64{}
	}
	l.last = int(last)
	for sh := int(l.first); sh <= l.last; sh++ { // NB: Meta is the highest number that there is
		l.of.led[key.Shard(sh)] = epoch
		for _, to := range l.of.to {
			to.Led(key.Shard(sh), epoch)
		}
	}
}

func (l *leadsOf) Ended(epoch uint64) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for sh := int(l.first); sh <= l.last; sh++ {
		delete(l.of.led, key.Shard(sh))
		for _, to := range l.of.to {
			to.Ended(key.Shard(sh), epoch)
		}
	}
}
