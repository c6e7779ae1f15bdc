package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// connection is one connection to the server. It belongs to one worker, except for interrupt.
type connection struct {
	addr string
	tls  *tls.Config // nil: none
	conn net.Conn
	raw  syscall.RawConn // of conn, below TLS
	last time.Time       // when the last request was sent on it
	// until is the deadline that conn has. It is moved on rarely, because that
	// costs as much as the rest of what happens here for a request.
	until time.Time
	buf   []byte // what was read; the last answer's body is a part of it
	// held is what the connections of the run hold together, beside their first buffers, and
	// own what this one does, in bytes.
	held *atomic.Int64
	own  int64

	mu struct {
		sync.Mutex
		conn        net.Conn // the same as above
		interrupted bool
	}
}

const firstBufBytes = 4 << 10

// answerWaitMax is how long an answer may take; the connection is given up then, and the request is an error.
const answerWaitMax = 20 * time.Second

func (c *connection) dial(ctx context.Context) error {
	c.close()
	if c.own > 0 || c.buf == nil {
		c.release()
	}
	d := net.Dialer{Timeout: answerWaitMax}
	conn, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.addr, err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("connect to %s: %w", c.addr, err)
	}
	if c.tls != nil {
		secure := tls.Client(conn, c.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // nothing was sent
			return fmt.Errorf("connect to %s: %w", c.addr, err)
		}
		conn = secure
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.raw, c.mu.conn, c.last, c.until = conn, raw, conn, time.Now(), time.Time{}
	if c.mu.interrupted {
		c.close()
		return errInterrupted
	}
	return nil
}

func (c *connection) release() {
	c.held.Add(-c.own)
	c.own, c.buf = 0, make([]byte, 0, firstBufBytes)
}

func (c *connection) room(n int) error {
	if cap(c.buf)-len(c.buf) >= n {
		return nil
	}
	size := max(len(c.buf)+n, cap(c.buf)+cap(c.buf)/2)
	more := int64(size - cap(c.buf))
	if c.held.Add(more) > heldBytesMax {
		c.held.Add(-more)
		return errTooMany
	}
	c.own += more
	c.buf = append(make([]byte, 0, size), c.buf...)
	return nil
}

// errInterrupted ends a worker whose run is over. Another error is the reason.
var errInterrupted = errors.New("interrupted")

// interrupt makes the running exchange and all later ones fail. Any goroutine may call it.
func (c *connection) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.interrupted = true
	if c.mu.conn != nil {
		_ = c.mu.conn.Close() // whoever uses it gets the error
	}
}

func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is buffered that could get lost
	}
}

// exchange sends a request and reads the answer to its end. The body is good until the next call. After an error, and
// when the answer closes, the connection can only be dialled again.
func (c *connection) exchange(request []byte, now time.Time) (head, []byte, error) {
	c.last = now
	if c.until.Sub(now) < answerWaitMax {
		c.until = now.Add(answerWaitMax + answerWaitMax/4)
		if err := c.conn.SetDeadline(c.until); err != nil {
			return head{}, nil, err
		}
	}
	if _, err := c.conn.Write(request); err != nil {
		return head{}, nil, err
	}
	c.buf = c.buf[:0]
	for {
		if err := c.readMore(); err != nil {
			return head{}, nil, err
		}
		h, size, err := parseHead(c.buf)
		if err != nil {
			return head{}, nil, err
		}
		if size == 0 {
			continue
		}
		if h.chunked {
			body, err := (&chunks{c, size, size, size}).read()
			return h, body, err
		}
		if err := c.room(size + h.length - len(c.buf)); err != nil {
			return head{}, nil, err
		}
		for len(c.buf) < size+h.length {
			if err := c.readMore(); err != nil {
				return head{}, nil, err
			}
		}
		if len(c.buf) > size+h.length {
			return head{}, nil, errTooMuch
		}
		return h, c.buf[size:], nil
	}
}

