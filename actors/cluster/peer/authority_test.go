package peer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAuthoritySurvivesItsBytes(t *testing.T) {
	a := newAuthority(testCluster)
	b, err := ParseAuthority(must(a.Marshal()))
	require.NoError(t, err)
	assert.True(t, b.Cluster() == testCluster && b.Fingerprint() == a.Fingerprint() && bytes.Equal(b.Certificate(), a.Certificate()),
		"got %s %s, want %s %s", b.Cluster(), b.Fingerprint(), a.Cluster(), a.Fingerprint())
	i, certificate := identify(b, nodeID(1), time.Now())
	assert.NoError(t, i.Accept(certificate, a.Certificate()), "what the copy signs")
}

func TestAuthorityIsRenewedWithItsKey(t *testing.T) {
	now := time.Now()
	a := newAuthority(testCluster)
	year := 365 * 24 * time.Hour
	for after, due := range map[time.Duration]bool{-time.Hour: true, 0: false, 4 * year: false, 6 * year: true, 11 * year: true} {
		b, err := a.Renewed(now.Add(after))
		require.NoError(t, err)
		assert.Equal(t, due, b != a, "after %s: renewed", after)
		assert.Equal(t, a.Fingerprint(), b.Fingerprint(), "after %s: the fingerprint has changed", after)
	}

	// Who has the certificate of before trusts nodes that were signed by the new one, and
	// the other way round, also when the old one is over.
	renewed := must(a.Renewed(now.Add(11 * year)))
	at := now.Add(11*year + time.Hour)
	trusts := trust{cluster: testCluster, authorities: []Fingerprint{a.Fingerprint()}}
	leaf := must(x509.ParseCertificate(must(renewed.Sign(must(must(NewIdentity(nodeID(1))).CSR()), nodeID(1), at))))
	_, err := trusts.verify([]*x509.Certificate{leaf, renewed.certificate}, at)
	assert.NoError(t, err, "by the new certificate")
	_, err = trusts.verify([]*x509.Certificate{leaf, a.certificate}, at)
	assert.ErrorIs(t, err, ErrExpired, "by the old certificate")
}

func TestCertificateEndsWithItsAuthority(t *testing.T) {
	a := newAuthority(testCluster)
	end := a.certificate.NotAfter
	_, der := identify(a, nodeID(1), end.Add(-time.Hour))
	got := must(x509.ParseCertificate(der)).NotAfter
	assert.True(t, got.Equal(end), "got an end on %s, want %s", got, end)
	_, err := a.Sign(must(must(NewIdentity(nodeID(1))).CSR()), nodeID(1), end.Add(time.Hour))
	assert.True(t, err != nil && strings.Contains(err.Error(), "renew it"), "an authority that is over: got %v", err)
}

func TestSignRefuses(t *testing.T) {
	a := newAuthority(testCluster)
	good := must(must(NewIdentity(nodeID(1))).CSR())
	broken := bytes.Clone(good)
	broken[len(broken)-1] ^= 1
	foreign := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	other := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(nodeID(1))}}, foreign))
	for name, c := range map[string]struct {
		csr  []byte
		node NodeID
		want string
	}{
		"another node's request": {good, nodeID(2), "the request is from"},
		"no id":                  {good, "x", "not the id of a node"},
		"a small letter":         {good, NodeID(strings.ToLower(string(nodeID(1)))), "not the id of a node"},
		"bytes":                  {[]byte("x"), nodeID(1), "asn1"},
		"a broken signature":     {broken, nodeID(1), "erif"},
		"another curve":          {other, nodeID(1), "P-256"},
	} {
		_, err := a.Sign(c.csr, c.node, time.Now())
		assert.True(t, err != nil && strings.Contains(err.Error(), c.want), "%s: got %v, want %q", name, err, c.want)
	}
	_, err := NewAuthority("x", time.Now())
	assert.Error(t, err, "an authority of no cluster was made")
}

// TestDamagedBytes changes each byte of what is stored: it is found, or changes nothing.
func TestDamagedBytes(t *testing.T) {
	a := newAuthority(testCluster)
	authority := must(a.Marshal())
	identity := must(member(a, nodeID(1)).Marshal())
	for name, c := range map[string]struct {
		data  []byte
		again func([]byte) ([]byte, error)
	}{
		"authority": {authority, func(b []byte) ([]byte, error) {
			a, err := ParseAuthority(b)
			if err != nil {
				return nil, err
			}
			return a.Marshal()
		}},
		"identity": {identity, func(b []byte) ([]byte, error) {
			i, err := ParseIdentity(b)
			if err != nil {
				return nil, err
			}
			return i.Marshal()
		}},
	} {
		got, err := c.again(c.data)
		assert.True(t, err == nil && bytes.Equal(got, c.data), "%s: got %v, want what was marshalled", name, err)
		found := 0
		for i := range c.data {
			damaged := bytes.Clone(c.data)
			damaged[i] ^= 2
			got, err := c.again(damaged)
			switch {
			case err == nil && !bytes.Equal(got, c.data):
				t.Errorf("%s: the damage of byte %d was taken", name, i)
			case err != nil && !errors.Is(err, ErrCorrupt):
				t.Errorf("%s: byte %d: got %v, want ErrCorrupt", name, i, err)
			case err != nil:
				found++
			}
		}
		assert.GreaterOrEqual(t, found, len(c.data)*9/10, "%s: the damage, %d", name, len(c.data))
		for i := range 20 {
			_, err := c.again(c.data[:len(c.data)*i/20])
			assert.ErrorIs(t, err, ErrCorrupt, "%s: cut at %d twentieths", name, i)
		}
	}
	_, err := ParseIdentity(authority)
	assert.ErrorIs(t, err, ErrCorrupt, "an authority as an identity")
	_, err = ParseAuthority(identity)
	assert.ErrorIs(t, err, ErrCorrupt, "an identity as an authority")
}
