package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// Credential is what may be shown of a token or session, without its secret. A zero time means never.
type Credential struct {
	ID       string    `json:"id"`
	Kind     Kind      `json:"kind"`
	User     UserID    `json:"user"`
	Note     string    `json:"note,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"`
}

// CreateCredential asks for a new token or session.
type CreateCredential struct {
	User UserID // the owner; required, and enabled at present
	// Expires is the time from now to the end. Zero means never for a token and Options.SessionMax for a session.
	Expires time.Duration
	Ends    time.Time // in place of Expires, when it is not zero
	Note    string    // Note says what the credential is for: at most 200 bytes of printable text
}

// The text form of a credential is "<id>.<secret>". The id has a prefix that tells people and secret scanners what it
// is, and no character that a command line could take for a flag.
const (
	idRandomBytes     = 10
	idChars           = 4 + 16
	secretRandomBytes = 32
	secretChars       = 43
	noteMaxBytes      = 200
)

var idText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// String returns the kind as the command line and the log write it.
func (k Kind) String() string {
	switch k {
	case Token:
		return "token"
	case Session:
		return "session"
	case passwords:
		return "password"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// MarshalText is String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a token or a session.
func (k *Kind) UnmarshalText(text []byte) error {
	if *k = Token; string(text) == Session.String() {
		*k = Session
	}
	return nil
}

func (k Kind) prefix() string {
	switch k {
	case Token:
		return "tok_"
	case Session:
		return "ses_"
	default:
		return "pwd_" // no id begins with it; see letter
	}
}

// 80 random bits make an id unique among all that can exist at a time; it is not a secret.
func draw(kind Kind) (id, secret string) {
	var random [idRandomBytes + secretRandomBytes]byte
	_, _ = rand.Read(random[:]) // crypto/rand never returns an error; it ends the program
	return kind.prefix() + idText.EncodeToString(random[:idRandomBytes]),
		base64.RawURLEncoding.EncodeToString(random[idRandomBytes:])
}

// split takes a credential apart and allocates nothing.
func split(credential string) (id, secret string, ok bool) {
	if len(credential) != idChars+1+secretChars || credential[idChars] != '.' {
		return "", "", false
	}
	return credential[:idChars], credential[idChars+1:], true
}

// digest is a fast hash: the secret has 256 random bits, so there is nothing to guess.
func digest(secret string) [sha256.Size]byte {
	var text [secretChars]byte // NB: on the stack; a conversion would allocate
	n := copy(text[:], secret)
	return sha256.Sum256(text[:n])
}

func checkNote(note string) error {
	if len(note) > noteMaxBytes {
		return failure.Refuse(failure.ErrInvalid, "the note is longer than %d bytes", noteMaxBytes)
	}
	if !utf8.ValidString(note) {
		return failure.Refuse(failure.ErrInvalid, "the note is not valid UTF-8")
	}
	for _, r := range note {
		if !unicode.IsPrint(r) {
			return failure.Refuse(failure.ErrInvalid, "the note holds a character that cannot be printed")
		}
	}
	return nil
}

// Times are Unix milliseconds, 0 for never. All but the atomic fields are built once and then only read.
type entry struct {
	id      string
	kind    Kind
	user    UserID
	note    string
	roles   []RoleID // those that the session has beyond the user's own; nil for most
	digest  [sha256.Size]byte
	created int64
	expires int64

	lastUsed atomic.Int64 // set by Authenticate and only grows
	revoked  atomic.Int64 // set by the writer, once
	refused  atomic.Bool  // set when the store has refused the creation

	// stored is the last use that the newest row holds. The writer owns it.
	stored int64
	// removed is set when the entry leaves the table for good, and its row the store. The writer owns it.
	removed bool

	extended atomic.Pointer[extended] // the principal with the roles of the session; see principal
}

type extended struct {
	directory *Directory
	principal *Principal
}

// principal allocates once for each session with roles and directory.
func (e *entry) principal(d *Directory) *Principal {
	p := d.Principal(e.user)
	if p == nil || len(e.roles) == 0 {
		return p
	}
	if x := e.extended.Load(); x != nil && x.directory == d {
		return x.principal
	}
	p = d.extend(p, e.roles)
	e.extended.Store(&extended{d, p})
	return p
}

// unknown stands in for a credential that is not in the table, so that looking for one costs the same.
var unknown = func() *entry {
	e := &entry{created: 1}
	e.revoked.Store(1)
	return e
}()

func (e *entry) matches(secret string) bool {
	sum := digest(secret)
	return subtle.ConstantTimeCompare(sum[:], e.digest[:]) == 1
}

// A revocation does not look at the clock, so that a clock that is set back cannot undo it.
func (e *entry) usable(now, idle int64) bool {
	if e.revoked.Load() != 0 {
		return false
	}
	end := e.limit(idle)
	return end == 0 || now < end
}

// limit returns when the credential runs out if nobody uses or revokes it, 0 for never.
func (e *entry) limit(idle int64) int64 {
	if e.kind != Session {
		return e.expires
	}
	return earlier(e.expires, e.lastSeen()+idle)
}

func (e *entry) lastSeen() int64 { return max(e.created, e.lastUsed.Load()) }

// end returns when the credential has ended or will end, 0 for never.
func (e *entry) end(idle int64) int64 { return earlier(e.limit(idle), e.revoked.Load()) }

func earlier(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Once a second is enough for the idle limit, and keeps a busy token from moving a cache line between cores for every
// request.
func (e *entry) touch(now int64) {
	last := e.lastUsed.Load()
	if now-last >= touchMilliseconds {
		e.lastUsed.CompareAndSwap(last, now)
	}
}

const touchMilliseconds = 1000

func (e *entry) credential() Credential {
	return Credential{
		ID: e.id, Kind: e.kind, User: e.user, Note: e.note,
		Created: moment(e.created), Expires: moment(e.expires),
		LastUsed: moment(e.lastUsed.Load()), Revoked: moment(e.revoked.Load()),
	}
}

func moment(milliseconds int64) time.Time {
	if milliseconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

var (
	errNoUser       = failure.Errorf(failure.ErrNotFound, "no such user, or disabled")
	errNoCredential = failure.Errorf(failure.ErrNotFound, "no such credential")
	errFull         = failure.Errorf(failure.ErrBusy, "too many credentials")
	errStopped      = failure.Errorf(failure.ErrUnavailable, "identity service is stopped")
	errElsewhere    = failure.Elsewhere(uint16(key.Meta))
	// errNotFresh: this node is cut off or its disk is full, so what it knows of credentials may be old.
	errNotFresh = failure.Errorf(failure.ErrUnavailable, "cut off from the node that leads the credentials, or without room for what it says")
	// errWaiting and errNoAnswer: it is not known whether a credential is a new one.
	errWaiting  = failure.Errorf(failure.ErrBusy, "too many unknown credentials wait for the node that leads them")
	errNoAnswer = failure.Errorf(failure.ErrUnavailable, "the node that leads the credentials does not answer")
	// ErrCorrupt marks a stored row that cannot be read.
	ErrCorrupt = errors.New("corrupt credential row")
)
