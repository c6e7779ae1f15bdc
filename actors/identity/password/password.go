// Package password is what a login password may be, its hash at rest, and a bounded number of hashes at a time
// (actors/identity/DESIGN.md, "Passwords"). It knows no users, no rows and no sessions.
package password

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"troupe/actors/failure"
)

// Cost is what one hash of a password costs anyone who guesses, and us at every sign-in (argon2id, RFC 9106).
type Cost struct {
	MemoryKiB uint32 // the memory of a hash, 8 to 1,048,576 for each lane together
	Passes    uint32 // Passes over the memory, 1 to 64
	Lanes     uint8  // Lanes that can be worked on at a time, 1 to 16
}

// StandardCost is the least that OWASP's password storage cheat sheet recommends: 19 MiB, two passes, one lane.
var StandardCost = Cost{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1}

const (
	MemoryKiBMax = 1 << 20
	PassesMax    = 64
	LanesMax     = 16
)

// Valid reports whether argon2 takes the cost, and this process can pay it.
func (c Cost) Valid() bool {
	return c.Passes >= 1 && c.Passes <= PassesMax && c.Lanes >= 1 && c.Lanes <= LanesMax &&
		c.MemoryKiB >= 8*uint32(c.Lanes) && c.MemoryKiB <= MemoryKiBMax
}

// The rules for new passwords (NIST SP 800-63B, 3.1.1): a length, and not among the first guesses.
const (
	charsMin = 8
	charsMax = 256
	// bytesMax bounds the work of putting a text in its normal form. No password of charsMax characters is longer.
	bytesMax = 16 << 10
)

// Normal returns the form of a password that is hashed: NFC, as the profile OpaqueString of RFC 8265 has it, so that
// "é" is the same from every keyboard.
func Normal(password string) (string, bool) {
	if len(password) > bytesMax || !utf8.ValidString(password) {
		return "", false
	}
	password = norm.NFC.String(password)
	return password, utf8.RuneCountInString(password) <= charsMax
}

// Check returns the normal form of a new password, or failure.ErrInvalid with the rule that it breaks.
func Check(user string, password string) (string, error) {
	if !utf8.ValidString(password) {
		return "", failure.Refuse(failure.ErrInvalid, "the password is not valid UTF-8")
	}
	normal, ok := Normal(password)
	switch {
	case !ok:
		return "", failure.Refuse(failure.ErrInvalid, "the password is longer than %d characters", charsMax)
	case utf8.RuneCountInString(normal) < charsMin:
		return "", failure.Refuse(failure.ErrInvalid, "the password is shorter than %d characters", charsMin)
	case strings.ContainsFunc(normal, unicode.IsControl):
		return "", failure.Refuse(failure.ErrInvalid, "the password holds a control character, which a login page does not take")
	case isGuessedFirst(user, normal):
		return "", failure.Refuse(failure.ErrInvalid, "the password is among the first guesses: a much used one, the login name, or one character again and again")
	}
	return normal, nil
}

// isGuessedFirst: the login name, one character again and again, or the most used ones.
func isGuessedFirst(user string, password string) bool {
	lower := strings.ToLower(password)
	first, size := utf8.DecodeRuneInString(lower)
	if lower == strings.ToLower(user) || strings.Trim(lower[size:], string(first)) == "" {
		return true
	}
	return guessedFirst[lower]
}

// guessedFirst are the most used passwords of at least charsMin characters in published leaks, in lower case.
var guessedFirst = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`
		password password1 password12 password123 password1234 password! passw0rd p@ssw0rd p@ssword pa$$word passwort
		12345678 123456789 1234567890 0123456789 987654321 87654321 0987654321 12344321 11223344 12341234 123123123
		1q2w3e4r 1q2w3e4r5t 1qaz2wsx 1qaz@wsx qwertyui qwertyuiop qwerty12 qwerty123 qwerty1234 qwertz123 qwertzui
		asdfghjk asdfghjkl zxcvbnm1 zaq12wsx abcd1234 abc12345 abcdefgh abcdefg1 a1b2c3d4 aa123456 a12345678
		iloveyou iloveyou1 sunshine sunshine1 princess princess1 football football1 baseball baseball1 basketball
		superman superman1 starwars computer computer1 internet michelle michael1 jennifer samantha victoria
		trustno1 letmein1 letmein123 welcome1 welcome123 welcome! changeme changeme1 changeme123 administrator
		admin123 admin1234 adminadmin administrator1 rootroot testtest test1234 default1 master123 secret123
		hunter22 dragon123 monkey123 shadow123 whatever charlie1 jordan23 summer2024 summer2025 summer2026
		winter2024 winter2025 winter2026 troupe123 troupetroupe correcthorsebatterystaple`) {
		set[word] = true
	}
	return set
}()

const (
	SaltBytes                                = 16
	HashBytes                                = 32
	SaltBytesMax, HashBytesMin, HashBytesMax = 64, 16, 64 // Bounds for stored hashes
)

// Hash is a hashed password. It is never changed.
type Hash struct {
	Cost Cost
	Salt []byte
	Sum  []byte
}

func newSalt() []byte {
	salt := make([]byte, SaltBytes)
	_, _ = rand.Read(salt) // crypto/rand never returns an error; it ends the program
	return salt
}

// Derive computes the hash of a password in its normal form.
func Derive(password string, salt []byte, cost Cost, bytes int) []byte {
	return argon2.IDKey([]byte(password), salt, cost.Passes, cost.MemoryKiB, cost.Lanes, uint32(bytes))
}

func (h *Hash) equals(sum []byte) bool { return subtle.ConstantTimeCompare(h.Sum, sum) == 1 }

// String writes the hash as a PHC string: $argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>, in base64 without padding.
func (h *Hash) String() string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, h.Cost.MemoryKiB, h.Cost.Passes, h.Cost.Lanes, encode(h.Salt), encode(h.Sum))
}

// ParseHash reads exactly what String writes.
func ParseHash(text string) (*Hash, error) {
	wrong := func(what string) (*Hash, error) { return nil, errors.New("the password's hash " + what) }
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return wrong("is not one of argon2id")
	}
	h := new(Hash)
	var lanes uint32
	for i, field := range strings.Split(parts[3], ",") {
		to := []struct {
			name  string
			value *uint32
		}{{"m=", &h.Cost.MemoryKiB}, {"t=", &h.Cost.Passes}, {"p=", &lanes}}
		if i >= len(to) || !strings.HasPrefix(field, to[i].name) {
			return wrong("has other parameters")
		}
		n, err := strconv.ParseUint(field[len(to[i].name):], 10, 32)
		if err != nil {
			return wrong("has a parameter that is not a number")
		}
		*to[i].value = uint32(n)
	}
	if lanes > LanesMax {
		return wrong("has too many lanes")
	}
	h.Cost.Lanes = uint8(lanes)
	if !h.Cost.Valid() {
		return wrong("has a cost that cannot be")
	}
	var err error
	if h.Salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(h.Salt) < 8 || len(h.Salt) > SaltBytesMax {
		return wrong("has no salt")
	}
	if h.Sum, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(h.Sum) < HashBytesMin || len(h.Sum) > HashBytesMax {
		return wrong("has no sum")
	}
	if h.String() != text {
		return wrong("is not in its only form")
	}
	return h, nil
}
