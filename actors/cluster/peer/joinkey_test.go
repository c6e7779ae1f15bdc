package peer

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testAuthorityPrint = Fingerprint{1, 2, 3, 31: 9}

func TestJoinKeyIsOneWord(t *testing.T) {
	for _, address := range []string{"10.0.0.1:9400", "[fe80::1]:1", "node-1.example.org:65535", "a:1", strings.Repeat("x", 250) + ":9400"} {
		k, err := NewJoinKey(address, testAuthorityPrint)
		require.NoError(t, err)
		text := k.String()
		assert.Empty(t, strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_0123456789"), "%s: other characters than letters, digits and _", text)
		for _, copied := range []string{text, " " + text + "\n", strings.ToUpper(text)} {
			got, err := ParseJoinKey(copied)
			assert.True(t, err == nil && got == k, "%q: got %+v, %v, want %+v", copied, got, err, k)
		}
		assert.True(t, len(k.Secret) == 40 && len(k.ID) == 16, "got a secret of %d and an id of %d digits", len(k.Secret), len(k.ID))
	}
	a, b := must(NewJoinKey("a:1", testAuthorityPrint)), must(NewJoinKey("a:1", testAuthorityPrint))
	assert.True(t, a.ID != b.ID && a.Secret != b.Secret && Hash(a.Secret) != Hash(b.Secret) && len(Hash(a.Secret)) == 64, "two keys: got %+v and %+v", a, b)
}

// TestJoinKeyIsWhole holds that no part of a key and no key with another character is
// taken for one.
func TestJoinKeyIsWhole(t *testing.T) {
	text := must(NewJoinKey("10.0.0.1:9400", testAuthorityPrint)).String()
	for i := range text {
		k, err := ParseJoinKey(text[:i])
		assert.ErrorIs(t, err, ErrJoinKey, "the first %d characters: got %+v", i, k)
		k, err = ParseJoinKey(text[i+1:])
		assert.ErrorIs(t, err, ErrJoinKey, "without the first %d characters: got %+v", i+1, k)
		for _, other := range []string{"", "a", "b", "7", "_", "\n", "ü", text[i:i+1] + text[i:i+1]} {
			changed := text[:i] + other + text[i+1:]
			if changed == text {
				continue
			}
			k, err := ParseJoinKey(changed)
			assert.False(t, !errors.Is(err, ErrJoinKey) && strings.TrimSpace(changed) != text, "%q: got %+v, %v", changed, k, err)
		}
	}
}

func TestJoinKeyErrorsSayWhatToDo(t *testing.T) {
	whole := must(NewJoinKey("10.0.0.1:9400", testAuthorityPrint))
	unsound := whole
	unsound.Address = "nowhere"
	for text, want := range map[string]string{
		"":                   "it is empty",
		"hello":              "troupe cluster invite",
		whole.String()[:60]:  "cut off or mistyped",
		whole.String() + "a": "cut off or mistyped",
		"troupe_join_1_":     "cut off or mistyped",
		"troupe_join_x":      "cut off or mistyped",
		"troupe_join_2_abc":  "of version 2",
		"troupe_join_1_" + strings.Repeat("a", 1<<20): "cut off or mistyped",
		unsound.String(): "not the address of a node",
	} {
		_, err := ParseJoinKey(text)
		assert.True(t, errors.Is(err, ErrJoinKey) && strings.Contains(err.Error(), want), "%.80q: got %v, want %q", text, err, want)
		assert.False(t, err != nil && strings.Contains(err.Error(), "\n"), "%.80q: the error has more than a line: %v", text, err)
	}
	for address, want := range map[string]string{
		"": "host:port", "a": "host:port", ":1": "host:port", "a b:1": "host:port", "ä:1": "host:port", "a:x": "no port", "a:0": "no port", "a:65536": "no port", "a:": "no port",
		"0.0.0.0:9400": "every address", "[::]:9400": "every address", "[::ffff:0.0.0.0]:1": "every address", strings.Repeat("x", 260) + ":1": "host:port",
	} {
		_, err := NewJoinKey(address, testAuthorityPrint)
		assert.True(t, errors.Is(err, ErrJoinKey) && strings.Contains(err.Error(), want), "the address %.40q: got %v, want %q", address, err, want)
	}
}
