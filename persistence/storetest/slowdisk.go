package storetest

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// SlowDisk is a file system in memory whose syncs of files wait while it is held: what was written meanwhile is visible, and not durable.
type SlowDisk struct {
	vfs.FS
	wait atomic.Pointer[chan struct{}] // nil: nothing waits
}

// NewSlowDisk returns an empty one that is not held.
func NewSlowDisk() *SlowDisk {
	d := &SlowDisk{}
	d.FS = Faults(vfs.NewMem(), d)
	return d
}

// Hold has syncs wait until release is called, once.
func (d *SlowDisk) Hold() (release func()) {
	wait := make(chan struct{})
	d.wait.Store(&wait)
	return func() {
		d.wait.Store(nil)
		close(wait)
	}
}

// MaybeError implements errorfs.Injector. It waits, and fails nothing.
func (d *SlowDisk) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if wait := d.wait.Load(); wait != nil {
			<-*wait
		}
	}
	return nil
}

func (*SlowDisk) String() string { return "slow disk" }
