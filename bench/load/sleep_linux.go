package load

import (
	"syscall"
	"time"
)

// sleep blocks the thread for d. The runtime's own timers are about a millisecond late while the process is idle,
// because they end an epoll_wait that counts in milliseconds: as much as what an open loop measures.
func sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // when a signal ends it early, the caller sleeps again
}
