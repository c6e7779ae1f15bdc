package doctor

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// fileSystemOf names the file system below a folder where it is known to be trouble (statfs(2) has the numbers).
func fileSystemOf(dir string) (name, advice string) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", ""
	}
	const network = "put data/ on a local disk: locks and syncs of network file systems cannot be relied on"
	switch s.Type {
	case unix.NFS_SUPER_MAGIC:
		return "NFS", network
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB", network
	case unix.CEPH_SUPER_MAGIC:
		return "CephFS", network
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE", "make sure that it syncs to a disk, or use a local one"
	case unix.TMPFS_MAGIC:
		return "tmpfs", "it is memory: everything is lost when the machine restarts"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", "if this is the layer of a container, it goes with the container: mount a volume"
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", ""
	case unix.XFS_SUPER_MAGIC:
		return "XFS", ""
	case unix.BTRFS_SUPER_MAGIC:
		return "Btrfs", ""
	}
	return fmt.Sprintf("type %#x", s.Type), ""
}

// isClockSynchronized asks the kernel, which an NTP client tells (adjtimex(2)).
func isClockSynchronized() (bool, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, err
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, nil
}

// memoryLimit is what the process may use: the least limit of its control groups (cgroups(7), version 2), or the
// machine's memory.
func memoryLimit() (bytes int64, source string) {
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) == nil {
		bytes, source = int64(machine.Totalram)*int64(machine.Unit), "machine" //nolint:gosec // of memory
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return bytes, source
	}
	for line := range strings.Lines(string(text)) {
		group, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ; found; group = path.Dir(group) {
			text, _ := os.ReadFile(path.Join("/sys/fs/cgroup", group, "memory.max"))
			limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // or it is "max"
			if err == nil && limit < bytes {
				bytes, source = limit, "control group"
			}
			found = group != path.Dir(group)
		}
	}
	return bytes, source
}

func openFilesMax() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return limit.Cur, nil // Go has raised it as far as it may
}
