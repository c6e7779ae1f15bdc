// Package toll makes senders pay for the bytes that they send, whatever happens to them: in time, which goes by while
// others have the processors. See gateway/DESIGN.md, "Bytes are paid for".
package toll

import (
	"sync/atomic"
	"time"
)

const (
	// ProcessorBytes is how many bytes of bodies one processor reads and parses in a second at least: those of an object
	// with 100,000 keys, the dearest there are, in two thirds of it.
	ProcessorBytes = 32 << 20
	// CreditBytes are what a sender may owe without a wait: the largest body of one request. No charge waits for its own
	// bytes, so who has paid everything may send one body more.
	CreditBytes = 1 << 20
	// WaitMax is the longest wait: who owes more is charged nothing more.
	WaitMax = time.Second
)

// Account is what one sender owes. The zero value owes nothing. It is safe for concurrent use.
type Account struct {
	paid atomic.Int64 // when all that was charged is paid, in nanoseconds on the clock of the callers
}

// Charge charges n bytes to an account that pays perSecond, and returns how long the sender has to wait for what
// was charged before. ok is false when that is longer than WaitMax: nothing is charged then. Callers give the time on one clock.
func (a *Account) Charge(now time.Duration, n, perSecond int64) (wait time.Duration, ok bool) {
	for {
		paid := a.paid.Load()
		from := max(paid, int64(now)-costOf(CreditBytes, perSecond))
		if wait = time.Duration(from) - now; wait > WaitMax {
			return wait, false
		}
		if a.paid.CompareAndSwap(paid, from+costOf(n, perSecond)) {
			return max(0, wait), true
		}
	}
}

// costOf is how long n bytes are paid for, in nanoseconds.
func costOf(n, perSecond int64) int64 { return n * int64(time.Second) / perSecond }
