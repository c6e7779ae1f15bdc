// Package cputest measures how long a goroutine has had a processor. What must be quick is held to
// that: other programs that run take nothing from it, as they do from the time on a clock.
// Only tests import it.
package cputest

import (
	"runtime"
	"time"
)

// Watch begins to count for the calling goroutine. took ends it, and must be called once.
func Watch() (took func() time.Duration) {
	runtime.LockOSThread() // the system counts by thread
	begun := threadTime()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return threadTime() - begun
	}
}
