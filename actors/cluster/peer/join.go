package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	joinsMax      = 8                // joinsMax bounds the joins that are answered at once
	joinMax       = 15 * time.Second // the time for a join, at both ends
	joinBytesMax  = 64 << 10
	joinHeaderMax = 8 << 10
)

func (p *Port) newJoinServer() *http.Server {
	s := p.newHTTPServer()
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

// On an error it is still the caller's.
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
		return errors.New("the server takes no more joins")
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
