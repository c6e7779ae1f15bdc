package persistence

import (
	"slices"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
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

// follower hands changes of Meta on.
type follower struct{ of *replicas }

// Changed implements replica.Follower.
func (f follower) Changed(reprs [][]byte) {
	var keys [][]byte
	for _, repr := range reprs {
		keys = engine.AppendKeys(keys, repr)
	}
	for _, to := range f.of.listed() {
		to.Changed(keys)
	}
}

// Replaced implements replica.Follower.
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

// shardFollower hands the writes of a numbered shard on.
type shardFollower struct {
	of *replicas
	sh key.Shard
}

// Changed implements replica.Follower.
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

// Replaced implements replica.Follower.
func (f shardFollower) Replaced() {
	if to := f.of.shardFollowers.Load(); to != nil {
		for _, follower := range *to {
			follower.Skipped(f.sh)
		}
	}
}

// FollowShards has a follower told of everything that becomes visible in the numbered shards from
// now on, until the store is closed. A store that stands alone tells nobody.
func (s *Store) FollowShards(f ShardFollower) {
	if s.replicas == nil {
		return
	}
	s.replicas.following.Lock()
	defer s.replicas.following.Unlock()
	var all []ShardFollower
	if old := s.replicas.shardFollowers.Load(); old != nil {
		all = slices.Clone(*old)
	}
	all = append(all, f)
	s.replicas.shardFollowers.Store(&all)
}

// Follow has a follower of the shard Meta told of everything that becomes visible there from
// now on, until the store is closed; what it reads after Follow has returned is as new as
// that or newer. The keys that it gets are shared with others. A store that stands alone
// tells nobody.
func (s *Store) Follow(f Follower) {
	if s.replicas == nil {
		return
	}
	s.replicas.following.Lock()
	defer s.replicas.following.Unlock()
	s.replicas.followers = append(s.replicas.followers, f)
}

// FollowLeads has somebody told which shards this node leads, and of every change from now on,
// until the store is closed. A store that stands alone tells nobody.
func (s *Store) FollowLeads(l LeadershipObserver) {
	if s.replicas == nil {
		return
	}
	s.replicas.telling.Lock()
	defer s.replicas.telling.Unlock()
	s.replicas.leads = append(s.replicas.leads, l)
	for sh, epoch := range s.replicas.led {
		l.Led(sh, epoch)
	}
}
