package gateway

import (
	"time"

	"troupe/actors/failure"
	"troupe/gateway/internal/listener"
)

// shed counts a request that is refused because a limit is reached, and returns the reason.
func (x *exchange) shed() error {
	x.server.metrics.shed.Add(1)
	return failure.ErrBusy
}

// shedUser is shed for a limit of one user, whom x.usage is of.
func (x *exchange) shedUser() error {
	x.beyondShare = x.usage != nil
	return x.shed()
}

// admitAnonymous admits a request to a route that takes no credential.
func (x *exchange) admitAnonymous() bool {
	if x.route.access.kinds != 0 {
		return true
	}
	address, _ := x.server.clientOf(x.r)
	x.network = listener.NetworkOf(address)
	x.anonymous = x.server.anonymous.admit(x.network, &x.server.limits)
	return x.anonymous
}

// admitUser counts the request for its caller, or reports that the caller has
// reached the limit for one user.
func (x *exchange) admitUser() bool {
	x.usage = x.server.usage.of(x.caller.ID)
	requests := x.usage.requests.Add(1)
	l := &x.server.limits
	return requests-x.usage.idle.Load() <= half(x.server.pressure.limit.Load()) && requests+x.usage.watchers.Load() <= l.userBusyConnections
}

// endAdmission ends what serve began by counting the request. The second call does
// nothing.
func (x *exchange) endAdmission() {
	if x.anonymous {
		x.anonymous = false
		x.server.anonymous.release(x.network)
	}
	if x.counted {
		x.counted = false
		if x.usage != nil {
			x.returnToPlace()
			x.usage.requests.Add(-1)
		}
		x.server.requestEnded()
	}
}

// working is how many requests are worked on. Those that have left their places are not, but they have connections, and
// Stop waits for them.
func (s *Server) working() int64 { return s.inFlight.Load() - s.idle.Load() }

// leavePlace gives the place of a user's request to others, while nothing is done for it: it waits for lines of a batch, or
// until bytes are paid for. It belongs to the goroutine of the request, as all of these.
func (x *exchange) leavePlace() {
	if x.counted && x.usage != nil && !x.idle {
		x.idle = true
		x.usage.idle.Add(1)
		x.server.idle.Add(1)
	}
}

// returnToPlace ends leavePlace, whether there is a place or not.
func (x *exchange) returnToPlace() {
	if x.idle {
		x.idle = false
		x.usage.idle.Add(-1)
		x.server.idle.Add(-1)
	}
}

// takePlace ends leavePlace, or reports that there is no place now. Then it can be called again.
func (x *exchange) takePlace() bool {
	if !x.idle {
		return true
	}
	// NB: it counts before it looks, as admitUser does: of two at the last place one at least sees the other. The lock is
	// so that of two that come back not both see the other.
	x.server.placing.Lock()
	defer x.server.placing.Unlock()
	x.returnToPlace()
	limit := x.server.pressure.limit.Load()
	if x.server.working() > limit || x.usage.requests.Load()-x.usage.idle.Load() > half(limit) {
		x.leavePlace()
		return false
	}
	return true
}

// charge charges n bytes of a body or an answer to the caller (package toll).
func (x *exchange) charge(n int64) (wait time.Duration, ok bool) {
	s := x.server
	account := &s.anonymousBytes
	if x.usage != nil {
		account = &x.usage.bytes
	}
	return account.Charge(time.Since(s.started), n, s.limits.userBytes)
}

// pay charges bytes of a body before they are read, or of an answer before it is sent, and waits until those are paid that
// were charged before. The request is not worked on meanwhile. Who owes too much is refused.
func (x *exchange) pay(n int64) error {
	wait, ok := x.charge(n)
	switch {
	case !ok:
		return x.shedUser()
	case wait == 0:
		return nil
	}
	x.leavePlace()
	defer x.returnToPlace()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.server.requests.Done():
		return failure.ErrUnavailable
	}
}
