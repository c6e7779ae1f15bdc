package storetest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// staleCheckpoint never renews its integrity checkpoint by the clock: the worst moment for a
// crash. All of memtableBytes fits into one log.
func staleCheckpoint(memtableBytes int64) persistence.Options {
	return persistence.Options{
		Shards: 4, MemTableBytes: memtableBytes, CacheBytes: 1 << 20,
		FreeBytesMin: -1, CheckpointInterval: time.Hour,
	}
}

func sweep(t *testing.T, open storetest.Opener, o storetest.SweepOptions) storetest.SweepReport {
	t.Helper()
	o.Seed = uint64(time.Now().UnixNano())
	report, err := storetest.Sweep(open, o)
	require.NoError(t, err, "seed %d", o.Seed)
	t.Logf("seed %d\n%s", o.Seed, report)
	return report
}

// TestNoDamageIsSilent holds persistence/PROMISES.md, "P5". In the case
// "one long log" everything is in the first log of a new store, which Pebble alone
// would not protect (persistence/PROMISES.md, "F1").
func TestNoDamageIsSilent(t *testing.T) {
	unchecked := staleCheckpoint(64 << 10)
	unchecked.VerifyBytesMax = -1
	for name, c := range map[string]struct {
		store persistence.Options
		sweep storetest.SweepOptions
	}{
		"killed":                   {staleCheckpoint(64 << 10), storetest.SweepOptions{}},
		"killed, one long log":     {staleCheckpoint(1 << 20), storetest.SweepOptions{Flips: 60}},
		"killed, several logs":     {staleCheckpoint(64 << 10), storetest.SweepOptions{HoldTables: true, Flips: 30}},
		"closed":                   {staleCheckpoint(64 << 10), storetest.SweepOptions{Closed: true}},
		"closed, tables unchecked": {unchecked, storetest.SweepOptions{Closed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.sweep.Time = harnessTime(time.Second)
			report := sweep(t, storetest.Store(c.store), c.sweep)
			assert.LessOrEqual(t, report.Silent, 0, "silent, want 0: %s", report.First)
			assert.LessOrEqual(t, report.Changed, 0, "stores refused and yet changed, want 0")
			assert.False(t, c.sweep.Closed && report.Limit > 0, "%d lost something of a closed store, want 0", report.Limit)
		})
	}
}

// TestTheSweepFindsAStoreThatStartsOver is the control: one of all damages of a kind shows it, in whatever
// time that takes.
func TestTheSweepFindsAStoreThatStartsOver(t *testing.T) {
	open := storetest.StartOver(storetest.Store(staleCheckpoint(64 << 10)))
	report := sweep(t, open, storetest.SweepOptions{Flips: 1, First: true})
	assert.NotZero(t, report.Silent, "%d damages found nothing", report.Cases)
}
