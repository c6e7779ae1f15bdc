package persistence

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Replication says how the shards of a store are kept on several nodes.
type Replication struct {
	// Node is the id of this node.
	Node string
	// Streams returns the streams between the replicas of a shard.
	Streams func(key.Shard) replica.Streams
	// Tick, LogWriteMax and LogBytesMax are those of [replica.Options].
	Tick, LogWriteMax time.Duration
	LogBytesMax       int64
}

// LeadershipObserver is told which shards a node leads. Its calls come one after the other and must not
// block.
type LeadershipObserver interface {
	// Led is called when this node leads a shard: in this epoch it may read and write there.
	Led(sh key.Shard, epoch uint64)
	// Ended is called when an epoch that Led began is over. Everybody drops what they hold
	// of the shard.
	Ended(sh key.Shard, epoch uint64)
}

// alone is the epoch of all shards of a store without replicas.
const alone uint64 = 1

// replicas are the groups of a store's shards.
type replicas struct {
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

func (s *Store) replicaOf(sh key.Shard) *atomic.Pointer[replica.Group] {
	if sh == key.Meta {
		return &s.replicas.groups[s.shards]
	}
	return &s.replicas.groups[sh]
}

// Shards is how many numbered shards the store has.
func (s *Store) Shards() uint16 { return uint16(s.shards) }

// AllShards are the numbered shards and Meta.
func (s *Store) AllShards() iter.Seq[key.Shard] {
	return func(yield func(key.Shard) bool) {
		for sh := range key.Shard(s.shards) {
			if !yield(sh) {
				return
			}
		}
		yield(key.Meta)
	}
}

// Bootstrap makes the store the first of a cluster: every shard gets a group of one node. It
// is called before the first Open with Options.Replication, on a store that is open
// without. From then on the store is not opened without replicas.
//
// When it is cut off, the store stands alone still: what is written there meanwhile is part of
// the shards, and Bootstrap is called again, for the same node or another one. With
// Options.Replication it is refused until then.
func (s *Store) Bootstrap(node string) error {
	for sh := range s.AllShards() {
		if err := replica.Bootstrap(s.groupOptions(sh, &Replication{Node: node})); err != nil {
			return fmt.Errorf("found shard %d: %w", sh, err)
		}
	}
	// NB: last, so that before all groups are there the store can be opened to call it again. Their
	// rows are nothing that a program which knows no replicas would read.
	return s.keepReplicated()
}

// Recover makes the store in dir the only node of a new cluster, with what it has: what
// only other nodes have is lost, and they must never be started again. It returns the shards
// that this node had no copy of, or had only begun to copy; they are empty now. The states of indexes
// are removed, so that all are built anew: Meta may have lost what declared them, and give their
// numbers again. The store must be in use by nobody.
func Recover(dir string, o Options, node string) (missing []key.Shard, err error) {
	s, err := newStore(dir, o, purpose{recovers: true})
	if err != nil {
		return nil, err
	}
	if err := s.beginReplicas(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for sh := range s.AllShards() {
		had, err := replica.Recover(s.groupOptions(sh, &Replication{Node: node}))
		if err == nil {
			err = s.forgetIndexStates(sh)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("found shard %d again: %w", sh, err), s.Close())
		}
		if !had {
			missing = append(missing, sh)
		}
	}
	return missing, s.Close()
}

// forgetIndexStates removes how far indexes are in a shard, past its group.
func (s *Store) forgetIndexStates(sh key.Shard) error {
	prefix := key.IndexStatePrefix(nil, sh)
	return localRows{s, sh}.Write(replica.Synced, func(b replica.Batch) { b.DeleteRange(prefix, key.PrefixEnd(prefix)) })
}

// beginReplicas gives the store the format of one of a cluster, before its groups start. One that was
// not founded, or not wholly, is refused: what it has would be in no group. A node that joins has
// nothing, and then its replica of Meta first.
func (s *Store) beginReplicas() error {
	if s.replicated {
		return nil
	}
	began, err := s.hasReplica(key.Meta) // NB: Bootstrap founds it last
	if err != nil {
		return err
	}
	if !began {
		some, err := s.hasRow(nil)
		if err != nil {
			return err
		}
		if some {
			return ErrStandalone
		}
	}
	return s.keepReplicated()
}

// hasReplica says whether the store has a replica of a shard, or has begun to copy it.
func (s *Store) hasReplica(sh key.Shard) (bool, error) {
	has, err := s.hasRow(key.ReplicaPrefix(nil, sh))
	if err == nil && !has {
		has, err = s.hasRow(key.ReplicaLogPrefix(nil, sh))
	}
	return has, err
}

// hasRow says whether there is a key with a prefix.
func (s *Store) hasRow(prefix []byte) (bool, error) {
	err := s.Scan(prefix, func([]byte, []byte) error { return errEnough })
	if errors.Is(err, errEnough) {
		return true, nil
	}
	return false, err
}

var errEnough = errors.New("enough")

// startReplicas starts the groups of all shards that the store has a replica of.
func (s *Store) startReplicas() error {
	o := s.options.Replication
	if o == nil {
		return nil
	}
	if s.readOnly || s.space.waiting {
		return fmt.Errorf("%w: a replica needs to write", ErrDiskFull)
	}
	if err := s.beginReplicas(); err != nil {
		return err
	}
	s.replicas = &replicas{groups: make([]atomic.Pointer[replica.Group], s.shards+1), led: map[key.Shard]uint64{}, written: &s.written}
	for sh := range s.AllShards() {
		has, err := s.hasReplica(sh)
		if err == nil && has {
			err = s.Join(sh)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Join begins to take part in the group of a shard. A store that has nothing of it gets it
// from the leader, once that has added this node.
func (s *Store) Join(sh key.Shard) error {
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	at := s.replicaOf(sh)
	if at.Load() != nil {
		return nil
	}
	g, err := replica.Start(s.groupOptions(sh, s.options.Replication))
	if err != nil {
		return err
	}
	at.Store(g)
	return nil
}

// Leave ends the taking part in the group of a shard that this node was removed from, and
// removes what the store has of it. On a full disk it does so too, with the room that is kept for what
// has to be written.
func (s *Store) Leave(sh key.Shard) error {
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	if g := s.replicaOf(sh).Swap(nil); g != nil {
		g.Stop()
		if sh != key.Meta {
			shardFollower{s.replicas, sh}.Replaced()
		}
	}
	return localRows{s, sh}.Write(replica.Vital, func(b replica.Batch) {
		b.DeleteRange(key.ShardPrefix(nil, sh), key.ShardEnd(nil, sh))
		b.DeleteRange(key.ReplicaLogPrefix(nil, sh), key.PrefixEnd(key.ReplicaLogPrefix(nil, sh)))
	})
}

// stopReplicas leaves all groups once everything appended is answered, or after
// Options.CommitWaitMax.
func (s *Store) stopReplicas() {
	if s.replicas == nil {
		return
	}
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.options.CommitWaitMax)
	defer cancel()
	var stopped sync.WaitGroup
	for i := range s.replicas.groups {
		if g := s.replicas.groups[i].Load(); g != nil {
			stopped.Go(func() {
				_, _ = g.Drain(ctx) // what it did not answer, Stop does
				g.Stop()
			})
		}
	}
	stopped.Wait()
}

func (s *Store) groupOptions(sh key.Shard, o *Replication) replica.Options {
	options := replica.Options{
		Shard: uint16(sh), Node: o.Node, Store: localRows{s, sh},
		LogPrefix: key.ReplicaLogPrefix(nil, sh), StatePrefix: key.ReplicaPrefix(nil, sh),
		Observer: leadsOf{s.replicas, sh},
		Tick:     o.Tick, LogWriteMax: o.LogWriteMax, LogBytesMax: o.LogBytesMax, TooSlow: s.logTooSlow,
		Log: s.log.With().Uint16("shard", uint16(sh)).Logger(), Fatal: s.commits.Die,
	}
	if o.Streams != nil {
		options.Streams = o.Streams(sh)
	}
	switch {
	case s.replicas == nil:
	case sh == key.Meta:
		options.Follower = follower{s.replicas}
	default:
		options.Follower = shardFollower{s.replicas, sh}
	}
	return options
}

// logTooSlow ends the process when the disk hangs, so that other nodes lead. A full disk
// does not hang: it takes writes again when there is room.
func (s *Store) logTooSlow() {
	if !s.commits.Gate.IsFull() {
		s.commits.Die("the disk does not take a write of the replicas' logs; the other nodes go on")
	}
}

type leadsOf struct {
	of *replicas
	sh key.Shard
}

// Led implements replica.Observer.
func (l leadsOf) Led(epoch uint64) {
	l.of.telling.Lock()
	defer l.of.telling.Unlock()
	l.of.led[l.sh] = epoch
	for _, to := range l.of.leads {
		to.Led(l.sh, epoch)
	}
}

// Ended implements replica.Observer.
func (l leadsOf) Ended(epoch uint64) {
	l.of.telling.Lock()
	defer l.of.telling.Unlock()
	delete(l.of.led, l.sh)
	for _, to := range l.of.leads {
		to.Ended(l.sh, epoch)
	}
}

// Replica returns this node's replica of a shard, nil when it has none or the store stands alone.
func (s *Store) Replica(sh key.Shard) *replica.Group {
	if s.replicas == nil {
		return nil
	}
	return s.replicaOf(sh).Load()
}

// Epoch returns the epoch in which this node may read and write a shard, 0 when it
// does not lead it. A store that stands alone has one epoch, for good.
func (s *Store) Epoch(sh key.Shard) uint64 {
	if s.replicas == nil {
		return alone
	}
	if g := s.replicaOf(sh).Load(); g != nil {
		return g.Epoch()
	}
	return 0
}

// BarrierIn tells waiter when everything appended before to a shard is durable and
// visible, and this node leads the shard still in the epoch.
func (s *Store) BarrierIn(sh key.Shard, epoch uint64, waiter Waiter) {
	w := s.newWrites(sh)
	w.epoch = epoch
	s.metrics.barriers.Add(1)
	s.Append(w, waiter)
}

// AwaitVisibleIn is [Store.AwaitVisible] for one shard, in the epoch of a writer there. With
// replicas it also says whether this node leads the shard still; else the error wraps
// ErrNotLed.
func (s *Store) AwaitVisibleIn(sh key.Shard, epoch uint64) error {
	if s.replicas == nil {
		return s.AwaitVisible()
	}
	done := make(outcome, 1)
	s.BarrierIn(sh, epoch, done)
	return <-done
}

// AwaitLed returns nil when this node leads a shard still, in an epoch: what it has read there
// was not overtaken by another node's writes when AwaitLed was called. A store alone
// leads for good. While this node cannot reach the others, or its disk takes nothing, nothing is
// known until ctx ends.
func (s *Store) AwaitLed(ctx context.Context, sh key.Shard, epoch uint64) error {
	if s.replicas == nil {
		return nil
	}
	done := make(outcome, 1) // it has room when nobody waits any more
	s.BarrierIn(sh, epoch, done)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadIndex returns how far a replica of a shard must be so that it contains everything
// that was acknowledged before the call. It is asked of the node that leads the shard; any
// other returns ErrNotLed. Whoever asked waits with [Store.AwaitApplied] for its own
// replica to be there, and reads in that (Raft's dissertation, 6.4).
func (s *Store) ReadIndex(ctx context.Context, sh key.Shard) (uint64, error) {
	g := s.Replica(sh)
	if g == nil {
		return 0, NotLed(sh)
	}
	if err := s.AwaitLed(ctx, sh, g.Epoch()); err != nil {
		return 0, err
	}
	return g.Applied(), nil
}

// Alone says whether the store has no replicas: what is read in it needs no confirmation by
// other nodes.
func (s *Store) Alone() bool { return s.replicas == nil }

// NotLed is the error of a request that needs a shard which another node leads.
func NotLed(sh key.Shard) error { return &ShardError{sh, ErrNotLed} }

// replicate is Append for a shard with replicas.
func (s *Store) replicate(w *Writes, waiter Waiter) (taken bool) {
	w.ticket.Waiter = waiter
	var err error
	if w.Len() > 0 {
		err = s.commits.Gate.Refusal()
	}
	if err == nil {
		w.size = int64(w.ticket.Batch.Len())
		size := w.size // NB: w belongs to the group once it has it
		s.commits.Backlog.Add(size)
		err = ErrNotLed
		if g := s.replicaOf(w.shard).Load(); g != nil {
			err = g.Append(w, w.epoch)
		}
		if err == nil {
			return true // NB: w belongs to the group
		}
		s.commits.Backlog.Add(-size)
	}
	err = ofShard(w.shard, err)
	w.recycle()
	s.commits.Counters.Refused.Add(1)
	waiter.Committed(err)
	return false
}

// Repr implements replica.Change.
func (w *Writes) Repr() []byte {
	if w.Len() == 0 {
		return nil
	}
	w.place()
	return w.ticket.Batch.Repr()
}

// Done implements replica.Change.
func (w *Writes) Done(err error) {
	s, waiter, writes := w.store, w.ticket.Waiter, w.Len() > 0
	s.commits.Backlog.Add(-w.size)
	err = ofShard(w.shard, err)
	w.recycle()
	switch {
	case errors.Is(err, ErrLost):
		s.commits.Counters.Unknown.Add(1)
	case err != nil:
		s.commits.Counters.Refused.Add(1)
	case writes:
		s.commits.Counters.Committed.Add(1)
	}
	if v, ok := waiter.(VisibleWaiter); ok && err == nil {
		v.Applied()
	}
	waiter.Committed(err)
}

// AwaitApplied returns when this node's replica of a shard contains an entry of its log.
func (s *Store) AwaitApplied(ctx context.Context, sh key.Shard, index uint64) error {
	g := s.Replica(sh)
	if g == nil {
		return ErrNotLed
	}
	return g.AwaitApplied(ctx, index)
}
