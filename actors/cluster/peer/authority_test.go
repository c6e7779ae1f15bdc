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
)

func TestAuthoritySurvivesItsBytes(t *testing.T) {
	a := newAuthority(testCluster)
	b, err := ParseAuthority(must(a.Marshal()))
	if err != nil {
		t.Fatal(err)
	}
	if b.Cluster() != testCluster || b.Fingerprint() != a.Fingerprint() || !bytes.Equal(b.Certificate(), a.Certificate()) {
		t.Errorf("got %s %s, want %s %s", b.Cluster(), b.Fingerprint(), a.Cluster(), a.Fingerprint())
	}
	i, certificate := identify(b, nodeID(1), time.Now())
	if err := i.Accept(certificate, a.Certificate()); err != nil {
		t.Errorf("what the copy signs: %v", err)
	}
}

func TestAuthorityIsRenewedWithItsKey(t *testing.T) {
	now := time.Now()
	a := newAuthority(testCluster)
	year := 365 * 24 * time.Hour
	for after, due := range map[time.Duration]bool{-time.Hour: true, 0: false, 4 * year: false, 6 * year: true, 11 * year: true} {
		b, err := a.Renewed(now.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		if (b != a) != due {
			t.Errorf("after %s: renewed is %t, want %t", after, b != a, due)
		}
		if b.Fingerprint() != a.Fingerprint() {
			t.Errorf("after %s: the fingerprint has changed", after)
		}
	}

	// Who has the certificate of before trusts nodes that were signed by the new one, and
	// the other way round, also when the old one is over.
	renewed := must(a.Renewed(now.Add(11 * year)))
	at := now.Add(11*year + time.Hour)
	trusts := trust{cluster: testCluster, authorities: []Fingerprint{a.Fingerprint()}}
	leaf := must(x509.ParseCertificate(must(renewed.Sign(must(must(NewIdentity(nodeID(1))).CSR()), nodeID(1), at))))
	if _, err := trusts.verify([]*x509.Certificate{leaf, renewed.certificate}, at); err != nil {
		t.Errorf("by the new certificate: %v", err)
	}
	if _, err := trusts.verify([]*x509.Certificate{leaf, a.certificate}, at); !errors.Is(err, ErrExpired) {
		t.Errorf("by the old certificate: got %v, want ErrExpired", err)
	}
}

func TestCertificateEndsWithItsAuthority(t *testing.T) {
	a := newAuthority(testCluster)
	end := a.certificate.NotAfter
	_, der := identify(a, nodeID(1), end.Add(-time.Hour))
	if got := must(x509.ParseCertificate(der)).NotAfter; !got.Equal(end) {
		t.Errorf("got an end on %s, want %s", got, end)
	}
	if _, err := a.Sign(must(must(NewIdentity(nodeID(1))).CSR()), nodeID(1), end.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "renew it") {
		t.Errorf("an authority that is over: got %v", err)
	}
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
		if _, err := a.Sign(c.csr, c.node, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := NewAuthority("x", time.Now()); err == nil {
		t.Error("an authority of no cluster was made")
	}
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
		if got, err := c.again(c.data); err != nil || !bytes.Equal(got, c.data) {
			t.Errorf("%s: got %v, want what was marshalled", name, err)
		}
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
		if found < len(c.data)*9/10 {
			t.Errorf("%s: the damage of %d of %d bytes was found", name, found, len(c.data))
		}
		for i := range 20 {
			if _, err := c.again(c.data[:len(c.data)*i/20]); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: cut at %d twentieths: got %v, want ErrCorrupt", name, i, err)
			}
		}
	}
	if _, err := ParseIdentity(authority); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an authority as an identity: got %v", err)
	}
	if _, err := ParseAuthority(identity); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an identity as an authority: got %v", err)
	}
}
