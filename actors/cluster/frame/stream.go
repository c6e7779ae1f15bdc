package frame

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// stream is a request and its answer at one end: the body that comes, and the window of the one that goes. One
// goroutine reads, and one writes.
type stream struct {
	link *link
	id   uint64

	end context.CancelFunc // ends the handler's request; nil at the caller's end

	mu       sync.Mutex
	header   string // of the answer, at the caller's end; empty until it has come
	in       []byte // what has come and was not read, from read on
	read     int
	untold   int  // bytes that were read and of which the other end does not know
	inEnded  bool // no more comes
	room     int  // how many bytes the other end takes
	err      error
	readBy   time.Time // zero: for ever
	writeBy  time.Time
	mayRead  chan struct{} // holds one; nil while nobody has waited
	mayWrite chan struct{}
}

// signal does nothing where nobody has waited yet, or a signal waits already.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// deliver takes a piece of the body that comes.
func (s *stream) deliver(piece []byte, ended bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.inEnded:
		return errors.Join(ErrProtocol, errors.New("a body that goes on behind its end"))
	case len(s.in)-s.read+s.untold+len(piece) > window:
		return errors.Join(ErrProtocol, errors.New("a body that does not wait for its reader"))
	}
	if s.read == len(s.in) || s.read >= window/2 { // NB: a reader that is always a little behind never reads all
		s.in, s.read = s.in[:copy(s.in, s.in[s.read:])], 0
	}
	s.in = append(s.in, piece...)
	if s.inEnded = ended; ended && s.end == nil && s.err == nil {
		s.err = errAnswered
	}
	signal(s.mayRead)
	signal(s.mayWrite)
	return nil
}

// errAnswered stops the body of a request whose answer has ended.
var errAnswered = errors.New("the answer has come before the end of the request")

// grant lets more of the body go.
func (s *stream) grant(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room += bytes
	signal(s.mayWrite)
}

// fail ends both directions. What has come of a body can still be read.
func (s *stream) fail(err error) {
	if s.end != nil {
		s.end()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	signal(s.mayRead)
	signal(s.mayWrite)
}

func (s *stream) setReadDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readBy = t
	signal(s.mayRead)
}

func (s *stream) setWriteDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBy = t
	signal(s.mayWrite)
}

// receive waits for a piece of the body. It does not fail before all was read that has come.
func (s *stream) receive(ctx context.Context, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		s.mu.Lock()
		if n = copy(p, s.in[s.read:]); n > 0 {
			s.read += n
			s.untold += n
			told := 0
			if s.untold >= window/4 && !s.inEnded {
				told, s.untold = s.untold, 0
			}
			s.mu.Unlock()
			if told > 0 {
				s.link.putNumber(kindTaken, s.id, told)
			}
			return n, nil
		}
		ended, err, by := s.inEnded, s.err, s.readBy
		if s.mayRead == nil {
			s.mayRead = make(chan struct{}, 1)
		}
		wake := s.mayRead
		s.mu.Unlock()
		switch {
		case ended:
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
		if err := await(ctx, wake, by); err != nil {
			return 0, err
		}
	}
}

// reserve waits until some of the body may go, at most as many bytes as asked for.
func (s *stream) reserve(ctx context.Context, most int) (int, error) {
	for {
		s.mu.Lock()
		err, by, n := s.err, s.writeBy, min(s.room, most)
		if err == nil && (n > 0 || most == 0) {
			s.room -= n
			s.mu.Unlock()
			return n, nil
		}
		if s.mayWrite == nil {
			s.mayWrite = make(chan struct{}, 1)
		}
		wake := s.mayWrite
		s.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if err := await(ctx, wake, by); err != nil {
			return 0, err
		}
	}
}

// await waits for a signal. A time that is over is os.ErrDeadlineExceeded.
func await(ctx context.Context, wake <-chan struct{}, by time.Time) error {
	var over <-chan time.Time
	if !by.IsZero() {
		timer := time.NewTimer(time.Until(by))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-wake:
		return nil
	case <-over:
		return os.ErrDeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends a body in pieces as the other end takes them. With end it ends it.
func (s *stream) send(ctx context.Context, body []byte, end bool) error {
	for len(body) > 0 {
		n, err := s.reserve(ctx, min(len(body), pieceMax))
		if err != nil {
			return err
		}
		k := kindBody
		if end && n == len(body) {
			k |= ends
		}
		if err := s.link.put(ctx, k, s.id, func(b []byte) []byte { return append(b, body[:n]...) }); err != nil {
			return err
		}
		if body = body[n:]; len(body) == 0 {
			return nil
		}
	}
	if !end {
		return nil
	}
	return s.link.put(ctx, kindBody|ends, s.id, nil)
}
