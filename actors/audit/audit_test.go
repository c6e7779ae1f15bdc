package audit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// on runs a log on a store, in virtual time.
func on(t *testing.T, disk *storetest.Disk, test func(t *testing.T, l *Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := disk.Open(persistence.Options{Shards: 1, Log: zerolog.Nop()})
		require.NoError(t, err)
		l := Start(Options{Store: store, Log: zerolog.Nop()})
		test(t, l)
		require.NoError(t, l.Stop(t.Context()))
		require.NoError(t, store.Close())
	})
}

// told is a page, a row a line, without hashes.
func told(t *testing.T, l *Log, q Query) string {
	t.Helper()
	q.Limit = max(q.Limit, 1000*(1-min(q.Limit, 1)))
	page, err := l.List(t.Context(), &q)
	require.NoError(t, err)
	var out []string
	for _, r := range page.Rows {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Actor, r.Action, r.Target))
		if r.Count > 0 {
			line += fmt.Sprintf(" x%d", r.Count)
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ") + fmt.Sprintf("; next %d, more %t", page.Next, page.More)
}

func verified(t *testing.T, l *Log) Chain {
	t.Helper()
	chain, err := l.Verify(t.Context())
	require.NoError(t, err)
	return chain
}

// TestRowsOutliveACrash holds gateway/INTERFACE.md, "The audit log": a row that Record has acknowledged is there after one, and the chain goes on behind it.
func TestRowsOutliveACrash(t *testing.T) {
	disk := storetest.NewDisk()
	var crashed *storetest.Disk
	on(t, disk, func(t *testing.T, l *Log) {
		assert.Equal(t, "; next 0, more false", told(t, l, Query{}))
		require.NoError(t, l.Record(t.Context(), "ann", TokenCreate, "tok_1"))
		<-time.After(time.Hour)
		require.NoError(t, l.Record(t.Context(), "bob", TaskAssign, "T.1"))
		crashed = disk.AfterCrash()
	})
	on(t, crashed, func(t *testing.T, l *Log) {
		require.NoError(t, l.Record(t.Context(), "ann", TokenRevoke, "two\nlines"))
		assert.Equal(t, "ann token.create tok_1, bob task.assign T.1, ann token.revoke two?lines; next 3, more false", told(t, l, Query{}))
		assert.Equal(t, "ann token.create tok_1; next 1, more true", told(t, l, Query{Limit: 1}))
		assert.Equal(t, "ann token.revoke two?lines; next 3, more false", told(t, l, Query{After: 1, Actor: "ann"}))
		assert.Equal(t, "bob task.assign T.1; next 3, more false", told(t, l, Query{Action: TaskAssign}))
		assert.Equal(t, "ann token.revoke two?lines, bob task.assign T.1; next 2, more true", told(t, l, Query{Newest: true, Limit: 2}))
		assert.Equal(t, "ann token.create tok_1; next 1, more false", told(t, l, Query{Newest: true, After: 2}))
		page, err := l.List(t.Context(), &Query{Limit: 3})
		require.NoError(t, err)
		at, err := time.Parse(time.RFC3339, page.Rows[1].TS)
		require.NoError(t, err)
		assert.Equal(t, "bob task.assign T.1, ann token.revoke two?lines; next 3, more false", told(t, l, Query{Since: at}), "a clock that was set back puts no row before another")
		assert.Equal(t, "; next 3, more false", told(t, l, Query{Since: at.AddDate(1, 0, 0)}), "what comes next")
		assert.Equal(t, Chain{Rows: 3, Head: page.Rows[2].Hash}, verified(t, l))
		assert.Equal(t, Genesis, page.Rows[0].Prev)
	})
}

func TestRowsOfManyAtOnceAreOneChain(t *testing.T) {
	on(t, storetest.NewDisk(), func(t *testing.T, l *Log) {
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() { assert.NoError(t, l.Record(t.Context(), "ann", InstanceStop, fmt.Sprint(n))) })
		}
		all.Wait()
		chain := verified(t, l)
		assert.Empty(t, chain.Broken)
		assert.Equal(t, uint64(200), chain.Rows)
	})
}

