package form

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
)

// BenchmarkList lists the forms of a user who has completed 100,000, a thousand of them
// lately, and has ten more that are current.
func BenchmarkList(b *testing.B) {
	store, err := persistence.Open(b.TempDir(), persistence.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	const cut = 1_000_000
	fill := func(first, count int, made int64, done bool) {
		for n := range count {
			id := key.ID{1}
			binary.BigEndian.PutUint64(id[8:], uint64(first+n))
			f := leave().Begin([]byte(atStart), false, time.UnixMilli(made+int64(n)), nil)
			if done {
				f = f.Next([]byte(atEnd), true, time.UnixMilli(made+int64(n)), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" })
			}
			w := store.NewBatch(store.ShardOf(id))
			row := Row{Form: f, WorkflowID: "leave-request", Nodes: "draft"}
			row.Put(w, Spot{Shard: store.ShardOf(id), ID: id, Made: made + int64(n)}, nil)
			store.Append(w, ignore{})
		}
		if err := store.AwaitDurable(); err != nil {
			b.Fatal(err)
		}
	}
	fill(0, 99_000, 1, true)
	fill(100_000, 1000, cut, true)
	fill(200_000, 10, 1, false)
	lists := query.New(query.Options{Store: store, QueriesMax: 1, ListsMax: 1, QueriesOpenMax: 2, ListsOpenMax: 2, TimeMax: time.Minute})
	defer lists.Stop()
	for category, want := range map[Category]int{Current: 10, Submitted: 1000, Archived: 99_000} {
		b.Run(fmt.Sprintf("%d %s", want, category), func(b *testing.B) {
			for b.Loop() {
				shown := 0
				req := &ListRequest{Kind: KindForm, User: "john.doe", Category: category, ArchivedBefore: cut}
				if err := List(context.Background(), lists, req, func(Listed) error { shown++; return nil }); err != nil || shown != want {
					b.Fatalf("%d are shown, %v, want %d", shown, err, want)
				}
			}
		})
	}
}

// ignore waits for nothing: the store is asked for all commits together.
type ignore struct{}

// Committed implements persistence.Waiter.
func (ignore) Committed(error) {}
