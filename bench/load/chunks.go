package load

import (
	"bytes"
	"strconv"
)

// chunks is a body in chunks (RFC 9112, 7.1) that is read into the buffer of its connection.
type chunks struct {
	*connection
	from, out, at int // where the body begins, where it ends so far, and what is not looked at yet
}

func (b *chunks) read() ([]byte, error) {
	for {
		line, err := b.line()
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(line, []byte{';'}) // extensions say nothing here
		n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 32)
		switch {
		case err != nil:
			return nil, errMalformed
		case b.out-b.from+int(n) > bodyBytesMax:
			return nil, errTooLarge
		case n == 0:
			return b.buf[b.from:b.out], b.trailer()
		}
		for len(b.buf) < b.at+int(n)+2 {
			if err := b.more(); err != nil {
				return nil, err
			}
		}
		end := b.at + int(n)
		if b.buf[end] != '\r' || b.buf[end+1] != '\n' {
			return nil, errMalformed
		}
		b.out += copy(b.buf[b.out:], b.buf[b.at:end])
		b.at = end + 2
	}
}

// more reads on. What was looked at makes room before.
func (b *chunks) more() error {
	n := copy(b.buf[b.out:], b.buf[b.at:])
	b.buf, b.at = b.buf[:b.out+n], b.out
	return b.readMore()
}

// trailer reads what stands behind the last chunk, which is the end of the answer.
func (b *chunks) trailer() error {
	for {
		line, err := b.line()
		switch {
		case err != nil:
			return err
		case len(line) == 0 && b.at < len(b.buf):
			return errTooMuch
		case len(line) == 0:
			return nil
		}
	}
}

// line returns the next line, and moves on behind it.
func (b *chunks) line() ([]byte, error) {
	for {
		if n := bytes.Index(b.buf[b.at:], []byte("\r\n")); n >= 0 {
			line := b.buf[b.at : b.at+n]
			b.at += n + 2
			return line, nil
		}
		if len(b.buf)-b.at > headBytesMax {
			return nil, errTooLarge
		}
		if err := b.more(); err != nil {
			return nil, err
		}
	}
}
