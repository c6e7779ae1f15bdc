package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"troupe/persistence"
	"troupe/persistence/key"
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

// afterCrash opens the journal as a crash leaves it that takes everything
// unsynced, runs f and closes it.
func (b *bench) afterCrash(open Opener, f func(j Journal) error) error {
	j, err := open(b.mem.CrashClone(vfs.CrashCloneCfg{}))
	if err != nil {
		return err
	}
	return errors.Join(f(j), j.Close())
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
	return key.Setting(nil, fmt.Sprintf("check-%05d", n))
}

// setting returns writes that set the n-th setting.
func (b *bench) setting(n int) *persistence.Batch {
	w := b.NewBatch(key.Meta)
	w.Set(settingKey(n), fmt.Append(nil, n))
	return w
}

// expectSettings wants settings 0 to n-1 and no other.
func expectSettings(j Journal, n int) error {
	seen := 0
	err := j.Scan(key.SettingsPrefix(nil), func(key, value []byte) error {
		if string(key) != string(settingKey(seen)) || string(value) != fmt.Sprint(seen) {
			return fmt.Errorf("got %q=%q, want number %d", key, value, seen)
		}
		seen++
		return nil
	})
	if err == nil && seen != n {
		err = fmt.Errorf("got %d settings, want %d", seen, n)
	}
	return err
}

// expectValues wants the settings to have these values, in the order of their keys.
func expectValues(j Journal, want ...string) error {
	var got []string
	err := j.Scan(key.SettingsPrefix(nil), func(_, value []byte) error {
		got = append(got, string(value))
		return nil
	})
	if !slices.Equal(got, want) {
		err = errors.Join(err, fmt.Errorf("got the values %q, want %q", got, want))
	}
	return err
}

// appendAll appends the settings 0 to n-1.
func (b *bench) appendAll(n int) (acks []*ack) {
	for n := range n {
		acks = append(acks, newAck())
		b.Append(b.setting(n), acks[n])
	}
	return acks
}

// barrier waits for everything that was appended.
func barrier(j Journal) error {
	end := newAck()
	j.Barrier(end)
	return end.wait()
}

// hangs waits until a sync hangs, or until a is answered: a journal that never
// syncs must not make a check wait forever.
func hangs(arrived <-chan struct{}, a *ack) {
	select {
	case <-arrived:
	case <-a.done:
	}
}
