package frame

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
)

// Server answers the requests of any number of connections. Its methods may be called at once.
type Server struct {
	// Handler answers. Its ResponseWriter can Flush and has deadlines; both directions are open at once.
	Handler http.Handler
	// StreamsMax bounds the requests of one connection for which the handler runs at once, also for those that nobody waits
	// for any more; others are refused.
	StreamsMax int
	Log        zerolog.Logger // Log gets the panics of the handler

	mu       sync.Mutex
	stopping bool               // guarded by mu, as is the rest
	active   int                // requests that are being answered
	idle     chan struct{}      // closed when active is 0; nil until Stop
	links    map[*link]struct{} // that are open
}

// Stop has all further requests refused, and waits until the answers to the others have left, or ctx ends. It is
// called once.
func (s *Server) Stop(ctx context.Context) {
	idle := make(chan struct{})
	s.mu.Lock()
	s.stopping, s.idle = true, idle
	if s.active == 0 {
		close(idle)
	}
	open := slices.Collect(maps.Keys(s.links))
	s.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	for _, l := range open {
		l.flush(ctx)
	}
}

// begin counts a request, unless the server stops.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.active++
	}
	return !s.stopping
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.stopping {
		close(s.idle)
	}
}

func (s *Server) add(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links == nil {
		s.links = map[*link]struct{}{}
	}
	s.links[l] = struct{}{}
}

func (s *Server) remove(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}

// Serve answers over a connection until it ends, and returns why it did. The values of ctx are those of the requests;
// its end is not looked at: close the connection.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	c := &served{server: s, link: newLink(conn), values: context.WithoutCancel(ctx), from: conn.RemoteAddr().String()}
	s.add(c.link)
	defer s.remove(c.link)
	return c.link.run(c.take)
}

// served is a connection at the end that answers.
type served struct {
	server *Server
	link   *link
	values context.Context //nolint:containedctx // of the requests, which end by themselves
	from   string          // their RemoteAddr
	active int             // handlers that run or are about to; guarded by link.mu
}

func (c *served) take(h head, payload []byte) error {
	if h.kind == kindRequest {
		return c.begin(h, payload)
	}
	s := c.link.find(h.stream)
	if s == nil { // NB: it was answered before this came
		return nil
	}
	switch h.kind {
	case kindBody:
		return s.deliver(payload, h.ends)
	case kindCancel:
		c.link.remove(h.stream)
		s.fail(context.Canceled)
	default:
		return fmt.Errorf("%w: kind %d at the end that answers", ErrProtocol, h.kind)
	}
	return nil
}

func (c *served) begin(h head, payload []byte) error {
	header, start, err := parseBeginning(payload)
	if err != nil {
		return err
	}
	x := &exchange{stream: stream{link: c.link, id: h.stream, room: window}, of: c}
	x.ctx, x.end = context.WithCancel(c.values)
	if err := x.deliver(start, h.ends); err != nil {
		return err
	}
	full, err := c.open(&x.stream)
	switch {
	case err != nil:
		x.end()
		return err
	case full:
		x.end()
		c.link.putNumber(kindRefused, h.stream, 0)
		return nil
	case !c.server.begin():
		x.end()
		c.close(&x.stream)
		c.link.putNumber(kindRefused, h.stream, 0)
		return nil
	}
	go x.run(header)
	return nil
}

// open adds a stream, unless there are too many.
func (c *served) open(s *stream) (full bool, err error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil { // NB: nobody would end it
		return false, l.err
	}
	if l.streams[s.id] != nil || s.id == 0 {
		return false, fmt.Errorf("%w: stream %d is open", ErrProtocol, s.id)
	}
	if full = c.active >= c.server.StreamsMax; !full { // NB: a caller that gives up ends its stream, and not the handler
		l.streams[s.id] = s
		c.active++
	}
	return full, nil
}

// close forgets a stream that open has added, and whose handler does not run any more.
func (c *served) close(s *stream) (wasThere bool) {
	wasThere = c.link.remove(s.id)
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.active--
	return wasThere
}

