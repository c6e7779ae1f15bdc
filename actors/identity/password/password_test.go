package password

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"

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
			normal, err := Check("john.doe", test.password)
			require.True(t, (err == nil) == test.want && !(err != nil && (!errors.Is(err, failure.ErrInvalid) || normal != "")), "%v %v %v", normal, err, test.want)
			assert.False(t, err != nil && len(test.password) > 6 && strings.Contains(err.Error(), test.password), "the error repeats the password: %v", err)
		})
	}
}

// TestGuessedFirst holds that the list has no word that the length refuses, so
// that each line of it means something.
func TestGuessedFirst(t *testing.T) {
	for word := range guessedFirst {
		assert.True(t, len(word) >= charsMin && strings.ToLower(word) == word, "%q is refused by its length, or not in lower case", word)
	}
	assert.GreaterOrEqual(t, len(guessedFirst), 90, "the list")
}

// TestPasswordsAreNormalised holds that a password is the same in every spelling
// of Unicode, and that nothing else about it is changed.
func TestPasswordsAreNormalised(t *testing.T) {
	composed, ok := Normal("Café crème")
	decomposed, ok2 := Normal("Cafe\u0301 cre\u0300me")
	assert.True(t, ok && ok2 && composed == decomposed, "got %q and %q, want the same", composed, decomposed)
	for _, other := range []string{"café crème", "Café crème ", "Cafe creme", "Ｃafé crème"} {
		got, _ := Normal(other)
		assert.NotEqual(t, composed, got, "%q is taken", other)
	}
}

// TestPasswordHashForm compares with the reference: the text is a PHC string
// that argon2 itself leads to.
func TestPasswordHashForm(t *testing.T) {
	const want = "$argon2id$v=19$m=8,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
	h := &Hash{Cost: cheap, Salt: []byte("0123456789abcdef")}
	h.Sum = Derive("tall kid", h.Salt, h.Cost, HashBytes)
	got := h.String()
	assert.True(t, strings.HasPrefix(got, want) && len(got) == len(want)+43, "got %s, want %s and 43 characters", got, want)
	assert.True(t, h.equals(argon2.IDKey([]byte("tall kid"), h.Salt, 1, 8, 1, 32)) && !h.equals(argon2.IDKey([]byte("tall kit"), h.Salt, 1, 8, 1, 32)))
	assert.True(t, StandardCost.MemoryKiB >= 19*1024 && StandardCost.Passes >= 2 && StandardCost.Valid(), StandardCost)
}
