package identity

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
)

func sample() *entry {
	e := &entry{
		id: "tok_abcdefghijklmnop", kind: Token, user: "john.doe", note: "nightly import",
		digest: digest("0123456789012345678901234567890123456789012"), created: 1_795_000_000_000, expires: 1_797_592_000_000,
	}
	e.lastUsed.Store(1_795_000_060_000)
	return e
}

func samplePassword() *storedPassword {
	h := &password.Hash{Cost: cheap, Salt: []byte("0123456789abcdef")}
	h.Sum = password.Derive("tall kid", h.Salt, h.Cost, password.HashBytes)
	return &storedPassword{user: "john.doe", hash: h, changed: 1_795_000_000_000}
}

func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := sample()
		e.kind = rapid.SampledFrom([]Kind{Token, Session}).Draw(t, "kind")
		e.user = UserID(rapid.StringN(1, 128, 128).Draw(t, "user"))
		e.note = rapid.StringN(0, 50, noteMaxBytes).Draw(t, "note")
		e.created = rapid.Int64Min(1).Draw(t, "created")
		e.expires = rapid.Int64Min(0).Draw(t, "expires")
		e.lastUsed.Store(rapid.Int64Min(0).Draw(t, "lastUsed"))
		e.revoked.Store(rapid.Int64Min(0).Draw(t, "revoked"))
		if e.kind == Session {
			e.roles = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) RoleID { return RoleID(rapid.StringN(1, 128, 128).Draw(t, "role")) }), 0, sessionRolesMax).Draw(t, "roles")
		}
		got, err := parseRow(appendRow(nil, e, e.lastUsed.Load()))
		require.NoError(t, err, "parseRow")
		if !slices.Equal(got.roles, e.roles) || got.credential() != e.credential() || got.digest != e.digest || got.stored != e.lastUsed.Load() {
			t.Fatalf("got %+v, want %+v", got.credential(), e.credential())
		}
	})
}

func TestPasswordRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(least, most int, label string) []byte {
			return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, label)
		}
		p := &storedPassword{
			user:    UserID(rapid.StringN(1, 128, 128).Draw(t, "user")),
			changed: rapid.Int64Min(1).Draw(t, "changed"),
			hash: &password.Hash{
				Cost: password.Cost{
					MemoryKiB: rapid.Uint32Range(128, password.MemoryKiBMax).Draw(t, "memory"),
					Passes:    rapid.Uint32Range(1, password.PassesMax).Draw(t, "passes"),
					Lanes:     rapid.Uint8Range(1, password.LanesMax).Draw(t, "lanes"),
				},
				Salt: bytesOf(8, password.SaltBytesMax, "salt"), Sum: bytesOf(password.HashBytesMin, password.HashBytesMax, "sum"),
			},
		}
		got, err := parsePasswordRow(appendPasswordRow(nil, p))
		if err != nil || got.user != p.user || got.changed != p.changed || got.hash.String() != p.hash.String() ||
			!bytes.Equal(got.hash.Salt, p.hash.Salt) || !bytes.Equal(got.hash.Sum, p.hash.Sum) || got.hash.Cost != p.hash.Cost {
			t.Fatalf("got %+v, %v, want %+v", got, err, p)
		}
	})
}

// readAgain reads a row as a credential and as a password, and writes again what each
// takes. An error of another kind fails the test.
func readAgain(t *testing.T, row []byte) (credential, password []byte) {
	t.Helper()
	e, err := parseRow(row)
	if err == nil {
		credential = appendRow(nil, e, e.stored)
	} else if e != nil || !errors.Is(err, ErrCorrupt) {
		t.Errorf("a credential: got %v, %v, want nil and ErrCorrupt", e, err)
	}
	p, err := parsePasswordRow(row)
	if err == nil {
		password = appendPasswordRow(nil, p)
		assert.True(t, p.hash.Cost.Valid(), "a password: its hash costs %+v", p.hash.Cost)
	} else if p != nil || !errors.Is(err, ErrCorrupt) {
		t.Errorf("a password: got %v, %v, want nil and ErrCorrupt", p, err)
	}
	return credential, password
}

