package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"troupe/persistence"
	"troupe/persistence/key"
)

func visibleBeforeSync(open Opener) error {
	return with(open, func(b *bench) error {
		b.syncs.hold()
		visible := make(applied, 1)
		b.Append(b.setting(0), visible)
		<-visible
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
				w := b.NewBatch(key.Meta)
				for n := range 10 {
					w.Set(settingKey(n), fmt.Append(nil, round))
				}
				b.Append(w, ignore{})
			}
			b.Barrier(last)
		}()
		for !last.answered() {
			values := map[string]bool{}
			err := b.Scan(key.SettingsPrefix(nil), func(_, value []byte) error {
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
		w := b.NewBatch(key.Meta)
		w.Set(settingKey(0), []byte("new"))
		w.Delete(settingKey(1))
		w.Set(settingKey(2), []byte("first"))
		w.Set(settingKey(2), []byte("second"))
		if err := commit(b, w); err != nil {
			return err
		}
		return b.afterCrash(open, func(j Journal) error { return expectValues(j, "new", "second") })
	})
}

// rangesGo deletes the settings 10 to 19 of 30, together with one outside, and
// sets one of them again in the same batch.
func rangesGo(open Opener) error {
	return with(open, func(b *bench) error {
		for n := range 30 {
			b.Append(b.setting(n), ignore{})
		}
		w := b.NewBatch(key.Meta)
		w.DeleteRange(settingKey(10), settingKey(20))
		w.Set(settingKey(15), []byte("again"))
		w.Delete(settingKey(29))
		if err := commit(b, w); err != nil {
			return err
		}
		check := func(j Journal) error {
			return expectValues(j, strings.Fields("0 1 2 3 4 5 6 7 8 9 again 20 21 22 23 24 25 26 27 28")...)
		}
		if err := check(b); err != nil {
			return fmt.Errorf("running: %w", err)
		}
		return b.afterCrash(open, check)
	})
}

func noAckBeforeDurable(open Opener) error {
	return with(open, func(b *bench) error {
		arrived := b.syncs.hold()
		acks := b.appendAll(20)
		hangs(arrived, acks[0])
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
		hangs(arrived, late)
		told := late.answered()
		want := 1
		if told {
			want = 2
		}
		return b.afterCrash(open, func(j Journal) error { return expectSettings(j, want) })
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
		return b.afterCrash(open, func(j Journal) error { return expectSettings(j, rounds) })
	})
}

// manyInFlight appends more than a log can have waiting for one sync, from one
// goroutine, while the sync hangs. A journal needs room in memory for that.
func manyInFlight(open Opener) error {
	return with(open, func(b *bench) error {
		const appends = 4500
		b.syncs.hold()
		for n := range appends {
			b.Append(b.setting(n), ignore{})
		}
		b.syncs.release()
		if err := barrier(b); err != nil {
			return err
		}
		return b.afterCrash(open, func(j Journal) error { return expectSettings(j, appends) })
	})
}

// countWriters writers add to two counters countsEach times.
const countWriters, countsEach = 8, 100

func countersAddUp(open Opener) error {
	return with(open, func(b *bench) error {
		var wg sync.WaitGroup
		for writer := range countWriters {
			wg.Go(func() {
				for range countsEach {
					w := b.NewBatch(1)
					w.Add(key.Count(nil, 1, workflow, 1), 3)
					w.Add(key.Count(nil, 1, workflow, 2), -1)
					if writer == 0 {
						_ = commit(b, w)
						continue
					}
					b.Append(w, ignore{})
				}
			})
		}
		wg.Wait()
		if err := barrier(b); err != nil {
			return err
		}
		if err := countersAre(b); err != nil {
			return fmt.Errorf("running: %w", err)
		}
		return b.afterCrash(open, countersAre)
	})
}

func countersAre(j Journal) error {
	for version, want := range map[uint64]int64{1: 3 * countWriters * countsEach, 2: -countWriters * countsEach} {
		value, _, err := load(j, key.Count(nil, 1, workflow, version))
		if err != nil {
			return err
		}
		if got, err := persistence.ParseCount(value); err != nil || got != want {
			return errors.Join(err, fmt.Errorf("counter %d is %d, want %d", version, got, want))
		}
	}
	return nil
}
