package persistence

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// hangable opens a store whose log syncs can be held up.
func hangable(t *testing.T) (*Store, *faultyFS) {
	t.Helper()
	f := &faultyFS{suffix: ".log", kinds: syncKinds}
	return open(t, small(errorfs.Wrap(vfs.NewMem(), f))), f
}

// orderWaiter counts its answers and their order.
type orderWaiter struct {
	calls *atomic.Int64 // of all waiters
	own   atomic.Int64
	at    atomic.Int64 // which call it was
	err   atomic.Pointer[error]
}

func (w *orderWaiter) Committed(err error) {
	w.err.Store(&err)
	w.own.Add(1)
	w.at.Store(w.calls.Add(1))
}

func TestEveryWaiterIsToldOnceInOrderWhenTheDiskHangsAndHeals(t *testing.T) {
	for name, healAfter := range map[string]time.Duration{
		"before the wait is over":         8 * time.Second,
		"while some are told unknown":     11 * time.Second,
		"after all have been told":        40 * time.Second,
		"in the tick that tells the last": 10 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, disk := hangable(t)
				release := disk.hold()
				var calls atomic.Int64
				waiters := make([]*orderWaiter, 30)
				time.AfterFunc(healAfter, release)
				for n := range waiters {
					waiters[n] = &orderWaiter{calls: &calls}
					w := s.NewBatch(key.Meta)
					w.Set(key.Setting(nil, "a"), []byte{byte(n)})
					s.Append(w, waiters[n])
					clocktest.Advance(70 * time.Millisecond)
				}
				clocktest.Advance(time.Minute)
				for n, w := range waiters {
					assert.Equal(t, int64(1), w.own.Load(), "waiter %d: told", n)
					assert.Equal(t, int64(n+1), w.at.Load(), "waiter %d: told as number", n)
					err := *w.err.Load()
					assert.False(t, err != nil && !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrStalled), "waiter %d: told %v", n, err)
				}
				assert.NoError(t, s.Accepting(), "accepting at the end")
			})
		})
	}
}

// memoryAppends is how many appends of 1 KiB are more than a store of withoutRoom has in
// memory: four memtables.
const memoryAppends = 400

// withoutRoom opens a store that writes no table until release is called.
func withoutRoom(t *testing.T) (s *Store, release func()) {
	t.Helper()
	f := &faultyFS{suffix: ".sst", kinds: []errorfs.OpKind{errorfs.OpCreate}}
	o := small(errorfs.Wrap(vfs.NewMem(), f))
	o.MemTableBytes = 64 << 10
	s = open(t, o)
	return s, f.hold()
}

// TestAppendDoesNotWaitForRoomInMemory though commits do, before they are in the log at
// all. That is noticed too.
func TestAppendDoesNotWaitForRoomInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := withoutRoom(t)
		told := make(waitFor, memoryAppends)
		for range memoryAppends {
			w := s.NewBatch(key.Meta)
			w.Set(key.Setting(nil, "big"), make([]byte, 1<<10))
			s.Append(w, told)
		}
		synctest.Wait()
		require.False(t, s.commits.Idle(), "no commit is waiting for room")
		clocktest.Advance(2 * time.Second)
		wantError(t, "accepting", s.Accepting(), ErrStalled)
		clocktest.Advance(s.options.CommitWaitMax)
		assert.Len(t, told, memoryAppends, "told")
		unknown := 0
		for len(told) > 0 {
			if err := <-told; errors.Is(err, ErrOutcomeUnknown) {
				unknown++
			}
		}
		assert.NotZero(t, unknown, "no waiter was told that the outcome is unknown")
		release()
		clocktest.Advance(time.Minute)
		wantError(t, "accepting after it healed", s.Accepting(), nil)
	})
}

// TestWhatCannotBeVisibleIsSaid: commits that found no room in memory.
func TestWhatCannotBeVisibleIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := withoutRoom(t)
		for range memoryAppends {
			appendSetting(s, "big", string(make([]byte, 1<<10)))
		}
		wantError(t, "without room in memory", s.AwaitVisible(), ErrStalled)
		release()
		clocktest.Advance(time.Minute)
		must(t, s.AwaitVisible())
	})
}

// TestAHangingDiskGathersNothing: who asks again and again is told, and forgotten.
func TestAHangingDiskGathersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, release := withoutRoom(t)
		for range memoryAppends {
			appendSetting(s, "big", string(make([]byte, 1<<10)))
		}
		clocktest.Advance(2 * s.options.CommitWaitMax)
		for range 10 {
			told := make(waitFor, 10)
			for range cap(told) / 2 {
				s.Barrier(told)
				w := s.NewBatch(key.Meta)
				w.Set(key.Setting(nil, "b"), nil)
				s.Append(w, told)
			}
			clocktest.Advance(2 * s.options.CommitWaitMax)
			require.Len(t, told, cap(told))
		}
		m := s.Metrics()
		assert.True(t, m.Waiting <= memoryAppends && m.Refused == 50, "%d tickets wait and %d were refused, want %d at most and 50", m.Waiting, m.Refused, memoryAppends)
		release()
		must(t, s.AwaitDurable())
		clocktest.Advance(time.Second) // some ticks of the watchdog
		mustCommit(t, s, "a", "1")
	})
}

func TestCloseOfAStuckStoreReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faultyFS{suffix: ".log", kinds: syncKinds}
		s := mustOpen(t, "db", small(errorfs.Wrap(vfs.NewMem(), f)))
		release := f.hold()
		c := appendSetting(s, "a", "1")
		wantError(t, "close", s.Close(), ErrStalled)
		wantError(t, "waiter", <-c, ErrOutcomeUnknown)
		release()
		// What Close gave up on; a process would have ended.
		must(t, s.commits.Close())
		close(s.stop)
		<-s.spaceDone
		s.recorder.Stop()
		assert.NoError(t, errors.Join(s.closeDB(), s.undo[0]()))
	})
}

// TestAVoteWaitsForTheDisk, where other writes are refused: without its term Raft ends the process.
func TestAVoteWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, disk := hangable(t)
		release := disk.hold()
		appendSetting(s, "a", "1")
		clocktest.Advance(s.options.CommitWaitMax / 2)
		wantError(t, "accepting", s.Accepting(), ErrStalled)

		write := func(how replica.Write, name string) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- localRows{s, key.Meta}.Write(how, func(b replica.Batch) { b.Set(key.Setting(nil, name), []byte("1")) })
			}()
			return done
		}
		vote, entry := write(replica.Vital, "vote"), write(replica.Synced, "entry")
		clocktest.Advance(3 * s.options.CommitWaitMax)
		wantError(t, "an entry", <-entry, replica.ErrRefused)
		select {
		case err := <-vote:
			t.Errorf("the vote was answered before it was durable: %v", err)
		default:
		}
		release()
		wantError(t, "the vote", <-vote, nil)
		wantSetting(t, s, "vote", "1")
	})
}
