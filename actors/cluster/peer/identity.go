package peer

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Identity is a node's key and what its cluster has signed for it.
//
// Accept may be called while ports use the identity: every handshake from then on has the new certificate, and open
// connections stay. All methods may be called at once.
type Identity struct {
	node NodeID
	key  *ecdsa.PrivateKey
	held atomic.Pointer[held] // nil until Accept
}

// It is immutable.
type held struct {
	name        name
	trust       trust
	certificate tls.Certificate     // the node's own and that of the authority that signed it
	authorities []*x509.Certificate // the one that signed is first
}

// NewIdentity makes a key for a node. It has no certificate yet.
func NewIdentity(node NodeID) (*Identity, error) {
	if _, err := ParseNodeID(string(node)); err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	return &Identity{node: node, key: key}, nil
}

// Node is whose identity it is.
func (i *Identity) Node() NodeID { return i.node }

// Cluster is the cluster of the certificate, empty before Accept.
func (i *Identity) Cluster() ClusterID {
	if h := i.held.Load(); h != nil {
		return h.name.cluster
	}
	return ""
}

// CSR returns a request for a certificate (PKCS #10, DER), for Authority.Sign.
func (i *Identity) CSR() ([]byte, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(i.node)}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, i.key)
	if err != nil {
		return nil, fmt.Errorf("request the certificate of node %s: %w", i.node, err)
	}
	return der, nil
}

// Accept puts a certificate (DER) into use, that of this identity's key. Authorities (DER) are all that peers may have
// theirs from; one of them has signed this one.
func (i *Identity) Accept(certificate []byte, authorities ...[]byte) error {
	h, err := i.parse(certificate, authorities)
	if err == nil {
		_, err = h.trust.verify([]*x509.Certificate{h.certificate.Leaf, h.authorities[0]}, time.Now())
	}
	if err == nil && i.Cluster() != "" && i.Cluster() != h.name.cluster {
		err = fmt.Errorf("%w: %s, not %s", ErrOtherCluster, h.name.cluster, i.Cluster())
	}
	if err != nil {
		return fmt.Errorf("accept a certificate for node %s: %w", i.node, err)
	}
	i.held.Store(h)
	return nil
}

func (i *Identity) parse(certificate []byte, authorities [][]byte) (*held, error) {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	h := &held{}
	if h.name, err = nameIn(leaf); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotNode, err)
	}
	switch {
	case h.name.node != i.node:
		return nil, fmt.Errorf("%w: %s", ErrOtherNode, h.name.node)
	case !i.key.PublicKey.Equal(leaf.PublicKey):
		return nil, errors.New("it is for another key")
	}
	h.trust.cluster = h.name.cluster
	for _, der := range authorities {
		authority, err := x509.ParseCertificate(der)
		if err == nil {
			_, err = authorityOf(authority)
		}
		if err != nil {
			return nil, fmt.Errorf("of an authority: %w", err)
		}
		h.authorities = append(h.authorities, authority)
		h.trust.authorities = append(h.trust.authorities, fingerprintOf(authority))
	}
	signer := slices.IndexFunc(h.authorities, func(a *x509.Certificate) bool { return leaf.CheckSignatureFrom(a) == nil })
	if signer < 0 {
		return nil, ErrNotIssued
	}
	h.authorities[0], h.authorities[signer] = h.authorities[signer], h.authorities[0]
	h.certificate = tls.Certificate{Certificate: [][]byte{leaf.Raw, h.authorities[0].Raw}, PrivateKey: i.key, Leaf: leaf}
	return h, nil
}

// NeedsRenewal reports whether two thirds of the certificate's life are over, or it has not begun: then the clock was
// ahead when it was signed.
func (i *Identity) NeedsRenewal(now time.Time) bool {
	h := i.held.Load()
	if h == nil {
		return true
	}
	leaf := h.certificate.Leaf
	return now.Before(leaf.NotBefore) || now.Sub(leaf.NotBefore) >= leaf.NotAfter.Sub(leaf.NotBefore)*2/3
}

// Expires is the end of the certificate, zero before Accept.
func (i *Identity) Expires() time.Time {
	if h := i.held.Load(); h != nil {
		return h.certificate.Leaf.NotAfter
	}
	return time.Time{}
}

// Marshal returns the identity as bytes for ParseIdentity: PEM, with the private key.
func (i *Identity) Marshal() ([]byte, error) {
	h := i.held.Load()
	if h == nil {
		return nil, ErrNoCertificate
	}
	certificates := [][]byte{h.certificate.Leaf.Raw}
	for _, a := range h.authorities {
		certificates = append(certificates, a.Raw)
	}
	return marshalKeyed(i.key, certificates...)
}

// ParseIdentity reads what Marshal has returned. A certificate that is over is no error: the node can still be given a
// new one.
func ParseIdentity(data []byte) (*Identity, error) {
	i, err := parseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("read the identity of a node: %w: %w", ErrCorrupt, err)
	}
	return i, nil
}

func parseIdentity(data []byte) (*Identity, error) {
	key, certificates, err := parseKeyed(data)
	if err != nil {
		return nil, err
	}
	if len(certificates) < 2 {
		return nil, fmt.Errorf("it has %d certificates, not two or more", len(certificates))
	}
	n, err := nameIn(certificates[0])
	if err != nil {
		return nil, err
	}
	if n.node == "" {
		return nil, errors.New("it is that of an authority")
	}
	var authorities [][]byte
	for _, c := range certificates[1:] {
		authorities = append(authorities, c.Raw)
	}
	i := &Identity{node: n.node, key: key}
	h, err := i.parse(certificates[0].Raw, authorities)
	if err != nil {
		return nil, err
	}
	i.held.Store(h)
	return i, nil
}

// Save writes the identity into a file; see [ReplaceFile].
func (i *Identity) Save(path string) error {
	data, err := i.Marshal()
	if err == nil {
		err = ReplaceFile(path, data)
	}
	if err != nil {
		return fmt.Errorf("save the identity of node %s: %w", i.node, err)
	}
	return nil
}

// LoadIdentity reads what Save has written.
func LoadIdentity(path string) (*Identity, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load the identity of a node: %w", err)
	}
	i, err := ParseIdentity(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return i, nil
}
