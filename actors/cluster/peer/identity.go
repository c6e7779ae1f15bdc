package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
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

// held is immutable.
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

// ParseIdentity reads what Marshal has returned. A certificate that is over is not an error: the node can still be given a
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

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 90 * 24 * time.Hour
	// clockSkewMax is how far the clocks of two nodes may differ: by that much certificates begin earlier.
	clockSkewMax = 10 * time.Minute
)

// Authority signs the certificates of a cluster's nodes. Its bytes are the keys to the cluster: anyone who has them can be
// any node.
type Authority struct {
	cluster     ClusterID
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

// NewAuthority makes the authority of a new cluster, with a new key.
func NewAuthority(cluster ClusterID, now time.Time) (*Authority, error) {
	if _, err := ParseClusterID(string(cluster)); err != nil {
		return nil, fmt.Errorf("new authority: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("new authority: %w", err)
	}
	return issueAuthority(cluster, key, now)
}

func issueAuthority(cluster ClusterID, key *ecdsa.PrivateKey, now time.Time) (*Authority, error) {
	template := newTemplate(name{cluster: cluster}, now, authorityLife)
	template.IsCA, template.MaxPathLenZero = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("issue the certificate of an authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("issue the certificate of an authority: %w", err)
	}
	return &Authority{cluster: cluster, key: key, certificate: certificate}, nil
}

func newTemplate(n name, now time.Time, life time.Duration) *x509.Certificate {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	subject := pkix.Name{CommonName: string(n.node), Organization: []string{"troupe " + string(n.cluster)}}
	if n.node == "" {
		subject.CommonName = "troupe authority"
	}
	return &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(serial),
		Subject:               subject,
		NotBefore:             now.Add(-clockSkewMax),
		NotAfter:              now.Add(life),
		BasicConstraintsValid: true,
		URIs:                  []*url.URL{n.uri()},
	}
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// Cluster is the cluster that the authority was made for.
func (a *Authority) Cluster() ClusterID { return a.cluster }

// Fingerprint is what a joining node knows the authority by.
func (a *Authority) Fingerprint() Fingerprint { return fingerprintOf(a.certificate) }

// Certificate returns the authority's own certificate (DER). The caller must not change it.
func (a *Authority) Certificate() []byte { return a.certificate.Raw }

// Sign answers the request of a node (Identity.CSR) with a certificate (DER) that is valid for 90 days.
func (a *Authority) Sign(csr []byte, node NodeID, now time.Time) ([]byte, error) {
	request, err := a.checkRequest(csr, node)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of node %.40q: %w", node, err)
	}
	if now.After(a.certificate.NotAfter) {
		return nil, fmt.Errorf("sign the certificate of node %s: the authority's own ended on %s: renew it first",
			node, a.certificate.NotAfter.Format(time.RFC3339))
	}
	template := newTemplate(name{a.cluster, node}, now, nodeLife)
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, request.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of node %s: %w", node, err)
	}
	return der, nil
}

func (a *Authority) checkRequest(csr []byte, node NodeID) (*x509.CertificateRequest, error) {
	if _, err := ParseNodeID(string(node)); err != nil {
		return nil, err
	}
	request, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	if key, ok := request.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("its key is not of ECDSA P-256")
	}
	if request.Subject.CommonName != string(node) {
		return nil, fmt.Errorf("the request is from %.40q", request.Subject.CommonName)
	}
	return request, nil
}

// Renewed returns the authority with a new certificate and the same key when less than half of the certificate's life
// is left, or it has not begun: then the clock was ahead when it was signed. It returns a itself when it is not due.
func (a *Authority) Renewed(now time.Time) (*Authority, error) {
	life := a.certificate.NotAfter.Sub(a.certificate.NotBefore)
	if !now.Before(a.certificate.NotBefore) && a.certificate.NotAfter.Sub(now) >= life/2 {
		return a, nil
	}
	return issueAuthority(a.cluster, a.key, now)
}

// Marshal returns the authority as bytes for ParseAuthority: PEM, with the private key.
func (a *Authority) Marshal() ([]byte, error) { return marshalKeyed(a.key, a.certificate.Raw) }

// ParseAuthority reads what Marshal has returned. An error is ErrCorrupt.
func ParseAuthority(data []byte) (*Authority, error) {
	a, err := parseAuthority(data)
	if err != nil {
		return nil, fmt.Errorf("read an authority: %w: %w", ErrCorrupt, err)
	}
	return a, nil
}

func parseAuthority(data []byte) (*Authority, error) {
	key, certificates, err := parseKeyed(data)
	if err != nil {
		return nil, err
	}
	if len(certificates) != 1 {
		return nil, fmt.Errorf("it has %d certificates, not one", len(certificates))
	}
	certificate := certificates[0]
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, errors.New("the key does not fit the certificate")
	}
	cluster, err := authorityOf(certificate)
	if err != nil {
		return nil, err
	}
	return &Authority{cluster: cluster, key: key, certificate: certificate}, nil
}

const (
	pemKey         = "PRIVATE KEY"
	pemCertificate = "CERTIFICATE"
)

func marshalKeyed(key *ecdsa.PrivateKey, certificates ...[]byte) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der})
	for _, c := range certificates {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c})...)
	}
	return data, nil
}

func parseKeyed(data []byte) (key *ecdsa.PrivateKey, certificates []*x509.Certificate, err error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != pemKey {
		return nil, nil, errors.New("it does not begin with a private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, nil, errors.New("its key is not of ECDSA P-256")
	}
	for len(rest) > 0 {
		if block, rest = pem.Decode(rest); block == nil || block.Type != pemCertificate {
			return nil, nil, errors.New("it does not end with a certificate")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, err
		}
		certificates = append(certificates, certificate)
	}
	return key, certificates, nil
}
