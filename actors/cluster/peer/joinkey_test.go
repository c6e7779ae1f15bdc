package peer

import (
	"errors"
	"strings"
	"testing"
)

var testAuthorityPrint = Fingerprint{1, 2, 3, 31: 9}

func TestJoinKeyIsOneWord(t *testing.T) {
	for _, address := range []string{"10.0.0.1:9400", "[fe80::1]:1", "node-1.example.org:65535", "a:1", strings.Repeat("x", 250) + ":9400"} {
		k, err := NewJoinKey(address, testAuthorityPrint)
		if err != nil {
			t.Fatal(err)
		}
		text := k.String()
		if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			t.Errorf("%s: other characters than letters, digits and _", text)
		}
		for _, copied := range []string{text, " " + text + "\n", strings.ToUpper(text)} {
			if got, err := ParseJoinKey(copied); err != nil || got != k {
				t.Errorf("%q: got %+v, %v, want %+v", copied, got, err, k)
			}
		}
		if len(k.Secret) != 40 || len(k.ID) != 16 {
			t.Errorf("got a secret of %d and an id of %d digits", len(k.Secret), len(k.ID))
		}
	}
	a, b := must(NewJoinKey("a:1", testAuthorityPrint)), must(NewJoinKey("a:1", testAuthorityPrint))
	if a.ID == b.ID || a.Secret == b.Secret || Hash(a.Secret) == Hash(b.Secret) || len(Hash(a.Secret)) != 64 {
		t.Errorf("two keys: got %+v and %+v", a, b)
	}
}

// TestJoinKeyIsWhole holds that no part of a key and no key with another character is
// taken for one.
func TestJoinKeyIsWhole(t *testing.T) {
	text := must(NewJoinKey("10.0.0.1:9400", testAuthorityPrint)).String()
	for i := range text {
		if k, err := ParseJoinKey(text[:i]); !errors.Is(err, ErrJoinKey) {
			t.Errorf("the first %d characters: got %+v, %v", i, k, err)
		}
		if k, err := ParseJoinKey(text[i+1:]); !errors.Is(err, ErrJoinKey) {
			t.Errorf("without the first %d characters: got %+v, %v", i+1, k, err)
		}
		for _, other := range []string{"", "a", "b", "7", "_", "\n", "ü", text[i:i+1] + text[i:i+1]} {
			changed := text[:i] + other + text[i+1:]
			if changed == text {
				continue
			}
			if k, err := ParseJoinKey(changed); !errors.Is(err, ErrJoinKey) && strings.TrimSpace(changed) != text {
				t.Errorf("%q: got %+v, %v", changed, k, err)
			}
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
		if !errors.Is(err, ErrJoinKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: the error has more than a line: %v", text, err)
		}
	}
	for address, want := range map[string]string{
		"": "host:port", "a": "host:port", ":1": "host:port", "a b:1": "host:port", "ä:1": "host:port", "a:x": "no port", "a:0": "no port", "a:65536": "no port", "a:": "no port",
		"0.0.0.0:9400": "every address", "[::]:9400": "every address", "[::ffff:0.0.0.0]:1": "every address", strings.Repeat("x", 260) + ":1": "host:port",
	} {
		if _, err := NewJoinKey(address, testAuthorityPrint); !errors.Is(err, ErrJoinKey) || !strings.Contains(err.Error(), want) {
			t.Errorf("the address %.40q: got %v, want %q", address, err, want)
		}
	}
}
