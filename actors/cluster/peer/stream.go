package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Streams are the byte streams of one shard: a net.Listener for those that other nodes open, and Dial to open one. To
// anyone who uses it, the address of a node is its id.
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

// offerStream reports false when nobody wants it.
func (p *Port) offerStream(c *connection, conn *tls.Conn, shard uint16) bool {
	p.mu.Lock()
	s := p.mu.streams[shard]
	c.streams = s
	p.mu.Unlock()
	return s != nil && s.offer(conn)
}

// dial verifies that the right node answers.
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

// offer reports false when the inbox is full or closed; then the connection is still the caller's.
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

// Addr returns an address that tells nothing: the port has the real one.
func (b *inbox) Addr() net.Addr { return nodeAddr("") }

func (p *Port) newCallServer() *http.Server {
	s := p.newHTTPServer()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.admitNode(NodeOf(r.Context())) != nil { // it was removed while it was connected
			http.Error(w, ErrNotMember.Error(), http.StatusForbidden)
			return
		}
		p.options.Calls.ServeHTTP(w, r)
	})
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if conn, ok := c.(*tls.Conn); ok {
			if n, err := nameIn(conn.ConnectionState().PeerCertificates[0]); err == nil {
				ctx = context.WithValue(ctx, nodeKey{}, n.node)
			}
		}
		return ctx
	}
	s.Protocols = onlyHTTP2()
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: p.options.CallsMax, SendPingTimeout: pingAfter, PingTimeout: pingMax, WriteByteTimeout: pingAfter + pingMax}
	return s
}

func onlyHTTP2() *http.Protocols {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	return protocols
}

type nodeKey struct{}

// NodeOf returns the node whose call a request is, empty when it did not come in through a port's Calls.
func NodeOf(ctx context.Context) NodeID {
	node, _ := ctx.Value(nodeKey{}).(NodeID)
	return node
}

type calls struct {
	port      *Port
	transport *http.Transport

	mu struct {
		sync.Mutex
		failures map[NodeID]failure // of the last dial to a node
	}
}

type failure struct {
	at  time.Time
	err error
}

// failureMax: others that wait for a failed dial are answered by it for so long, since the transport dials for each in
// turn.
const failureMax = 250 * time.Millisecond

func newCalls(p *Port) *calls {
	c := &calls{port: p}
	c.mu.failures = map[NodeID]failure{}
	// NB: no StrictMaxConcurrentRequests. With it, net/http (1.26.8) waits for ever once more calls wait than a
	// connection takes: each that waits is counted as if it were on it.
	c.transport = &http.Transport{
		DialTLSContext:         func(_ context.Context, _, address string) (net.Conn, error) { return c.dial(address) },
		Protocols:              onlyHTTP2(),
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingMax, WriteByteTimeout: pingAfter + pingMax},
		MaxConnsPerHost:        1, // that are not full: the first hundred callers wait for the same one
		MaxResponseHeaderBytes: callHeaderBytesMax,
		DisableCompression:     true,
	}
	return c
}

// NB: the context of the request that asks first does not end it, as others wait for the same connection.
func (c *calls) dial(hostAndPort string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(hostAndPort)
	if err != nil {
		return nil, err
	}
	node := NodeID(host)
	c.mu.Lock()
	last := c.mu.failures[node]
	c.mu.Unlock()
	if last.err != nil && time.Since(last.at) < failureMax {
		return nil, last.err
	}
	ctx, cancel := context.WithTimeout(c.port.ctx, dialMax)
	defer cancel()
	conn, err := c.port.dial(ctx, node, protocolCalls, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.mu.failures[node] = failure{time.Now(), err}
		return nil, err
	}
	delete(c.mu.failures, node)
	return conn, nil
}

// RoundTrip sends a call to another node. The request's URL is https://NODE/PATH with the node's id. All calls to a
// node share one HTTP/2 connection, or a few when they are very many. It is opened within 2 s and watched by pings.
// Unless it is ErrNotSent, it does not say whether the node has had the request.
func (p *Port) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.roundTrip(r)
	if err != nil {
		return nil, p.explain("call", NodeID(r.URL.Host), err)
	}
	return answer, nil
}

func (p *Port) roundTrip(r *http.Request) (*http.Response, error) {
	err := p.checkTarget(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper requires
		}
		return nil, notSent{err}
	}
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	answer, err := p.outgoing.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil && !connected.Load() {
		err = notSent{err}
	}
	return answer, err
}

func (p *Port) checkTarget(r *http.Request) error {
	if _, known := p.options.Resolve(NodeID(r.URL.Host)); !known {
		return ErrUnknownNode
	}
	if r.URL.Scheme != "https" {
		return errors.New("the URL must be https://NODE/PATH")
	}
	return nil
}

// explain says which node an error is about, and where it was looked for.
func (p *Port) explain(verb string, node NodeID, err error) error {
	if p.ctx.Err() != nil && errors.Is(err, ErrNotSent) {
		err = notSent{ErrStopped}
	} else if p.ctx.Err() != nil {
		err = ErrStopped
	}
	if isRefused(err) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	address, known := p.options.Resolve(node)
	if !known {
		return fmt.Errorf("%s node %.40q: %w", verb, node, err)
	}
	return fmt.Errorf("%s node %s at %s: %w", verb, node, address, err)
}

// NB: crypto/tls has no type for that, and all that VerifyConnection refuses is a bad certificate to it.
func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && op.Err.Error() == "tls: bad certificate"
}
