package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 90 * 24 * time.Hour
	// clockSkewMax is how far the clocks of two nodes may differ: by that much certificates begin earlier.
	clockSkewMax = 10 * time.Minute
)

// Authority signs the certificates of a cluster's nodes. Its bytes are the keys to the cluster: whoever has them can be
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
func (a *Authority) Marshal() ([]byte, error) {
	return marshalKeyed(a.key, a.certificate.Raw)
}

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
