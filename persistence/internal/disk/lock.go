package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/rs/zerolog"
)

// ErrLocked: another process has the store open.
var ErrLocked = errors.New("store is in use by another process")

// Lock takes Pebble's lock, which is on the file LOCK.
func Lock(f Folder) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(f.Dir, f.FS)
	if err == nil {
		return lock, nil
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, err // the file could not even be made
	}
	return nil, lockedFault(f.Dir)
}

// Hold locks a folder of the operating system's itself. Pebble's lock ends where the file LOCK is removed: the next
// process makes a new one and locks that. A folder is there as long as what is in it, and has one lock under all of its
// names. File systems that lock no folders are worked with all the same, and what a second process
// does there is noticed by the integrity recorder.
func Hold(dir string, log zerolog.Logger) (held io.Closer, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(lockedFault(dir), f.Close())
	}
	if err != nil {
		log.Warn().Str("dir", dir).Err(err).Msg("this file system locks no folders; nothing but the file LOCK keeps a second process out")
	}
	return f, nil
}

func lockedFault(dir string) error {
	holder := ""
	if pid := holderOf(dir); pid != "" {
		holder = " by process " + pid
	}
	return fmt.Errorf("%w: %s is locked%s; stop the other one, or give this one its own directory", ErrLocked, dir, holder)
}

// holderOf returns the process that has Hold's lock of a folder, empty where the system does not say.
// NB: asking for the lock on the file LOCK would open that, and closing it would end a lock of this process.
func holderOf(dir string) (pid string) {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, _ := os.ReadFile("/proc/locks") // of Linux
	for line := range strings.Lines(string(locks)) {
		// 2: FLOCK  ADVISORY  WRITE 9161 fe:00:10609693 0 EOF
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], fmt.Sprintf(":%d", stat.Ino)) {
			continue
		}
		if pid != "" {
			return "" // two file systems have the number
		}
		pid = f[4]
	}
	return pid
}
