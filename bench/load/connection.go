package load

import (
	"bufio"
	"bytes"
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
	"syscall"
	"time"

	"troupe/gateway/leader"
)

// connection is one connection to the server. It belongs to one worker, except for interrupt.
type connection struct {
	addr string
	tls  *tls.Config // nil: none
	conn net.Conn
	raw  syscall.RawConn // of conn, below TLS
	last time.Time       // when the last request was sent on it
	down time.Time       // until when another node is asked, as this one could not be dialled
	// until is the deadline that conn has. It is moved on rarely, because that
	// costs as much as the rest of what happens here for a request.
	until time.Time
	in    *bufio.Reader // of Read
	left  int           // bytes that may still come before the head, or the body, is too large
	fault error         // of the last Read
	body  bytes.Buffer  // of the last answer

	mu struct {
		sync.Mutex
		conn        net.Conn // the same as above
		interrupted bool
	}
}

// answerWaitMax is how long an answer may take; the connection is given up then, and the request is an error.
const answerWaitMax = 20 * time.Second

func (c *connection) dial(ctx context.Context) error {
	c.close()
	c.conn = nil // for as long as there is none
	d := &net.Dialer{Timeout: answerWaitMax}
	dial := d.DialContext
	if c.tls != nil {
		dial = (&tls.Dialer{NetDialer: d, Config: c.tls}).DialContext
	}
	conn, err := dial(ctx, "tcp", c.addr)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.addr, err)
	}
	below := conn
	if secure, ok := conn.(*tls.Conn); ok {
		below = secure.NetConn()
	}
	raw, err := below.(*net.TCPConn).SyscallConn()
	if err != nil {
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("connect to %s: %w", c.addr, err)
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
	h.leader = answer.Header.Get(leader.Header)
	h.retry, _ = strconv.Atoi(answer.Header.Get("Retry-After")) // a date says nothing here
	body, err := c.readBody(answer)
	return h, body, err
}

type head struct {
	status int
	closes bool // the server ends the connection after it
	retry  int  // seconds of Retry-After
	leader string
}

func (c *connection) readBody(answer *http.Response) ([]byte, error) {
	c.body.Reset()
	c.left = bodyBytesMax
	if _, err := c.body.ReadFrom(answer.Body); err != nil {
		return nil, c.why()
	}
	if c.in.Buffered() > 0 {
		return nil, errTooMuch
	}
	return c.body.Bytes(), nil
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
)

// Why an answer cannot be read. They end the connection.
var (
	errMalformed = errors.New("answer is not HTTP/1.1")
	errNoLength  = errors.New("answer has neither a Content-Length nor chunks")
	errTooLarge  = errors.New("answer is too large")
	errTooMuch   = errors.New("bytes after the answer")
)
