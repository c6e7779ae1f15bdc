package listener

import (
	"container/heap"
	"container/list"
	"net/netip"
	"time"
)

// origin is where connections come from: one address or, for a trusted proxy, which
// has many callers, one connection of it.
type origin struct {
	network netip.Prefix
	number  uint64 // of the connection of a proxy, otherwise 0
}

// originTable has the open connections by origin. The zero value is empty. It is guarded by the listener's mutex.
type originTable struct {
	groups map[origin]*originConnections
	order  largestFirst // a heap
}

// originConnections has the connections of one origin.
type originConnections struct {
	origin  origin
	members list.List // of *connection, the oldest first
	index   int       // in originTable.order
}

type tablePosition struct {
	group   *originConnections
	element *list.Element
}

func (t *originTable) add(c *Conn, from origin) {
	g := t.groups[from]
	if g == nil {
		g = &originConnections{origin: from}
		if t.groups == nil {
			t.groups = map[origin]*originConnections{}
		}
		t.groups[from] = g
		heap.Push(&t.order, g)
	}
	c.position = tablePosition{g, g.members.PushBack(c)}
	heap.Fix(&t.order, g.index)
}

func (t *originTable) remove(c *Conn) {
	g := c.position.group
	g.members.Remove(c.position.element)
	c.position = tablePosition{}
	if g.members.Len() > 0 {
		heap.Fix(&t.order, g.index)
		return
	}
	heap.Remove(&t.order, g.index)
	delete(t.groups, g.origin)
}

// all yields every connection.
func (t *originTable) all(yield func(*Conn) bool) {
	for _, g := range t.order {
		for e := g.members.Front(); e != nil; e = e.Next() {
			if !yield(e.Value.(*Conn)) {
				return
			}
		}
	}
}

// candidate returns the connection to close first among those that mayClose allows,
// and its state: one of the origin with the most connections. Nil is none.
func (t *originTable) candidate(mayClose func(*Conn, state) bool) (*Conn, state) {
	var found *Conn
	var state state
	most := 0
	// NB: the first group is the largest, so the search usually ends with it. It goes
	// on when none of its connections may be closed.
	for i, g := range t.order {
		if g.members.Len() <= most {
			continue
		}
		if c, s := g.candidate(mayClose); c != nil {
			found, state, most = c, s, g.members.Len()
			if i == 0 {
				break
			}
		}
	}
	return found, state
}

// candidatesMax bounds how many connections are compared.
const candidatesMax = 64

// candidate returns the oldest connection that mayClose allows. It prefers one that
// had time to be used and never was: on others the next request may be on its way.
func (g *originConnections) candidate(mayClose func(*Conn, state) bool) (*Conn, state) {
	var found *Conn
	var state state
	candidates := 0
	for e := g.members.Front(); e != nil && candidates < candidatesMax; e = e.Next() {
		c := e.Value.(*Conn)
		s := c.state.Load()
		if !mayClose(c, s) {
			continue
		}
		if s == stateNew && c.Age() >= stuckMin {
			return c, s
		}
		if found == nil {
			found, state = c, s
		}
		candidates++
	}
	return found, state
}

type largestFirst []*originConnections

func (h largestFirst) Len() int { return len(h) }

func (h largestFirst) Less(i, j int) bool { return h[i].members.Len() > h[j].members.Len() }

func (h largestFirst) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *largestFirst) Push(g any) {
	g.(*originConnections).index = len(*h)
	*h = append(*h, g.(*originConnections))
}

func (h *largestFirst) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return g
}

// NetworkOf returns what is counted as one address: the /64 network of an IPv6
// address, because one machine may use all addresses of it.
func NetworkOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits) // zero for no address
	return network
}

// stuckMin is the age at which the end of an answer counts as stuck, and a new connection without a request as unused.
const stuckMin = 2 * time.Second

// state is what a connection is doing: a positive one counts the requests that are handled, of which HTTP/2 has many.
//
//	new ──┐
//	      ├─► 1, 2, … ──► finishing ──► idle ──► 1 …
//	idle ─┘    └───── body not read ──► idle
//
// New and idle connections may become evicted, and finishing ones that are stuck.
type state = int32

const (
	stateNew       state = -iota // no request yet, perhaps a part of its headers
	stateIdle                    // waits for the next request, or for a body that is ignored
	stateFinishing               // the last handler has answered; net/http sends the rest
	stateEvicted                 // closed for a new one; serves no request
)