func TestDamagedRowsAreRefused(t *testing.T) {
	spoiled := func(spoil func(e *entry)) []byte {
		e := sample()
		spoil(e)
		return appendRow(nil, e, e.lastUsed.Load())
	}
	credential, password := appendRow(nil, sample(), 0), appendPasswordRow(nil, samplePassword())
	replaced := func(old, now string) []byte { return bytes.Replace(password, []byte(old), []byte(now), 1) }
	roles := 2 + 32 + 1 + 20 + 1 + 8 + 1 + 14 // where the roles stand in a credential that has some
	rows := map[string][]byte{
		"nothing":                               nil,
		"the next version":                      append([]byte{rowVersionRoles + 1}, credential[1:]...),
		"the version with roles, but none":      append([]byte{rowVersionRoles}, credential[1:]...),
		"no roles, but their number":            slices.Concat([]byte{rowVersionRoles}, credential[1:roles], []byte{0}, credential[roles:]),
		"roles of a token":                      spoiled(func(e *entry) { e.roles = []RoleID{"boss"} }),
		"a role without a name":                 spoiled(func(e *entry) { e.kind, e.roles = Session, []RoleID{""} }),
		"too many roles":                        spoiled(func(e *entry) { e.kind, e.roles = Session, slices.Repeat([]RoleID{"boss"}, sessionRolesMax+1) }),
		"a byte after a credential":             append(bytes.Clone(credential), 0),
		"a number in a long form":               append(bytes.Clone(credential[:len(credential)-1]), 0x80, 0),
		"both kinds at once":                    spoiled(func(e *entry) { e.kind = Token | Session }),
		"no kind":                               spoiled(func(e *entry) { e.kind = 0 }),
		"a short id":                            spoiled(func(e *entry) { e.id = "tok_" }),
		"no user":                               spoiled(func(e *entry) { e.user = "" }),
		"no creation":                           spoiled(func(e *entry) { e.created = 0 }),
		"an expiry before 1970":                 spoiled(func(e *entry) { e.expires = -1 }),
		"a revocation before 1970":              spoiled(func(e *entry) { e.revoked.Store(-1) }),
		"a credential that is too long":         spoiled(func(e *entry) { e.note = string(make([]byte, rowMaxBytes)) }),
		"a password of the next version":        append([]byte{rowVersion + 1}, password[1:]...),
		"a byte after a password":               append(bytes.Clone(password), 0),
		"a password that is too long":           bytes.Repeat(password, 100),
		"a hash of another algorithm":           replaced("argon2id", "argon2im"),
		"a hash of another version of argon2":   replaced("v=19", "v=16"),
		"a hash with other parameters":          replaced("m=8,t=1", "t=8,m=1"),
		"a hash with a parameter too many":      replaced("m=8,t=1,p=1", "m=8,t=1,p=1,")[:len(password)],
		"a hash without memory":                 replaced("m=8", "m=0"),
		"a hash with too many lanes for memory": replaced("p=1", "p=9"),
		"a hash without a pass":                 replaced("t=1", "t=0"),
		"a hash with a sign for a number":       replaced("m=8,t=1,p=1", "m=8,t=+,p=1"),
		"a hash that is not base64":             replaced("$MDEy", "$!DEy"),
	}
	for n := range credential {
		rows[fmt.Sprintf("the first %d bytes of a credential", n)] = credential[:n]
	}
	for n := range password {
		rows[fmt.Sprintf("the first %d bytes of a password", n)] = password[:n]
	}
	for name, row := range rows {
		c, p := readAgain(t, row)
		assert.True(t, c == nil && p == nil, "%s is taken: %q, %q", name, c, p)
	}
}

// TestDamagedRowsAreLeftOut holds that a row which cannot be read, or which stands
// under another key, is counted and kept, and that the other rows work.
func TestDamagedRowsAreLeftOut(t *testing.T) {
	m := newMemory()
	s := open(t, m, Options{})
	good, _ := issued(t, s, Token, "john.doe", 0)
	bad, c := issued(t, s, Token, "john.doe", 0)
	moved, c2 := issued(t, s, Token, "john.doe", 0)
	mustSet(t, s, "john.doe", oak)
	mustSet(t, s, "mary.major", oak)
	damaged := m.crash(0)
	key, passwordKey := string([]byte{byte(Token)}), string([]byte{byte(passwords)})
	damaged.durable[key+c.ID] = damaged.durable[key+c.ID][:40]
	const other = "tok_aaaaaaaaaaaaaaaa"
	damaged.durable[key+other] = damaged.durable[key+c2.ID]
	delete(damaged.durable, key+c2.ID)
	damaged.durable[passwordKey+"john.doe"] = damaged.durable[passwordKey+"mary.major"]
	damaged.durable[passwordKey+"third"] = []byte{1}

	again := open(t, damaged, Options{})
	accepts(t, again, Token, good, "john.doe")
	for _, secret := range []string{bad, moved, other + moved[idChars:]} {
		refuses(t, again, Token, secret)
	}
	turnedAway(t, again, "john.doe", oak, failure.ErrUnauthorized)
	signedIn(t, again, "mary.major", oak)
	assert.Equal(t, 4, again.Metrics().Corrupt, "corrupt")
	if rows := len(damaged.durable); rows != 6+1 { // one more for mary's session
		t.Errorf("got %d rows, want all 6 kept for inspection, and a session", rows)
	}
	mustSet(t, again, "john.doe", oak)
	signedIn(t, again, "john.doe", oak)
}

// FuzzRows checks that no bytes make a parser panic, and that each takes only what is
// written. No hash that is taken costs more than the bounds.
func FuzzRows(f *testing.F) {
	password := appendPasswordRow(nil, samplePassword())
	for _, row := range [][]byte{nil, appendRow(nil, sample(), 0), appendRow(nil, sample(), 1), password, bytes.Replace(password, []byte("m=8,"), []byte("m=9,"), 1)} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		credential, password := readAgain(t, row)
		for _, again := range [][]byte{credential, password} {
			require.False(t, again != nil && !bytes.Equal(again, row), "written again: got %x, want %x", again, row)
		}
	})
}
