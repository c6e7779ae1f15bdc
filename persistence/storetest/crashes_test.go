package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// CrashOptions bound a run of [Crash].
type CrashOptions struct {
	// Seed makes a run repeatable, as far as goroutines allow. Zero: 1.
	Seed uint64
	// Time is how long to go on. Zero: 5 s.
	Time time.Duration
	// Instances and Events size the load of each crash. Zero: 4 and 60.
	Instances, Events int
}

// CrashReport says what crashes did.
type CrashReport struct {
	Points     int // crashes that happened
	Recoveries int // of them, crashes again while starting
	Acked      int // events acknowledged before a crash, over all crashes
	Violations int
	First      string // the first violation, and how to repeat it
}

func (r CrashReport) String() string {
	s := fmt.Sprintf("%d crash points (%d of them during recovery), %d events acknowledged before, %d violations",
		r.Points, r.Recoveries, r.Acked, r.Violations)
	if r.Violations == 0 && r.Points > 0 {
		// The rule of three: 95 % sure that fewer than this share would fail.
		return s + fmt.Sprintf(" (95 %% bound: %.1e of crashes)", 3/float64(r.Points))
	}
	return s + "; first: " + r.First
}

// Crash cuts the power at the k-th write to the file system, for random k, while
// events are committed. Of what was not synced then, none, half or all of the
// 4 KiB blocks and directory entries survive. It opens what is left and compares
// it with what had been acknowledged: nothing may be missing, nothing half
// there, and an undamaged store must never be refused. Every fourth time the
// power goes again while the journal starts.
func Crash(open Opener, o CrashOptions) (CrashReport, error) {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Time == 0 {
		o.Time = 5 * time.Second
	}
	if o.Instances == 0 {
		o.Instances, o.Events = 4, 60
	}
	base, err := emptyJournal(open)
	if err != nil {
		return CrashReport{}, err
	}
	var r CrashReport
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	writes := int64(100) // of a whole load; learned from the first that ends
	for start := time.Now(); time.Since(start) < o.Time; {
		k := 1 + rng.Int64N(writes)
		pct := []int{0, 50, 100}[rng.IntN(3)]
		c := crash{open: open, pct: pct, rng: rng, load: newWorkload(o.Instances, o.Events)}
		clone, acked, err := c.cut(base, k)
		if err != nil {
			return r, err
		}
		if clone == nil { // the load ended before its k-th write
			writes = max(k-1, 1)
			continue
		}
		writes = max(writes, k+k/4)
		again := rng.IntN(4) == 0
		if again {
			if second := c.cutStart(clone, 1+rng.Int64N(40)); second != nil {
				clone = second
				r.Recoveries++
			}
		}
		r.Points++
		for _, n := range acked {
			r.Acked += int(n)
		}
		if err := c.check(clone, acked); err != nil {
			r.Violations++
			if r.First == "" {
				r.First = fmt.Sprintf("seed %d, crash %d, write %d, %d %% of unsynced data, again %t: %v",
					o.Seed, r.Points, k, pct, again, err)
			}
		}
	}
	return r, nil
}

// emptyJournal creates a journal and closes it.
func emptyJournal(open Opener) (*vfs.MemFS, error) {
	fs := vfs.NewCrashableMem()
	j, err := open(fs)
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
	open Opener
	pct  int
	rng  *rand.Rand
	load *workload
}

// cut runs the load on a copy of base and returns what a crash at the k-th write
// leaves, with what had been acknowledged by then. The clone is nil when there
// were fewer writes.
func (c *crash) cut(base *vfs.MemFS, k int64) (clone *vfs.MemFS, acked ledger, err error) {
	mem := copyOf(base)
	power := &powerCut{mem: mem, pct: c.pct, rng: c.rng, before: func() { acked = c.load.acked() }}
	j, err := c.open(errorfs.Wrap(mem, power))
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
	j, err := c.open(errorfs.Wrap(mem, power))
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
	j, err := c.open(fs)
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

	left atomic.Int64 // writes until the cut; far below zero before arm and after
	mu   struct {
		sync.Mutex
	}
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
