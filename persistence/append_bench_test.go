package persistence

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// The shape of one event: entry, record, idempotency row, index row, counter.
const eventBytes = 200

// BenchmarkAppend is the commit path with writers that wait for each answer, on
// a real directory. Compare it with BenchmarkPebbleApply.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			s := mustOpen(b, b.TempDir(), Options{})
			value := make([]byte, eventBytes)
			parallel(b, writers, func(n int) func(i uint64) {
				var id key.ID
				binary.BigEndian.PutUint64(id[:], uint64(n))
				sh := s.ShardOf(id)
				ack := make(waitFor, 1)
				var k []byte
				return func(i uint64) {
					w := s.NewBatch(sh)
					k = key.Entry(k[:0], sh, id, i)
					w.Set(k, value)
					k = key.Record(k[:0], sh, "workflow", id)
					w.Set(k, value)
					k = key.Reply(k[:0], sh, id, [16]byte{byte(i), byte(i >> 8), byte(i >> 16)})
					w.Set(k, value[:16])
					s.Append(w, ack)
					if err := <-ack; err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			m := s.Metrics()
			b.ReportMetric(float64(m.Committed)/float64(m.Syncs), "commits/sync")
			must(b, s.Close())
		})
	}
}

// BenchmarkPebbleApply is the same with the database alone.
func BenchmarkPebbleApply(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			s := &Store{options: Options{}.EnsureDefaults()}
			s.wrapFS()
			o := pebbleOptions(s, nil)
			o.Logger = engine.Log{Log: s.log}
			db, err := pebble.Open(b.TempDir(), o)
			must(b, err)
			value := make([]byte, eventBytes)
			parallel(b, writers, func(n int) func(i uint64) {
				var id key.ID
				binary.BigEndian.PutUint64(id[:], uint64(n))
				var k []byte
				return func(i uint64) {
					w := db.NewBatch()
					k = key.Entry(k[:0], 1, id, i)
					_ = w.Set(k, value, nil)
					k = key.Record(k[:0], 1, "workflow", id)
					_ = w.Set(k, value, nil)
					k = key.Reply(k[:0], 1, id, [16]byte{byte(i), byte(i >> 8), byte(i >> 16)})
					_ = w.Set(k, value[:16], nil)
					if err := db.Apply(w, pebble.Sync); err != nil {
						b.Error(err)
					}
					_ = w.Close()
				}
			})
			b.StopTimer()
			must(b, db.Close())
		})
	}
}

// parallel runs b.N calls on that many writers.
func parallel(b *testing.B, writers int, start func(n int) func(i uint64)) {
	b.ReportAllocs()
	var next atomic.Int64
	var wg sync.WaitGroup
	fs := make([]func(uint64), writers)
	for n := range fs {
		fs[n] = start(n)
	}
	b.ResetTimer()
	for _, f := range fs {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				f(uint64(i))
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkAnnounce is the processor time of appends with a row of the feed and without, in memory: what a commit
// costs beside the disk, merges of tables included.
func BenchmarkAnnounce(b *testing.B) {
	for _, announced := range []bool{false, true} {
		b.Run(map[bool]string{false: "without", true: "with"}[announced], func(b *testing.B) {
			s := mustOpen(b, "db", Options{FS: vfs.NewMem(), FreeBytesMin: -1})
			value, row := make([]byte, eventBytes), make([]byte, 30)
			done := make(chan struct{}, 256)
			begun := processorTime()
			for n := range b.N {
				id := key.ID{byte(n % 251), byte(n % 13)}
				sh := s.ShardOf(id)
				w := s.NewBatch(sh)
				w.Set(key.Entry(nil, sh, id, uint64(n)), value)
				w.Set(key.Record(nil, sh, "workflow", id), value)
				w.Set(key.Reply(nil, sh, id, [16]byte{byte(n), byte(n >> 8), byte(n >> 16)}), value[:16])
				if announced {
					w.Announce(1_800_000_000_000, row, nil)
				}
				done <- struct{}{}
				s.Append(w, slot(done))
			}
			must(b, s.AwaitDurable())
			b.ReportMetric(float64((processorTime()-begun).Nanoseconds())/float64(b.N), "cpu-ns/op")
			must(b, s.Close())
		})
	}
}

// slot is a waiter that gives a place back.
type slot chan struct{}

func (s slot) Committed(error) { <-s }

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
