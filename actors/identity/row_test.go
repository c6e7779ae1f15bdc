package identity

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func sample() *entry {
	e := &entry{
		id: "tok_abcdefghijklmnop", kind: Token, user: "john.doe", note: "nightly import",
		digest: digest("0123456789012345678901234567890123456789012"), created: 1_795_000_000_000, expires: 1_797_592_000_000,
	}
	e.lastUsed.Store(1_795_000_060_000)
	return e
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
		row := appendRow(nil, e, e.lastUsed.Load())
		got, err := parseRow(row)
		if err != nil {
			t.Fatalf("parseRow: %v", err)
		}
		if !slices.Equal(got.roles, e.roles) || got.credential() != e.credential() || got.digest != e.digest || got.stored != e.lastUsed.Load() {
			t.Fatalf("got %+v, want %+v", got.credential(), e.credential())
		}
	})
}

func TestParseRowRefuses(t *testing.T) {
	spoiled := func(spoil func(e *entry)) []byte {
		e := sample()
		spoil(e)
		return appendRow(nil, e, e.lastUsed.Load())
	}
	good := appendRow(nil, sample(), 0)
	tests := []struct {
		name string
		row  []byte
	}{
		{"nothing", nil},
		{"the next version", append([]byte{rowVersionRoles + 1}, good[1:]...)},
		{"the version with roles, but none", append([]byte{rowVersionRoles}, good[1:]...)},
		{"no roles, but their number", append([]byte{rowVersionRoles}, append(bytes.Clone(good[1:2+32+1+20+1+8+1+14]), append([]byte{0}, good[2+32+1+20+1+8+1+14:]...)...)...)},
		{"roles of a token", spoiled(func(e *entry) { e.roles = []RoleID{"boss"} })},
		{"a role without a name", spoiled(func(e *entry) { e.kind, e.roles = Session, []RoleID{""} })},
		{"too many roles", spoiled(func(e *entry) { e.kind, e.roles = Session, slices.Repeat([]RoleID{"boss"}, sessionRolesMax+1) })},
		{"a byte too many", append(bytes.Clone(good), 0)},
		{"a number in a long form", append(bytes.Clone(good[:len(good)-1]), 0x80, 0)},
		{"both kinds at once", spoiled(func(e *entry) { e.kind = Token | Session })},
		{"no kind", spoiled(func(e *entry) { e.kind = 0 })},
		{"a short id", spoiled(func(e *entry) { e.id = "tok_" })},
		{"no user", spoiled(func(e *entry) { e.user = "" })},
		{"no creation", spoiled(func(e *entry) { e.created = 0 })},
		{"an expiry before 1970", spoiled(func(e *entry) { e.expires = -1 })},
		{"a revocation before 1970", spoiled(func(e *entry) { e.revoked.Store(-1) })},
		{"a row without end", spoiled(func(e *entry) { e.note = string(make([]byte, rowMaxBytes)) })},
	}
	for _, test := range tests {
		if e, err := parseRow(test.row); e != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v, %v, want ErrCorrupt", test.name, e, err)
		}
	}
	for n := range good {
		if _, err := parseRow(good[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: got %v, want ErrCorrupt", n, err)
		}
	}
}

func TestCorruptRowsAreLeftOut(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		good, _ := issued(t, s, Token, "john.doe", 0)
		bad, c := issued(t, s, Token, "john.doe", 0)
		moved, c2 := issued(t, s, Token, "john.doe", 0)
		damaged := m.crash(0)
		key := string([]byte{byte(Token)})
		damaged.durable[key+c.ID] = damaged.durable[key+c.ID][:40]
		other := "tok_aaaaaaaaaaaaaaaa"
		damaged.durable[key+other] = damaged.durable[key+c2.ID]
		delete(damaged.durable, key+c2.ID)

		again := open(t, damaged, Options{})
		accepts(t, again, Token, good, "john.doe")
		refuses(t, again, Token, bad)
		refuses(t, again, Token, moved)
		refuses(t, again, Token, other+moved[idChars:])
		if got := again.Metrics().Corrupt; got != 2 {
			t.Errorf("corrupt: got %d, want 2", got)
		}
		if got := len(damaged.durable); got != 3 {
			t.Errorf("rows: got %d, want all 3 kept for inspection", got)
		}
	})
}

// FuzzParseRow checks that no bytes make parseRow panic, and that it takes only
// what appendRow writes.
func FuzzParseRow(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(appendRow(nil, sample(), 0))
	f.Add(appendRow(nil, sample(), 1))
	f.Fuzz(func(t *testing.T, row []byte) {
		e, err := parseRow(row)
		if err != nil {
			if e != nil || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v, %v, want nil and ErrCorrupt", e, err)
			}
			return
		}
		if again := appendRow(nil, e, e.stored); !bytes.Equal(again, row) {
			t.Fatalf("written again: got %x, want %x", again, row)
		}
	})
}
