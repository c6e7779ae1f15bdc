package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"troupe/actors/cluster/frame"
)

// Streams are the byte streams of one number, which is called a shard here and is key.Messages or key.Copies: a
// net.Listener for those that other nodes open, and Dial to open one. To anyone who uses it, the address of a node is its
// id.
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

// serveCalls answers the calls of a node until its connection ends.
func (p *Port) serveCalls(conn *tls.Conn, node NodeID) {
	_ = p.calls.Serve(context.WithValue(p.ctx, nodeKey{}, node), conn) // an end of the connection is no fault of this node
}

func (p *Port) newCallServer() *frame.Server {
	return &frame.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.admitNode(NodeOf(r.Context())) != nil { // it was removed while it was connected; nothing was done
				http.Error(w, ErrNotMember.Error(), http.StatusMisdirectedRequest)
				return
			}
			p.options.Calls.ServeHTTP(w, r)
		}),
		StreamsMax: p.options.CallsMax, Log: p.options.Log,
	}
}

type nodeKey struct{}

// NodeOf returns the node whose call a request is, empty when it did not come in through a port's Calls.
func NodeOf(ctx context.Context) NodeID {
	node, _ := ctx.Value(nodeKey{}).(NodeID)
	return node
}

// calls are the connections over which this node calls others, one for each.
type calls struct {
	port *Port

	mu struct {
		sync.Mutex
		dials map[NodeID]*dial // the newest of each
	}
}

// dial is a connection to a node, or what came of opening one.
type dial struct {
	ctx    context.Context //nolint:containedctx // of the connection, and of opening it
	cancel context.CancelFunc
	over   chan struct{} // closed when what follows is set
	client *frame.Client
	err    error
	at     time.Time
}

// failureMax: for so long a failed dial answers further calls, too.
const failureMax = 250 * time.Millisecond

func newCalls(p *Port) *calls {
	c := &calls{port: p}
	c.mu.dials = map[NodeID]*dial{}
	return c
}

// stale reports whether the node has to be dialed again.
func (d *dial) stale() bool {
	select {
	case <-d.over:
	default:
		return false
	}
	if d.err != nil {
		return time.Since(d.at) >= failureMax
	}
	return d.client.Ended()
}

// to returns the connection to a node. NB: the context of the call that asks first does not end the dial, as others
// wait for the same connection.
func (c *calls) to(ctx context.Context, node NodeID) (*frame.Client, error) {
	c.mu.Lock()
	d := c.mu.dials[node]
	if d == nil || d.stale() {
		d = &dial{over: make(chan struct{})}
		d.ctx, d.cancel = context.WithCancel(c.port.ctx)
		c.mu.dials[node] = d
		if !c.port.inBackground(func() { c.dial(node, d) }) {
			d.err = ErrStopped
			close(d.over)
		}
	}
	c.mu.Unlock()
	select {
	case <-d.over:
		return d.client, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial opens the connection, and reads and writes until it ends.
func (c *calls) dial(node NodeID, d *dial) {
	defer d.cancel()
	ctx, cancel := context.WithTimeout(d.ctx, dialMax)
	conn, err := c.port.dial(ctx, node, protocolCalls, nil)
	cancel()
	if d.err, d.at = err, time.Now(); err == nil {
		d.client = frame.NewClient(conn)
	}
	close(d.over)
	if d.client != nil {
		defer context.AfterFunc(d.ctx, d.client.Close)()
		_ = d.client.Run() // those who wait for an answer have the error
	}
}

// Abandon ends the calls to a node that does not answer, sooner than they would find out. Calls from it go on.
func (p *Port) Abandon(node NodeID) {
	p.outgoing.mu.Lock()
	defer p.outgoing.mu.Unlock()
	if d := p.outgoing.mu.dials[node]; d != nil {
		d.cancel()
	}
}

// RoundTrip sends a call to another node. The request's URL is https://NODE/PATH with the node's id. All calls to a
// node share one connection, which is opened within 2 s and watched by pings (package frame). Unless it is ErrNotSent,
// an error does not say whether the node has had the request.
func (p *Port) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.roundTrip(r)
	if errors.Is(err, frame.ErrNotSent) {
		err = notSent{err}
	}
	if err != nil {
		return nil, p.explain("call", NodeID(r.URL.Host), err)
	}
	return answer, nil
}

func (p *Port) roundTrip(r *http.Request) (*http.Response, error) {
	err := p.checkTarget(r)
	var client *frame.Client
	if err == nil {
		client, err = p.outgoing.to(r.Context(), NodeID(r.URL.Host))
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as http.RoundTripper requires
		}
		return nil, notSent{err}
	}
	return client.RoundTrip(r)
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
