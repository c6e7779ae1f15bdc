package gateway

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// connections counts the open connections; the listener and its connections
// share it.
type connections struct {
	open          atomic.Int64
	full, evicted atomic.Uint64
}

// listener bounds the connections that are open at once. Beyond the bound a new
// one takes the place of the one that is worth least (gateway/DESIGN.md,
// "Fairness"). Where none can be closed, it waits, and the next ones in the
// kernel's queue.
type listener struct {
	net.Listener
	count *connections
	limit int64
	// isProxy reports whether many callers share an address.
	isProxy func(netip.Addr) bool
	// waiting is set while Accept waits. freed then gets an entry when a
	// connection becomes idle or is closed.
	waiting atomic.Bool
	freed   chan struct{}
	// closed ends an Accept that waits.
	closed    chan struct{}
	closeOnce sync.Once

	mu struct {
		sync.Mutex
		// On the connections of known a valid credential has come, on those of
		// anonymous none has yet. Each open one is in one of them.
		anonymous, known originTable
		numbered         uint64 // proxies' connections so far
	}
}

func limitConnections(inner net.Listener, limit int, count *connections, isProxy func(netip.Addr) bool) *listener {
	return &listener{
		Listener: inner, count: count, limit: int64(limit), isProxy: isProxy,
		freed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.makeRoom() {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	return l.admit(inner), nil
}

// makeRoom waits until one more connection may be open, and closes another one
// for it where it can. It reports false when the listener was closed.
func (l *listener) makeRoom() bool {
	if l.count.open.Load() < l.limit || l.evict() {
		return true
	}
	l.count.full.Add(1)
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	// NB: that an answer is stuck shows by time alone.
	stuck := time.NewTicker(stuckMin)
	defer stuck.Stop()
	for l.count.open.Load() >= l.limit && !l.evict() {
		select {
		case <-l.freed:
		case <-stuck.C:
		case <-l.closed:
			return false
		}
	}
	return true
}

func (l *listener) admit(inner net.Conn) *connection {
	c := &connection{Conn: inner, listener: l, opened: time.Now()}
	address := addressOf(inner.RemoteAddr())
	from := origin{network: networkOf(address)}
	l.count.open.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isProxy(address) {
		l.mu.numbered++
		from.number = l.mu.numbered
	}
	l.mu.anonymous.add(c, from)
	return c
}

// evict closes a connection, or reports that there is none that may be closed.
func (l *listener) evict() bool {
	for {
		c, state := l.leastValuable()
		if c == nil {
			return false
		}
		if c.state.CompareAndSwap(state, connectionEvicted) { // otherwise a request has just come
			l.count.evicted.Add(1)
			_ = c.Close()
			return true
		}
	}
}

// leastValuable returns the connection to close first and its state: an idle one
// of an address with more than half of all, then one without a credential, then
// any, and at last one whose caller does not read the end of an answer.
func (l *listener) leastValuable() (*connection, connectionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order := l.mu.known.order; len(order) > 0 && int64(order[0].members.Len()) > half(l.limit) {
		if c, state := order[0].first(isIdle); c != nil {
			return c, state
		}
	}
	for _, mayClose := range []func(*connection, connectionState) bool{isIdle, isStuck} {
		for _, table := range []*originTable{&l.mu.anonymous, &l.mu.known} {
			if c, state := table.first(mayClose); c != nil {
				return c, state
			}
		}
	}
	return nil, 0
}

func isIdle(_ *connection, s connectionState) bool {
	return s == connectionNew || s == connectionIdle
}

func isStuck(c *connection, s connectionState) bool {
	return s == connectionFinishing && c.age()-time.Duration(c.answered.Load()) >= stuckMin
}

// stuckMin is the time after which the last bytes of an answer should have left,
// and a new connection should have sent something.
const stuckMin = 2 * time.Second

// wake lets a waiting Accept look again.
func (l *listener) wake() {
	if l.waiting.Load() {
		select {
		case l.freed <- struct{}{}:
		default: // it has not looked yet
		}
	}
}

func (l *listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// addressOf returns the address of a peer, the zero one where there is none.
func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// connectionState is what a connection does:
//
//	new ──┐
//	      ├─► busy ──► finishing ──► idle ──► busy …
//	idle ─┘    └───── body not read ──► idle
//
// New and idle connections may become evicted, and finishing ones that are stuck.
type connectionState = int32

const (
	connectionNew       connectionState = iota // no request has come, its headers perhaps in part
	connectionIdle                             // waits for the next request, or for a body that nobody wants
	connectionBusy                             // a handler has a request
	connectionFinishing                        // the handler has answered; net/http sends the rest
	connectionEvicted                          // is closed for another one; serves no request
)

// connection leaves the listener's table when it is closed.
type connection struct {
	net.Conn
	listener *listener
	opened   time.Time
	state    atomic.Int32 // a connectionState
	// answered is the age at which it began to be finishing, in nanoseconds.
	answered atomic.Int64
	// isKnown: a valid credential has come.
	isKnown   atomic.Bool
	closeOnce sync.Once

	// bodyToCome: the body of the request is not read. It belongs to the goroutine
	// that handles the request.
	bodyToCome bool

	place place // guarded by listener.mu
}

func (c *connection) age() time.Duration { return time.Since(c.opened) }

// begin is called before a request is handled. It reports false when the connection
// was just chosen to be closed. Then the request must not be carried out: the caller
// would not learn that it was.
func (c *connection) begin(r *http.Request) bool {
	c.bodyToCome = r.Body != nil && r.Body != http.NoBody
	for {
		state := c.state.Load()
		if state == connectionEvicted {
			return false
		}
		if c.state.CompareAndSwap(state, connectionBusy) {
			return true
		}
	}
}

// end is after a request was handled. Where the body is still to come, net/http
// waits for it, but nobody wants it.
func (c *connection) end() {
	if c.bodyToCome {
		c.state.Store(connectionIdle)
		c.listener.wake()
		return
	}
	c.answered.Store(int64(c.age()))
	c.state.Store(connectionFinishing)
}

// sent is after the last byte of an answer has left.
func (c *connection) sent() {
	if c.state.CompareAndSwap(connectionFinishing, connectionIdle) {
		c.listener.wake()
	}
}

// know is after a valid credential has come.
func (c *connection) know() {
	if c.isKnown.Load() {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.isKnown.Swap(true) || c.place.group == nil { // closed
		return
	}
	from := c.place.group.from
	l.mu.anonymous.remove(c)
	l.mu.known.add(c, from)
}

func (c *connection) Close() error {
	c.closeOnce.Do(c.leave)
	return c.Conn.Close()
}

func (c *connection) leave() {
	l := c.listener
	l.mu.Lock()
	if c.isKnown.Load() {
		l.mu.known.remove(c)
	} else {
		l.mu.anonymous.remove(c)
	}
	l.mu.Unlock()
	l.count.open.Add(-1)
	l.wake()
}

// CloseWrite lets net/http end a connection so that a caller who is still
// sending gets to read the answer.
func (c *connection) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request, nil where it has none of ours.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// followConnection is told by net/http what a connection does.
func followConnection(c net.Conn, state http.ConnState) {
	if c, ok := c.(*connection); ok && state == http.StateIdle {
		c.sent()
	}
}

// cut ends the request by closing its connection, so that nobody takes what was
// sent for the whole. It does not return.
func (s *Server) cut(r *http.Request) {
	// NB: to HTTP/1.0, which many proxies speak to us, an orderly end of the
	// connection is the end of the answer. A reset is not.
	if c := connectionOf(r); c != nil {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // at worst the end is an orderly one
		}
	}
	panic(http.ErrAbortHandler)
}
