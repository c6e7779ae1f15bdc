package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Client asks over one connection. Its methods may be called at once.
type Client struct {
	link *link
	last uint64 // the number of the newest stream; guarded by link.mu
}

// NewClient takes over a connection whose other end is a Server's. Run must be called.
func NewClient(conn net.Conn) *Client { return &Client{link: newLink(conn)} }

// Run reads and writes until the connection ends, and returns why it did.
func (c *Client) Run() error { return c.link.run(c.take) }

// Close ends the connection.
func (c *Client) Close() { c.link.close(net.ErrClosed) }

// Ended reports whether the connection has ended, so that nothing can be sent any more.
func (c *Client) Ended() bool { return c.link.cause() != nil }

func (c *Client) take(h head, payload []byte) error {
	s := c.link.find(h.stream)
	if s == nil { // NB: it was given up here before this came
		return nil
	}
	if h.ends || h.kind == kindCancel || h.kind == kindRefused {
		c.link.remove(h.stream)
	}
	switch h.kind {
	case kindAnswer:
		header, start, err := parseBeginning(payload)
		if err != nil {
			return err
		}
		if header == "" || s.answered(header) {
			return fmt.Errorf("%w: an empty or a second header", ErrProtocol)
		}
		return s.deliver(start, h.ends)
	case kindBody:
		return s.deliver(payload, h.ends)
	case kindCancel:
		s.fail(ErrBroken)
	case kindRefused:
		s.fail(fmt.Errorf("%w: the other end has too many requests, or stops", ErrNotSent))
	default:
		return fmt.Errorf("%w: kind %d at the caller's end", ErrProtocol, h.kind)
	}
	return nil
}

// answered keeps the header of the answer, and reports whether there was one.
func (s *stream) answered(header string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.header != ""
	s.header = header
	return was
}

// RoundTrip implements http.RoundTripper. It takes nothing from the request's URL but path and query.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	s, err := c.open(r)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	if err := s.ask(r); err != nil {
		s.cancel(err)
		return nil, err
	}
	answer, err := s.answer(r)
	if err != nil {
		s.cancel(err)
	}
	return answer, err
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // as http.RoundTripper requires
	}
}

// call is a request that was sent, and the body of its answer.
type call struct {
	stream
	ctx context.Context //nolint:containedctx // the request's, which bounds the body of the answer too
}

func (c *Client) open(r *http.Request) (*call, error) {
	if err := r.Context().Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	l := c.link
	s := &call{stream: stream{link: l, room: window, mayRead: make(chan struct{}, 1)}, ctx: r.Context()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, l.err)
	}
	c.last++
	s.id = c.last
	l.streams[s.id] = &s.stream
	return s, nil
}

var pieces = sync.Pool{New: func() any { return new([pieceMax]byte) }}

// ask sends the request. A body that does not fit in its first frame is sent while the answer is awaited.
func (s *call) ask(r *http.Request) error {
	whole := r.Body == nil || r.Body == http.NoBody
	var start []byte
	if !whole && r.ContentLength > 0 && r.ContentLength <= pieceMax {
		piece := pieces.Get().(*[pieceMax]byte)
		defer pieces.Put(piece)
		start, whole = piece[:r.ContentLength], true
		_, err := io.ReadFull(r.Body, start)
		closeBody(r)
		if err != nil {
			return fmt.Errorf("%w: read the body: %w", ErrNotSent, err)
		}
	}
	k := kindRequest
	if whole {
		k |= ends
	}
	s.room -= len(start) // NB: nobody else has the stream yet
	err := s.link.put(s.ctx, k, s.id, func(b []byte) []byte {
		return appendBeginning(b, func(b []byte) []byte { return appendRequest(b, r) }, start)
	})
	if err != nil {
		if !whole {
			closeBody(r)
		}
		if errors.Is(err, ErrTooLarge) { // NB: who gets ErrNotSent tries again
			return err
		}
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if !whole {
		go s.sendBody(r)
	}
	return nil
}

// sendBody ends with the answer at the latest, unless the body's own Read hangs.
func (s *call) sendBody(r *http.Request) {
	defer closeBody(r)
	piece := pieces.Get().(*[pieceMax]byte)
	defer pieces.Put(piece)
	for sent := int64(0); ; {
		n, err := r.Body.Read(piece[:])
		sent += int64(n)
		if err == io.EOF && r.ContentLength > 0 && sent != r.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		over := err == io.EOF
		if failed := s.send(s.ctx, piece[:n], over); failed != nil || over {
			return
		}
		if err != nil {
			s.cancel(fmt.Errorf("read the body: %w", err))
			return
		}
	}
}

// cancel tells the other end that nobody waits for the answer.
func (s *call) cancel(why error) {
	if s.link.remove(s.id) {
		s.link.putNumber(kindCancel, s.id, 0)
	}
	s.fail(why)
}

// answer waits for the header of the answer.
func (s *call) answer(r *http.Request) (*http.Response, error) {
	for {
		s.mu.Lock()
		header, err, empty := s.header, s.err, s.inEnded && len(s.in) == 0
		s.mu.Unlock()
		switch {
		case header != "":
			a, err := parseAnswer(header)
			if err != nil {
				s.link.close(err)
				return nil, err
			}
			if a.Request, a.Body = r, s; empty {
				a.Body = http.NoBody
			}
			return a, nil
		case err != nil:
			return nil, err
		}
		if err := await(s.ctx, s.mayRead, time.Time{}); err != nil {
			return nil, err
		}
	}
}

// Read reads the body of the answer.
func (s *call) Read(p []byte) (int, error) { return s.receive(s.ctx, p) }

// Close gives up what has not come of the body.
func (s *call) Close() error {
	s.cancel(errClosed)
	return nil
}

var errClosed = errors.New("the body was closed")
