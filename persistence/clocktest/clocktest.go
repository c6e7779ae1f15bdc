// Package clocktest moves the virtual clock of tests, and has connections that live by it. It is the one place that
// sleeps, and it does so only where sleeping costs no time: in a bubble of testing/synctest.
package clocktest

import (
	"testing/synctest"
	"time"
)

// Advance lets d pass on the clock of the bubble, and returns when everything that fell due by then is done. It panics
// outside a bubble, so that no test waits on a real clock by it. One goroutine of a bubble may advance at a time.
func Advance(d time.Duration) {
	synctest.Wait() // panics outside a bubble
	time.Sleep(d)
	synctest.Wait()
}
