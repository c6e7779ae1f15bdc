package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
)

// connection is one of the port's, below TLS. It leaves the table when it is closed.
type connection struct {
	net.Conn
	port      *Port
	closeOnce sync.Once

	// What follows is guarded by port.mu.

	incoming  bool
	handshake bool       // incoming, and it has not shown who it is
	address   netip.Addr // of an incoming one
	node      NodeID     // who is at the other end; empty until that is sure
	streams   *Streams   // that it belongs to, nil for others
}

// Close ends the connection at once. Closing the TLS connection above says goodbye first.
func (c *connection) Close() error {
	c.closeOnce.Do(func() {
		p := c.port
		p.mu.Lock()
		defer p.mu.Unlock()
		p.endHandshakeLocked(c)
		delete(p.mu.open, c)
		if c.incoming {
			p.mu.incoming--
		}
	})
	return c.Conn.Close()
}

func (p *Port) endHandshakeLocked(c *connection) {
	if !c.handshake {
		return
	}
	c.handshake = false
	p.mu.handshakes--
	if p.mu.perAddress[c.address]--; p.mu.perAddress[c.address] == 0 {
		delete(p.mu.perAddress, c.address)
	}
}

func (p *Port) admit(inner net.Conn) *connection {
	c := &connection{Conn: inner, port: p, incoming: true, handshake: true, address: addressOf(inner.RemoteAddr())}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.stopped || p.mu.incoming >= p.options.ConnectionsMax || p.mu.handshakes >= handshakesMax ||
		p.mu.perAddress[c.address] >= handshakesPerAddressMax {
		return nil
	}
	p.mu.open[c] = struct{}{}
	p.mu.incoming++
	p.mu.handshakes++
	p.mu.perAddress[c.address]++
	return c
}

func addressOf(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap().WithZone("")
}

const acceptPauseMax = time.Second

func (p *Port) accept(l net.Listener) {
	for pause := time.Duration(0); ; {
		inner, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pause = min(max(2*pause, 5*time.Millisecond), acceptPauseMax)
			p.warnings.Do(func() { p.options.Log.Warn().Err(err).Msg("the cluster port cannot accept a connection") })
			select {
			case <-time.After(pause):
			case <-p.ctx.Done():
			}
			continue
		}
		pause = 0
		c := p.admit(inner)
		if c == nil {
			p.refused.Add(1)
			_ = inner.Close()
			continue
		}
		p.background.Go(func() {
			if guard.Try(p.options.Log, "handshake of a node", func() { p.receive(c) }) != nil {
				_ = c.Close()
			}
		})
	}
}

func (p *Port) receive(c *connection) {
	_ = c.SetDeadline(time.Now().Add(handshakeMax))
	conn := tls.Server(c, p.server)
	err := conn.HandshakeContext(p.ctx)
	if err != nil {
		p.failed.Add(1)
		letReadAlert(c, err)
		_ = c.Close()
	} else if err = p.handOver(c, conn); err == nil {
		return
	} else {
		_ = conn.Close()
	}
	level := zerolog.DebugLevel
	if isRefusal(err) {
		p.warnings.Do(func() { level = zerolog.WarnLevel })
	}
	p.options.Log.WithLevel(level).Stringer("from", c.RemoteAddr()).Err(err).Msg("connection to the cluster port refused")
}

// isRefusal reports whether an error is worth a warning: the other end may be a node that somebody misses.
func isRefusal(err error) bool {
	for _, cause := range []error{ErrOtherCluster, ErrExpired, ErrNotIssued, ErrNotMember} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// NB: to close with bytes unread resets the connection, and then the other end may never read why it was refused.
func letReadAlert(c *connection, err error) {
	var notTLS tls.RecordHeaderError
	tcp, ok := c.Conn.(interface{ CloseWrite() error })
	if ok && !errors.As(err, &notTLS) && tcp.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c.Conn, 64<<10)
	}
}

func (p *Port) admitNode(node NodeID) error {
	if !p.options.Admits(node) {
		return fmt.Errorf("%w: %s", ErrNotMember, node)
	}
	return nil
}

