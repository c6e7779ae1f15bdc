package persistence_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// long makes the harnesses go on for that long instead of some turns; .ci/run does:
//
//	go test ./persistence -args -long 1h
var (
	long = flag.Duration("long", 0, "how long each harness runs; 0: some turns")
	seed = flag.Uint64("seed", 1, "where all chance of the harnesses comes from; .ci/random takes others")
)

// ended says before each turn of a harness whether there were so many, or -long is over.
func ended(turns int) func() bool {
	begun := time.Now()
	if testing.Short() {
		turns /= 10
	}
	return func() bool {
		if *long > 0 {
			return time.Since(begun) > *long
		}
		turns--
		return turns < 0
	}
}

// smallOptions are those of a store that flushes, compacts and switches logs within one short load.
var smallOptions = persistence.Options{Shards: 4, MemTableBytes: 64 << 10, CacheBytes: 1 << 20, FreeBytesMin: -1}

// TestNoCrashLosesOrTearsAnAcknowledgedEvent holds persistence/PROMISES.md, "P1",
// persistence/PROMISES.md, "P2", and persistence/PROMISES.md, "P11".
//
// It cuts the power at the k-th write to the file system, for random k, while events are committed. Of what was not
// synced then, none, half or all of the 4 KiB blocks and directory entries survive. It opens what is left and compares
// it with what had been acknowledged: nothing may be missing, nothing half there, and an undamaged store must never be
// refused. Every fourth time the power goes again while the journal starts.
func TestNoCrashLosesOrTearsAnAcknowledgedEvent(t *testing.T) {
	o := smallOptions
	o.CheckpointInterval = 500 * time.Microsecond // it is renewed all the time
	store := opener{options: o}
	base, err := emptyStore(store)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(*seed, 0))
	points, recoveries, events := 0, 0, uint64(0)
	writes := int64(100) // of a whole load; learned from the first that ends
	for over := ended(100); !over(); {
		k := 1 + rng.Int64N(writes)
		c := crash{store: store, pct: []int{0, 50, 100}[rng.IntN(3)], rng: rng, load: newWorkload(4, 60)}
		clone, acked, err := c.cut(base, k)
		require.NoError(t, err, "seed %d", *seed)
		if clone == nil { // the load ended before its k-th write
			writes = max(k-1, 1)
			continue
		}
		writes = max(writes, k+k/4)
		again := rng.IntN(4) == 0
		if again {
			if second := c.cutStart(clone, 1+rng.Int64N(40)); second != nil {
				clone = second
				recoveries++
			}
		}
		points++
		for _, n := range acked {
			events += n
		}
		require.NoError(t, c.check(clone, acked), "seed %d, crash %d, write %d, %d %% of unsynced data, again %t", *seed, points, k, c.pct, again)
	}
	// The rule of three: 95 % sure that fewer than this share would fail.
	t.Logf("%d crash points (%d of them during recovery), %d events acknowledged before (95 %% bound: %.1e of crashes)", points, recoveries, events, 3/float64(points))
}

// TestCrashesFindJournalsWithABug is the control: a journal that acknowledges before the sync
// (persistence/PROMISES.md, "F8"), and one that writes in halves. The power goes at every write of
// a load, one after the other, and of what was not synced all is lost, or nothing: at one of these
// moments the bug must show.
func TestCrashesFindJournalsWithABug(t *testing.T) {
	for name, bug := range map[string]bug{"early acknowledgement": earlyAck, "split batch": splitBatch} {
		t.Run(name, func(t *testing.T) {
			store := opener{smallOptions, bug}
			base, err := emptyStore(store)
			require.NoError(t, err)
			for k := int64(1); ; k++ {
				for _, survivors := range []int{0, 100} {
					c := crash{store: store, pct: survivors, rng: rand.New(rand.NewPCG(1, 1)), load: newWorkload(1, 20)}
					left, acked, err := c.cut(base, k)
					switch {
					case err != nil:
						t.Fatal(err)
					case left == nil:
						t.Fatalf("the load has ended after %d writes, and nothing was found", k-1)
					}
					if found := c.check(left, acked); found != nil {
						t.Logf("at write %d, when %d %% survive: %v", k, survivors, found)
						return
					}
				}
			}
		})
	}
}

// emptyStore creates a store and closes it.
func emptyStore(store opener) (*vfs.MemFS, error) {
	fs := vfs.NewCrashableMem()
	j, err := store.open(fs)
	if err != nil {
		return nil, err
	}
	return fs, j.Close()
}

// copyOf returns a file system of its own with everything that fs has.
func copyOf(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

type crash struct {
	store opener
	pct   int
	rng   *rand.Rand
	load  *workload
}

// cut runs the load on a copy of base and returns what a crash at the k-th write
// leaves, with what had been acknowledged by then. The clone is nil when there
// were fewer writes.
func (c *crash) cut(base *vfs.MemFS, k int64) (clone *vfs.MemFS, acked ledger, err error) {
	mem := copyOf(base)
	power := &powerCut{mem: mem, pct: c.pct, rng: c.rng, before: func() { acked = c.load.acked() }}
	j, err := c.store.open(storetest.Faults(mem, power))
	if err != nil {
		return nil, nil, err
	}
	power.arm(k)
	c.load.run(j, func() bool { return !power.isCut() })
	if err := j.Close(); err != nil {
		return nil, nil, err
	}
	power.mu.Lock()
	defer power.mu.Unlock()
	return power.clone, acked, nil
}

// cutStart opens the journal on fs and returns what a crash at the k-th write of
// that leaves; nil when there were fewer, or when it did not open.
func (c *crash) cutStart(fs *vfs.MemFS, k int64) *vfs.MemFS {
	mem := copyOf(fs)
	power := &powerCut{mem: mem, pct: c.pct, rng: c.rng}
	power.arm(k)
	j, err := c.store.open(storetest.Faults(mem, power))
	if err != nil {
		return nil // c.check meets the same error
	}
	if j.Close() != nil {
		return nil
	}
	power.mu.Lock()
	defer power.mu.Unlock()
	return power.clone
}

// check opens what a crash left.
func (c *crash) check(fs *vfs.MemFS, acked ledger) error {
	j, err := c.store.open(fs)
	if err != nil {
		return fmt.Errorf("refused: %w", err)
	}
	_, err = check(j, acked, c.load.instances, c.load.padding)
	if cerr := j.Close(); err == nil {
		err = cerr
	}
	return err
}

// powerCut is an injector that takes a crash clone at the k-th write.
type powerCut struct {
	mem    *vfs.MemFS
	pct    int
	before func() // called before the clone is taken; nil for nothing

	left  atomic.Int64 // writes until the cut; far below zero before arm and after
	mu    sync.Mutex
	clone *vfs.MemFS // under mu
	rng   *rand.Rand // under mu
}

func (p *powerCut) arm(k int64) { p.left.Store(k) }

func (p *powerCut) isCut() bool { return p.left.Load() <= 0 }

func (p *powerCut) String() string { return "power cut" }

func (p *powerCut) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || p.left.Add(-1) != 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before != nil {
		p.before() // acknowledged before the clone begins: must survive
	}
	p.clone = p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.pct, RNG: p.rng})
	return nil
}
