package gateway

import (
	"net/netip"
	"sync"
)

// anonymousBodyBytesMax bounds the body of a request to a route without a
// credential. It has room for a name and a password, however they are escaped.
const anonymousBodyBytesMax = 128 << 10

// anonymousRequests counts the requests in flight to routes without a credential.
// They are bounded, so that slow anonymous requests cannot use up
// Options.InFlightMax.
type anonymousRequests struct {
	mu struct {
		sync.Mutex
		all       int64
		byNetwork map[netip.Prefix]int64
	}
}

// admit counts a request from a network, or reports that there are too many.
func (s *anonymousRequests) admit(from netip.Prefix, l *limits) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.all >= l.anonymous || s.mu.byNetwork[from] >= l.anonymousPerNetwork {
		return false
	}
	if s.mu.byNetwork == nil {
		s.mu.byNetwork = map[netip.Prefix]int64{}
	}
	s.mu.all++
	s.mu.byNetwork[from]++
	return true
}

// release ends a request that admit has counted.
func (s *anonymousRequests) release(from netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.all--
	if s.mu.byNetwork[from]--; s.mu.byNetwork[from] == 0 {
		delete(s.mu.byNetwork, from)
	}
}
