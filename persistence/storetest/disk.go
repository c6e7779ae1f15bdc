package storetest

import (
	"cmp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence"
)

// Disk is a disk in memory for tests of what stands on a store: its log can
// hang, its space can run out, and its power can fail.
type Disk struct {
	mem      *vfs.MemFS
	logBytes int64 // the options' MemTableBytes, unless they have one
	syncs    *gate
	free     atomic.Uint64
	cuts     *cuttableFS // nil: nobody is told of any
}

// NewDisk returns an empty disk with much space. Its logs are short, because each sync copies the log.
func NewDisk() *Disk { return diskOf(vfs.NewCrashableMem(), 256<<10) }

// NewSteadyDisk is NewDisk without AfterCrash. It is faster: a sync does nothing, and logs are so long that small tests
// have no tables, whose every read Pebble records under the race detector.
func NewSteadyDisk() *Disk { return diskOf(vfs.NewMem(), 2<<20) }

func diskOf(mem *vfs.MemFS, logBytes int64) *Disk {
	d := &Disk{mem: mem, logBytes: logBytes, syncs: new(gate)}
	d.SetFree(1 << 40)
	return d
}

// Open opens the store on the disk. The options' FS is replaced. A machine with much to
// do is not taken for a disk that hangs, unless CommitWaitMax is set.
func (d *Disk) Open(o persistence.Options) (*persistence.Store, error) {
	o.MemTableBytes = cmp.Or(o.MemTableBytes, d.logBytes)
	o.CommitWaitMax = cmp.Or(o.CommitWaitMax, time.Minute)
	var fs vfs.FS = d.mem
	if d.cuts != nil {
		fs = d.cuts
	}
	o.FS = meteredFS{Faults(fs, d.syncs), d}
	return persistence.Open("db", o)
}

// Hold makes every sync of the log hang until Release. The channel is closed when the first one does.
func (d *Disk) Hold() (arrived <-chan struct{}) { return d.syncs.hold() }

// Release lets all syncs through again.
func (d *Disk) Release() { d.syncs.release() }

// AfterCrash is the disk as a power failure at this moment leaves it: without anything that was not synced.
func (d *Disk) AfterCrash() *Disk { return diskOf(d.mem.CrashClone(vfs.CrashCloneCfg{}), d.logBytes) }

// SetFree says how much space the disk reports as free. The store looks at it a few times per second.
func (d *Disk) SetFree(bytes uint64) { d.free.Store(bytes) }

// AwaitAccepting returns when the store takes writes, or when it does not, as
// wanted. It fails the test after a minute, which only a broken store needs.
func AwaitAccepting(t testing.TB, store *persistence.Store, want bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for (store.Accepting() == nil) != want {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("accepting: %v, want %v", store.Accepting(), want)
		}
	}
}

// meteredFS is a file system that reports the disk's free space.
type meteredFS struct {
	vfs.FS
	disk *Disk
}

func (f meteredFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := f.disk.free.Load()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 41, UsedBytes: 1<<41 - free}, nil
}
