package peer

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/oklog/ulid/v2"
)

// ClusterID names a cluster: the text of a ULID, 26 upper-case characters.
type ClusterID string

// NodeID names a node of a cluster, in the same form. It stays the same when the node's address changes.
type NodeID string

// ParseClusterID checks the form of a cluster's id.
func ParseClusterID(text string) (ClusterID, error) {
	return ClusterID(text), checkULID("cluster", text)
}

// ParseNodeID checks the form of a node's id.
func ParseNodeID(text string) (NodeID, error) {
	return NodeID(text), checkULID("node", text)
}

func checkULID(of, text string) error {
	if id, err := ulid.ParseStrict(text); err != nil || id.String() != text {
		return fmt.Errorf("%.40q is not the id of a %s: 26 characters of a ULID in capitals", text, of)
	}
	return nil
}

// Fingerprint is the SHA-256 of an authority's public key, in the form of a certificate (SPKI). It stays the same when
// the authority's certificate is renewed.
type Fingerprint [sha256.Size]byte

func fingerprintOf(c *x509.Certificate) Fingerprint {
	return sha256.Sum256(c.RawSubjectPublicKeyInfo)
}

// String returns 64 hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// name is who a certificate speaks for, by its URI: troupe://CLUSTER/NODE for a node, troupe://CLUSTER for an
// authority.
type name struct {
	cluster ClusterID
	node    NodeID // empty for an authority
}

const nameScheme = "troupe"

func (n name) uri() *url.URL {
	u := &url.URL{Scheme: nameScheme, Host: string(n.cluster)}
	if n.node != "" {
		u.Path = "/" + string(n.node)
	}
	return u
}

func parseName(u *url.URL) (n name, err error) {
	if n.cluster, err = ParseClusterID(u.Host); err != nil {
		return name{}, err
	}
	if node, found := strings.CutPrefix(u.Path, "/"); found {
		if n.node, err = ParseNodeID(node); err != nil {
			return name{}, err
		}
	}
	if u.String() != n.uri().String() {
		return name{}, errors.New("the URI has other parts than a cluster and a node")
	}
	return n, nil
}

func nameIn(c *x509.Certificate) (name, error) {
	if len(c.URIs) != 1 {
		return name{}, fmt.Errorf("it has %d URIs, not one", len(c.URIs))
	}
	return parseName(c.URIs[0])
}
