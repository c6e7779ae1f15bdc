package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Bootstrap makes the store the first of a cluster: every shard gets a group of one node. It
// is called before the first Open with Options.Replication, on a store that is open
// without. From then on the store is not opened without replicas.
//
// When it is cut off, the store is standalone still: what is written there meanwhile is part of the shards, and
// Bootstrap is called again, for the same node or another one. With Options.Replication it is refused until then.
func (s *Store) Bootstrap(node string) error {
	for sh := range s.AllShards() {
		if err := replica.Bootstrap(s.groupOptions(sh, &Replication{}), node); err != nil {
			return fmt.Errorf("found shard %d: %w", sh, err)
		}
	}
	// NB: last, so that before all groups are there the store can be opened to call it again. Their
	// rows are nothing that a program which knows no replicas would read.
	return s.keepReplicated()
}

// forgetIndexStates removes how far indexes are in a shard, past its group.
func (s *Store) forgetIndexStates(sh key.Shard) error {
	prefix := key.IndexStatePrefix(nil, sh)
	return localRows{s, sh}.Write(replica.Synced, func(b replica.Batch) { b.DeleteRange(prefix, key.PrefixEnd(prefix)) })
}

// beginReplicas gives the store the format of one of a cluster, before its groups start. One that was
// not founded, or not wholly, is refused: what it has would be in no group. A node that joins has
// nothing, and then its replica of Meta first; one that is alone has nobody to join.
func (s *Store) beginReplicas() error {
	if s.replicated {
		return nil
	}
	began, err := s.hasReplica(key.Meta) // NB: Bootstrap founds it last
	if err != nil {
		return err
	}
	if !began {
		some := s.options.Replication.Alone
		if !some {
			some, err = s.hasRow(nil)
		}
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
	if errors.Is(err, ErrNotLed) { // the replica has not started yet
		err = nil
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
	s.replicas.host = replica.NewHost(replica.HostOptions{
		Node: o.Node, Messages: o.Streams(key.Messages), Copies: o.Streams(key.Copies), Store: rounds{s}, Probe: append(key.ReplicaLogPrefix(nil, key.Meta), 'd'), Tick: o.Tick, Lost: o.Lost, Log: s.log, Fatal: s.commits.Die,
	})
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
	return s.join(sh)
}

// join is Join with replicas.mu held.
func (s *Store) join(sh key.Shard) error {
	at := s.replicaOf(sh)
	if at.Load() != nil {
		return nil
	}
	g, err := s.replicas.host.Start(s.groupOptions(sh, s.options.Replication))
	if err != nil {
		return err
	}
	at.Store(g)
	return nil
}

// Leave ends the taking part in the group of a shard that this node was removed from, and removes what the store has of
// it. On a full disk it does so too, with the room that is kept for what has to be written.
//
// While the node takes part it may be taken in again, and what it has confirmed since must not go. So removed is asked
// when it takes part no more; with an error, which Leave returns, it takes part as before. Nil: nobody takes it in again.
func (s *Store) Leave(sh key.Shard, removed func() error) error {
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	if g := s.replicaOf(sh).Swap(nil); g != nil {
		g.Stop()
		if removed != nil {
			if err := removed(); err != nil {
				return errors.Join(err, s.join(sh))
			}
		}
		if sh != key.Meta {
			shardFollower{s.replicas, sh}.Replaced()
		}
	}
	return localRows{s, sh}.Write(replica.Vital, func(b replica.Batch) {
		b.DeleteRange(key.ShardPrefix(nil, sh), key.ShardEnd(nil, sh))
		b.DeleteRange(key.ReplicaLogPrefix(nil, sh), key.PrefixEnd(key.ReplicaLogPrefix(nil, sh)))
	})
}

// stopReplicas leaves all groups once everything appended is answered, or after Options.CommitWaitMax.
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
	s.replicas.host.Close()
}

func (s *Store) groupOptions(sh key.Shard, o *Replication) replica.Options {
	options := replica.Options{
		Shard: uint16(sh), Store: localRows{s, sh},
		LogPrefix: key.ReplicaLogPrefix(nil, sh), StatePrefix: key.ReplicaPrefix(nil, sh),
		Observer:    leadsOf{s.replicas, sh},
		LogBytesMax: o.LogBytesMax,
		Log:         s.log.With().Uint16("shard", uint16(sh)).Logger(), Fatal: s.commits.Die,
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
