package overload

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"troupe/bench/internal/harness"
)

// sharePeriodMicros is the time over which a share counts. Who has used up his part of it
// stands still for the rest: with the usual 100 ms that would be in every latency.
const sharePeriodMicros = 10_000

// limitShare lets a process use so many processors at most, by a control group of its own. end removes the group once
// the process is gone.
func limitShare(pid int, cores float64) (end func() error, err error) {
	quota, period := strconv.Itoa(int(cores*sharePeriodMicros)), strconv.Itoa(sharePeriodMicros)
	group, err := harness.Group("cpu", "troupe-overload-"+strconv.Itoa(pid),
		[]harness.Setting{{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}}, []harness.Setting{{"cpu.max", quota + " " + period}})
	if err != nil {
		return nil, err
	}
	end = func() error { return os.Remove(group) }
	if err := harness.SetGroup(filepath.Join(group, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}
