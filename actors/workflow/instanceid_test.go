package workflow_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
)

// TestIDsHaveOneSpelling, or are refused.
func TestIDsHaveOneSpelling(t *testing.T) {
	const canonical = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for text, want := range map[string]bool{
		canonical:                               true,
		strings.Repeat("0", 26):                 true,
		"7" + strings.Repeat("Z", 25):           true,
		"8" + strings.Repeat("0", 25):           false, // more than 128 bits
		strings.ToLower(canonical):              false,
		canonical[:25]:                          false,
		canonical + "0":                         false,
		strings.Replace(canonical, "0", "O", 1): false, // Crockford reads it as 0
		strings.Replace(canonical, "Z", "U", 1): false,
		strings.Replace(canonical, "Z", "é", 1): false,
		"":                                      false,
	} {
		id, ok := instanceid.Parse(text)
		if ok != want || ok && instanceid.Text(id) != text || !ok && id != (key.ID{}) {
			t.Errorf("%q: got %v as %q, want %v", text, ok, instanceid.Text(id), want)
		}
	}
}

// TestIDsRise: ids rise, also within one millisecond, and begin with their time.
func TestIDsRise(t *testing.T) {
	g := instanceid.NewGenerator()
	now := time.UnixMilli(1_760_000_000_123)
	var last key.ID
	for n := range 10_000 {
		if n == 5_000 {
			now = now.Add(time.Millisecond)
		}
		id := g.Draw(now)
		if bytes.Compare(last[:], id[:]) >= 0 {
			t.Fatalf("%s was drawn after %s", instanceid.Text(id), instanceid.Text(last))
		}
		last = id
	}
	at := now.UnixMilli()
	want := []byte{byte(at >> 40), byte(at >> 32), byte(at >> 24), byte(at >> 16), byte(at >> 8), byte(at)}
	assert.Equal(t, string(want), string(last[:6]), "got the time")
	if id := g.Draw(time.UnixMilli(-5)); !bytes.Equal(id[:6], make([]byte, 6)) {
		t.Errorf("before 1970: got %s", instanceid.Text(id))
	}
}

// TestPartsHaveOneSpelling, too.
func TestPartsHaveOneSpelling(t *testing.T) {
	const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	for text, want := range map[string]bool{
		id + "-1-0": true, id + "-18446744073709551615-4294967295": true,
		id: false, id + "-1": false, id + "-1-0-0": false, id + "-01-0": false, id + "-+1-0": false, id + "-1-": false, "-1-0": false,
		id + "-18446744073709551616-0": false, id + "-1-4294967296": false, strings.ToLower(id) + "-1-0": false, id + "--1-0": false,
	} {
		at, sequence, number, ok := instanceid.ParsePart(text)
		assert.True(t, ok == want && (!ok || instanceid.PartText(at, sequence, number) == text), "%s: got %t", text, ok)
	}
}
