package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"troupe/persistence"
)

// bench is a journal on a file system that can crash and hang.
type bench struct {
	Journal
	mem   *vfs.MemFS
	syncs *gate
}

func newBench(open Opener) (*bench, error) {
	b := &bench{mem: vfs.NewCrashableMem(), syncs: logSyncGate()}
	j, err := open(errorfs.Wrap(b.mem, b.syncs))
	b.Journal = j
	return b, err
}

// reopened returns the journal after a crash that took everything unsynced.
func (b *bench) reopened(open Opener) (Journal, error) {
	return open(b.mem.CrashClone(vfs.CrashCloneCfg{}))
}

// with opens a bench, runs f and closes it.
func with(open Opener, f func(b *bench) error) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	err = f(b)
	b.syncs.release()
	return errors.Join(err, b.Close())
}

func settingKey(n int) []byte {
	return persistence.SettingKey(nil, fmt.Sprintf("check-%05d", n))
}

// setting returns writes that set the n-th setting.
func (b *bench) setting(n int) *persistence.Writes {
	w := b.NewWrites(persistence.Meta)
	w.Set(settingKey(n), fmt.Append(nil, n))
	return w
}

// expectSettings wants settings 0 to n-1 and no other.
func expectSettings(j Journal, n int) error {
	seen := 0
	err := j.Scan(persistence.SettingsPrefix(nil), func(key, _ []byte) error {
		if string(key) != string(settingKey(seen)) {
			return fmt.Errorf("got key %q, want %q", key, settingKey(seen))
		}
		seen++
		return nil
	})
	if err == nil && seen != n {
		err = fmt.Errorf("got %d settings, want %d", seen, n)
	}
	return err
}

func visibleAtOnce(open Opener) error {
	return with(open, func(b *bench) error {
		b.syncs.hold()
		b.Append(b.setting(0), newAck())
		return expectSettings(b, 1)
	})
}

// changesComeTogether scans while batches that set ten keys to the same value
// are appended: no scan may see two values.
func changesComeTogether(open Opener) error {
	return with(open, func(b *bench) error {
		last := newAck()
		go func() {
			for round := range 200 {
				w := b.NewWrites(persistence.Meta)
				for n := range 10 {
					w.Set(settingKey(n), fmt.Append(nil, round))
				}
				b.Append(w, ignore{})
			}
			b.Barrier(last)
		}()
		for !last.answered() {
			values := map[string]bool{}
			err := b.Scan(persistence.SettingsPrefix(nil), func(_, value []byte) error {
				values[string(value)] = true
				return nil
			})
			if err != nil || len(values) > 1 {
				return errors.Join(err, fmt.Errorf("one scan saw the values %v, want one value", values))
			}
		}
		return last.wait()
	})
}

func lastChangeWins(open Opener) error {
	return with(open, func(b *bench) error {
		for n := range 3 {
			if err := commit(b, b.setting(n)); err != nil {
				return err
			}
		}
		w := b.NewWrites(persistence.Meta)
		w.Set(settingKey(0), []byte("new"))
		w.Delete(settingKey(1))
		w.Set(settingKey(2), []byte("first"))
		w.Set(settingKey(2), []byte("second"))
		if err := commit(b, w); err != nil {
			return err
		}
		j, err := b.reopened(open)
		if err != nil {
			return err
		}
		var got []string
		err = j.Scan(persistence.SettingsPrefix(nil), func(_, value []byte) error {
			got = append(got, string(value))
			return nil
		})
		if want := []string{"new", "second"}; !slices.Equal(got, want) {
			err = errors.Join(err, fmt.Errorf("after a restart got %q, want %q", got, want))
		}
		return errors.Join(err, j.Close())
	})
}

func noAckBeforeDurable(open Opener) error {
	return with(open, func(b *bench) error {
		arrived := b.syncs.hold()
		acks := make([]*ack, 20)
		for n := range acks {
			acks[n] = newAck()
			b.Append(b.setting(n), acks[n])
		}
		<-arrived
		for n, a := range acks {
			if a.answered() {
				return fmt.Errorf("append %d was acknowledged while its sync hung", n)
			}
		}
		b.syncs.release()
		for n, a := range acks {
			if err := a.wait(); err != nil {
				return fmt.Errorf("append %d: got %w, want nil", n, err)
			}
		}
		return nil
	})
}

func hangingSyncThenCrash(open Opener) error {
	return with(open, func(b *bench) error {
		if err := commit(b, b.setting(0)); err != nil {
			return err
		}
		arrived := b.syncs.hold()
		late := newAck()
		b.Append(b.setting(1), late)
		<-arrived
		told := late.answered()
		j, err := b.reopened(open)
		if err != nil {
			return err
		}
		want := 1
		if told {
			want = 2
		}
		return errors.Join(expectSettings(j, want), j.Close())
	})
}

func ackedSurvives(open Opener) error {
	return with(open, func(b *bench) error {
		const rounds = 50
		for n := range rounds {
			if err := commit(b, b.setting(n)); err != nil {
				return err
			}
		}
		j, err := b.reopened(open)
		if err != nil {
			return err
		}
		return errors.Join(expectSettings(j, rounds), j.Close())
	})
}

// orderAck notes the order of answers.
type orderAck struct {
	writer, n int
	told      func(writer, n int)
}

func (a orderAck) Committed(error) { a.told(a.writer, a.n) }

func answersInOrder(open Opener) error {
	return with(open, func(b *bench) error {
		const writers, each = 8, 300
		var last [writers]int // next n that each writer expects; only Committed touches it
		var inside atomic.Int32
		var mu sync.Mutex
		var wrong error
		told := func(writer, n int) {
			if inside.Add(1) != 1 {
				mu.Lock()
				wrong = errors.New("two waiters were told at the same time")
				mu.Unlock()
			}
			if last[writer] != n {
				mu.Lock()
				wrong = fmt.Errorf("writer %d: told %d, want %d", writer, n, last[writer])
				mu.Unlock()
			}
			last[writer]++
			inside.Add(-1)
		}
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := range each {
					b.Append(b.setting(writer), orderAck{writer, n, told})
				}
			}()
		}
		wg.Wait()
		end := newAck()
		b.Barrier(end)
		if err := end.wait(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for writer, n := range last {
			if n != each && wrong == nil {
				wrong = fmt.Errorf("writer %d: %d answers, want %d", writer, n, each)
			}
		}
		return wrong
	})
}

func answeredOnce(open Opener) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	const appends = 500
	var again atomic.Int32
	acks := make([]*ack, appends)
	var wg sync.WaitGroup
	for n := range acks {
		acks[n] = newAck()
		acks[n].extra = func() { again.Add(1) }
		wg.Add(1)
		go func() {
			defer wg.Done()
			if n%10 == 0 {
				b.Barrier(acks[n])
				return
			}
			b.Append(b.setting(n), acks[n])
		}()
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		return err
	}
	for n, a := range acks {
		if !a.answered() {
			return fmt.Errorf("append %d was not answered by the time Close had returned", n)
		}
	}
	if again.Load() > 0 {
		return fmt.Errorf("%d waiters were told twice", again.Load())
	}
	return nil
}
