package storetest_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		return short / 10
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

func crash(t *testing.T, open storetest.Opener, d time.Duration) storetest.CrashReport {
	t.Helper()
	o := storetest.CrashOptions{Time: d, Seed: uint64(time.Now().UnixNano())}
	report, err := storetest.Crash(open, o)
	require.NoError(t, err, "seed %d", o.Seed)
	t.Log(report)
	return report
}

// TestNoCrashLosesOrTearsAnAcknowledgedEvent holds persistence/PROMISES.md, "P1",
// persistence/PROMISES.md, "P2", and persistence/PROMISES.md, "P11".
func TestNoCrashLosesOrTearsAnAcknowledgedEvent(t *testing.T) {
	report := crash(t, smallStore(), harnessTime(3*time.Second))
	assert.LessOrEqual(t, report.Violations, 0, "violations, want 0: %s", report.First)
}
