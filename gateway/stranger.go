package gateway

import (
	"net/netip"
	"sync"
)

// strangerBodyBytesMax bounds the body of a request without a credential: a name
// and a password have room in it, however they are escaped.
const strangerBodyBytesMax = 128 << 10

// strangers counts the requests in flight that came without a credential. They are
// bounded, so that nobody takes the places of everybody by sending slowly what he
// need not sign for.
type strangers struct {
	mu struct {
		sync.Mutex
		all  int64
		from map[netip.Prefix]int64
	}
}

// enter admits a request from an address, or reports that there are too many.
func (s *strangers) enter(from netip.Prefix, l *limits) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.all >= l.strangers || s.mu.from[from] >= l.addressStrangers {
		return false
	}
	if s.mu.from == nil {
		s.mu.from = map[netip.Prefix]int64{}
	}
	s.mu.all++
	s.mu.from[from]++
	return true
}

// leave is the end of a request that enter admitted.
func (s *strangers) leave(from netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.all--
	if s.mu.from[from]--; s.mu.from[from] == 0 {
		delete(s.mu.from, from)
	}
}

// networkOf is what counts as one address: of IPv6 the network, whose addresses
// one machine has all.
func networkOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits) // zero for no address
	return network
}
