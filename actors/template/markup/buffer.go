package markup

import (
	"bytes"
	"io"
)

// bufferBytes is how much is read at once.
const bufferBytes = 64 << 10

// buffer is a window on the text. What is before pos was taken.
type buffer struct {
	from io.Reader
	// text is what was read and may still be looked at; text[pos:] is ahead.
	text  []byte
	pos   int
	lines int // line ends before text
	// err is why there is no more text: io.EOF, or the reader's error.
	err error
	// cr: the last byte that was read is a carriage return.
	cr bool
}

// ahead is what was read and not taken.
func (b *buffer) ahead() []byte { return b.text[b.pos:] }

// more reads on. It moves the text, so that slices of it are void, and grows when
// all of it is ahead. It reports whether there is more than before.
func (b *buffer) more() bool {
	if b.err != nil {
		return false
	}
	if b.pos > 0 {
		b.lines += bytes.Count(b.text[:b.pos], []byte{'\n'})
		b.text = b.text[:copy(b.text, b.ahead())]
		b.pos = 0
	}
	if len(b.text) == cap(b.text) {
		b.text = append(make([]byte, 0, 2*cap(b.text)), b.text...)
	}
	for range 100 { // as bufio: a reader that gives nothing for ever is broken
		space := b.text[len(b.text):cap(b.text)]
		n, err := b.from.Read(space)
		n = b.lineEnds(space[:n])
		b.text = b.text[:len(b.text)+n]
		b.err = err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	b.err = io.ErrNoProgress
	return false
}

// lineEnds turns every carriage return in p into a line end, with a line end
// behind it into one, and returns how long p is then (XML 1.0, 2.11: this comes
// before everything else).
func (b *buffer) lineEnds(p []byte) int {
	read, size := 0, 0
	if b.cr && len(p) > 0 && p[0] == '\n' { // the one before stands for both
		read = 1
	}
	b.cr = len(p) > 0 && p[len(p)-1] == '\r'
	for {
		length := bytes.IndexByte(p[read:], '\r')
		end := read + length
		if length < 0 {
			end = len(p)
		}
		if size < read {
			copy(p[size:], p[read:end])
		}
		size += end - read
		if length < 0 {
			return size
		}
		p[size] = '\n'
		size++
		read += length + 1
		if read < len(p) && p[read] == '\n' {
			read++
		}
	}
}

// need makes at least n bytes be ahead, and reports whether there are.
func (b *buffer) need(n int) bool {
	for len(b.text)-b.pos < n {
		if !b.more() {
			return false
		}
	}
	return true
}

// line is that of the next byte, counted from 1.
func (b *buffer) line() int { return 1 + b.lines + bytes.Count(b.text[:b.pos], []byte{'\n'}) }
