package kernel

import (
	"strconv"
	"time"

	"troupe/actors/failure"
)

// Callers who come again at once when the service has refused them for want of room can
// take the processors from the requests that were accepted: a refusal may cost as much as an
// event (gateway/DESIGN.md, "Overload"). So whoever is refused once more on the same connection,
// before the time that Retry-After said, hears of it at that time, or after retryHeldMax. So does a
// user who is beyond what one user may have, on any connection.

// retryHeldMax is how long such a caller waits at most, however long Retry-After is.
const retryHeldMax = 3 * time.Second

// writeErrorInTime is refuse for an error of a request that no answer has.
func (x *Exchange) writeErrorInTime(err error) {
	busy := x.Status == 0 && x.Connection != nil && failure.Of(err).Kind == failure.ErrBusy
	if busy && !x.AwaitRetry() {
		err = ErrAborted
	}
	x.writeError(err)
	if busy && x.Status != statusAborted {
		x.ExpectRetry()
	}
}

// ExpectRetry remembers when the caller of a refusal was told to come again.
func (x *Exchange) ExpectRetry() {
	seconds, _ := strconv.Atoi(x.Writer.Header().Get("Retry-After"))
	wait := min(time.Duration(seconds)*time.Second, retryHeldMax)
	x.Connection.RetryAt = x.Connection.Age() + wait
	if x.BeyondShare {
		x.Usage.RetryAt.Store(int64(time.Since(x.Kernel.Started) + wait))
	}
}

// AwaitRetry waits until the caller was to come again. The request has left its place to
// others then, and its connection may be closed for a new one; that is reported as false.
func (x *Exchange) AwaitRetry() bool {
	wait := x.Connection.RetryAt - x.Connection.Age()
	if x.BeyondShare {
		wait = max(wait, time.Duration(x.Usage.RetryAt.Load())-time.Since(x.Kernel.Started))
	}
	if wait <= 0 {
		return true
	}
	x.EndAdmission()
	if !x.Connection.Rest() {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.Kernel.Stopping:
	case <-x.Request.Context().Done():
	}
	return x.Connection.Resume()
}
