package overload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// sharePeriodMicros is the time over which a share counts. Who has used up his part of it
// stands still for the rest: with the usual 100 ms that would be in every latency.
const sharePeriodMicros = 10_000

// limitShare lets a process use so many processors at most, by a control group of its own
// below root, of version 1 or 2. end removes the group once the process is gone.
func limitShare(root string, pid int, cores float64) (end func() error, err error) {
	quota, period := strconv.Itoa(int(cores*sharePeriodMicros)), strconv.Itoa(sharePeriodMicros)
	name := "troupe-overload-" + strconv.Itoa(pid)
	end, err = group(filepath.Join(root, "cpu", name), pid, [2]string{"cpu.cfs_period_us", period}, [2]string{"cpu.cfs_quota_us", quota})
	if err != nil {
		var err2 error
		if end, err2 = group(filepath.Join(root, name), pid, [2]string{"cpu.max", quota + " " + period}); err2 != nil {
			return nil, fmt.Errorf("make a control group: %w", errors.Join(err, err2))
		}
	}
	return end, nil
}

func group(dir string, pid int, settings ...[2]string) (end func() error, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	end = func() error { return os.Remove(dir) }
	for _, s := range append(settings, [2]string{"cgroup.procs", strconv.Itoa(pid)}) {
		if err := set(filepath.Join(dir, s[0]), s[1]); err != nil {
			return nil, errors.Join(err, end())
		}
	}
	return end, nil
}

// set writes a file that the kernel has made; a folder that is not a control group has none.
func set(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
