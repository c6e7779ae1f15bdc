package clocktest

import (
	"context"
	"net"
	"sync"
)

// Pipes is a listener whose connections are pipes, so that a server and its callers can be in
// one bubble: what is written waits until it is read, and the deadlines of both ends pass on the
// virtual clock. They end who is slow, and never a machine that is.
type Pipes struct {
	accepted  chan net.Conn
	closed    chan struct{}
	closeOnce sync.Once
}

// NewPipes returns a listener.
func NewPipes() *Pipes {
	return &Pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial opens a connection; address tells nothing. It is a DialContext of net/http.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accepted <- piped{there}:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipes) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return piped{}.RemoteAddr() }

// piped is the server's end of a pipe.
type piped struct{ net.Conn }

// RemoteAddr is one that a connection over TCP could have.
func (piped) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
