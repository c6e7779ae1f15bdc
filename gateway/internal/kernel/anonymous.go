package kernel

import (
	"net/netip"
	"sync"
)

// AnonymousBodyBytesMax bounds the body of a request to a route without a
// credential. It has room for a name and a password, however they are escaped.
const AnonymousBodyBytesMax = 128 << 10

// anonymousRequests counts the requests in flight to routes without a credential.
// They are bounded, so that slow anonymous requests cannot use up
// Options.InFlightMax.
type anonymousRequests struct {
	Mu struct {
		sync.Mutex
		All       int64
		ByNetwork map[netip.Prefix]int64
	}
}

// admit counts a request from a network, or reports that there are too many.
func (s *anonymousRequests) admit(from netip.Prefix, l *limits) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Mu.All >= l.anonymous || s.Mu.ByNetwork[from] >= l.anonymousPerNetwork {
		return false
	}
	if s.Mu.ByNetwork == nil {
		s.Mu.ByNetwork = map[netip.Prefix]int64{}
	}
	s.Mu.All++
	s.Mu.ByNetwork[from]++
	return true
}

// release ends a request that admit has counted.
func (s *anonymousRequests) release(from netip.Prefix) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Mu.All--
	if s.Mu.ByNetwork[from]--; s.Mu.ByNetwork[from] == 0 {
		delete(s.Mu.ByNetwork, from)
	}
}
