package batch

import (
	"slices"
	"sync/atomic"

	"troupe/actors/failure"
)

// Forwarder sends items to the node that leads their shard. Forward returns at once. Each item is
// answered with AnsweredBy or Answered, or reported by Lost or NotDone and sent again, on any one goroutine;
// behind the last of these comes the only call of end. With here, this node leads the shard, and
// those without an answer are posted here.
type Forwarder interface {
	Forward(shard uint16, items []*Item, end func(here bool))
}

// AnsweredBy gives an item the answer of another node. Cause is what the node's error is here; nil
// when the item was done.
func (m *Item) AnsweredBy(text []byte, cause error) {
	if cause == nil {
		m.end(Answer{Text: text}, true)
		return
	}
	if m.unknown && leavesOpen(cause) {
		m.Answered(nil, cause)
		return
	}
	m.Refused(cause)
	m.end(Answer{Text: text}, false)
}

// Lost notes that a node to which the item was sent did not answer. It reports whether the item
// may be sent again; if not, it is answered. Items are reported in their order.
func (m *Item) Lost() (again bool) {
	if m.keyed && !m.batch.isBehindFailed(m) {
		m.unknown = true
		return true
	}
	m.Answered(nil, failure.ErrOutcomeUnknown)
	return false
}

// NotDone notes that another node did not do the item, because yet another one leads its shard.
// It reports whether the item may be sent again, like Lost.
func (m *Item) NotDone() (again bool) {
	if m.batch.isBehindFailed(m) {
		m.Answered(nil, errOvertakes)
		return false
	}
	return true
}

// move notes that another node leads the shard of an instance.
func (b *Batch) move(instance string, shard uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if instance != "" {
		if b.mu.shards == nil {
			b.mu.shards = map[string]uint16{}
		}
		b.mu.shards[instance] = shard
	}
	b.moved.Store(true)
}

// elsewhere returns the shard of an instance that another node leads.
func (b *Batch) elsewhere(instance string) (shard uint16, ok bool) {
	if !b.moved.Load() || instance == "" {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	shard, ok = b.mu.shards[instance]
	return shard, ok
}

// comeBack ends what move has begun.
func (b *Batch) comeBack(instance string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.shards, instance)
}

// lane is what is away of one shard.
type lane struct {
	items []*Item
	state atomic.Int32 // see the constants
}

// Lanes are free, away, or came back because this node leads the shard by now.
const (
	laneFree int32 = iota
	laneAway
	laneBack
)

// forward gives the items that wait to the forwarder.
func (b *Batch) forward() {
	if b.forwarder == nil || !b.moved.Load() {
		return
	}
	posted := b.posted()
	b.postBack(posted)
	parts := map[uint16][]*Item{}
	for _, m := range b.window {
		switch {
		case m.answered.Load() || m.place.Load() != waits:
		case b.isBehindFailed(m):
			m.Answered(nil, errOvertakes)
		case !posted[m.instance] && b.lane(m.shard).state.Load() == laneFree:
			m.place.Store(away)
			parts[m.shard] = append(parts[m.shard], m)
		}
	}
	for shard, items := range parts {
		l := b.lane(shard)
		l.items = slices.Clone(items) // NB: the forwarder may change its own
		l.state.Store(laneAway)
		b.forwarder.Forward(shard, items, func(isHere bool) {
			if isHere {
				l.state.Store(laneBack)
			} else {
				l.state.Store(laneFree)
			}
			b.signal()
		})
	}
}

// posted returns the instances with items that are posted here.
func (b *Batch) posted() map[string]bool {
	posted := map[string]bool{}
	for _, m := range b.window {
		// NB: place first: an item that is answered does not move.
		if m.instance != "" && m.place.Load() == here && !m.answered.Load() {
			posted[m.instance] = true
		}
	}
	return posted
}

// postBack posts the items that have come back, and adds their instances to posted. NB: all later
// ones of such an instance wait, and are posted with it, before a new one can be.
func (b *Batch) postBack(posted map[string]bool) {
	// NB: lanes come back at any time. What comes back during the loop below is for the next
	// call: there an earlier item of an instance would be passed already, and a later one not.
	for _, l := range b.lanes {
		if l.state.Load() != laneBack {
			continue
		}
		for _, m := range l.items {
			if !m.answered.Load() {
				m.place.Store(back)
			}
		}
		l.items = nil
		l.state.Store(laneFree)
	}
	returned := map[string]bool{}
	for _, m := range b.window {
		place := m.place.Load()
		if m.answered.Load() || place != back && (place != waits || !returned[m.instance]) {
			continue
		}
		if m.instance != "" && !returned[m.instance] {
			returned[m.instance], posted[m.instance] = true, true
			b.comeBack(m.instance)
		}
		m.place.Store(here)
		if err := m.send(); err != nil {
			m.Answered(nil, err)
		}
	}
}

// lane returns that of a shard.
func (b *Batch) lane(shard uint16) *lane {
	if b.lanes == nil {
		b.lanes = map[uint16]*lane{}
	}
	if b.lanes[shard] == nil {
		b.lanes[shard] = new(lane)
	}
	return b.lanes[shard]
}
