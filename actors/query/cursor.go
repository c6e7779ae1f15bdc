package query

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// A cursor is a position in a list: version(1) check(8) position, in base64url. The position is that of the last thing
// that the caller was shown, so it tells nothing new.
const (
	cursorVersion = 2 // 1 was encrypted
	cursorHead    = 1 + 8
)

// ErrCursor: the cursor is malformed or of another list. It wraps failure.ErrInvalid.
var ErrCursor = failure.Refuse(failure.ErrInvalid, "the cursor is not of this list")

// List names a list that comes in pages: its kind and what it was asked for.
type List []string

// Cursor returns the text for a position.
func (l List) Cursor(position []byte) string {
	check := l.check(position)
	b := append([]byte{cursorVersion}, check[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, position...))
}

// Position reads what Cursor wrote; anything else is ErrCursor.
func (l List) Position(text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// NB: the decoder passes over line ends, even a strict one.
	if err != nil || strings.ContainsAny(text, "\r\n") || len(b) < cursorHead || b[0] != cursorVersion {
		return nil, ErrCursor
	}
	if position := b[cursorHead:]; l.check(position) == [8]byte(b[1:cursorHead]) {
		return position, nil
	}
	return nil, ErrCursor
}

func (l List) check(position []byte) [8]byte {
	h := sha256.New()
	for _, part := range l {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write([]byte(part))
	}
	h.Write(position)
	return [8]byte(h.Sum(nil))
}

// position is where a page ended: value is that of the instance id in the index that sorts, nil when _id sorts.
type position struct {
	value []byte
	id    key.ID
}

func (p position) append(dst []byte) []byte { return append(append(dst, p.id[:]...), p.value...) }

func parsePosition(b []byte) (*position, error) {
	p := &position{}
	if len(b) < len(p.id) {
		return nil, ErrCursor
	}
	if copy(p.id[:], b); len(b) > len(p.id) {
		p.value = b[len(p.id):]
	}
	return p, nil
}
