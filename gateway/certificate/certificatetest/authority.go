// Package certificatetest makes certificates for tests.
package certificatetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates for localhost, and for clients.
type Authority struct {
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

// NewAuthority makes an authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &Authority{key: key}
	a.cert = &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SerialNumber: big.NewInt(0),
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, key.Public(), key)
	require.NoError(t, err)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Sign returns a certificate and its key in PEM. It is good for an hour, for localhost and for a client; change may
// say something else.
func (a *Authority) Sign(t testing.TB, commonName string, change func(*x509.Certificate)) (cert, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.made++
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: commonName}, SerialNumber: big.NewInt(a.made), NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, own.Public(), a.key)
	require.NoError(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// Write has Sign's texts in two files.
func (a *Authority) Write(t testing.TB, certFile, keyFile, commonName string) {
	t.Helper()
	cert, key := a.Sign(t, commonName, nil)
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
}

// Client returns what a client needs who trusts the authority and shows a certificate that signer made; nil shows none.
func (a *Authority) Client(t testing.TB, signer *Authority, commonName string, change func(*x509.Certificate)) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(a.PEM)
	if signer != nil {
		pair, err := tls.X509KeyPair(signer.Sign(t, commonName, change))
		require.NoError(t, err)
		// NB: a client of Go shows only what the server's list of authorities has, unless it is asked like this.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c
}
