package persistence

import (
	"slices"
	"sync"
	"sync/atomic"

	"troupe/persistence/internal/bell"
	"troupe/persistence/internal/engine"
	"troupe/persistence/internal/groups"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Follower is told what changes in a shard, whichever node leads it. Its calls come one after the other and must not block.
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

func (f follower) Replaced(uint16) {
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
	// Skipped is called when sets of writes were passed over: the rows of a shard came as a copy, or this node has no replica of it any more.
	Skipped(sh key.Shard)
}

// shardFollower hands the writes of a group of numbered shards on: a replica.Follower. Each set is of one shard.
type shardFollower struct {
	of    *replicas
	first key.Shard
}

func (f shardFollower) Changed(reprs [][]byte) {
	defer f.of.written.Ring()
	to := f.of.shardFollowers.Load()
	for _, repr := range reprs {
		sh := key.ShardOf(engine.FirstKey(repr))
		each := func(visit func(key, value []byte)) { engine.EachSet(repr, visit) }
		for _, follower := range *to {
			follower.Written(sh, each)
		}
	}
}

func (f shardFollower) Replaced(last uint16) {
	to := f.of.shardFollowers.Load()
	for sh := f.first; sh <= key.Shard(last); sh++ {
		for _, follower := range *to {
			follower.Skipped(sh)
		}
	}
}

// LeadershipObserver is told which shards a node leads.
type LeadershipObserver = groups.Observer

// replicas are the groups of a store's shards.
type replicas struct {
	*groups.Table
	host *replica.Host

	mu     sync.Mutex // held while groups start and stop
	closed bool       // guarded by mu: none starts any more

	following sync.Mutex
	followers []Follower // of Meta; under following, and only ever longer
	// shardFollowers are replaced under following.
	shardFollowers atomic.Pointer[[]ShardFollower]

	written *bell.Bell // the store's
	leads   groups.Leads
}
