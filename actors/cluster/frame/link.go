package frame

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pendingMax is how many bytes wait to be written before those who have more of a body wait too.
	pendingMax = 256 << 10
	// writeMax is how much is written within SilenceMax.
	writeMax = 64 << 10
	// beat is how often a connection is looked at: after two in which nothing came it is pinged, and after four more
	// than SilenceMax is about to be over.
	beat                    = time.Second
	beatsToPing, beatsToEnd = 2, 4
)

// link is one end of a connection.
type link struct {
	conn  net.Conn
	wake  chan struct{} // holds one: something is pending
	done  chan struct{} // closed with the connection
	heard atomic.Bool   // something came since the last beat

	mu      sync.Mutex
	streams map[uint64]*stream
	err     error // why the connection has ended

	out struct {
		sync.Mutex
		pending, spare []byte
		writing        bool
		written        chan struct{} // closed when what was pending is written; nil while nobody waits
	}
}

func newLink(conn net.Conn) *link {
	return &link{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{}), streams: map[uint64]*stream{}}
}

// run reads until the connection ends. Frames that begin, continue or end a stream are for take.
func (l *link) run(take func(head, []byte) error) error {
	var all sync.WaitGroup
	all.Go(l.write)
	all.Go(l.listen)
	err := l.read(take)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // NB: to those who wait for an answer
	}
	l.close(err)
	all.Wait()
	return l.cause()
}

// close ends the connection and everything on it.
func (l *link) close(err error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = fmt.Errorf("connection ended: %w", err)
	all := l.streams
	l.streams = nil
	l.mu.Unlock()
	close(l.done)
	for _, s := range all {
		s.fail(l.err)
	}
	_ = l.conn.Close() // NB: TLS says goodbye first, which may take a while
}

func (l *link) find(id uint64) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams[id]
}

// remove forgets a stream, and reports whether it was there.
func (l *link) remove(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.streams[id]
	delete(l.streams, id)
	return there
}

// read never waits for a reader of a body or for room to write: what it answers itself always fits.
func (l *link) read(take func(head, []byte) error) error {
	in := bufio.NewReaderSize(l.conn, headBytes+payloadMax)
	for {
		text, err := in.Peek(headBytes)
		if err != nil {
			return err
		}
		h, err := parseHead(text)
		if err != nil {
			return err
		}
		if text, err = in.Peek(headBytes + h.bytes); err != nil {
			return err
		}
		l.heard.Store(true)
		if err := l.handle(h, text[headBytes:], take); err != nil {
			return err
		}
		_, _ = in.Discard(headBytes + h.bytes) // it is there
	}
}

func (l *link) handle(h head, payload []byte, take func(head, []byte) error) error {
	switch h.kind {
	case kindPing:
		l.putNumber(kindPong, 0, 0)
	case kindPong:
	case kindTaken:
		if len(payload) != 4 {
			return fmt.Errorf("%w: a number of %d bytes", ErrProtocol, len(payload))
		}
		if s := l.find(h.stream); s != nil {
			s.grant(int(binary.BigEndian.Uint32(payload)))
		}
	default:
		return take(h, payload)
	}
	return nil
}

// put adds a frame to what is to be written. It waits while too much is, until ctx ends.
func (l *link) put(ctx context.Context, k kind, id uint64, payload func([]byte) []byte) error {
	for {
		l.out.Lock()
		if len(l.out.pending) < pendingMax {
			err := l.putLocked(k, id, payload)
			l.out.Unlock()
			return err
		}
		written := l.writtenLocked()
		l.out.Unlock()
		select {
		case <-written:
		case <-l.done:
			return l.cause()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// putNumber adds a small frame without waiting. There is one for each stream, or for some bytes that it took, at most.
func (l *link) putNumber(k kind, id uint64, n int) {
	l.out.Lock()
	defer l.out.Unlock()
	_ = l.putLocked(k, id, func(b []byte) []byte { // it fits
		if k != kindTaken {
			return b
		}
		return binary.BigEndian.AppendUint32(b, uint32(n))
	})
}

func (l *link) putLocked(k kind, id uint64, payload func([]byte) []byte) error {
	begin := len(l.out.pending)
	b := appendHead(l.out.pending, k, id)
	if payload != nil {
		b = payload(b)
	}
	n := len(b) - begin - headBytes
	if n > payloadMax {
		return ErrTooLarge
	}
	binary.BigEndian.PutUint32(b[begin:], uint32(n))
	l.out.pending = b
	signal(l.wake)
	return nil
}

func (l *link) writtenLocked() <-chan struct{} {
	if l.out.written == nil {
		l.out.written = make(chan struct{})
	}
	return l.out.written
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) write() {
	for {
		select {
		case <-l.wake:
		case <-l.done:
			return
		}
		runtime.Gosched() // NB: others that are about to add a frame do, and it leaves with the same write
		if err := l.writePending(); err != nil {
			l.close(err)
			return
		}
	}
}

func (l *link) writePending() error {
	l.out.Lock()
	pending := l.out.pending
	l.out.pending, l.out.writing = l.out.spare[:0], true
	l.out.Unlock()
	for left := pending; len(left) > 0; {
		n := min(len(left), writeMax)
		_ = l.conn.SetWriteDeadline(time.Now().Add(SilenceMax))
		if _, err := l.conn.Write(left[:n]); err != nil {
			return err
		}
		left = left[n:]
	}
	l.out.Lock()
	defer l.out.Unlock()
	l.out.spare, l.out.writing = pending, false
	if l.out.written != nil {
		close(l.out.written)
		l.out.written = nil
	}
	return nil
}

// flush waits until everything is written, ctx ends, or the connection does.
func (l *link) flush(ctx context.Context) {
	for {
		l.out.Lock()
		idle, written := len(l.out.pending) == 0 && !l.out.writing, l.writtenLocked()
		l.out.Unlock()
		if idle {
			return
		}
		select {
		case <-written:
		case <-l.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

var errSilent = errors.New("the other end has fallen silent")

// listen ends the connection when nothing comes any more.
func (l *link) listen() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for quiet := 0; ; {
		select {
		case <-ticker.C:
		case <-l.done:
			return
		}
		if quiet++; l.heard.Swap(false) {
			quiet = 0
		}
		switch quiet {
		case beatsToPing:
			l.putNumber(kindPing, 0, 0)
		case beatsToEnd:
			l.close(errSilent)
			return
		}
	}
}
