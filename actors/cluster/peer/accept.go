package peer

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
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
	if p.mu.stopped || p.mu.incoming >= p.options.ConnectionsMax || p.mu.handshakes >= p.options.HandshakesMax ||
		p.mu.perAddress[c.address] >= p.options.HandshakesPerAddressMax {
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
			p.warnings.Do(func() { p.options.Log.Warn().Err(err).Msg("the cluster port cannot take a connection") })
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

// On an error it is still the caller's.
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
		if !p.callInbox.offer(conn) {
			return fmt.Errorf("calls of node %s: the server takes no more connections", node)
		}
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
