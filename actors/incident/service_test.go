package incident

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine/expr"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// on runs a service on a store of one shard.
func on(t *testing.T, test func(t *testing.T, s *Service, o Options)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := storetest.NewDisk().Open(persistence.Options{Shards: 1, Log: zerolog.Nop()})
		require.NoError(t, err)
		o := Options{Store: store, Log: zerolog.Nop()}
		s := New(o)
		s.Start()
		test(t, s, o)
		s.Stop()
		assert.NoError(t, store.Close())
	})
}

// failed is a failure of a workflow at a line, so many seconds later.
func failed(workflow string, line, later int) *Row {
	at := begun.Add(time.Duration(later) * time.Second)
	return &Row{Kind: Expression, Workflow: workflow, Version: 1, File: "a.yaml", Line: line, Error: fmt.Sprint("error ", later), First: at, Last: at, Count: 1}
}

func rows(t *testing.T, s *Service) map[string]*Row {
	t.Helper()
	there, err := s.load(0)
	require.NoError(t, err)
	out := map[string]*Row{}
	for _, k := range there {
		out[fmt.Sprint(k.Workflow, " ", k.Line, k.Place)] = k.Row
	}
	return out
}

// TestFailuresAreCounted, also those that come out of order from other nodes; what is said is of the last.
func TestFailuresAreCounted(t *testing.T) {
	on(t, func(t *testing.T, s *Service, o Options) {
		assert.True(t, s.Note(failed("w", 1, 5)) == New(o).Note(failed("w", 1, 9)) && s.Note(failed("w", 2, 5)) != s.Note(failed("v", 2, 5)))
		clocktest.Advance(2 * pause)
		for _, r := range []*Row{failed("w", 1, 9), failed("w", 1, 2)} {
			require.NoError(t, s.Put(context.Background(), 0, []Row{*r}))
		}
		r := rows(t, s)["w 1"]
		assert.True(t, r.Count == 3 && r.Error == "error 9" && r.First.Equal(begun.Add(2*time.Second)) && r.Last.Equal(begun.Add(9*time.Second)), "got %+v", r)
	})
}

// TestKindsAndPlacesAreApart: an instance has an incident of its own for each kind.
func TestKindsAndPlacesAreApart(t *testing.T) {
	on(t, func(t *testing.T, s *Service, _ Options) {
		for _, r := range []*Row{{Kind: Loop, Place: "1"}, {Kind: Loop, Place: "2"}, {Kind: Tree, Place: "1"}, {Kind: Tree, Place: "1"}} {
			r.Workflow, r.Version, r.Error, r.First, r.Last, r.Count = "w", 1, "too many", begun, begun, 1
			s.Note(r)
		}
		s.Note(&Row{Kind: Expression, Workflow: "w", Event: "go", Error: strings.Repeat("x", 3000), Expression: strings.Repeat("y", 3000), First: begun, Last: begun, Count: 1, Read: []expr.Read{{Path: "a"}}})
		clocktest.Advance(2 * pause)
		there, err := s.load(0)
		require.True(t, err == nil && len(there) == 4, "got %v, %v", there, err)
		for _, k := range there {
			assert.True(t, len(k.Error) <= textMax+len("…") && len(k.Expression) <= textMax+len("…"), "%s: %d and %d bytes", k.Kind, len(k.Error), len(k.Expression))
		}
	})
}

// TestIncidentsAreBounded: the workflow that has most gives way, not another one.
func TestIncidentsAreBounded(t *testing.T) {
	on(t, func(t *testing.T, s *Service, o Options) {
		s.Note(failed("quiet", 1, 0))
		clocktest.Advance(time.Second)
		for line := range rowsMax + 20 {
			s.Note(failed("loud", line+1, line))
			if line%100 == 99 {
				clocktest.Advance(time.Second)
			}
		}
		clocktest.Advance(2 * time.Second)
		there := rows(t, s)
		assert.True(t, len(there) == rowsMax && there["quiet 1"] != nil && there["loud 1"] == nil && there[fmt.Sprint("loud ", rowsMax+20)] != nil, "got %d", len(there))
		full := New(o) // which does not run
		for line := range 2 * waitingMax {
			full.Note(failed("loud", line+1, line))
		}
		assert.Len(t, full.waiting, waitingMax, "wait")
	})
}

