// Package listener bounds the open connections of a server. When all are taken, it closes the one that is worth least
// for a new one. It knows what a connection is doing because the server says so (Begin, End); it reads no request.
package listener

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Counts counts the open connections; the listener and its connections share it.
type Counts struct {
	Open          atomic.Int64
	Full, Evicted atomic.Uint64
}

// Listener bounds the connections that are open at once. Beyond the bound a new one replaces the one that is worth
// least (gateway/DESIGN.md, "Fairness"). Where none can be closed, it waits, and the next ones in the operating system's queue.
type Listener struct {
	net.Listener
	count   *Counts
	limit   int64
	isProxy func(netip.Addr) bool // isProxy reports whether many callers share an address
	// waiting is set while Accept waits. Then freed gets an entry when a connection becomes idle or is closed.
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

// New bounds the connections of a listener. isProxy reports whether many callers share an address.
func New(inner net.Listener, limit int, count *Counts, isProxy func(netip.Addr) bool) *Listener {
	return &Listener{
		Listener: inner, count: count, limit: int64(limit), isProxy: isProxy,
		freed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Accept waits until one more connection may be open.
func (l *Listener) Accept() (net.Conn, error) {
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
func (l *Listener) waitForRoom() bool {
	if l.count.Open.Load() < l.limit || l.evict() {
		return true
	}
	l.count.Full.Add(1)
	l.waiting.Store(true)
	defer l.waiting.Store(false)
	// NB: no event says that an answer is stuck, only time does.
	stuck := time.NewTicker(stuckMin)
	defer stuck.Stop()
	for l.count.Open.Load() >= l.limit && !l.evict() {
		select {
		case <-l.freed:
		case <-stuck.C:
		case <-l.closed:
			return false
		}
	}
	return true
}

func (l *Listener) admit(inner net.Conn) *Conn {
	c := &Conn{Conn: inner, listener: l, opened: time.Now()}
	address := addressOf(inner.RemoteAddr())
	from := origin{network: NetworkOf(address)}
	l.count.Open.Add(1)
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
func (l *Listener) evict() bool {
	for {
		c, state := l.evictionCandidate()
		if c == nil {
			return false
		}
		if c.state.CompareAndSwap(state, stateEvicted) { // otherwise a request has just come
			l.count.Evicted.Add(1)
			if state == stateFinishing {
				c.ResetAtClose()
			}
			_ = c.Close()
			return true
		}
	}
}

// evictionCandidate returns the connection to close first and its state: an idle one of an address with more than half
// of all, then one without a credential, then any, and at last one whose caller does not read the end of an answer.
func (l *Listener) evictionCandidate() (*Conn, state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if order := l.mu.authenticated.order; len(order) > 0 && int64(order[0].members.Len()) > max(1, l.limit/2) {
		if c, state := order[0].candidate(isIdle); c != nil {
			return c, state
		}
	}
	for _, mayClose := range []func(*Conn, state) bool{isIdle, isStuck} {
		for _, table := range []*originTable{&l.mu.anonymous, &l.mu.authenticated} {
			if c, state := table.candidate(mayClose); c != nil {
				return c, state
			}
		}
	}
	return nil, 0
}

func isIdle(_ *Conn, s state) bool {
	return s == stateNew || s == stateIdle
}

func isStuck(c *Conn, s state) bool {
	return s == stateFinishing && c.Age()-time.Duration(c.answered.Load()) >= stuckMin
}

// ResetUnfinished makes Close reset the connections that are in the middle of a request or of its answer.
func (l *Listener) ResetUnfinished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, table := range []*originTable{&l.mu.anonymous, &l.mu.authenticated} {
		for c := range table.all {
			if s := c.state.Load(); s > 0 || s == stateFinishing {
				c.ResetAtClose()
			}
		}
	}
}

func (l *Listener) wake() {
	if l.waiting.Load() {
		select {
		case l.freed <- struct{}{}:
		default: // it has not checked yet
		}
	}
}

// Close ends an Accept that waits, too.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Conn leaves the listener's table when it is closed.
type Conn struct {
	net.Conn
	listener      *Listener
	opened        time.Time
	state         atomic.Int32 // a state
	answered      atomic.Int64 // its age in nanoseconds when it became finishing
	quiet         atomic.Bool  // net/http waits for the next request
	bodyPending   atomic.Bool  // the body of the request is not read; of HTTP/2, which does not wait for it, never
	authenticated atomic.Bool  // a valid credential has come
	closeOnce     sync.Once

	RetryAt atomic.Int64 // its age in nanoseconds when the caller is to come again

	position tablePosition // guarded by listener.mu
}

// Age is how long the connection has been open.
func (c *Conn) Age() time.Duration { return time.Since(c.opened) }

// Begin is called before a request is handled. It reports false when the connection is being closed for another one.
// Then the request must not be carried out: the caller would not learn of it.
func (c *Conn) Begin(r *http.Request) bool {
	if r.ProtoMajor < 2 {
		c.bodyPending.Store(r.Body != nil && r.Body != http.NoBody)
		c.quiet.Store(false) // NB: net/http does not mention a request that came with the one before
	}
	return c.Resume()
}

// BodyRead is called when the body of a request was read to its end.
func (c *Conn) BodyRead() { c.bodyPending.Store(false) }

// Rest lets a connection without other requests be closed, while the caller of this one waits to be refused; Resume ends
// that.
func (c *Conn) Rest() {
	if c.leave(stateIdle) {
		c.listener.wake()
	}
}

// Resume ends Rest. It reports false when the connection is being closed.
func (c *Conn) Resume() bool {
	for {
		state := c.state.Load()
		if state == stateEvicted {
			return false
		}
		if c.state.CompareAndSwap(state, max(state, 0)+1) {
			return true
		}
	}
}

// leave counts a request less, and reports whether it was the last one: then the state is the given one.
func (c *Conn) leave(last state) bool {
	for {
		state := c.state.Load()
		if state <= 0 { // evicted while it rested
			return false
		}
		next := state - 1
		if next == 0 {
			next = last
		}
		if c.state.CompareAndSwap(state, next) {
			return state == 1
		}
	}
}

// End is called after a request was handled. If its body was not read, net/http
// still reads it, but the connection counts as idle.
func (c *Conn) End() {
	if c.bodyPending.Load() {
		c.Rest()
		return
	}
	c.answered.Store(int64(c.Age()))
	// NB: of HTTP/2 the caller may have ended the last request before its handler did.
	if c.leave(stateFinishing) && c.quiet.Load() {
		c.sent()
	}
}

// sent is called when the last byte of an answer was written.
func (c *Conn) sent() {
	if c.state.CompareAndSwap(stateFinishing, stateIdle) {
		c.listener.wake()
	}
}

// MarkAuthenticated is called when the connection has sent a valid credential.
func (c *Conn) MarkAuthenticated() {
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

// Close removes the connection from the listener.
func (c *Conn) Close() error {
	c.closeOnce.Do(c.unregister)
	return c.Conn.Close()
}

func (c *Conn) unregister() {
	l := c.listener
	l.mu.Lock()
	if c.authenticated.Load() {
		l.mu.authenticated.remove(c)
	} else {
		l.mu.anonymous.remove(c)
	}
	l.mu.Unlock()
	l.count.Open.Add(-1)
	l.wake()
}

// Write resets the connection at its end when not everything could be sent: net/http
// does not mention the last bytes of an answer.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.ResetAtClose()
	}
	return n, err
}

// ResetAtClose makes Close reset the connection, so that nobody takes what was sent for the whole answer.
func (c *Conn) ResetAtClose() {
	// NB: to HTTP/1.0, which many proxies speak to us, an orderly end of the
	// connection is the end of the answer. A reset is not.
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // best effort
	}
}

// CloseWrite lets net/http end a connection so that a caller who is still sending gets to read the answer.
func (c *Conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

// ConnContext puts a connection into the context of its requests, for Of. It is http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, bare(c))
}

// Of returns the connection of a request, nil when the listener did not accept it.
func Of(r *http.Request) *Conn {
	c, _ := r.Context().Value(connectionKey{}).(*Conn)
	return c
}

// bare returns the connection that TLS runs over, nil when the listener did not accept it.
func bare(c net.Conn) *Conn {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	accepted, _ := c.(*Conn)
	return accepted
}

// OnState is told by net/http what a connection does.
func OnState(over net.Conn, state http.ConnState) {
	c := bare(over)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.quiet.Store(false)
	case http.StateIdle:
		c.quiet.Store(true)
		c.sent()
	}
}
