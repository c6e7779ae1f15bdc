package replicatest_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// BenchmarkAppend is the commits of many writers who wait, each of 200 bytes in four rows, on a store
// alone and on three nodes in one process, each with a disk of its own folder and its
// streams over loopback.
//
//	go test -run '^$' -bench Append -benchtime 3s ./persistence/replica
func BenchmarkAppend(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		for _, writers := range []int{64, 512} {
			b.Run(fmt.Sprintf("nodes=%d/writers=%d", nodes, writers), func(b *testing.B) {
				stores := benchStores(b, nodes)
				b.ReportAllocs()
				commitAll(b, stores, writers)
			})
		}
	}
}

// commitAll has writers commit b.N sets of writes, where their shards are led.
func commitAll(b *testing.B, stores []*persistence.Store, writers int) {
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		running.Go(func() {
			value := make([]byte, 50)
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				id := key.ID{14: byte(w >> 8), 15: byte(w)}
				binary.BigEndian.PutUint64(id[:], uint64(w)*0x9E3779B97F4A7C15)
				sh := stores[0].ShardOf(id)
				s := leaderOf(stores, sh)
				if s == nil {
					b.Error("nobody leads")
					return
				}
				writes := s.NewBatch(sh)
				for row := range uint64(4) {
					writes.Set(key.Entry(nil, sh, id, uint64(n)<<2|row), value)
				}
				if err := s.Commit(writes); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

func leaderOf(stores []*persistence.Store, sh key.Shard) *persistence.Store {
	for _, s := range stores {
		if s.Epoch(sh) != 0 {
			return s
		}
	}
	return nil
}

// benchStores opens so many stores that have the same shards, led by each in turn; one alone
// has no replicas.
func benchStores(b *testing.B, nodes int) []*persistence.Store {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	dirs := make([]string, nodes)
	for i := range dirs {
		dirs[i] = b.TempDir()
	}
	first, err := persistence.Open(dirs[0], persistence.Options{})
	must(err)
	if nodes == 1 {
		b.Cleanup(func() { must(first.Close()) })
		return []*persistence.Store{first}
	}
	must(first.Bootstrap("0", nil))
	must(first.Close())
	network := &loopback{listeners: map[string]net.Listener{}}
	var stores []*persistence.Store
	for i, dir := range dirs {
		name := fmt.Sprint(i)
		s, err := persistence.Open(dir, persistence.Options{Replication: &persistence.Replication{
			Node: name, Streams: network.streams(name),
		}})
		must(err)
		b.Cleanup(func() { must(s.Close()) })
		stores = append(stores, s)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for sh := range stores[0].AllShards() {
		for stores[0].Epoch(sh) == 0 {
			<-tick.C
		}
		g := stores[0].Replica(sh)
		for i, s := range stores[1:] {
			must(s.Join(sh))
			must(g.AddLearner(fmt.Sprint(i + 1)))
			must(s.AwaitApplied(b.Context(), sh, g.Applied()))
			must(g.AddVoter(fmt.Sprint(i + 1)))
		}
		if to := int(sh) % nodes; to != 0 {
			must(g.HandOver(b.Context(), fmt.Sprint(to)))
		}
		for leaderOf(stores, sh) == nil {
			<-tick.C
		}
	}
	return stores
}

// loopback is a network of TCP without TLS.
type loopback struct {
	mu        sync.Mutex
	listeners map[string]net.Listener
}

func (l *loopback) streams(node string) func(key.Shard) replica.Streams {
	return func(sh key.Shard) replica.Streams {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.listeners[fmt.Sprint(node, "/", sh)] = listener
		return loopbackStreams{listener, l, sh}
	}
}

type loopbackStreams struct {
	net.Listener
	of *loopback
	sh key.Shard
}

func (s loopbackStreams) Dial(node string, timeout time.Duration) (net.Conn, error) {
	s.of.mu.Lock()
	to := s.of.listeners[fmt.Sprint(node, "/", s.sh)]
	s.of.mu.Unlock()
	if to == nil {
		return nil, net.ErrClosed
	}
	return net.DialTimeout("tcp", to.Addr().String(), timeout)
}
