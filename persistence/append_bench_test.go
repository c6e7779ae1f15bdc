package persistence

import (
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/key"
)

// The shape of one event: entry, record, idempotency row, index row, counter.
const eventBytes = 200

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