// exchange is a request that is being answered, its body and the writer of its answer.
type exchange struct {
	stream
	of     *served
	ctx    context.Context //nolint:containedctx // the request's
	isHead bool
	header http.Header
	status int    // 0 until the header is complete
	sent   bool   // the header
	out    []byte // of the body, not sent yet
}

func (x *exchange) run(header string) {
	defer x.of.server.end()
	defer x.end()
	r, err := parseRequest(header)
	if err != nil {
		x.link.close(err)
		return
	}
	r.RemoteAddr = x.of.from
	r.Body = http.NoBody
	if r.ContentLength != 0 {
		r.Body = (*requestBody)(x)
	}
	x.isHead = r.Method == http.MethodHead
	x.header = make(http.Header, headerFields)
	err = x.serve(r.WithContext(x.ctx))
	if err == nil {
		err = x.finish()
	}
	if x.of.close(&x.stream) && err != nil {
		x.link.putNumber(kindCancel, x.id, 0)
	}
	x.fail(errAnswered) // NB: whoever still reads or writes
}

// serve calls the handler. Its panic is an error; that with http.ErrAbortHandler is not logged, as in net/http.
func (x *exchange) serve(r *http.Request) (err error) {
	panicked := guard.Try(x.of.server.Log, "answer to another node", func() {
		defer func() {
			if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // as net/http has it
				err = http.ErrAbortHandler
			} else if p != nil {
				panic(p)
			}
		}()
		x.of.server.Handler.ServeHTTP(x, r)
	})
	return errors.Join(err, panicked)
}

// headerFields is how many an answer usually has.
const headerFields = 8

type requestBody exchange

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) { return b.receive(b.ctx, p) }

// Close implements io.Closer. Nothing more is taken, so that nothing more comes.
func (b *requestBody) Close() error { return nil }

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
}

// Write implements http.ResponseWriter. It waits while the caller does not read.
func (x *exchange) Write(p []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	for n := 0; ; {
		took := min(len(p)-n, pieceMax-len(x.out))
		x.out = append(x.out, p[n:n+took]...)
		if n += took; n == len(p) {
			return n, nil
		}
		if err := x.FlushError(); err != nil {
			return n, err
		}
	}
}

// FlushError implements what http.ResponseController asks for.
func (x *exchange) FlushError() error {
	x.WriteHeader(http.StatusOK)
	return x.push(false)
}

// SetReadDeadline and the others are those of http.ResponseController.
func (x *exchange) SetReadDeadline(t time.Time) error {
	x.setReadDeadline(t)
	return nil
}

func (x *exchange) SetWriteDeadline(t time.Time) error {
	x.setWriteDeadline(t)
	return nil
}

func (x *exchange) EnableFullDuplex() error { return nil }

// finish sends what is left.
func (x *exchange) finish() error {
	if x.WriteHeader(http.StatusOK); !x.sent && x.header["Content-Length"] == nil && hasBody(x.status) && (!x.isHead || len(x.out) > 0) {
		x.header["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	return x.push(true)
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// push sends the header, if it has not left, and what was written.
func (x *exchange) push(end bool) error {
	if x.isHead {
		x.out = x.out[:0]
	}
	if x.sent {
		err := x.send(x.ctx, x.out, end)
		x.out = x.out[:0]
		return err
	}
	x.sent = true
	room, err := x.reserve(x.ctx, len(x.out)) // NB: nothing was sent, so it all fits
	if err != nil {
		return err
	}
	k := kindAnswer
	if end {
		k |= ends
	}
	err = x.link.put(x.ctx, k, x.id, func(b []byte) []byte {
		return appendBeginning(b, func(b []byte) []byte { return appendAnswer(b, x.status, x.length(), x.header) }, x.out[:room])
	})
	x.out = x.out[:0]
	return err
}

// length is that of the body, which the header says.
func (x *exchange) length() int64 {
	if lines := x.header["Content-Length"]; len(lines) == 1 {
		if n, err := strconv.ParseInt(lines[0], 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	if x.isHead || !hasBody(x.status) {
		return 0
	}
	return -1
}
