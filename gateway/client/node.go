package client

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"troupe/gateway/leader"
)

// nodes are the addresses of a service. Its methods may be called at once.
type nodes struct {
	addresses []*url.URL // without a slash at their end
	table     leader.Table
	turn      atomic.Uint32
	// resting has when an address can be asked again that did not answer, in nanoseconds since 1970.
	resting []atomic.Int64
}

const (
	nobody = -1
	// restMax is how long an address that did not answer is asked only when no other one is left.
	restMax = 2 * time.Second
)

func newNodes(addresses []string) (*nodes, error) {
	n := &nodes{resting: make([]atomic.Int64, len(addresses))}
	for _, text := range addresses {
		address, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		n.addresses = append(n.addresses, address)
	}
	return n, nil
}

// others is how many addresses there are besides the one that was asked.
func (n *nodes) others() int { return len(n.addresses) - 1 }

// pick returns which address to ask: that of the node that leads the instance, if that is known, and else each in turn;
// not the one that has just failed, nor one that rests, unless there is no other.
func (n *nodes) pick(instance string, failed int) int {
	if len(n.addresses) == 1 {
		return 0
	}
	now := time.Now().UnixNano()
	if at, ok := n.table.Find(instance); ok && at != failed && n.resting[at].Load() <= now {
		return at
	}
	first := int(n.turn.Add(1)-1) % len(n.addresses)
	second := nobody
	for i := range n.addresses {
		at := (first + i) % len(n.addresses)
		if at == failed {
			continue
		}
		if n.resting[at].Load() <= now {
			return at
		}
		if second == nobody {
			second = at
		}
	}
	return second
}

// replace returns another address in place of one that did not answer.
func (n *nodes) replace(failed int, instance string) int {
	n.resting[failed].Store(time.Now().Add(restMax).UnixNano())
	return n.pick(instance, failed)
}

// answered learns what an answer says of the leader.
func (n *nodes) answered(at int, h http.Header) {
	if lines := h[leader.Header]; len(lines) == 1 && len(n.addresses) > 1 {
		n.table.Learn(at, lines[0])
	}
}
