package load

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	in    *bufio.Reader // of Read
	left  int           // bytes that may still come before the head, or the body, is too large
	fault error         // of the last Read
	buf   []byte        // the last answer's body
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
	c.conn, c.in, c.raw, c.mu.conn, c.last, c.until = conn, nil, raw, conn, time.Now(), time.Time{}
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
	c.fault, c.left = nil, headBytesMax
	if c.in == nil {
		c.in = bufio.NewReader(c)
	}
	answer, err := http.ReadResponse(c.in, nil) //nolint:bodyclose // it is read to its end, or the connection is given up
	switch {
	case err != nil:
		return head{}, nil, c.why()
	case !answer.ProtoAtLeast(1, 1), answer.StatusCode < 200: // nobody asked for 100 Continue
		return head{}, nil, errMalformed
	case answer.ContentLength > bodyBytesMax:
		return head{}, nil, errTooLarge
	case answer.ContentLength < 0 && answer.TransferEncoding == nil:
		return head{}, nil, errNoLength
	}
	h := head{status: answer.StatusCode, closes: answer.Close}
	h.retry, _ = strconv.Atoi(answer.Header.Get("Retry-After")) // a date says nothing here
	body, err := c.readBody(answer)
	return h, body, err
}

type head struct {
	status int
	closes bool // the server ends the connection after it
	retry  int  // seconds of Retry-After
}

func (c *connection) readBody(answer *http.Response) ([]byte, error) {
	c.buf, c.left = c.buf[:0], bodyBytesMax
	for room := max(1, int(answer.ContentLength)); ; room = 1 {
		if err := c.room(room); err != nil {
			return nil, err
		}
		n, err := answer.Body.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		switch {
		case err == io.EOF && c.in.Buffered() > 0:
			return nil, errTooMuch
		case err == io.EOF:
			return c.buf, nil
		case err != nil:
			return nil, c.why()
		}
	}
}

// Read is where answers come from.
func (c *connection) Read(p []byte) (n int, err error) {
	if c.left <= 0 {
		c.fault = errTooLarge
		return 0, c.fault
	}
	n, err = c.conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	c.fault = err
	return n, err
}

// why is the reason that an answer could not be read: a text that repeats, without what the server wrote.
func (c *connection) why() error { return cmp.Or(c.fault, errMalformed) }

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
