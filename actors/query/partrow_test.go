package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/fanout"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// shared has shards led by another node that has the same store.
type shared struct {
	of      *fanout.Service
	isOther func(key.Shard) bool
}

func (h *shared) Leader(_ context.Context, sh key.Shard) (string, error) {
	if h.isOther(sh) {
		return "other", nil
	}
	return "", nil
}

func (h *shared) Ask(ctx context.Context, _ string, question []byte) (io.ReadCloser, error) {
	var answer bytes.Buffer
	err := h.of.Answer(ctx, question, &answer, func() error { return nil })
	return io.NopCloser(&answer), err
}

// ofTwo returns a service of a node of two.
func ofTwo(t *testing.T, isOther func(key.Shard) bool) *Service {
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop(), Shards: 8})
	require.NoError(t, err)
	peers := &shared{isOther: isOther}
	peers.of = fanout.New(peers, &catalog.Catalog{}, store.Shards())
	s := New(Options{
		Store: store, Fanout: peers.of, Clock: time.Now, InFlight: new(atomic.Int64), QueriesMax: 1, QueriesOpenMax: 1, ListsMax: 1, ListsOpenMax: 1,
		TimeMax: time.Minute,
	})
	t.Cleanup(func() { s.Stop(); assert.NoError(t, store.Close()) })
	return s
}

// TestLargeRowsComeSomeAtATime: what a node keeps of rows of other nodes is bounded by bytes, and none is left out.
func TestLargeRowsComeSomeAtATime(t *testing.T) {
	s := ofTwo(t, func(sh key.Shard) bool { return sh%2 == 1 })
	store := s.o.Store
	const rowBytes, rows = keyedBytes / 5, 30
	var of []Name
	for n := range rows {
		id := key.ID{}
		binary.BigEndian.PutUint64(id[:], uint64(n)) //nolint:gosec // few
		of = append(of, Name{"stock", id})
		if n%7 == 3 {
			continue
		}
		w := store.NewBatch(store.ShardOf(id))
		w.Set(key.Record(nil, store.ShardOf(id), "stock", id), bytes.Repeat([]byte{byte(n)}, rowBytes))
		store.Append(w, make(confirmation, 1))
	}
	require.NoError(t, store.AwaitDurable())
	require.NoError(t, s.ReadInstances(t.Context(), "boss", of, func(from Loader) error {
		for n, name := range of {
			value, err := from.Load(key.Record(nil, store.ShardOf(name.ID), name.Workflow, name.ID))
			if n%7 == 3 {
				assert.ErrorIs(t, err, persistence.ErrNotFound, "row %d", n)
			} else if assert.NoError(t, err, "row %d", n) {
				assert.True(t, len(value) == rowBytes && value[0] == byte(n), "row %d: got %d bytes", n, len(value))
			}
			kept := 0
			for _, value := range from.(*keyedRows).found {
				kept += len(value)
			}
			assert.LessOrEqual(t, kept, 2*(keyedBytes+rowBytes), "bytes that are kept at row %d, of two nodes", n)
		}
		return nil
	}))
}

// TestAListMayAskForRowsMeanwhile: however many lists are in the midst, the rows that they ask for come.
func TestAListMayAskForRowsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ofTwo(t, func(key.Shard) bool { return false })
		store := s.o.Store
		const rows = 10 * rowsAhead
		for n := range rows {
			id := key.ID{}
			binary.BigEndian.PutUint64(id[:], uint64(n)) //nolint:gosec // few
			w := store.NewBatch(store.ShardOf(id))
			w.Set(key.List(nil, store.ShardOf(id), 1, "boss", int64(n), id), make([]byte, batchBytes/rowsAhead))
			store.Append(w, make(confirmation, 1))
		}
		require.NoError(t, store.AwaitDurable())
		seen := 0
		of := Selection{Ranges: []key.Range{{Prefix: key.ListPrefix(nil, key.EveryShard, 1, "boss")}}}
		decode := func(_ *Reader, r Row) (key.ID, int, error) { return r.ID, 0, nil }
		assert.NoError(t, Rows(t.Context(), s, "boss", of, decode, func(id key.ID) error {
			seen++
			if seen == 1 {
				synctest.Wait() // until the part waits for this call
				_, lists := s.Open()
				assert.Equal(t, 1, lists, "slots that are held")
				return s.ReadInstances(t.Context(), "boss", []Name{{"stock", id}}, func(from Loader) error {
					_, err := from.Load(key.Record(nil, store.ShardOf(id), "stock", id))
					assert.ErrorIs(t, err, persistence.ErrNotFound)
					return nil
				})
			}
			return nil
		}))
		assert.Equal(t, rows, seen)
	})
}
