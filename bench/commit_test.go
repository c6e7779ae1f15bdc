package main

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"troupe/persistence/key"
	"troupe/statemachine"
)

// event has the rows that one event writes: the record, a history entry, and the
// node index, where one row goes and one comes.
type event struct {
	id            key.ID
	record, entry []byte
	sequence      uint64
	from, to      string
}

func newEvent(tb testing.TB, number uint64) *event {
	d := definition(tb)
	instance := created(tb, d)
	e := &event{
		record: d.AppendRecord(nil, &instance, statemachine.Chain{}, nil),
		from:   "draft", to: "review",
	}
	entry := statemachine.Entry{
		User: caller.ID, Start: []statemachine.NodeID{"draft"}, Event: "submit",
		End: []statemachine.NodeID{"review"}, At: begun,
	}
	e.entry = entry.AppendJSON(make([]byte, 17)) // a head of 17 bytes stands before it in the store
	binary.BigEndian.PutUint64(e.id[:], number*0x9E3779B97F4A7C15)
	return e
}

const workflowID = "leave-request"

// rows gives each row of the next event to set and remove.
func (e *event) rows(sh key.Shard, set func(key, value []byte), remove func(key []byte)) {
	e.sequence++
	set(key.Entry(nil, sh, e.id, e.sequence), e.entry)
	set(key.Record(nil, sh, workflowID, e.id), e.record)
	remove(key.Node(nil, sh, workflowID, e.from, "main", e.id))
	set(key.Node(nil, sh, workflowID, e.to, "main", e.id), nil)
	e.from, e.to = e.to, e.from
}

// BenchmarkCommit is what an event costs in the store, for 64 writers at once on a real directory. Beside it the same
// rows go to Pebble itself, which shows what the journal's order, watchdog and integrity checkpoint cost. How many
// commits share a sync decides the time; look at both on the same disk only.
func BenchmarkCommit(b *testing.B) {
	b.Run("store", benchStore)
	b.Run("pebble", benchPebble)
}

func benchStore(b *testing.B) {
	store := openStore(b)
	runParallel(b, func(caller int) func(int) error {
		e, done := newEvent(b, uint64(caller)+1), make(committed, 1)
		sh := store.ShardOf(e.id)
		return func(int) error {
			w := store.NewBatch(sh)
			e.rows(sh, w.Set, w.Delete)
			store.Append(w, done)
			return <-done
		}
	})
}

// committed is a waiter with room for the one answer.
type committed chan error

func (c committed) Committed(err error) { c <- err }

func benchPebble(b *testing.B) {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, MemTableSize: 32 << 20, Logger: silent{zerolog.Nop()},
	})
	require.NoError(b, err)
	defer func() { _ = db.Close() }()
	runParallel(b, func(caller int) func(int) error {
		e := newEvent(b, uint64(caller)+1)
		return func(int) error {
			batch := db.NewBatch()
			e.rows(0, func(key, value []byte) { _ = batch.Set(key, value, nil) }, func(key []byte) { _ = batch.Delete(key, nil) })
			if err := batch.Commit(pebble.Sync); err != nil {
				return err
			}
			return batch.Close()
		}
	})
}

// silent drops what Pebble says, except for the end of the world.
type silent struct{ zerolog.Logger }

func (silent) Infof(string, ...any)           {}
func (silent) Errorf(string, ...any)          {}
func (silent) Fatalf(format string, _ ...any) { panic(format) }
