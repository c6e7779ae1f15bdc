// Package packed reads and writes values that stand one behind the other, as in the
// rows of the store.
package packed

import (
	"encoding/binary"
	"time"
)

// AppendText appends a text behind its length.
func AppendText[T ~string | ~[]byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// AppendTime appends a time to the millisecond.
func AppendTime(dst []byte, at time.Time) []byte { return binary.AppendVarint(dst, at.UnixMilli()) }

// Reader takes values from the front of packed bytes. After the first value that is not
// there it fails, and returns zero values. What it returns aliases the bytes, and has no
// capacity beyond its length.
type Reader struct {
	rest   []byte
	failed bool
}

// NewReader returns a reader of packed bytes.
func NewReader(packed []byte) Reader { return Reader{rest: packed} }

// Whole reports whether all values were there and nothing is left.
func (r *Reader) Whole() bool { return !r.failed && len(r.rest) == 0 }

// Failed reports whether a value was not there.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the reader fail.
func (r *Reader) Fail() { r.failed, r.rest = true, nil }

// Take takes n bytes.
func (r *Reader) Take(n int) []byte {
	if r.failed || n < 0 || n > len(r.rest) {
		r.Fail()
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if one := r.Take(1); one != nil {
		return one[0]
	}
	return 0
}

// Time takes what AppendTime wrote, in UTC. It is zero again when it was.
func (r *Reader) Time() time.Time { return time.UnixMilli(r.Varint()).UTC() }

// Text takes what AppendText wrote.
func (r *Reader) Text() []byte {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) { // NB: before it becomes an int, which may have 32 bits
		r.Fail()
		return nil
	}
	return r.Take(int(n))
}

// Rest takes all that is left.
func (r *Reader) Rest() []byte { return r.Take(len(r.rest)) }

// Uvarint takes a number of encoding/binary.
func (r *Reader) Uvarint() uint64 { return number(r, binary.Uvarint) }

// Varint takes a number with a sign.
func (r *Reader) Varint() int64 { return number(r, binary.Varint) }

func number[T int64 | uint64](r *Reader, decode func([]byte) (T, int)) T {
	n, size := decode(r.rest)
	if r.failed || size <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}
