package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
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
