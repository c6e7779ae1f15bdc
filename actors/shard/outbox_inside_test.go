package shard_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/outbox"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// messages writes what instances of a workflow, as many as are asked for, tell their children, and says so.
func (s *sendings) messages(t *testing.T, workflow string, first, n byte) {
	t.Helper()
	w, now := s.store.NewBatch(s.shard), time.Now()
	for i := range n {
		outbox.Put(w, outbox.Origin{Shard: s.shard, Workflow: workflow, Version: 1, Instance: key.ID{first + i}, Sequence: 1, At: now, Due: now},
			[]statemachine.Delivery{{End: &statemachine.ChildEnd{}}})
	}
	require.NoError(t, s.store.Commit(w))
	s.Began(s.shard, workflow, outbox.ChildQueue, now)
	synctest.Wait()
}

// TestWorkflowsTakeTurnsInside: a workflow whose instances tell others without end leaves room for the next, and
// whoever waits for a disk or another node is in nobody's way.
func TestWorkflowsTakeTurnsInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		begun, end := make(chan string, 100), make(chan struct{})
		s.inside = func(ctx context.Context, workflow string) {
			begun <- workflow
			select {
			case <-end:
			case <-ctx.Done():
			}
		}
		s.messages(t, "many", 0, 12)
		require.Len(t, begun, 4, "are carried out at a time, want 4")
		s.messages(t, "few", 100, 1)
		require.Len(t, begun, 4, "one more is carried out than there are places")
		for range 4 {
			<-begun
		}
		end <- struct{}{}
		synctest.Wait()
		got := <-begun
		assert.Equal(t, "few", got, "the next is of the workflow")
		clocktest.Advance(time.Second)
		assert.Len(t, begun, 8, "more have begun while all others hang, want 8")
		close(end)
		synctest.Wait()
	})
}

// TestAMessageThatPanicsHasFailed: the attempt counts, its place is free at once, and the next one comes after the usual pause.
func TestAMessageThatPanicsHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		var begun atomic.Int64
		s.inside = func(context.Context, string) {
			if begun.Add(1) <= 6 {
				panic("a message")
			}
		}
		s.messages(t, "w", 0, 6) // which are more than there are places
		assert.Equal(t, int64(6), begun.Load(), "have begun, want 6: the places of those that panicked are not free")
		left := func(want int) {
			t.Helper()
			rows := 0
			err := s.store.Scan(key.DeliveriesPrefix(nil, s.shard), func(_, stored []byte) error {
				row, err := outbox.Parse(stored)
				if rows++; err == nil && (row.Attempts != 1 || row.LastError == "" || row.State != outbox.Pending) {
					t.Errorf("got %+v", row)
				}
				return err
			})
			assert.True(t, err == nil && rows == want, "%d rows are left, %v, want %d", rows, err, want)
		}
		left(6)
		clocktest.Advance(5 * time.Second)
		assert.Equal(t, int64(6), begun.Load(), "have begun within the pause, want 6")
		clocktest.Advance(2 * time.Second)
		left(0)
	})
}
