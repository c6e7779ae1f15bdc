package kernel

import (
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/internal/listener"
)

func (x *Exchange) admitAnonymous() bool {
	if x.Route.Access.Kinds != 0 {
		return true
	}
	address, _ := x.Kernel.ClientOf(x.Request)
	x.network = listener.NetworkOf(address)
	x.anonymous = x.Kernel.Anonymous.admit(x.network, &x.Kernel.Limits)
	return x.anonymous
}

// admitUser counts the request for its caller, or reports that the caller has reached the limit for one user.
func (x *Exchange) admitUser() bool {
	x.Usage = x.Kernel.Usage.Of(x.Caller.ID)
	requests := x.Usage.Requests.Add(1)
	l := &x.Kernel.Limits
	return requests-x.Usage.Idle.Load() <= Half(x.Kernel.Pressure.Limit.Load()) && requests+x.Usage.Watchers.Load()+x.Usage.waits.Load() <= l.userBusyConnections
}

// RejectOverload counts a request that is refused because a limit is reached, and returns the reason.
func (x *Exchange) RejectOverload() error {
	x.Kernel.metrics.shed.Add(1)
	return failure.ErrBusy
}

// rejectUser is RejectOverload for the limit of one user, x.Usage.
func (x *Exchange) rejectUser() error {
	x.BeyondShare = x.Usage != nil
	return x.RejectOverload()
}

// EndAdmission ends what serve began by counting the request. The second call does nothing.
func (x *Exchange) EndAdmission() {
	if x.anonymous {
		x.anonymous = false
		x.Kernel.Anonymous.release(x.network)
	}
	if x.Counted {
		x.Counted = false
		if x.Usage != nil {
			x.returnToSlot()
			x.Usage.Requests.Add(-1)
		}
		x.Kernel.requestEnded()
	}
}

// requestEnded uncounts a request that serve has counted.
func (s *Kernel) requestEnded() {
	if s.InFlight.Add(-1) == 0 && s.Draining.Load() {
		select {
		case s.allAnswered <- struct{}{}:
		default: // Stop has not checked yet
		}
	}
}

// LeaveSlot gives the place of a user's request to others, while nothing is done for it: it waits for lines of a batch, or
// until bytes are paid for. It belongs to the goroutine of the request, as all of these.
func (x *Exchange) LeaveSlot() {
	if x.Counted && x.Usage != nil && !x.idle {
		x.idle = true
		x.Usage.Idle.Add(1)
		x.Kernel.Idle.Add(1)
	}
}

// returnToSlot ends LeaveSlot, whether there is a place or not.
func (x *Exchange) returnToSlot() {
	if x.idle {
		x.idle = false
		x.Usage.Idle.Add(-1)
		x.Kernel.Idle.Add(-1)
	}
}

// TakeSlot ends LeaveSlot, or reports that there is no place now. Then it can be called again.
func (x *Exchange) TakeSlot() bool {
	if !x.idle {
		return true
	}
	// NB: it counts before it looks, as admitUser does: of two at the last place one at least sees the other. The lock is
	// so that of two that come back not both see the other.
	x.Kernel.placing.Lock()
	defer x.Kernel.placing.Unlock()
	x.returnToSlot()
	limit := x.Kernel.Pressure.Limit.Load()
	if x.Kernel.Working() > limit || x.Usage.Requests.Load()-x.Usage.Idle.Load() > Half(limit) {
		x.LeaveSlot()
		return false
	}
	return true
}

// Charge charges n bytes of a body or an answer to the caller (package toll).
func (x *Exchange) Charge(n int64) (wait time.Duration, ok bool) {
	s := x.Kernel
	account := &s.anonymousBytes
	if x.Usage != nil {
		account = &x.Usage.Bytes
	}
	return account.Charge(time.Since(s.Started), n, s.Limits.UserBytes)
}

// Pay charges bytes of a body before they are read, or of an answer before it is sent, and waits until those are paid that
// were charged before. The request is not worked on meanwhile. Who owes too much is refused.
func (x *Exchange) Pay(n int64) error {
	wait, ok := x.Charge(n)
	switch {
	case !ok:
		return x.rejectUser()
	case wait == 0:
		return nil
	}
	x.LeaveSlot()
	defer x.returnToSlot()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.Kernel.Requests.Done():
		return failure.ErrUnavailable
	}
}

// Callers who come again at once when the service has refused them can take the processors from accepted requests: a
// refusal may cost as much as an event (gateway/DESIGN.md, "Overload"). So whoever is refused once more on the same
// connection, before the time that Retry-After said, hears of it at that time, or after retryHeldMax. So does a user who
// is beyond what one user may have, on any connection.

// retryHeldMax is how long such a caller waits at most, however long Retry-After is.
const retryHeldMax = 3 * time.Second

// ExpectRetry remembers when the caller of a refusal was told to come again.
func (x *Exchange) ExpectRetry() {
	seconds, _ := strconv.Atoi(x.Writer.Header().Get("Retry-After"))
	wait := min(time.Duration(seconds)*time.Second, retryHeldMax)
	x.Connection.RetryAt.Store(int64(x.Connection.Age() + wait))
	if x.BeyondShare {
		x.Usage.RetryAt.Store(int64(time.Since(x.Kernel.Started) + wait))
	}
}

// AwaitRetry waits until the caller was to come again. The request has left its place to
// others then, and its connection may be closed for a new one; that is reported as false.
func (x *Exchange) AwaitRetry() bool {
	wait := time.Duration(x.Connection.RetryAt.Load()) - x.Connection.Age()
	if x.BeyondShare {
		wait = max(wait, time.Duration(x.Usage.RetryAt.Load())-time.Since(x.Kernel.Started))
	}
	if wait <= 0 {
		return true
	}
	x.EndAdmission()
	// NB: connections bound how many wait, but for HTTP/2, where one has many requests.
	defer x.Kernel.held.Add(-1)
	if x.Kernel.held.Add(1) > int64(x.Kernel.Options.ConnectionsMax) {
		return true
	}
	x.Connection.Rest()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.Kernel.Stopping:
	case <-x.Request.Context().Done():
	}
	return x.Connection.Resume()
}
