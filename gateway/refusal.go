package gateway

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

// refuseInTime is refuse for an error of a request that no answer has.
func (x *exchange) refuseInTime(err error) {
	busy := x.status == 0 && x.connection != nil && failure.Of(err).Kind == failure.ErrBusy
	if busy && !x.awaitRetry() {
		err = errAborted
	}
	x.refuse(err)
	if busy && x.status != statusAborted {
		x.expectRetry()
	}
}

// expectRetry remembers when the caller of a refusal was told to come again.
func (x *exchange) expectRetry() {
	seconds, _ := strconv.Atoi(x.w.Header().Get("Retry-After"))
	wait := min(time.Duration(seconds)*time.Second, retryHeldMax)
	x.connection.RetryAt = x.connection.Age() + wait
	if x.beyondShare {
		x.usage.retryAt.Store(int64(time.Since(x.server.started) + wait))
	}
}

// awaitRetry waits until the caller was to come again. The request has left its place to
// others then, and its connection may be closed for a new one; that is reported as false.
func (x *exchange) awaitRetry() bool {
	wait := x.connection.RetryAt - x.connection.Age()
	if x.beyondShare {
		wait = max(wait, time.Duration(x.usage.retryAt.Load())-time.Since(x.server.started))
	}
	if wait <= 0 {
		return true
	}
	x.endAdmission()
	if !x.connection.Rest() {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.server.stopping:
	case <-x.r.Context().Done():
	}
	return x.connection.Resume()
}
