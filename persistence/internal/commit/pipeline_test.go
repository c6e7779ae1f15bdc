package commit

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/persistence/clocktest"
	"troupe/persistence/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowDisk applies batches, and syncs none before it is released.
type slowDisk struct{ released chan struct{} }

func (d slowDisk) Apply(db *engine.Generation, batch engine.Batch, _ bool) (uint64, error) {
	return 0, db.ApplyUnsynced(batch)
}

func (d slowDisk) Sync(engine.Batch, uint64) error {
	<-d.released
	return nil
}

func (slowDisk) Answered() {}

// owner is a set of writes that is used once.
type owner struct{}

func (owner) Place() (key, value []byte) { return nil, nil }
func (owner) Recycle()                   {}

type told chan error

func (w told) Committed(err error) { w <- err }

// TestWhatWaitsForASlowDiskGathers: there are no more groups than there may be, and all
// appends are in one of them, in their order.
func TestWhatWaitsForASlowDiskGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := engine.Open(vfs.NewMem(), "db", &pebble.Options{FS: vfs.NewMem()})
		require.NoError(t, err)
		var db atomic.Pointer[engine.Generation]
		db.Store(g)
		disk := slowDisk{make(chan struct{})}
		p := New(Options{Applier: disk, DB: &db, WaitMax: time.Hour, Fatal: func(reason string) { t.Error(reason) }})
		p.Start()
		wantValue := func(want int) {
			t.Helper()
			value, closer, err := g.Get([]byte("a"))
			assert.True(t, err == nil && string(value) == fmt.Sprint(want), "got %q, %v, want %d", value, err, want)
			if err == nil {
				_ = closer.Close()
			}
		}

		commits := make(told, 4*groupTicketsMax)
		for n := range cap(commits) {
			ticket := &Ticket{Owner: owner{}, Batch: g.EmptyBatch(0), DB: g, Waiter: commits}
			_ = ticket.Batch.Set([]byte("a"), []byte(fmt.Sprint(n)), nil)
			require.True(t, p.Append(ticket), "refused")
			if n < groupsMax {
				synctest.Wait() // a group of its own
			}
		}
		synctest.Wait()
		wantValue(groupsMax - 1)
		p.queue.mu.Lock()
		assert.Len(t, p.queue.mu.groups, groupsMax)
		p.queue.mu.Unlock()
		close(disk.released)
		for range cap(commits) {
			err := <-commits
			require.NoError(t, err)
		}
		wantValue(cap(commits) - 1)
		assert.NoError(t, p.Close())
		assert.NoError(t, g.Close())
	})
}

// placing is a set of writes with rows that have their places late.
type placing struct {
	owner
	keys []string
}

func (p *placing) Place() (key, value []byte) {
	if len(p.keys) == 0 {
		return nil, nil
	}
	key, p.keys = []byte(p.keys[0]), p.keys[1:]
	return key, []byte("placed")
}

// TestPlacedRowsStandBehindTheOthers of all tickets of a group, in the order of their keys, and once.
func TestPlacedRowsStandBehindTheOthers(t *testing.T) {
	g, err := engine.Open(vfs.NewMem(), "db", &pebble.Options{FS: vfs.NewMem()})
	require.NoError(t, err)
	var group group
	for n, placed := range [][]string{{"f2", "f4"}, {"f1"}, nil, {"f3"}} {
		ticket := &Ticket{Owner: owner{}, Batch: g.EmptyBatch(0), DB: g}
		if placed != nil {
			ticket.Owner, ticket.Announces = &placing{keys: placed}, true
		}
		if n != 1 { // it writes nothing else
			_ = ticket.Batch.Set(fmt.Append(nil, "own", n), nil, nil)
		}
		assert.True(t, ticket.writes(), "ticket %d", n)
		group.add(ticket)
	}
	group.addPlaced()
	group.addPlaced()
	var got []string
	engine.EachSet(group.batch.Repr(), func(key, _ []byte) { got = append(got, string(key)) })
	assert.Equal(t, []string{"own0", "own2", "own3", "f1", "f2", "f3", "f4"}, got)
	assert.NoError(t, g.Close())
}

// TestAStoppedProcessDoesNotBlameTheDisk: after SIGSTOP and SIGCONT, or when a machine was
// suspended, the age of a commit is the time that the process ran.
func TestAStoppedProcessDoesNotBlameTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waitMax = 4 * time.Second
		w := watchdog{ticked: time.Now()}
		tick := watchdogInterval(waitMax)
		var took []time.Duration
		for _, away := range []time.Duration{tick, 2 * tick, time.Hour, tick} {
			clocktest.Advance(away)
			before := w.clock.Load()
			took = append(took, time.Duration(w.advance(waitMax)-before)/tick)
		}
		want := []time.Duration{1, 2, 4, 1}
		assert.True(t, slices.Equal(took, want), "the clock advanced by %d ticks, want %d", took, want)
	})
}
