package peer

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func forge(i *Identity, change func(*x509.Certificate)) *x509.Certificate {
	template := newTemplate(name{testCluster, i.node}, time.Now(), nodeLife)
	change(template)
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, template, &i.key.PublicKey, i.key))))
}

// showing is an identity that shows a chain which nobody would accept.
func showing(i *Identity, chain ...*x509.Certificate) *Identity {
	h := &held{name: name{testCluster, i.node}, certificate: tls.Certificate{PrivateKey: i.key, Leaf: chain[0]}}
	h.trust = trust{cluster: testCluster}
	for _, c := range chain {
		h.certificate.Certificate = append(h.certificate.Certificate, c.Raw)
		h.trust.authorities = append(h.trust.authorities, fingerprintOf(c))
	}
	i.held.Store(h)
	return i
}

// badIdentities are those of node 2 that nobody may take for it, and why.
func badIdentities(a *Authority) map[string]struct {
	identity *Identity
	want     error
} {
	fresh := func() *Identity { return must(NewIdentity(nodeID(2))) }
	selfSigned, plain, borrowed, alone, own := fresh(), fresh(), fresh(), fresh(), fresh()
	own.key = a.key
	aloneDER := must(a.Sign(must(alone.CSR()), nodeID(2), time.Now()))
	self := forge(selfSigned, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign })
	// The authority's public key, in a certificate that the authority has not signed.
	template := newTemplate(name{cluster: testCluster}, time.Now(), authorityLife)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	posed := must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, borrowed.key))))
	return map[string]struct {
		identity *Identity
		want     error
	}{
		"expired":                         {forced(a, nodeID(2), time.Now().Add(-100*24*time.Hour)), ErrExpired},
		"of a clock that is ahead":        {forced(a, nodeID(2), time.Now().Add(time.Hour)), ErrExpired},
		"of another authority":            {member(newAuthority(testCluster), nodeID(2)), ErrNotIssued},
		"of another cluster":              {member(newAuthority("01J0000000000000000000000D"), nodeID(2)), ErrOtherCluster},
		"self-signed":                     {showing(selfSigned, forge(selfSigned, func(*x509.Certificate) {}), self), ErrNotIssued},
		"of a web server":                 {showing(plain, forge(plain, func(c *x509.Certificate) { c.URIs = nil })), ErrNotNode},
		"with a posing authority":         {showing(borrowed, forge(borrowed, func(*x509.Certificate) {}), posed), ErrNotIssued},
		"self-signed, with the authority": {showing(borrowed, forge(borrowed, func(*x509.Certificate) {}), a.certificate), ErrNotIssued},
		"without its authority":           {showing(alone, must(x509.ParseCertificate(aloneDER))), ErrNotIssued},
		"the authority's own":             {showing(own, a.certificate, a.certificate), ErrNotNode},
	}
}

