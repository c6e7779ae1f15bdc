package identity

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"pgregory.net/rapid"

	"troupe/actors/failure"
)

func TestPasswordRules(t *testing.T) {
	tests := []struct {
		name, password string
		want           bool
	}{
		{"eight characters", "tall kid", true},
		{"seven characters", "tallkid", false},
		{"nothing", "", false},
		{"eight characters of several bytes", "äöüßéèêë", true},
		{"eight bytes, but four characters", "äöüß", false},
		{"characters that are composed become fewer", "e\u0301e\u0301e\u0301e\u0301", false},
		{"256 characters", strings.Repeat("ab ü", 64), true},
		{"257 characters", strings.Repeat("ab ü", 64) + "x", false},
		{"a megabyte", strings.Repeat("abcd", 1<<18), false},
		{"only blanks and signs between letters", "correct horse, battery!", true},
		{"no digit, no sign, no capital is needed", "afineoldoak", true},
		{"emoji", "🐎🔋📎✅🐎🔋📎✅", true},
		{"a blank at the end stays", "tall kid ", true},
		{"a line end", "tall\nkids", false},
		{"a tab", "tall\tkids", false},
		{"NUL", "tall\x00kids", false},
		{"an escape", "tall\x1b[31mkids", false},
		{"a control character of C1", "tall\u0085kids", false},
		{"no UTF-8", "tall kids\xff", false},
		{"the login name", "john.doe", false},
		{"the login name in capitals", "JOHN.DOE", false},
		{"the login name and more", "john.doe of Leeds", true},
		{"one character again and again", "xxxxxxxxxxxx", false},
		{"one character of several bytes again and again", "ßßßßßßßßßß", false},
		{"one of the most used", "password1", false},
		{"one of the most used, with capitals", "PassWord1", false},
		{"one of the most used, longer", "password1 of the west wing", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			normal, err := checkPassword("john.doe", test.password)
			if (err == nil) != test.want || err != nil && (!errors.Is(err, failure.ErrInvalid) || normal != "") {
				t.Fatalf("got %q, %v, want it taken: %v", normal, err, test.want)
			}
			if err != nil && len(test.password) > 6 && strings.Contains(err.Error(), test.password) {
				t.Errorf("the error repeats the password: %v", err)
			}
		})
	}
}

// TestGuessedFirst holds that the list has no word that the length refuses, so
// that each line of it means something.
func TestGuessedFirst(t *testing.T) {
	for word := range guessedFirst {
		if len(word) < passwordCharsMin || strings.ToLower(word) != word {
			t.Errorf("%q is refused by its length, or not in lower case", word)
		}
	}
	if len(guessedFirst) < 90 {
		t.Errorf("the list has %d words, want all of them", len(guessedFirst))
	}
}

// TestPasswordsAreNormalised holds that a password is the same in every spelling
// of Unicode, and that nothing else about it is changed.
func TestPasswordsAreNormalised(t *testing.T) {
	composed, ok := normalPassword("Café crème")
	decomposed, ok2 := normalPassword("Cafe\u0301 cre\u0300me")
	if !ok || !ok2 || composed != decomposed {
		t.Errorf("got %q and %q, want the same", composed, decomposed)
	}
	for _, other := range []string{"café crème", "Café crème ", "Cafe creme", "Ｃafé crème"} {
		if got, _ := normalPassword(other); got == composed {
			t.Errorf("%q is taken for %q", other, composed)
		}
	}
}

func samplePassword() *password {
	h := &passwordHash{cost: cheap, salt: []byte("0123456789abcdef")}
	h.sum = derive("tall kid", h.salt, h.cost, hashBytes)
	return &password{user: "john.doe", hash: h, changed: 1_795_000_000_000}
}

// TestPasswordHashForm compares with the reference: the text is a PHC string
// that argon2 itself leads to.
func TestPasswordHashForm(t *testing.T) {
	const want = "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
	h := samplePassword().hash
	if got := h.String(); !strings.HasPrefix(got, want) || len(got) != len(want)+43 {
		t.Errorf("got %s, want %s and 43 characters", got, want)
	}
	if !h.equals(argon2.IDKey([]byte("tall kid"), h.salt, 1, 8, 1, 32)) || h.equals(argon2.IDKey([]byte("tall kit"), h.salt, 1, 8, 1, 32)) {
		t.Error("the hash is not that of argon2id")
	}
	if standardCost.MemoryKiB < 19*1024 || standardCost.Passes < 2 || !standardCost.valid() {
		t.Errorf("the standard cost %+v is less than OWASP's least", standardCost)
	}
}

func TestPasswordRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(least, most int, label string) []byte {
			return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, label)
		}
		p := &password{
			user:    UserID(rapid.StringN(1, 128, 128).Draw(t, "user")),
			changed: rapid.Int64Min(1).Draw(t, "changed"),
			hash: &passwordHash{
				cost: PasswordCost{
					MemoryKiB: rapid.Uint32Range(128, costMemoryKiBMax).Draw(t, "memory"),
					Passes:    rapid.Uint32Range(1, costPassesMax).Draw(t, "passes"),
					Lanes:     rapid.Uint8Range(1, costLanesMax).Draw(t, "lanes"),
				},
				salt: bytesOf(8, saltBytesMax, "salt"), sum: bytesOf(hashBytesMin, hashBytesMax, "sum"),
			},
		}
		got, err := parsePasswordRow(appendPasswordRow(nil, p))
		if err != nil || got.user != p.user || got.changed != p.changed || got.hash.String() != p.hash.String() ||
			!bytes.Equal(got.hash.salt, p.hash.salt) || !bytes.Equal(got.hash.sum, p.hash.sum) || got.hash.cost != p.hash.cost {
			t.Fatalf("got %+v, %v, want %+v", got, err, p)
		}
	})
}

func TestParsePasswordRowRefuses(t *testing.T) {
	good := appendPasswordRow(nil, samplePassword())
	if _, err := parsePasswordRow(good); err != nil {
		t.Fatalf("a good row: %v", err)
	}
	spoiled := func(old, now string) []byte { return bytes.Replace(good, []byte(old), []byte(now), 1) }
	for name, row := range map[string][]byte{
		"nothing":                   nil,
		"the next version":          append([]byte{rowVersion + 1}, good[1:]...),
		"a byte too many":           append(bytes.Clone(good), 0),
		"a credential":              appendRow(nil, sample(), 0),
		"without end":               bytes.Repeat(good, 100),
		"another algorithm":         spoiled("argon2id", "argon2im"),
		"another version of argon2": spoiled("v=19", "v=16"),
		"other parameters":          spoiled("m=8,t=1", "t=8,m=1"),
		"a parameter too many":      spoiled("m=8,t=1,p=1", "m=8,t=1,p=1"+",")[:len(good)],
		"no memory":                 spoiled("m=8", "m=0"),
		"memory for many lanes":     spoiled("p=1", "p=9"),
		"no pass":                   spoiled("t=1", "t=0"),
		"a sign":                    spoiled("m=8,t=1,p=1", "m=8,t=+,p=1"),
		"no base64":                 spoiled("$MDEy", "$!DEy"),
	} {
		if p, err := parsePasswordRow(row); p != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %+v, %v, want ErrCorrupt", name, p, err)
		}
	}
	for n := range good {
		if _, err := parsePasswordRow(good[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: got %v, want ErrCorrupt", n, err)
		}
	}
}

// FuzzParsePasswordRow checks that no bytes make parsePasswordRow panic, that it
// takes only what appendPasswordRow writes, and that no hash it takes costs more
// than the bounds.
func FuzzParsePasswordRow(f *testing.F) {
	good := appendPasswordRow(nil, samplePassword())
	f.Add([]byte(nil))
	f.Add(good)
	f.Add(bytes.Replace(good, []byte("m=8,"), []byte("m=9,"), 1))
	f.Fuzz(func(t *testing.T, row []byte) {
		p, err := parsePasswordRow(row)
		if err != nil {
			if p != nil || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("got %v, %v, want nil and ErrCorrupt", p, err)
			}
			return
		}
		if again := appendPasswordRow(nil, p); !bytes.Equal(again, row) || !p.hash.cost.valid() {
			t.Fatalf("written again: got %x, want %x", again, row)
		}
	})
}
