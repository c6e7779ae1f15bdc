package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// connection is one connection to the server. It belongs to one worker, except
// for interrupt.
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

	mu struct {
		sync.Mutex
		conn        net.Conn // the same as above
		interrupted bool
	}
}

const firstBufBytes = 4 << 10

// dial opens the connection, or opens it anew.
func (c *connection) dial(ctx context.Context) error {
	c.close()
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
	if c.buf == nil {
		c.buf = make([]byte, 0, firstBufBytes)
	}
	return nil
}

// errInterrupted ends a worker whose run is over. Another error is the reason.
var errInterrupted = errors.New("interrupted")

// interrupt makes the running exchange and all later ones fail. Any goroutine
// may call it.
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

// exchange sends a request and reads the answer to its end. The body is good
// until the next call. After an error, and when the answer closes, the
// connection can only be dialled again.
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
			body, err := c.chunks(size)
			return h, body, err
		}
		c.buf = slices.Grow(c.buf, max(0, size+h.length-len(c.buf)))
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

// readMore appends what one read gives.
func (c *connection) readMore() error {
	if len(c.buf) == cap(c.buf) {
		c.buf = slices.Grow(c.buf, firstBufBytes)
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

// chunks reads a body in chunks (RFC 9112, 7.1) that begins at from in the buffer, and
// moves its pieces together.
func (c *connection) chunks(from int) ([]byte, error) {
	out, at := from, from // where the body so far ends, and what is not looked at yet
	for {
		line, err := c.line(&at)
		if err != nil {
			return nil, err
		}
		digits, _, _ := bytes.Cut(line, []byte{';'}) // extensions say nothing here
		n, err := strconv.ParseUint(string(bytes.TrimRight(digits, " \t")), 16, 32)
		switch {
		case err != nil:
			return nil, errMalformed
		case out-from+int(n) > bodyBytesMax:
			return nil, errTooLarge
		case n == 0:
			return c.buf[from:out], c.trailer(&at)
		}
		end := at + int(n)
		for len(c.buf) < end+2 {
			if err := c.readMore(); err != nil {
				return nil, err
			}
		}
		if c.buf[end] != '\r' || c.buf[end+1] != '\n' {
			return nil, errMalformed
		}
		out += copy(c.buf[out:], c.buf[at:end])
		at = end + 2
	}
}

// trailer reads what stands behind the last chunk, which is the end of the answer.
func (c *connection) trailer(at *int) error {
	for {
		line, err := c.line(at)
		switch {
		case err != nil:
			return err
		case len(line) == 0 && *at < len(c.buf):
			return errTooMuch
		case len(line) == 0:
			return nil
		}
	}
}

// line returns the line at a place of the buffer, and moves on behind it.
func (c *connection) line(at *int) ([]byte, error) {
	for {
		if end := bytes.Index(c.buf[*at:], []byte("\r\n")); end >= 0 {
			line := c.buf[*at : *at+end]
			*at += end + 2
			return line, nil
		}
		if len(c.buf)-*at > headBytesMax {
			return nil, errTooLarge
		}
		if err := c.readMore(); err != nil {
			return nil, err
		}
	}
}
