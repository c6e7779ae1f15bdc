package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// BenchmarkLoadMissing looks for idempotency keys that were never written, in a
// store whose tables are all at the bottom level.
func BenchmarkLoadMissing(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	const instances, each = 20_000, 10
	key := func(i, n int) []byte {
		var id key.ID
		binary.BigEndian.PutUint64(id[:], uint64(i)*0x9E3779B97F4A7C15)
		return key.Reply(nil, 1, id, [16]byte{byte(n), byte(i), byte(n * i)})
	}
	for i := range instances {
		w := s.NewBatch(1)
		for n := range each {
			w.Set(key(i, n), make([]byte, 100))
		}
		s.Append(w, make(waitFor, 1))
	}
	must(b, s.AwaitDurable())
	must(b, engine.Pebble(s.db.Load()).Flush())
	must(b, engine.Pebble(s.db.Load()).Compact(context.Background(), []byte{0}, []byte{0xFF, 0xFF, 0xFF}, false))
	b.Run("missing", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := s.Load(key(i%instances, each+i%each)); !errors.Is(err, ErrNotFound) {
				b.Fatal(err)
			}
		}
	})
	b.Run("missing, without the bottom filters", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, _, err := engine.Pebble(s.db.Load()).Get(key(i%instances, each+i%each)); !errors.Is(err, pebble.ErrNotFound) {
				b.Fatal(err)
			}
		}
	})
	b.Run("there", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := s.Load(key(i%instances, i%each)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMerge reads the first 50 rows of a worklist of a role, beside those of a user and ten privileges that are empty. The
// rows are in 16 shards, each in three orders.
func BenchmarkMerge(b *testing.B) {
	s := mustOpen(b, b.TempDir(), Options{})
	defer s.Close()
	const tasks, shown = 300_000, 50
	orders := []byte("cdp")
	for i := range uint64(tasks) {
		work := key.Work{List: 'r', Name: "manager", Value: i * 0x9E3779B97F4A7C15}
		binary.BigEndian.PutUint64(work.ID[:], work.Value)
		w := s.NewBatch(s.ShardOf(work.ID))
		for _, work.Order = range orders {
			w.Set(work.Key(nil, w.shard), []byte("purchase"))
		}
		w.Set(key.Record(nil, w.shard, "purchase", work.ID), make([]byte, 200))
		s.Append(w, make(waitFor, 1))
	}
	must(b, s.AwaitDurable())
	must(b, engine.Pebble(s.db.Load()).Flush())
	ranges := []key.Range{{Prefix: key.WorkPrefix(nil, key.EveryShard, 'e', "", 'd')}, {Prefix: key.WorkPrefix(nil, key.EveryShard, 'u', "john", 'd')}, {Prefix: key.WorkPrefix(nil, key.EveryShard, 'r', "manager", 'd')}}
	for i := range 10 {
		ranges = append(ranges, key.Range{Prefix: key.WorkPrefix(nil, key.EveryShard, 'p', fmt.Sprint("mod-", i), 'd')})
	}
	sn := s.Snapshot()
	defer sn.Close()
	b.ReportAllocs()
	for b.Loop() {
		c := sn.Merge(ranges...)
		for n := range shown {
			if !c.Next() {
				b.Fatalf("row %d: %v", n, c.Err())
			}
		}
		must(b, c.Close())
	}
}
