package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// Options configures a port.
type Options struct {
	Address string // where the port listens, "host:port"
	// Identity is who this node is. It must have a certificate. Renew it at will.
	Identity *Identity
	Resolve  func(NodeID) (address string, ok bool) // Resolve returns the address of a node, "host:port", and whether one is known
	// Admits decides whether a node with a good certificate may connect and call; a removed one keeps its certificate
	// for up to 90 days. Nil: every node of the cluster may.
	Admits func(NodeID) bool
	// Calls answers the calls of other nodes; NodeOf says whose they are. Nil: 404 for all.
	Calls http.Handler
	// Join answers those who have no certificate yet. Nil: nobody can join here.
	Join http.Handler
	Log  zerolog.Logger // Log gets a warning for each node that is refused, at most one a second

	// ConnectionsMax bounds the connections that others have opened here. Zero: 4,096.
	ConnectionsMax int
	// CallsMax bounds the calls of another node that are answered at once, the streams that it follows included; more
	// are ErrNotSent to it. Zero: 16,384.
	CallsMax int
	// StreamsQueued bounds a shard's streams that wait for Accept. Zero: 16.
	StreamsQueued int
}

const (
	// handshakesMax bounds the connections that have not shown yet who they are, and handshakesPerAddressMax those of
	// one address: a node that starts opens a stream for each shard at once.
	handshakesMax           = 256
	handshakesPerAddressMax = 64
)

func (o *Options) ensureDefaults() {
	for _, d := range []struct {
		value   *int
		standin int
	}{
		{&o.ConnectionsMax, 4096},
		{&o.CallsMax, 16384},
		{&o.StreamsQueued, 16},
	} {
		if *d.value == 0 {
			*d.value = d.standin
		}
	}
	if o.Admits == nil {
		o.Admits = func(NodeID) bool { return true }
	}
	if o.Calls == nil {
		o.Calls = http.NotFoundHandler()
	}
}

func (o *Options) validate() (err error) {
	fault := func(wrong bool, text string) {
		if wrong {
			err = errors.Join(err, errors.New(text))
		}
	}
	fault(o.Address == "", "no address to listen on")
	fault(o.Resolve == nil, "no way to resolve a node")
	fault(o.Identity == nil, "no identity")
	if o.Identity != nil && o.Identity.held.Load() == nil {
		err = errors.Join(err, ErrNoCertificate)
	}
	fault(min(o.ConnectionsMax, o.CallsMax, o.StreamsQueued) < 0, "a bound below zero")
	return err
}

// What a connection is for, as TLS negotiates it (ALPN).
const (
	protocolStream = "troupe-stream/1" // two bytes of a shard, then its own bytes
	protocolCalls  = "troupe-calls/1"  // frames of requests and answers (package frame)
	protocolJoin   = "troupe-join/1"   // HTTP/1.1, for anyone who has no certificate yet
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
