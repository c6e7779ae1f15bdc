package persistence_test

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
	"troupe/persistence/key"
)

// An event of an instance is appended, is durable when Commit returns, and is there after the store was opened again.
func Example() {
	// Without FS it is a folder of the operating system's.
	options := persistence.Options{FS: vfs.NewMem(), FreeBytesMin: -1, MemTableBytes: 1 << 20, CacheBytes: 1 << 20}
	store, err := persistence.Open("data", options)
	if err != nil {
		panic(err)
	}
	id := key.ID{1, 2, 3}
	shard := store.ShardOf(id)
	batch := store.NewBatch(shard)
	batch.Set(key.Entry(nil, shard, id, 1), []byte("submit"))
	if err := store.Commit(batch); err != nil {
		panic(err)
	}
	if err := store.Close(); err != nil {
		panic(err)
	}

	if store, err = persistence.Open("data", options); err != nil {
		panic(err)
	}
	event, err := store.Load(key.Entry(nil, shard, id, 1))
	fmt.Printf("%s %v\n", event, err)
	fmt.Println(store.Close())
	// Output:
	// submit <nil>
	// <nil>
}
