package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What a connection is for, as TLS negotiates it (ALPN).
const (
	protocolStream = "troupe-stream/1" // two bytes of a shard, then its own bytes
	protocolCalls  = "h2"              // HTTP/2
	protocolJoin   = "troupe-join/1"   // HTTP/1.1, for whoever has no certificate yet
)

// NB: without tickets, every connection shows its certificates, so that a renewal and Admits hold from the next one on.
func baseConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}
}

func (i *Identity) serverConfig(joins bool, admit func(NodeID) error) *tls.Config {
	member := baseConfig()
	member.NextProtos = []string{protocolStream, protocolCalls}
	member.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &i.held.Load().certificate, nil }
	member.ClientAuth = tls.RequireAnyClientCert
	member.VerifyConnection = func(s tls.ConnectionState) error {
		if !slices.Contains(member.NextProtos, s.NegotiatedProtocol) {
			return errors.New("it asks for no protocol of this port")
		}
		n, err := i.held.Load().trust.verify(s.PeerCertificates, time.Now())
		if err != nil {
			return err
		}
		return admit(n.node)
	}
	if !joins {
		return member
	}
	joiner := baseConfig()
	joiner.NextProtos = []string{protocolJoin}
	joiner.GetCertificate = member.GetCertificate
	either := member.Clone()
	either.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Equal(hello.SupportedProtos, joiner.NextProtos) {
			return joiner, nil
		}
		return member, nil
	}
	return either
}

func (i *Identity) clientConfig(node NodeID, protocol string) *tls.Config {
	c := verifiedConfig(protocol, func(s tls.ConnectionState) error {
		n, err := i.held.Load().trust.verify(s.PeerCertificates, time.Now())
		if err == nil && n.node != node {
			err = fmt.Errorf("%w: %s", ErrOtherNode, n.node)
		}
		return err
	})
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &i.held.Load().certificate, nil }
	return c
}

func verifiedConfig(protocol string, verify func(tls.ConnectionState) error) *tls.Config {
	c := baseConfig()
	c.NextProtos = []string{protocol}
	c.InsecureSkipVerify = true // names of hosts mean nothing here: verify does it all
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if s.NegotiatedProtocol != protocol {
			return fmt.Errorf("it does not speak %s", protocol)
		}
		return verify(s)
	}
	return c
}
