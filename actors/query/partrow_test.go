package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/fanout"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
)

// halves has every other shard led by a node that has the same store.
type halves struct{ of *fanout.Service }

func (halves) Leader(_ context.Context, sh key.Shard) (string, error) {
	return []string{"", "other"}[sh%2], nil
}

func (h *halves) Ask(ctx context.Context, _ string, question []byte) (io.ReadCloser, error) {
	var answer bytes.Buffer
	err := h.of.Answer(ctx, question, &answer, func() error { return nil })
	return io.NopCloser(&answer), err
}

// TestLargeRowsComeSomeAtATime: what a node keeps of rows of other nodes is bounded by bytes, and none is left out.
func TestLargeRowsComeSomeAtATime(t *testing.T) {
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop(), Shards: 8})
	require.NoError(t, err)
	peers := &halves{}
	peers.of = fanout.New(peers, store.Shards())
	s := New(Options{
		Store: store, Fanout: peers.of, Clock: time.Now, InFlight: new(atomic.Int64), QueriesMax: 2, QueriesOpenMax: 2, ListsMax: 2, ListsOpenMax: 2,
		TimeMax: time.Minute,
	})
	t.Cleanup(func() { s.Stop(); assert.NoError(t, store.Close()) })
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
