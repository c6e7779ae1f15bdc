package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

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
			_ = r.Body.Close() // as http.RoundTripper demands
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
