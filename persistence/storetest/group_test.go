package storetest_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica/replicatest"
	"troupe/persistence/storetest"
)

// TestAGroupOfOneIsAJournal: what a store that stands alone promises to its writers holds
// for one with replicas, too.
func TestAGroupOfOneIsAJournal(t *testing.T) {
	for _, c := range storetest.Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if c.Name == "what was appended is visible before its sync" {
				t.Skip("here it is visible when a majority has it") // persistence.Store.AwaitVisible
			}
			synctest.Test(t, func(t *testing.T) {
				assert.NoError(t, c.Run(openAlone))
			})
		})
	}
}

// openAlone opens a store whose groups have one node, and waits until it leads them all.
func openAlone(fs vfs.FS) (storetest.Journal, error) {
	o := persistence.Options{FS: fs, FreeBytesMin: -1, CommitWaitMax: time.Hour, Shards: 2, MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
	s, err := persistence.Open("db", o)
	switch {
	case err == nil:
		if err := errors.Join(s.Bootstrap("only"), s.Close()); err != nil {
			return nil, err
		}
	case !errors.Is(err, persistence.ErrReplicated):
		return nil, err
	}
	o.Replication = &persistence.Replication{Node: "only", Streams: replicatest.NewNetwork().Streams("only"), LogWriteMax: time.Hour}
	if s, err = persistence.Open("db", o); err != nil {
		return nil, err
	}
	led := make(awaitLed, 100)
	s.FollowLeads(led)
	for sh := range s.AllShards() {
		for s.Epoch(sh) == 0 {
			<-led
		}
	}
	return group{s}, nil
}

// awaitLed has an entry for each epoch that began, unless there are very many.
type awaitLed chan struct{}

func (l awaitLed) Led(key.Shard, uint64) {
	select {
	case l <- struct{}{}:
	default:
	}
}

func (awaitLed) Ended(key.Shard, uint64) {}

// group is a store as a journal of all its shards.
type group struct{ *persistence.Store }

// Barrier is told when the barriers of all shards are.
func (g group) Barrier(waiter persistence.Waiter) {
	b := &barriers{to: waiter}
	b.left.Store(3)
	for sh := range g.AllShards() {
		g.BarrierIn(sh, g.Epoch(sh), b)
	}
}

type barriers struct {
	to   persistence.Waiter
	left atomic.Int32
	mu   sync.Mutex
	err  error
}

func (b *barriers) Committed(err error) {
	b.mu.Lock()
	b.err = errors.Join(b.err, err)
	b.mu.Unlock()
	if b.left.Add(-1) == 0 {
		b.to.Committed(b.err)
	}
}
