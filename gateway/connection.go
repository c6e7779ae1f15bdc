package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections counts the open connections; the listener and its connections
// share it.
type connections struct {
	open atomic.Int64
	full atomic.Uint64
}

// listener bounds the connections that are open at once. Beyond the bound
// nothing is accepted: callers wait in the kernel's queue.
type listener struct {
	net.Listener
	count *connections
	slots chan struct{} // one entry for each open connection
	// closed ends an Accept that waits for a slot.
	closed    chan struct{}
	closeOnce sync.Once
}

func limitConnections(inner net.Listener, limit int, count *connections) *listener {
	return &listener{Listener: inner, count: count, slots: make(chan struct{}, limit), closed: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	default:
		l.count.full.Add(1)
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	inner, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.count.open.Add(1)
	return &connection{Conn: inner, listener: l}, nil
}

func (l *listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// connection gives its slot back when it is closed.
type connection struct {
	net.Conn
	listener  *listener
	closeOnce sync.Once
}

func (c *connection) Close() error {
	c.closeOnce.Do(func() {
		c.listener.count.open.Add(-1)
		<-c.listener.slots
	})
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection so that a caller who is still
// sending gets to read the answer.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// connectionKey is where a request's context has its connection.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// cut ends the request by closing its connection, so that nobody takes what was
// sent for the whole. It does not return.
func (s *Server) cut(r *http.Request) {
	// NB: to HTTP/1.0, which many proxies speak to us, an orderly end of the
	// connection is the end of the answer. A reset is not.
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		if tcp, ok := c.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // at worst the end is an orderly one
		}
	}
	panic(http.ErrAbortHandler)
}
