package storetest

import (
	"errors"
	"fmt"

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

// hangs waits until a sync hangs, or until a is answered: a journal that never
// syncs must not make a check wait for ever.
func hangs(arrived <-chan struct{}, a *ack) {
	select {
	case <-arrived:
	case <-a.done:
	}
}
