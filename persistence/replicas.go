package persistence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"troupe/persistence/internal/groups"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Bootstrap makes the store the first of a cluster: Meta gets a group of one node, and the shards get one from each of
// firsts on, the first of which is 0; nil: each its own. It is called before the first Open with Options.Replication, on a
// store that is open without. From then on the store is not opened without replicas.
//
// When it is cut off, the store is standalone still: what is written there meanwhile is part of the shards, and
// Bootstrap is called again, for the same node or another one. With Options.Replication it is refused until then.
func (s *Store) Bootstrap(node string, firsts []key.Shard) error {
	if firsts == nil {
		firsts = s.numbered
	}
	for i, sh := range append(slices.Clip(firsts), key.Meta) {
		last := sh
		switch {
		case i+1 < len(firsts):
			last = firsts[i+1] - 1
		case sh != key.Meta:
			last = key.Shard(s.shards - 1)
		}
		if err := replica.Bootstrap(s.groupOptions(sh, &Replication{}), node, uint16(last)); err != nil {
			return fmt.Errorf("found the group of shard %d: %w", sh, err)
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

// beginReplicas gives the store the format of one of a cluster, before its groups start. One that was not founded, or not wholly, is refused: what it
// has would be in no group. A node that joins has nothing, and then its replica of Meta first; one that is alone has nobody to join.
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

// hasReplica says whether the store has a replica of the group that begins with a shard, or has begun to copy it.
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

// startReplicas starts all groups that the store has a replica of.
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
	s.replicas = &replicas{Table: groups.NewTable(s.shards), written: &s.written}
	s.replicas.shardFollowers.Store(new([]ShardFollower))
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

// Join begins to take part in the group that begins with a shard. While the shard is in another group here, from which that one was divided, it does
// nothing. A store that has nothing of the group gets it from the leader, once that has added this node.
func (s *Store) Join(sh key.Shard) error {
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	return s.join(sh, false)
}

// join is Join with replicas.mu held. With elect this node asks to lead.
func (s *Store) join(sh key.Shard, elect bool) error {
	if s.replicas.At(sh).Load() != nil {
		return nil
	}
	o := s.groupOptions(sh, s.options.Replication)
	o.Elect = elect
	_, err := s.replicas.host.Start(o, s.replicas.Cover)
	return err
}

// divided has this node take part in a group that has begun with the shards from first to last of another one: an Options.Divided of replica.
func (s *Store) divided(first, last uint16, led bool) {
	r := s.replicas
	r.Clear(key.Shard(first), key.Shard(last)) // NB: before the old group has an epoch again, in which nobody may write here
	go func() {                                // NB: r.mu may be held by who waits for the round that calls this
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return
		}
		if err := s.join(key.Shard(first), led); err != nil && !errors.Is(err, ErrClosed) {
			s.log.Error().Err(err).Uint16("shard", first).Msg("this node cannot take part in a group that was divided")
		}
	}()
}

// Leave ends the taking part in the group that begins with a shard, from which this node was removed, and removes what the
// store has of it. On a full disk it does so too, with the room that is kept for what has to be written.
//
// While the node takes part it may be taken in again, and what it has confirmed since must not go. So removed is asked
// when it takes part no more; with an error, which Leave returns, it takes part as before. Nil: nobody takes it in again.
func (s *Store) Leave(sh key.Shard, removed func() error) error {
	s.replicas.mu.Lock()
	defer s.replicas.mu.Unlock()
	last := sh
	if g := s.replicas.At(sh).Load(); g != nil {
		if first := key.Shard(g.First()); first != sh {
			return fmt.Errorf("shard %d is in the group of shard %d here", sh, first)
		}
		s.replicas.Uncover(g, -1)
		g.Stop()
		if removed != nil {
			if err := removed(); err != nil {
				return errors.Join(err, s.join(sh, false))
			}
		}
		last = key.Shard(g.Last()) // NB: now that it cannot be divided any more
		if sh != key.Meta {
			shardFollower{s.replicas, sh}.Replaced(uint16(last))
		}
	}
	return localRows{s, sh}.Write(replica.Vital, func(b replica.Batch) {
		b.DeleteRange(key.ShardPrefix(nil, sh), key.ShardEnd(nil, last))
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
	s.replicas.closed = true
	for _, g := range s.Groups() {
		stopped.Go(func() {
			_, _ = g.Drain(ctx) // what it did not answer, Stop does
			g.Stop()
		})
	}
	stopped.Wait()
	s.replicas.host.Close()
}

func (s *Store) groupOptions(sh key.Shard, o *Replication) replica.Options {
	options := replica.Options{
		Shard: uint16(sh), Store: localRows{s, sh},
		LogPrefix: key.ReplicaLogPrefix(nil, sh), StatePrefix: key.ReplicaPrefix(nil, sh),
		Beside: func(shard uint16) (log, state []byte) {
			return key.ReplicaLogPrefix(nil, key.Shard(shard)), key.ReplicaPrefix(nil, key.Shard(shard))
		},
		Divided:     s.divided,
		LogBytesMax: o.LogBytesMax,
		Log:         s.log.With().Uint16("shard", uint16(sh)).Logger(), Fatal: s.commits.Die,
	}
	if s.replicas == nil {
		return options
	}
	options.Observer, options.Follower = s.replicas.leads.Of(sh), shardFollower{s.replicas, sh}
	if sh == key.Meta {
		options.Follower = follower{s.replicas}
	}
	return options
}
