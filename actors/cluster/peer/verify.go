package peer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

type trust struct {
	cluster     ClusterID // the one that the peer must be of; empty: any, as long as an authority fits
	authorities []Fingerprint
}

// NB: the authority's comes from the peer and is believed for its key alone, so nobody has to have the newest one.
func (t trust) verify(chain []*x509.Certificate, now time.Time) (name, error) {
	if len(chain) == 0 {
		return name{}, ErrNotNode
	}
	leaf := chain[0]
	n, err := nameIn(leaf)
	switch {
	case err != nil:
		return name{}, fmt.Errorf("%w: %w", ErrNotNode, err)
	case n.node == "" || leaf.IsCA:
		return name{}, fmt.Errorf("%w: it is that of an authority", ErrNotNode)
	case t.cluster != "" && n.cluster != t.cluster:
		return name{}, fmt.Errorf("%w: %s, not %s", ErrOtherCluster, n.cluster, t.cluster)
	case len(chain) != 2 || !slices.Contains(t.authorities, fingerprintOf(chain[1])):
		return name{}, ErrNotIssued
	}
	authority := chain[1]
	if cluster, err := authorityOf(authority); err != nil || cluster != n.cluster {
		return name{}, ErrNotIssued
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return name{}, fmt.Errorf("%w: that of node %s is for %s to %s, its authority's for %s to %s, and here it is %s", ErrExpired, n.node,
			day(leaf.NotBefore), day(leaf.NotAfter), day(authority.NotBefore), day(authority.NotAfter), day(now))
	}
	if err != nil {
		return name{}, fmt.Errorf("%w: %w", ErrNotIssued, err)
	}
	return n, nil
}

// It does not look at the clock.
func authorityOf(c *x509.Certificate) (ClusterID, error) {
	n, err := nameIn(c)
	if err != nil {
		return "", err
	}
	if n.node != "" {
		return "", errors.New("it is the certificate of a node")
	}
	return n.cluster, c.CheckSignatureFrom(c)
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02T15:04Z") }
