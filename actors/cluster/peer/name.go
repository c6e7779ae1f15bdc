// Package peer is the cluster port: it moves bytes between nodes that prove who they are. It knows nothing of Raft,
// workflows or the store. The handshake (ALPN) says what a connection is for: the bytes of one shard, calls in
// frames, or the one request of a machine that is not a node yet. Anyone who dials a node names its id and takes nobody else
// who answers; an address means only where to look. DESIGN.md has what the port promises and what its caller must do.
package peer

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/cluster/frame"
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
func ParseNodeID(text string) (NodeID, error) { return NodeID(text), checkULID("node", text) }

func checkULID(of, text string) error {
	if id, err := ulid.ParseStrict(text); err != nil || id.String() != text {
		return fmt.Errorf("%.40q is not the id of a %s: 26 characters of a ULID in capitals", text, of)
	}
	return nil
}

// Fingerprint is the SHA-256 of an authority's public key, in the form of a certificate (SPKI). It stays the same when
// the authority's certificate is renewed.
type Fingerprint [sha256.Size]byte

func fingerprintOf(c *x509.Certificate) Fingerprint { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

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

// Causes for which a certificate is refused. What is said behind them tells which certificate it was.
var (
	ErrOtherCluster = errors.New("it belongs to another cluster")
	ErrExpired      = errors.New("its certificate is not valid now: check the clocks of both nodes")
	ErrNotNode      = errors.New("it shows no certificate of a node")
	ErrNotIssued    = errors.New("its certificate was not issued by the authority of this cluster")
	ErrOtherNode    = errors.New("another node answers there")
	// ErrRefused: the other node does not take the certificate of this one. It does not say why.
	ErrRefused   = errors.New("it does not take the certificate of this node: the node was removed from the cluster, or a clock is wrong")
	ErrNotMember = errors.New("the node does not belong to the cluster")
)

var (
	ErrUnknownNode = errors.New("no address of the node is known")
	// ErrNotSent is for RoundTrip: the other node has done nothing of the request.
	ErrNotSent = errors.New("nothing was sent")
	// ErrTooLarge is for RoundTrip: the request's header is, now and later.
	ErrTooLarge      = frame.ErrTooLarge
	ErrStopped       = errors.New("the cluster port is stopped")
	ErrShardTaken    = errors.New("the streams of the shard are in use")
	ErrNoCertificate = errors.New("the identity has no certificate yet") // for an identity before Accept
	// ErrJoinKey is for ParseJoinKey. The text behind it says what is wrong with the key.
	ErrJoinKey = errors.New("join key")
	// ErrCorrupt is for stored bytes of an identity or an authority that do not fit together.
	ErrCorrupt = errors.New("damaged bytes")
)

type notSent struct{ error }

func (n notSent) Unwrap() []error { return []error{ErrNotSent, n.error} }

// ReplaceFile writes a file of mode 0600. After a crash it is the old or the new one, and once ReplaceFile has returned
// nil, the new one.
func ReplaceFile(path string, data []byte) error {
	temporary := path + ".tmp"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) { // what a crash has left may have another mode
		return err
	}
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

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

// authorityOf does not look at the clock.
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

// JoinKey is what an operator copies to a new node: where a node of the cluster is, how
// to know it, and a secret that lets the new one in. Its text is one word:
//
//	troupe_join_1_ and, in base32, fingerprint ‖ id ‖ secret ‖ address ‖ checksum
//	                               32 bytes      8    20       1 to 260  4
//
// The checksum is the start of the SHA-256 of all that stands before it.
type JoinKey struct {
	Address   string      // "host:port" of a node's cluster port
	Authority Fingerprint // of the cluster
	ID        string      // 16 hexadecimal digits; names the key
	Secret    string      // 40 hexadecimal digits, 160 random bits
}

const (
	joinKeyPrefix     = "troupe_join_"
	joinKeyVersion    = "1_"
	joinKeyIDBytes    = 8
	joinKeySecret     = 20
	joinKeySum        = 4
	joinKeyHead       = sha256.Size + joinKeyIDBytes + joinKeySecret
	joinAddressMax    = 260
	joinKeyCharacters = 1024 // more is not looked at
)

var joinKeyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewJoinKey makes a key with a new id and secret. The cluster keeps its ID and the Hash of
// its secret. An error is ErrJoinKey: the address is none that others can dial.
func NewJoinKey(address string, authority Fingerprint) (JoinKey, error) {
	if err := CheckAddress(address); err != nil {
		return JoinKey{}, fmt.Errorf("%w: %w", ErrJoinKey, err)
	}
	random := make([]byte, joinKeyIDBytes+joinKeySecret)
	_, _ = rand.Read(random) // never fails
	return JoinKey{
		Address: address, Authority: authority,
		ID: hex.EncodeToString(random[:joinKeyIDBytes]), Secret: hex.EncodeToString(random[joinKeyIDBytes:]),
	}, nil
}

// String returns the key as the operator copies it, with the secret in it.
func (k JoinKey) String() string {
	data := k.Authority[:]
	for _, digits := range []string{k.ID, k.Secret} {
		b, _ := hex.DecodeString(digits)
		data = append(data, b...)
	}
	data = append(data, k.Address...)
	return joinKeyPrefix + joinKeyVersion + joinKeyEncoding.EncodeToString(append(data, joinKeyChecksum(data)...))
}

func joinKeyChecksum(data []byte) []byte {
	sum := sha256.Sum256(append([]byte(joinKeyPrefix+joinKeyVersion), data...))
	return sum[:joinKeySum]
}

// ParseJoinKey reads the text of a key, also in capitals and with blanks around it.
func ParseJoinKey(text string) (JoinKey, error) {
	k, err := parseJoinKey(strings.ToLower(strings.TrimSpace(text)))
	if err != nil {
		return JoinKey{}, fmt.Errorf("%w: %w", ErrJoinKey, err)
	}
	return k, nil
}

func parseJoinKey(text string) (k JoinKey, err error) {
	rest, found := strings.CutPrefix(text, joinKeyPrefix)
	switch {
	case text == "":
		return k, errors.New("it is empty")
	case !found:
		return k, fmt.Errorf("it does not begin with %s: copy it from `troupe cluster invite`", joinKeyPrefix)
	}
	version, _, _ := strings.Cut(rest, "_")
	if _, err := strconv.ParseUint(version, 10, 16); err == nil && version+"_" != joinKeyVersion {
		return k, fmt.Errorf("it is of version %s, and this program reads version %s: use the release that made it", version, strings.TrimSuffix(joinKeyVersion, "_"))
	}
	rest, found = strings.CutPrefix(rest, joinKeyVersion)
	damaged := errors.New("it is cut off or mistyped: copy it as a whole")
	if !found || len(rest) > joinKeyCharacters {
		return k, damaged
	}
	data, err := joinKeyEncoding.DecodeString(rest)
	// NB: base32 ignores line breaks and the last bits, so the same bytes have many texts.
	if err != nil || joinKeyEncoding.EncodeToString(data) != rest || len(data) <= joinKeyHead+joinKeySum {
		return k, damaged
	}
	data, sum := data[:len(data)-joinKeySum], data[len(data)-joinKeySum:]
	if string(sum) != string(joinKeyChecksum(data)) {
		return k, damaged
	}
	data = data[copy(k.Authority[:], data):]
	k.ID, data = hex.EncodeToString(data[:joinKeyIDBytes]), data[joinKeyIDBytes:]
	k.Secret, data = hex.EncodeToString(data[:joinKeySecret]), data[joinKeySecret:]
	k.Address = string(data)
	return k, CheckAddress(k.Address)
}

// CheckAddress requires a host and a port that another node can dial.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || len(address) > joinAddressMax || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%.80q is not the address of a node: host:port", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.80q has no port between 1 and 65535", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsUnspecified() {
		return fmt.Errorf("%s is every address of this machine: others need one of them", host)
	}
	return nil
}

// Hash is what the cluster keeps of a key's secret: 64 hexadecimal digits.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