// TestADamagedChainIsFound changes the log of four rows behind its back.
func TestADamagedChainIsFound(t *testing.T) {
	for name, of := range map[string]struct {
		damage func(w *persistence.Batch, rows []*Row)
		want   string
	}{
		"a target is another": {func(w *persistence.Batch, rows []*Row) {
			rows[1].Target = "other"
			w.Set(key.Audit(nil, 2), rows[1].append(nil))
		}, `row 2: the row at 2000-01-01T00:00:00.000Z (task.assign by "ann") is not what was written: its hash is another`},
		"with a hash that fits": {func(w *persistence.Batch, rows []*Row) {
			rows[1].Target = "other"
			rows[1].Hash = rows[1].Sum()
			w.Set(key.Audit(nil, 2), rows[1].append(nil))
		}, "row 3: the row at 2000-01-01T00:00:00.000Z names another row as the one before it: rows were removed, added or put elsewhere"},
		"the first one is gone": {func(w *persistence.Batch, _ []*Row) {
			w.Delete(key.Audit(nil, 1))
		}, "row 1: the row at 2000-01-01T00:00:00.000Z names another row as the one before it: rows were removed, added or put elsewhere"},
		"two are exchanged": {func(w *persistence.Batch, rows []*Row) {
			w.Set(key.Audit(nil, 3), rows[3].append(nil))
			w.Set(key.Audit(nil, 4), rows[2].append(nil))
		}, "row 3: the row at 2000-01-01T00:00:00.000Z names another row as the one before it: rows were removed, added or put elsewhere"},
		"one is cut": {func(w *persistence.Batch, rows []*Row) {
			w.Set(key.Audit(nil, 4), rows[3].append(nil)[:40])
		}, "row 4: damaged row of the audit log: 40 bytes do not hold one"},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, storetest.NewDisk(), func(t *testing.T, l *Log) {
				for n := range 4 {
					require.NoError(t, l.Record(t.Context(), "ann", TaskAssign, fmt.Sprint(n)))
				}
				page, err := l.List(t.Context(), &Query{Limit: 4})
				require.NoError(t, err)
				var rows []*Row
				for i := range page.Rows {
					rows = append(rows, &page.Rows[i])
				}
				w := l.o.Store.NewBatch(key.Meta)
				of.damage(w, rows)
				require.NoError(t, l.o.Store.Commit(w))
				assert.Equal(t, of.want, verified(t, l).Broken)
				// It goes on all the same, also behind a row that cannot be read.
				again := Start(Options{Store: l.o.Store, Log: zerolog.Nop()})
				assert.NoError(t, again.Record(t.Context(), "ann", TaskAssign, "5"))
				assert.NoError(t, again.Stop(t.Context()))
				assert.Contains(t, told(t, l, Query{}), "ann task.assign 5; next 5")
			})
		})
	}
}

// TestRowsThatAFullDiskKeptOutFollow in their order, with their times; of too many, one row has the number. What was only announced, or
// to be read, was not done.
func TestRowsThatAFullDiskKeptOutFollow(t *testing.T) {
	disk := storetest.NewDisk()
	on(t, disk, func(t *testing.T, l *Log) {
		require.NoError(t, l.Record(t.Context(), "ann", TokenCreate, "tok_1"))
		disk.SetFree(0)
		storetest.AwaitAccepting(t, l.o.Store, false)
		began := time.Now()
		l.Later("system", StoreCompact, "")
		require.ErrorIs(t, l.Announce(t.Context(), "system", StoreExport, ""), failure.ErrOutcomeUnknown)
		require.Error(t, l.Read(t.Context(), "bob", InstanceRead, "w/1"))
		for n := range lateMax + 2 {
			require.ErrorIs(t, l.Record(t.Context(), "ann", TaskAssign, fmt.Sprint(n)), failure.ErrOutcomeUnknown)
		}
		<-time.After(time.Hour)
		assert.Equal(t, uint64(1), verified(t, l).Rows)
		disk.SetFree(1 << 40)
		storetest.AwaitAccepting(t, l.o.Store, true)
		require.NoError(t, l.Record(t.Context(), "bob", TaskRelease, "T.1")) // behind them
		assert.Equal(t, "ann token.create tok_1, system store.compact, ann task.assign 0; next 3, more true", told(t, l, Query{Limit: 3}))
		assert.Equal(t, "bob task.release T.1, ann task.assign 998; next 1001, more true", told(t, l, Query{Newest: true, Limit: 2}))
		<-time.After(refusalsEvery)
		synctest.Wait()
		assert.Equal(t, "task.assign * x3; next 1003, more true", told(t, l, Query{Newest: true, Limit: 1}))
		assert.Equal(t, Chain{Rows: lateMax + 3, Head: verified(t, l).Head}, verified(t, l))
		page, err := l.List(t.Context(), &Query{Limit: 2})
		require.NoError(t, err)
		assert.Equal(t, began.UTC().Format(statemachine.TimeLayout), page.Rows[1].TS, "when it was done")
	})
}

// TestRefusalsAreBounded: nobody can fill the disk with what is refused, and all of it is counted.
func TestRefusalsAreBounded(t *testing.T) {
	on(t, storetest.NewDisk(), func(t *testing.T, l *Log) {
		for n := range 5000 {
			l.Refuse("", SignInRefuse, fmt.Sprint(n))
		}
		l.Refuse("ann", AccessRefuse, "tokens")
		<-time.After(90 * time.Second)
		l.Refuse("bob", SignInRefuse, "after")
		synctest.Wait()
		got := told(t, l, Query{})
		assert.Contains(t, got, "signin.refuse 99, ann access.refuse tokens, signin.refuse * x4900, bob signin.refuse after; next 103")
		l.Refuse("bob", SignInRefuse, "too many")
		require.NoError(t, l.Stop(t.Context()))
		assert.Contains(t, told(t, l, Query{After: 103}), "signin.refuse * x1; next 104")
		assert.Empty(t, verified(t, l).Broken)
	})
}

func TestReadsWithinTheHourAreOneRow(t *testing.T) {
	on(t, storetest.NewDisk(), func(t *testing.T, l *Log) {
		read := func(actor, target string) {
			require.NoError(t, l.Read(t.Context(), actor, InstanceRead, target))
		}
		read("ann", "w/1")
		read("ann", "w/1")
		read("bob", "w/1")
		<-time.After(readsFor)
		read("ann", "w/1")
		assert.Equal(t, "ann instance.read w/1, bob instance.read w/1, ann instance.read w/1; next 3, more false", told(t, l, Query{}))
	})
}

func TestAnActionIsListedOnce(t *testing.T) {
	seen := map[Action]bool{}
	for _, a := range Actions() {
		assert.False(t, seen[a], "%s is listed twice", a)
		seen[a] = true
	}
}
