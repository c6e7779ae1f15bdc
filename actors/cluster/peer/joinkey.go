package peer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

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

// CheckAddress demands a host and a port that another node can dial.
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
