package form

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/statemachine/data"
)

func FuzzDraft(f *testing.F) {
	d := Draft{Revision: 1 << 40, SavedAt: 5, Data: data.Value(`{"a":[1,"x"]}`)}
	of := d
	of.Template = DigestOf([]byte(`{"type":"object"}`))
	for _, whole := range [][]byte{d.Append(nil), of.Append(nil)} {
		for n := range whole {
			f.Add(whole[:n])
		}
		f.Add(whole)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDraft(b)
		if err != nil {
			assert.ErrorIs(t, err, failure.ErrExecution, "error of another kind")
			return
		}
		again, err := parseDraft(d.Append(nil))
		assert.True(t, err == nil && again.Revision == d.Revision && again.Template == d.Template && bytes.Equal(again.Data, d.Data), "%v %v %v %v", b, d, again, err)
	})
}

// TestAStoredDraft is read by all later programs.
func TestAStoredDraft(t *testing.T) {
	template := DigestOf([]byte("x"))
	stored := append(append([]byte{1, 7, 10}, template[:]...), `{"a":1}`...)
	d, err := parseDraft(stored)
	require.True(t, err == nil && d.Revision == 7 && d.SavedAt == 5 && d.Template == template && string(d.Data) == `{"a":1}`, "got %+v, %v", d, err)
	assert.Equal(t, string(stored), string(d.Append(nil)), "written again")
}

func TestDigests(t *testing.T) {
	d := DigestOf([]byte("x"))
	got, ok := ParseDigest(d.String())
	assert.True(t, ok && got == d, "read again: got %s, %t, want %s", got, ok, d)
	for _, bad := range []string{"", "x", d.String()[1:], d.String() + "00", strings.ToUpper(d.String()), " " + d.String()} {
		_, ok := ParseDigest(bad)
		assert.False(t, ok, "%q was taken", bad)
	}
	assert.Empty(t, (Digest{}).String(), "the digest of nothing is shown")
}