// On an error the connection is still the caller's.
func (p *Port) handOver(c *connection, conn *tls.Conn) error {
	var node NodeID
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != protocolJoin {
		n, err := nameIn(state.PeerCertificates[0]) // verified by the handshake
		if err != nil {
			return err
		}
		node = n.node
	}
	switch state.NegotiatedProtocol {
	case protocolStream:
		shard, err := readShard(conn)
		if err != nil {
			return fmt.Errorf("a stream of node %s: %w", node, err)
		}
		if err := p.known(c, node); err != nil {
			return err
		}
		if !p.offerStream(c, conn, shard) {
			p.unwanted.Add(1)
			return fmt.Errorf("a stream of node %s: nobody accepts it for shard %d", node, shard)
		}
		return nil
	case protocolCalls:
		if err := p.known(c, node); err != nil {
			return err
		}
		p.serveCalls(conn, node)
		return nil
	default:
		p.endHandshake(c, "")
		return p.offerJoin(conn)
	}
}

// NB: Admits is asked once more, since a Disconnect of before could not find the connection.
func (p *Port) known(c *connection, node NodeID) error {
	p.endHandshake(c, node)
	_ = c.SetDeadline(time.Time{})
	return p.admitNode(node)
}

func (p *Port) endHandshake(c *connection, node NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endHandshakeLocked(c)
	c.node = node
}

func readShard(r io.Reader) (uint16, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, fmt.Errorf("read the shard: %w", err)
	}
	return binary.BigEndian.Uint16(head[:]), nil
}

const (
	joinsMax      = 8                // joinsMax bounds the joins that are answered at once
	joinMax       = 15 * time.Second // the time for a join, at both ends
	joinBytesMax  = 64 << 10
	joinHeaderMax = 8 << 10
)

func (p *Port) newJoinServer() *http.Server {
	s := &http.Server{
		ReadHeaderTimeout: handshakeMax,
		ErrorLog:          stdlog.New(logWriter{p}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
	}
	if p.options.Join != nil {
		s.Handler = http.MaxBytesHandler(p.options.Join, joinBytesMax)
	}
	s.ReadTimeout, s.WriteTimeout, s.MaxHeaderBytes = handshakeMax, joinMax, joinHeaderMax
	s.Protocols = &http.Protocols{}
	s.Protocols.SetHTTP1(true)
	s.SetKeepAlivesEnabled(false)
	return s
}

// joinConnection is not a *tls.Conn, as net/http does not speak HTTP/1.1 on those with a protocol that it does not
// know.
type joinConnection struct {
	*tls.Conn
	leave func()
}

func (c *joinConnection) Close() error {
	c.leave()
	return c.Conn.Close()
}

// On an error the connection is still the caller's.
func (p *Port) offerJoin(conn *tls.Conn) error {
	select {
	case p.joinPlaces <- struct{}{}:
	default:
		p.joinRefused.Add(1)
		return fmt.Errorf("%d others are joining", joinsMax)
	}
	leave := sync.OnceFunc(func() { <-p.joinPlaces })
	if !p.joinInbox.offer(&joinConnection{conn, leave}) {
		leave()
		return errors.New("the server accepts no more joins")
	}
	return nil
}

// DialJoin connects to the node that a join key names, without a certificate. That the node has one by the authority of
// the key is verified, by the key's fingerprint.
func DialJoin(ctx context.Context, key JoinKey) (net.Conn, error) {
	conn, err := dialJoin(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("join by way of %s: %w", key.Address, err)
	}
	return conn, nil
}

func dialJoin(ctx context.Context, key JoinKey) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeMax)
	defer cancel()
	inner, err := (&net.Dialer{}).DialContext(ctx, "tcp", key.Address)
	if err != nil {
		return nil, err
	}
	t := trust{authorities: []Fingerprint{key.Authority}}
	conn := tls.Client(inner, verifiedConfig(protocolJoin, func(s tls.ConnectionState) error {
		_, err := t.verify(s.PeerCertificates, time.Now())
		return err
	}))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = inner.Close()
		return nil, err
	}
	return conn, nil
}

// JoinClient returns a client whose requests all go to the node that a join key names, whatever the host in their URL,
// each on a connection of its own by DialJoin. A request ends after 15 s.
func JoinClient(key JoinKey) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Client{
		Timeout: joinMax,
		Transport: &http.Transport{
			DialTLSContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return DialJoin(ctx, key) },
			Protocols:              protocols,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: joinHeaderMax,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
