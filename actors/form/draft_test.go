package form

import (
	"bytes"
	"errors"
	"strings"
	"testing"

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
			if !errors.Is(err, failure.ErrExecution) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		again, err := parseDraft(d.Append(nil))
		if err != nil || again.Revision != d.Revision || again.Template != d.Template || !bytes.Equal(again.Data, d.Data) {
			t.Errorf("%x: got %+v, then %+v, %v", b, d, again, err)
		}
	})
}

// TestAStoredDraft is read by all later programs.
func TestAStoredDraft(t *testing.T) {
	template := DigestOf([]byte("x"))
	stored := append(append([]byte{1, 7, 10}, template[:]...), `{"a":1}`...)
	d, err := parseDraft(stored)
	if err != nil || d.Revision != 7 || d.SavedAt != 5 || d.Template != template || string(d.Data) != `{"a":1}` {
		t.Fatalf("got %+v, %v", d, err)
	}
	if got := d.Append(nil); !bytes.Equal(got, stored) {
		t.Errorf("written again: got %x, want %x", got, stored)
	}
}

func TestDigests(t *testing.T) {
	d := DigestOf([]byte("x"))
	if got, ok := ParseDigest(d.String()); !ok || got != d {
		t.Errorf("read again: got %s, %t, want %s", got, ok, d)
	}
	for _, bad := range []string{"", "x", d.String()[1:], d.String() + "00", strings.ToUpper(d.String()), " " + d.String()} {
		if _, ok := ParseDigest(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
	if (Digest{}).String() != "" {
		t.Error("the digest of nothing is shown")
	}
}