// TestNobodyElseGetsIn connects to a port as everybody who is not a node of the cluster,
// for each protocol. No byte of theirs reaches a stream or a handler, and the log says why.
func TestNobodyElseGetsIn(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	var reached atomic.Int64
	p, log := startPort(t, member(a, nodeID(1)), at, func(o *Options) {
		o.Calls = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })
		o.Join = o.Calls
		o.Log = o.Log.Level(-1)
		o.Admits = func(n NodeID) bool { return n != nodeID(3) }
	})
	streams := streamsOf(t, p, 1)
	as := func(i *Identity) *tls.Config {
		c := i.clientConfig(nodeID(1), protocolStream)
		c.VerifyConnection = nil
		return c
	}
	refused := func(name string, c *tls.Config, want string) {
		t.Helper()
		conn, err := tls.Dial("tcp", p.Addr().String(), c)
		if err == nil {
			_, _ = io.WriteString(conn, "\x00\x01hello")
			if n, readErr := conn.Read(make([]byte, 1)); n != 0 || readErr == nil {
				t.Errorf("%s: got a byte", name)
			} else if err = readErr; errors.Is(err, io.EOF) {
				t.Errorf("%s: got an orderly end, want an alert", name)
			}
			_ = conn.Close()
		}
		assert.Contains(t, log.await(t, "refused"), want, "%s: got the line, %v", name, err)
	}
	for _, protocol := range []string{protocolStream, protocolCalls} {
		for name, bad := range badIdentities(a) {
			c := as(bad.identity)
			c.NextProtos = []string{protocol}
			refused(name+" for "+protocol, c, bad.want.Error())
		}
		with := func(i *Identity, change func(*tls.Config)) *tls.Config {
			c := as(i)
			c.NextProtos = []string{protocol}
			change(c)
			return c
		}
		good := member(a, nodeID(2))
		refused("no certificate", with(good, func(c *tls.Config) { c.GetClientCertificate = nil }), "didn't provide a certificate")
		refused("no certificate, joins offered too", with(good, func(c *tls.Config) {
			c.GetClientCertificate, c.NextProtos = nil, []string{protocolJoin, protocol}
		}), "didn't provide a certificate")
		refused("TLS 1.2", with(good, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }), "unsupported versions")
		refused("not a member", with(member(a, nodeID(3)), func(*tls.Config) {}), ErrNotMember.Error())
	}
	plain := as(member(a, nodeID(2)))
	plain.NextProtos = nil
	refused("no protocol", plain, "no protocol of this port")
	for _, protocol := range []string{"h2", "http/1.1", "troupe-stream/2"} {
		plain.NextProtos = []string{protocol}
		refused(protocol, plain, "application protocols")
	}

	for _, garbage := range []string{"", "x", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff" + strings.Repeat("\xff", 70000), strings.Repeat("\x00", 100)} {
		c, err := net.Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		_, _ = io.WriteString(c, garbage)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c) // until the port closes it
		_ = c.Close()
		log.await(t, "refused")
	}
	_ = streams.Close()
	if c, err := streams.Accept(); err == nil {
		t.Errorf("a stream came in from %s", c.RemoteAddr())
	}
	assert.Zero(t, reached.Load(), "requests were handled")
	m := p.Metrics()
	assert.True(t, m.Handshakes == 0 && m.HandshakesFailed != 0, "got %+v, want no handshake left and some failed", m)
}

// TestNobodyElseIsTaken dials what is not the node that it should be.
func TestNobodyElseIsTaken(t *testing.T) {
	a, at := newAuthority(testCluster), &addresses{}
	one, _ := startPort(t, member(a, nodeID(1)), at, nil)
	s := streamsOf(t, one, 1)
	refused := func(t *testing.T, want error) {
		t.Helper()
		address, _ := at.resolve(nodeID(2))
		for verb, dial := range map[string]func() error{
			"dial": func() error { _, err := s.Dial(string(nodeID(2)), time.Minute); return err },
			"call": func() error { _, err := call(t.Context(), one, nodeID(2), "/"); return err },
		} {
			err := dial()
			begin := fmt.Sprintf("%s node %s at %s: ", verb, nodeID(2), address)
			assert.True(t, err != nil && (want == nil || errors.Is(err, want)) && strings.HasPrefix(err.Error(), begin), "%s: got %v, want %s%v", verb, err, begin, want)
			assert.False(t, err != nil && strings.Contains(err.Error(), "\n"), "%s: the error has more than a line: %v", verb, err)
		}
		one.outgoing.mu.Lock()
		clear(one.outgoing.mu.dials)
		one.outgoing.mu.Unlock()
	}
	for name, bad := range badIdentities(a) {
		t.Run(name, func(t *testing.T) {
			startPort(t, bad.identity, at, nil)
			refused(t, bad.want)
		})
	}
	t.Run("another node", func(t *testing.T) {
		p, _ := startPort(t, member(a, nodeID(3)), at, nil)
		at.set(nodeID(2), p.Addr().String())
		refused(t, ErrOtherNode)
	})
	t.Run("nobody listens", func(t *testing.T) {
		p, _ := startPort(t, member(a, nodeID(2)), at, nil)
		// NB: the near end of a connection listens nowhere, and nobody else can at its port.
		near, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}).Dial("tcp", p.Addr().String())
		require.NoError(t, err)
		defer func() { _ = near.Close() }()
		at.set(nodeID(2), near.LocalAddr().String())
		refused(t, nil)
	})
	t.Run("something else", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		at.set(nodeID(2), l.Addr().String())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "220 mail.example.org ESMTP\r\n")
				_ = c.Close()
			}
		}()
		refused(t, nil)
		_ = l.Close()
		<-done
	})
	for _, nobody := range []string{"", "x", string(nodeID(9)), "a:1", strings.Repeat("x", 1000), "a\nb"} {
		_, err := s.Dial(nobody, 0)
		assert.True(t, errors.Is(err, ErrUnknownNode) && len(err.Error()) <= 200 && !strings.Contains(err.Error(), "\n"), "%v %v", nobody, err)
	}
	assert.Zero(t, one.Metrics().Connections, "connections are left")
}
