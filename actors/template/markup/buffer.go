package markup

import (
	"bytes"
	"io"
)

// bufferBytes is how much is read at once.
const bufferBytes = 64 << 10

// The parser is past what is before pos.
type buffer struct {
	from  io.Reader
	text  []byte // text was read; text[pos:] is still to be parsed
	pos   int
	lines int   // line ends before text
	err   error // why there is no more text: io.EOF, or the reader's error
	cr    bool  // cr says that the last byte read is a carriage return
}

func (b *buffer) ahead() []byte { return b.text[b.pos:] }

// It moves the text in the buffer, which makes slices of it invalid, and grows the buffer when all of the text is
// ahead.
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
	for range 100 { // as bufio does: a reader that keeps returning nothing is broken
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

// lineEnds replaces line ends in p as XML 1.0, 2.11 wants it before any parsing, and returns the new length of p.
func (b *buffer) lineEnds(p []byte) int {
	read, size := 0, 0
	if b.cr && len(p) > 0 && p[0] == '\n' { // the carriage return before it stands for both
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

func (b *buffer) need(n int) bool {
	for len(b.text)-b.pos < n {
		if !b.more() {
			return false
		}
	}
	return true
}

func (b *buffer) line() int { return 1 + b.lines + bytes.Count(b.text[:b.pos], []byte{'\n'}) }