func (c *connection) readMore() error {
	if err := c.room(1); err != nil {
		return err
	}
	n, err := c.conn.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil // an error comes again
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Bounds on answers. A history of 100,000 entries takes tens of megabytes.
const (
	headBytesMax = 64 << 10
	bodyBytesMax = 128 << 20
	// heldBytesMax is what the connections of a run hold together. Growing takes as much again for a while.
	heldBytesMax = 512 << 20
)

// Why an answer cannot be read. They end the connection.
var (
	errMalformed = errors.New("answer is not HTTP/1.1")
	errNoLength  = errors.New("answer has neither a Content-Length nor chunks")
	errTooLarge  = errors.New("answer is too large")
	errTooMany   = errors.New("all connections together hold too much of answers: large ones need fewer connections")
	errTooMuch   = errors.New("bytes after the answer")
)

type head struct {
	status  int
	length  int  // of the body; 0 when it comes in chunks
	chunked bool // the body comes in chunks
	closes  bool // the server ends the connection after it
	retry   int  // seconds of Retry-After
}

var endOfHead = []byte("\r\n\r\n")

// parseHead reads the head at the start of b. size is its length in bytes, with the empty line; zero says that it is
// not complete yet. Headers that do not matter here are not looked at.
func parseHead(b []byte) (h head, size int, err error) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		if len(b) > headBytesMax {
			return h, 0, errTooLarge
		}
		return h, 0, nil
	}
	line, rest, ok := cutLine(b[:end])
	// HTTP/1.1 200 and whatever follows.
	if !ok || len(line) < 12 || string(line[:9]) != "HTTP/1.1 " || len(line) > 12 && line[12] != ' ' {
		return h, 0, errMalformed
	}
	if h.status, err = parseDigits(line[9:12]); err != nil || h.status < 200 {
		return h, 0, errMalformed // nobody asked for 100 Continue
	}
	h.length = -1
	for len(rest) > 0 {
		if line, rest, ok = cutLine(rest); !ok {
			return h, 0, errMalformed
		}
		if err := h.field(line); err != nil {
			return h, 0, err
		}
	}
	switch {
	case h.chunked && h.length >= 0: // two ends: what would be the right one?
		return h, 0, errMalformed
	case h.status == 204 || h.status == 304:
		h.length, h.chunked = 0, false
	case h.chunked:
		h.length = 0
	case h.length < 0:
		return h, 0, errNoLength
	}
	return h, end + len(endOfHead), nil
}

func (h *head) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == 0 {
		return errMalformed
	}
	value = bytes.Trim(value, " \t")
	switch len(name) { // most names differ in length from those that matter
	case len("Connection"):
		if bytes.EqualFold(name, []byte("Connection")) {
			h.closes = h.closes || bytes.EqualFold(value, []byte("close"))
		}
	case len("Retry-After"):
		if bytes.EqualFold(name, []byte("Retry-After")) {
			h.retry, _ = parseDigits(value) // a date says nothing here
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := parseDigits(value)
			switch {
			case err != nil || h.length >= 0 && h.length != n:
				return errMalformed
			case n > bodyBytesMax:
				return errTooLarge
			}
			h.length = n
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			if h.chunked || !bytes.EqualFold(value, []byte("chunked")) {
				return errMalformed
			}
			h.chunked = true
		}
	}
	return nil
}

// cutLine splits at the first line end. It is not ok when that is a line feed alone, which some take for one and some
// do not (RFC 9112, 2.2): where the head ends would be another question for each.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(b, []byte{'\n'})
	if !found {
		return line, nil, true
	}
	line, ok = bytes.CutSuffix(line, []byte{'\r'})
	return line, rest, ok
}

func parseDigits(b []byte) (int, error) {
	if len(b) == 0 || len(b) > 12 {
		return 0, errMalformed
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errMalformed
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

func appendLength(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

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
