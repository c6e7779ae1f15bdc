package persistence

import (
	"slices"
	"sync"
	"sync/atomic"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Follower is told what changes in a shard, whichever node leads it. Its calls come one after
// the other and must not block.
type Follower interface {
	// Changed is called with the keys that were written, when they are visible. They
	// are nobody's to change. A range that was deleted counts as its first key.
	Changed(keys [][]byte)
	// Replaced is called when all rows may be others.
	Replaced()
}

// follower hands changes of Meta on: a replica.Follower.
type follower struct{ of *replicas }

func (f follower) Changed(reprs [][]byte) {
	var keys [][]byte
	for _, repr := range reprs {
		keys = engine.AppendKeys(keys, repr)
	}
	for _, to := range f.of.listed() {
		to.Changed(keys)
	}
}

func (f follower) Replaced() {
	for _, to := range f.of.listed() {
		to.Replaced()
	}
}

// listed are those who follow Meta.
func (r *replicas) listed() []Follower {
	r.following.Lock()
	defer r.following.Unlock()
	return slices.Clip(r.followers)
}

// ShardFollower is told what is written in the numbered shards that this node has replicas of,
// whichever node leads them. The calls for one shard come one after the other and must not block.
type ShardFollower interface {
	// Written is called for each set of writes, when it is visible, in the order in which they
	// were made. each visits the rows that were set and, with a nil value, those that were removed, during the call.
	Written(sh key.Shard, each func(visit func(key, value []byte)))
	// Skipped is called when sets of writes were passed over: the rows of a shard came as a copy,
	// or this node has no replica of it any more.
	Skipped(sh key.Shard)
}

// shardFollower hands the writes of a numbered shard on: a replica.Follower.
type shardFollower struct {
	of *replicas
	sh key.Shard
}

func (f shardFollower) Changed(reprs [][]byte) {
	defer f.of.written.ring()
	to := f.of.shardFollowers.Load()
	if to == nil {
		return
	}
	for _, repr := range reprs {
		each := func(visit func(key, value []byte)) { engine.EachSet(repr, visit) }
		for _, follower := range *to {
			follower.Written(f.sh, each)
		}
	}
}

func (f shardFollower) Replaced() {
	if to := f.of.shardFollowers.Load(); to != nil {
		for _, follower := range *to {
			follower.Skipped(f.sh)
		}
	}
}

// LeadershipObserver is told which shards a node leads. Its calls come one after the other and must not block.
type LeadershipObserver interface {
	// Led is called when this node leads a shard: in this epoch it may read and write there.
	Led(sh key.Shard, epoch uint64)
	// Ended is called when an epoch that Led began is over. Everybody drops what they hold of the shard.
	Ended(sh key.Shard, epoch uint64)
}

// replicas are the groups of a store's shards.
type replicas struct {
	host *replica.Host

	mu     sync.Mutex                      // held while groups start and stop
	groups []atomic.Pointer[replica.Group] // by shard; the last is Meta

	following sync.Mutex
	followers []Follower // of Meta; under following, and only ever longer
	// shardFollowers are replaced under following.
	shardFollowers atomic.Pointer[[]ShardFollower]

	written *bell // the store's

	telling sync.Mutex // held while those are told
	leads   []LeadershipObserver
	led     map[key.Shard]uint64 // the epochs that they know of
}

// leadsOf tells what happens to the leadership of a shard: a replica.Observer.
type leadsOf struct {
	of *replicas
	sh key.Shard
}

func (l leadsOf) Led(epoch uint64) {
	l.of.telling.Lock()
	defer l.of.telling.Unlock()
	l.of.led[l.sh] = epoch
	for _, to := range l.of.leads {
		to.Led(l.sh, epoch)
	}
}

func (l leadsOf) Ended(epoch uint64) {
	l.of.telling.Lock()
	defer l.of.telling.Unlock()
	delete(l.of.led, l.sh)
	for _, to := range l.of.leads {
		to.Ended(l.sh, epoch)
	}
}

// bell tells those who wait that something was written.
type bell struct {
	asked atomic.Bool
	mu    sync.Mutex
	rung  chan struct{} // guarded by mu; nil while nobody waits
}

func (b *bell) await() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
		b.asked.Store(true)
	}
	return b.rung
}

func (b *bell) ring() {
	if !b.asked.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
	}
	b.rung = nil
	b.asked.Store(false)
}
