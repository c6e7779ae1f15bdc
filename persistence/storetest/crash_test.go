package storetest_test

import (
	"flag"
	"testing"
	"time"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// long makes the harnesses go on for that long instead of some seconds:
//
//	go test ./persistence/storetest -args -long 1h
var long = flag.Duration("long", 0, "how long each harness runs; 0: a few seconds")

func harnessTime(short time.Duration) time.Duration {
	if *long > 0 {
		return *long
	}
	if testing.Short() {
		return short / 3
	}
	return short
}

// smallStore flushes, compacts and switches logs within one short load, and
// renews its checkpoint all the time.
func smallStore() storetest.Opener {
	return storetest.Store(persistence.Options{
		Shards: 4, MemTableBytes: 64 << 10, CacheBytes: 1 << 20,
		FreeBytesMin: -1, CheckpointInterval: 500 * time.Microsecond,
	})
}

// findMax is how long a harness looks for a bug that is there. A second is nearly
// always enough, but not where others have the processors.
const findMax = time.Minute

// find looks until something is found.
func find(t *testing.T, what string, look func() (found, tried int)) {
	t.Helper()
	all := 0
	for late := time.Now().Add(findMax); ; {
		found, tried := look()
		if found > 0 {
			return
		}
		if all += tried; time.Now().After(late) {
			t.Fatalf("%d %s found nothing", all, what)
		}
	}
}

func crash(t *testing.T, open storetest.Opener, d time.Duration) storetest.CrashReport {
	t.Helper()
	o := storetest.CrashOptions{Time: d, Seed: uint64(time.Now().UnixNano())}
	report, err := storetest.Crash(open, o)
	if err != nil {
		t.Fatalf("seed %d: %v", o.Seed, err)
	}
	t.Log(report)
	return report
}

// TestNoCrashLosesOrTearsAnAcknowledgedEvent holds persistence/PROMISES.md, "P1",
// persistence/PROMISES.md, "P2", and persistence/PROMISES.md, "P11".
func TestNoCrashLosesOrTearsAnAcknowledgedEvent(t *testing.T) {
	if report := crash(t, smallStore(), harnessTime(3*time.Second)); report.Violations > 0 {
		t.Errorf("%d violations, want 0: %s", report.Violations, report.First)
	}
}

// TestCrashesFindJournalsWithABug is the control: a journal that acknowledges
// before the sync (persistence/PROMISES.md, "F8"), and one that writes in halves.
func TestCrashesFindJournalsWithABug(t *testing.T) {
	for name, open := range map[string]storetest.Opener{
		"early acknowledgement": storetest.EarlyAck(smallStore()),
		"split batch":           storetest.SplitBatch(smallStore()),
	} {
		t.Run(name, func(t *testing.T) {
			find(t, "crashes", func() (found, tried int) {
				report := crash(t, open, time.Second)
				return report.Violations, report.Points
			})
		})
	}
}