// TestWhatCannotBeWrittenWaits while the node that leads does not take it. What still waits at the end is written then.
func TestWhatCannotBeWrittenWaits(t *testing.T) {
	t.Run("the leader", func(t *testing.T) {
		on(t, func(t *testing.T, there *Service, o Options) {
			follower, err := storetest.NewDisk().Open(persistence.Options{Shards: 1, Log: zerolog.Nop(), Replication: storetest.Alone()})
			require.NoError(t, err)
			var asked atomic.Int64
			o.Store = follower
			o.Elsewhere = func(ctx context.Context, shard uint16, rows []Row) error {
				if asked.Add(1) == 1 {
					return failure.ErrUnavailable
				}
				return there.Put(ctx, shard, rows)
			}
			s := New(o)
			s.Start()
			s.Note(failed("w", 1, 0))
			clocktest.Advance(3 * pause)
			if got := rows(t, there); asked.Load() != 2 || len(got) != 1 || got["w 1"].Count != 1 {
				t.Errorf("asked %d times, and it has %+v", asked.Load(), got)
			}
			s.Stop()
			assert.NoError(t, follower.Close())
		})
	})
	t.Run("the end", func(t *testing.T) {
		on(t, func(t *testing.T, _ *Service, o Options) {
			s := New(o)
			s.Note(failed("w", 1, 0))
			s.Start()
			s.Stop()
			assert.Len(t, rows(t, s), 1)
		})
	})
}

// TestTheEndDoesNotWaitForEachShard that nobody leads.
func TestTheEndDoesNotWaitForEachShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		follower, err := storetest.NewDisk().Open(persistence.Options{Shards: 8, Log: zerolog.Nop(), Replication: storetest.Alone()})
		require.NoError(t, err)
		s := New(Options{Store: follower, Log: zerolog.Nop(), Elsewhere: func(ctx context.Context, _ uint16, _ []Row) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(endMax):
				return failure.ErrUnavailable
			}
		}})
		for line := range 100 {
			s.Note(failed("w", line+1, 0))
		}
		s.Start()
		from := time.Now()
		s.Stop()
		assert.LessOrEqual(t, time.Since(from), endMax, "it took")
		assert.NoError(t, follower.Close())
	})
}

// TestAnUnreadableRowIsReplaced: the next failure at its place is the first that is known.
func TestAnUnreadableRowIsReplaced(t *testing.T) {
	on(t, func(t *testing.T, s *Service, o Options) {
		r := failed("w", 1, 5)
		w := o.Store.NewBatchIn(0, o.Store.Epoch(0))
		w.Set(key.Incident(nil, 0, r.name(), 1, 2), []byte("no row"))
		require.NoError(t, o.Store.Commit(w))
		for k := range 2 {
			require.NoError(t, s.Put(context.Background(), 0, []Row{*failed("w", 1, 5-k), *failed("w", 1, 5+k)}))
		}
		got := rows(t, s)
		r = got["w 1"]
		assert.True(t, len(got) == 1 && r != nil && r.First.Equal(begun.Add(4*time.Second)) && r.Last.Equal(begun.Add(6*time.Second)) && r.Count == 4, "got %+v", got)
	})
}

// TestDropAndRetry: what is not there cannot be dropped, and of each kind the answer to a retry says what to do instead
// (gateway/INTERFACE.md, "Incidents").
func TestDropAndRetry(t *testing.T) {
	on(t, func(t *testing.T, s *Service, _ Options) {
		assert.ErrorIs(t, s.Change(context.Background(), "nothing", Expression, true), failure.ErrNotFound)
		for kind, instead := range map[Kind]string{Expression: "send it again", Loop: "leads it out", Tree: "treeInstancesMax"} {
			err := s.Change(context.Background(), "nothing", kind, false)
			assert.True(t, errors.Is(err, failure.ErrConflict) && strings.Contains(failure.Of(err).Reason, instead), "%s: got %v", kind, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(failed("w", 1, 0).Stored())
	f.Fuzz(func(_ *testing.T, stored []byte) { _, _ = Parse(stored) })
}
