package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// Streams are the byte streams of one shard: a net.Listener for those that other nodes open, and Dial to open one. To
// whoever uses it, the address of a node is its id.
type Streams struct {
	*inbox
	port  *Port
	shard uint16
}

// Streams takes a shard's streams into use. Until they are closed, a second call for the shard returns ErrShardTaken.
// After Stop it returns ErrStopped.
func (p *Port) Streams(shard uint16) (*Streams, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.stopped:
		return nil, fmt.Errorf("streams of shard %d: %w", shard, ErrStopped)
	case p.mu.streams[shard] != nil:
		return nil, fmt.Errorf("streams of shard %d: %w", shard, ErrShardTaken)
	}
	s := &Streams{inbox: newInbox(p.options.StreamsQueued), port: p, shard: shard}
	p.mu.streams[shard] = s
	return s, nil
}

// Addr returns this node's id as an address.
func (s *Streams) Addr() net.Addr { return nodeAddr(s.port.options.Identity.Node()) }

type nodeAddr NodeID

func (nodeAddr) Network() string  { return "troupe" }
func (a nodeAddr) String() string { return string(a) }

// Close ends the streams: Accept returns net.ErrClosed, and all that are open, accepted or dialed, are closed.
func (s *Streams) Close() error {
	p := s.port
	p.mu.Lock()
	if p.mu.streams[s.shard] == s {
		delete(p.mu.streams, s.shard)
	}
	p.mu.Unlock()
	err := s.inbox.Close()
	p.closeWhere(func(c *connection) bool { return c.streams == s })
	return err
}

// Dial opens a stream to the same shard of another node. Address is the node's id; that it is this node which answers
// is verified. What fails at the other end, because nobody accepts streams for the shard or because this node is
// refused, shows at the first Read.
func (s *Streams) Dial(address string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 {
		timeout = dialMax
	}
	conn, err := s.open(NodeID(address), timeout)
	if err != nil {
		return nil, s.port.explain("dial", NodeID(address), err)
	}
	return conn, nil
}

func (s *Streams) open(node NodeID, timeout time.Duration) (net.Conn, error) {
	deadline := time.Now().Add(timeout)
	ctx, cancel := context.WithDeadline(s.port.ctx, deadline)
	defer cancel()
	conn, err := s.port.dial(ctx, node, protocolStream, s)
	if err != nil {
		return nil, err
	}
	_ = conn.SetWriteDeadline(deadline)
	if _, err := conn.Write(binary.BigEndian.AppendUint16(nil, s.shard)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Time{})
	return conn, nil
}

// It reports false when nobody wants it.
func (p *Port) offerStream(c *connection, conn *tls.Conn, shard uint16) bool {
	p.mu.Lock()
	s := p.mu.streams[shard]
	c.streams = s
	p.mu.Unlock()
	return s != nil && s.offer(conn)
}

// That the right node answers is verified.
func (p *Port) dial(ctx context.Context, node NodeID, protocol string, s *Streams) (*tls.Conn, error) {
	address, known := p.options.Resolve(node)
	if !known {
		return nil, ErrUnknownNode
	}
	inner, err := p.connectTo(ctx, address)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: inner, port: p, node: node, streams: s}
	p.mu.Lock()
	gone := p.ctx.Err() != nil || s != nil && p.mu.streams[s.shard] != s
	if !gone {
		p.mu.open[c] = struct{}{}
	}
	p.mu.Unlock()
	if gone {
		_ = inner.Close()
		return nil, net.ErrClosed
	}
	conn := tls.Client(c, p.options.Identity.clientConfig(node, protocol))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return conn, nil
}

type inbox struct {
	conns chan net.Conn

	mu struct {
		sync.Mutex
		closed bool
	}
}

func newInbox(size int) *inbox { return &inbox{conns: make(chan net.Conn, size)} }

// It reports false when the inbox is full or closed; then the connection is still the caller's.
func (b *inbox) offer(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.closed {
		return false
	}
	select {
	case b.conns <- c:
		return true
	default:
		return false
	}
}

// Accept returns the next connection. After Close it returns net.ErrClosed.
func (b *inbox) Accept() (net.Conn, error) {
	c, ok := <-b.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close closes what nobody has accepted. It can be called again.
func (b *inbox) Close() error {
	b.mu.Lock()
	if b.mu.closed {
		b.mu.Unlock()
		return nil
	}
	b.mu.closed = true
	close(b.conns)
	b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
	return nil
}

// Addr returns an address that says nothing: the port has the real one.
func (b *inbox) Addr() net.Addr { return nodeAddr("") }
