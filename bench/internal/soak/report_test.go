package soak

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/bench/load"
)

// TestTheReportHasDriftAndPeaks: p99 doubles in the second half, and what came after the window has no row.
func TestTheReportHasDriftAndPeaks(t *testing.T) {
	w := &watcher{errs: t.Output()}
	for n, p99 := range []float64{1, 2, 3, 4, 5, 4, 100} {
		w.mu.now = peaks{resident: int64(n) << 20, disk: int64(10-n) << 20}
		w.tick(&load.Interval{BeganSeconds: float64(300 * n), EndedSeconds: float64(300 * (n + 1)), Latency: load.Latency{P99Ms: p99}})
	}
	text := w.report(&load.Result{DurationSeconds: 1800}, 400<<20, 512)
	for _, part := range []string{
		"| 25–30 | 0 | 0.00 | 4.00 |", "2.00 ms in the first half, 4.00 ms in the second (the middle of each): 2.00 times",
		"Peaks: 5 MiB resident, 400 MiB of 512 in the control group with the cache of files, 10 MiB of disk.",
	} {
		assert.Contains(t, text, part)
	}
	assert.NotContains(t, text, "30–35")
}

// TestItsScenarioCanBeServed: the files fit each other, and instances come to an end.
func TestItsScenarioCanBeServed(t *testing.T) {
	s, err := load.ParseScenario("scenario.yaml", scenario, func(string) ([]byte, error) { return definition, nil })
	require.NoError(t, err)
	assert.False(t, s.Round(), "nothing is ever deleted")
}
