package query

import (
	"encoding/binary"
	"errors"

	"troupe/persistence/key"
)

// found is an instance that a query has found.
type found struct {
	at   *position // of a part; nil in a query that is none
	text []byte
	// mark: there may be more of the part behind it, which was not looked for. It has no text.
	mark bool
}

// AppendBinary appends mark(1) id(16) value(uvarint length in front) text.
func (f found) AppendBinary(dst []byte) ([]byte, error) {
	mark := byte(0)
	if f.mark {
		mark = 1
	}
	dst = append(append(dst, mark), f.at.id[:]...)
	dst = append(binary.AppendUvarint(dst, uint64(len(f.at.value))), f.at.value...)
	return append(dst, f.text...), nil
}

var errFound = errors.New("an instance that was found cannot be read")

// UnmarshalBinary reads what AppendBinary wrote, and keeps it.
func (f *found) UnmarshalBinary(b []byte) error {
	const head = 1 + len(key.ID{})
	if len(b) < head {
		return errFound
	}
	f.at = &position{}
	f.mark = b[0] == 1
	copy(f.at.id[:], b[1:])
	length, n := binary.Uvarint(b[head:])
	if n <= 0 || length > uint64(len(b)-head-n) {
		return errFound
	}
	rest := b[head+n:]
	if length > 0 {
		f.at.value = rest[:length:length]
	}
	f.text = rest[length:]
	return nil
}
