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

// connectionCounts counts the open connections; the listener and its connections
// share it.
type connectionCounts struct {
	open          atomic.Int64
	full, evicted atomic.Uint64
}

// listener bounds the connections that are open at once. Beyond the bound a new
// one replaces the one that is worth least (gateway/DESIGN.md,
// "Fairness"). Where none can be closed, it waits, and the next ones in the
// kernel's queue.
type listener struct {
	net.Listener
	count *connectionCounts
	limit int64
	// isProxy reports whether many callers share an address.
	isProxy func(netip.Addr) bool
	// waiting is set while Accept waits. Then freed gets an entry when a connection
	// becomes idle or is closed.
	waiting atomic.Bool
	freed   chan struct{}
	// closed ends an Accept that waits.
	closed    chan struct{}
	closeOnce sync.Once

	mu struct {
		sync.Mutex
		// Each open connection is in one of these: in authenticated once a valid
		// credential has come on it, before that in anonymous.
		anonymous, authenticated originTable
		numbered                 uint64 // proxies' connections so far
	}
}

func limitConnections(inner net.Listener, limit int, count *connectionCounts, isProxy func(netip.Addr) bool) *listener {
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
	if !l.waitForRoom() {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	return l.admit(inner), nil
}

// waitForRoom waits until one more connection may be open. It closes another one
// if it can. It reports false when the listener was closed.
func (l *listener) waitForRoom() bool {
	if l.count.open.Load() < l.limit || l.evict() {
		return true
	}
	l.count.full.Add(1)
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	// NB: no event says that an answer is stuck, only time does.
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
		c, state := l.evictionCandidate()
		if c == nil {
			return false
		}
		if c.state.CompareAndSwap(state, connectionEvicted) { // otherwise a request has just come
			l.count.evicted.Add(1)
			if state == connectionFinishing {
				c.resetAtClose()
			}
			_ = c.Close()
			return true
		}
	}
}

// evictionCandidate returns the connection to close first and its state: an idle one
// of an address with more than half of all, then one without a credential, then
// any, and at last one whose caller does not read the end of an answer.
func (l *listener) evictionCandidate() (*connection, connectionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order := l.mu.authenticated.order; len(order) > 0 && int64(order[0].members.Len()) > half(l.limit) {
		if c, state := order[0].candidate(isIdle); c != nil {
			return c, state
		}
	}
	for _, mayClose := range []func(*connection, connectionState) bool{isIdle, isStuck} {
		for _, table := range []*originTable{&l.mu.anonymous, &l.mu.authenticated} {
			if c, state := table.candidate(mayClose); c != nil {
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

// stuckMin is the age at which the end of an answer counts as stuck, and a new
// connection without a request as unused.
const stuckMin = 2 * time.Second

// resetUnfinished makes Close reset the connections that are in the middle of a request
// or of its answer.
func (l *listener) resetUnfinished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, table := range []*originTable{&l.mu.anonymous, &l.mu.authenticated} {
		for c := range table.all {
			if s := c.state.Load(); s == connectionBusy || s == connectionFinishing {
				c.resetAtClose()
			}
		}
	}
}

// wake makes a waiting Accept check again.
func (l *listener) wake() {
	if l.waiting.Load() {
		select {
		case l.freed <- struct{}{}:
		default: // it has not checked yet
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

// connectionState is what a connection is doing:
//
//	new ──┐
//	      ├─► busy ──► finishing ──► idle ──► busy …
//	idle ─┘    └───── body not read ──► idle
//
// New and idle connections may become evicted, and finishing ones that are stuck.
type connectionState = int32

const (
	connectionNew       connectionState = iota // no request yet, perhaps a part of its headers
	connectionIdle                             // waits for the next request, or for a body that is ignored
	connectionBusy                             // a handler has a request
	connectionFinishing                        // the handler has answered; net/http sends the rest
	connectionEvicted                          // closed for a new one; serves no request
)

// connection leaves the listener's table when it is closed.
type connection struct {
	net.Conn
	listener *listener
	opened   time.Time
	state    atomic.Int32 // a connectionState
	// answered is its age in nanoseconds when it became finishing.
	answered atomic.Int64
	// authenticated: a valid credential has come.
	authenticated atomic.Bool
	closeOnce     sync.Once

	// What follows belongs to the goroutine that handles a request.

	bodyPending bool          // the body of the request is not read
	retryAt     time.Duration // its age when the caller is to come again

	position tablePosition // guarded by listener.mu
}

func (c *connection) age() time.Duration { return time.Since(c.opened) }

// begin is called before a request is handled. It reports false when the connection
// is being closed for another one. Then the request must not be carried out: the
// caller would not learn of it.
func (c *connection) begin(r *http.Request) bool {
	c.bodyPending = r.Body != nil && r.Body != http.NoBody
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

// rest makes a busy connection one that may be closed, while its caller waits to be
// refused; resume ends that. Each reports false when the connection is being closed.
func (c *connection) rest() bool {
	ok := c.state.CompareAndSwap(connectionBusy, connectionIdle)
	c.listener.wake()
	return ok
}

func (c *connection) resume() bool {
	return c.state.CompareAndSwap(connectionIdle, connectionBusy)
}

// end is called after a request was handled. If its body was not read, net/http
// still reads it, but the connection counts as idle.
func (c *connection) end() {
	if c.bodyPending {
		c.state.Store(connectionIdle)
		c.listener.wake()
		return
	}
	c.answered.Store(int64(c.age()))
	c.state.Store(connectionFinishing)
}

// sent is called when the last byte of an answer was written.
func (c *connection) sent() {
	if c.state.CompareAndSwap(connectionFinishing, connectionIdle) {
		c.listener.wake()
	}
}

// markAuthenticated is called when the connection has sent a valid credential.
func (c *connection) markAuthenticated() {
	if c.authenticated.Load() {
		return
	}
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.authenticated.Swap(true) || c.position.group == nil { // closed
		return
	}
	from := c.position.group.origin
	l.mu.anonymous.remove(c)
	l.mu.authenticated.add(c, from)
}

func (c *connection) Close() error {
	c.closeOnce.Do(c.unregister)
	return c.Conn.Close()
}

func (c *connection) unregister() {
	l := c.listener
	l.mu.Lock()
	if c.authenticated.Load() {
		l.mu.authenticated.remove(c)
	} else {
		l.mu.anonymous.remove(c)
	}
	l.mu.Unlock()
	l.count.open.Add(-1)
	l.wake()
}

// Write resets the connection at its end when not everything could be sent: net/http
// says nothing of the last bytes of an answer.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.resetAtClose()
	}
	return n, err
}

// resetAtClose makes Close reset the connection, so that nobody takes what was sent
// for the whole answer.
func (c *connection) resetAtClose() {
	// NB: to HTTP/1.0, which many proxies speak to us, an orderly end of the
	// connection is the end of the answer. A reset is not.
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort
	}
}

// CloseWrite lets net/http end a connection so that a caller who is still
// sending gets to read the answer.
func (c *connection) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request, nil when the listener
// did not accept it.
func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}

// onConnState is told by net/http what a connection does.
func onConnState(c net.Conn, state http.ConnState) {
	if c, ok := c.(*connection); ok && state == http.StateIdle {
		c.sent()
	}
}

// abort resets the connection of a request. It does not return.
func (s *Server) abort(r *http.Request) {
	if c := connectionOf(r); c != nil {
		c.resetAtClose()
	}
	panic(http.ErrAbortHandler)
}
