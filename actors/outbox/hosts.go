package outbox

import (
	"context"
	"sync"
	"time"
)

// A host that does not answer is asked again after downMin, and at last every downMax.
const (
	downMin = time.Second
	downMax = time.Minute
	// downAfter is how many attempts in a row must have had no answer before a host is down.
	downAfter = perHost
)

// hosts bounds the requests to each host, and asks one that is down at growing intervals.
type hosts struct {
	clock func() time.Time
	mu    sync.Mutex
	by    map[string]*host
}

type host struct {
	slots  chan struct{}
	users  int // that have a slot or wait for one
	silent int // attempts in a row without an answer
	pause  time.Duration
	until  time.Time // it is left alone
	pauses int       // how often it was left alone
}

func newHosts(clock func() time.Time) *hosts { return &hosts{clock: clock, by: map[string]*host{}} }

// acquire waits for a slot. release says whether the host has answered.
func (h *hosts) acquire(ctx context.Context, name string) (release func(answered bool), err error) {
	h.mu.Lock()
	to := h.by[name]
	if to == nil {
		to = &host{slots: make(chan struct{}, perHost)}
		h.by[name] = to
	}
	to.users++
	h.mu.Unlock()
	leave := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if to.users--; to.users == 0 && to.silent == 0 {
			delete(h.by, name)
		}
	}
	select {
	case to.slots <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	pauses := 0
	for {
		h.mu.Lock()
		pauses = to.pauses
		wait := to.until.Sub(h.clock())
		if wait <= 0 && to.silent >= downAfter { // this one looks whether it is back; the others wait meanwhile
			to.until = h.clock().Add(to.pause)
		}
		h.mu.Unlock()
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(min(wait, downMin))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			<-to.slots
			leave()
			return nil, ctx.Err()
		}
	}
	return func(answered bool) {
		h.mu.Lock()
		if answered {
			to.silent, to.pause, to.until = 0, 0, time.Time{}
		} else if to.silent++; to.silent >= downAfter && to.pauses == pauses { // NB: those that were under way together say it once
			to.pauses++
			to.pause = min(max(2*to.pause, downMin), downMax)
			to.until = h.clock().Add(to.pause)
		}
		h.mu.Unlock()
		<-to.slots
		leave()
	}, nil
}
