package packed_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/packed"
)

// TestTextHasNoRoom holds that whoever appends to what was read does not overwrite what comes behind it.
func TestTextHasNoRoom(t *testing.T) {
	r := packed.NewReader(packed.AppendText(packed.AppendText(nil, "first"), "second"))
	_ = append(r.Text(), "more"...)
	assert.Equal(t, "second", string(r.Text()))
}

// TestReader: a reader returns what was written, and fails on everything shorter or longer.
func TestReader(t *testing.T) {
	whole := binary.AppendVarint(binary.AppendUvarint(packed.AppendText([]byte{7}, "text"), 1<<40), -5)
	whole = append(whole, "rest"...)
	read := func(b []byte) (*packed.Reader, bool) {
		r := packed.NewReader(b)
		right := r.Byte() == 7 && string(r.Text()) == "text" && r.Uvarint() == 1<<40 && r.Varint() == -5
		return &r, right
	}
	r, right := read(whole)
	right = right && !r.Whole()
	assert.True(t, right && string(r.Rest()) == "rest" && r.Whole(), "%x is not read as it was written", whole)
	for n := range len(whole) - len("rest") {
		r, right := read(whole[:n])
		assert.True(t, !right && !r.Whole() && r.Failed() && r.Take(0) == nil && r.Byte() == 0, "the first %d bytes are read", n)
	}
	endless := [][]byte{bytes.Repeat([]byte{0xff}, 8)}
	for _, length := range []uint64{2, 1 << 32, 1<<32 + 1, 1 << 63, 1<<64 - 1} {
		endless = append(endless, append(binary.AppendUvarint(nil, length), 'x'))
	}
	for _, b := range endless {
		r := packed.NewReader(b)
		text := r.Text()
		assert.True(t, text == nil && r.Failed(), "%x: got the text %q beyond the end", b, text)
	}
}
