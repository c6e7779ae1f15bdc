package packed

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestTextHasNoRoom holds that whoever appends to what was read does not overwrite what
// comes behind it.
func TestTextHasNoRoom(t *testing.T) {
	r := NewReader(AppendText(AppendText(nil, "first"), "second"))
	_ = append(r.Text(), "more"...)
	if second := r.Text(); string(second) != "second" {
		t.Errorf("got %q", second)
	}
}

// TestReader: a reader returns what was written, and fails on everything shorter or
// longer.
func TestReader(t *testing.T) {
	whole := binary.AppendVarint(binary.AppendUvarint(AppendText([]byte{7}, "text"), 1<<40), -5)
	whole = append(whole, "rest"...)
	read := func(b []byte) (*Reader, bool) {
		r := NewReader(b)
		right := r.Byte() == 7 && string(r.Text()) == "text" && r.Uvarint() == 1<<40 && r.Varint() == -5
		return &r, right
	}
	r, right := read(whole)
	if right = right && !r.Whole(); !right || string(r.Rest()) != "rest" || !r.Whole() {
		t.Errorf("%x is not read as it was written", whole)
	}
	for n := range len(whole) - len("rest") {
		r, right := read(whole[:n])
		if right || r.Whole() || !r.Failed() || r.Take(0) != nil || r.Byte() != 0 {
			t.Errorf("the first %d bytes are read", n)
		}
	}
	endless := [][]byte{bytes.Repeat([]byte{0xff}, 8)}
	for _, length := range []uint64{2, 1 << 32, 1<<32 + 1, 1 << 63, 1<<64 - 1} {
		endless = append(endless, append(binary.AppendUvarint(nil, length), 'x'))
	}
	for _, b := range endless {
		r := NewReader(b)
		if text := r.Text(); text != nil || !r.Failed() {
			t.Errorf("%x: got the text %q beyond the end", b, text)
		}
	}
}
