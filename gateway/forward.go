package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"troupe/actors/failure"
	"troupe/gateway/internal/parse"
)

// Any node accepts any request (gateway/DESIGN.md, "Forwarding"):
//
//	handler ── ErrElsewhere ──► who leads? ──► this node ──► handler again
//	                              ▲    │
//	 421, not reached, no answer  │    └─────► another one ──► its answer is copied
//	                              └──────────────────┘

const (
	// leaderPauseMin is the pause before a node is tried again that was tried in vain. It doubles
	// up to leaderPauseMax.
	leaderPauseMin, leaderPauseMax = 10 * time.Millisecond, 500 * time.Millisecond
	// pieceBytes is how much of an answer is read before it is sent on.
	pieceBytes = 32 << 10
)

// carryOut calls the handler. When another node leads what the request needs, that node
// carries it out.
func (x *exchange) carryOut() error {
	err := x.route.handle(x)
	if err == nil || x.services.Peers == nil || x.sender != nil {
		return err
	}
	if shard, ok := x.elsewhere(err); ok {
		f := forwarding{x: x, shard: shard}
		return f.run()
	}
	return err
}

// elsewhere reports whether another node leads what the handler needed, and nothing was done
// or answered.
func (x *exchange) elsewhere(err error) (shard uint16, ok bool) {
	if err == nil || x.status != 0 {
		return 0, false
	}
	of := failure.Of(err)
	return of.Shard, of.Kind == failure.ErrElsewhere
}

// startOver forgets what a handler has prepared that did nothing.
func (x *exchange) startOver() {
	clear(x.w.Header())
	x.out = x.out[:0]
	x.contentType, x.cacheControl = nil, nil
	x.varyAccept, x.varyEncoding, x.varyLanguage = false, false, false
	x.next, x.flowEnded = "", false
}

// forwarding is a request on its way to the leader of a shard.
type forwarding struct {
	x     *exchange
	shard uint16
	// node was tried last, if tried, and is tried again after pause.
	node  string
	tried bool
	pause time.Duration
	// unknown: a node that did not answer may have carried the request out.
	unknown bool
}

// run tries until a node has answered, or LeaderWaitMax is over.
func (f *forwarding) run() error {
	x := f.x
	ctx, cancel := context.WithTimeout(x.server.requests, x.server.options.LeaderWaitMax)
	defer cancel()
	for {
		x.startOver()
		peer, err := f.leader(ctx)
		done := true
		switch {
		case err != nil:
		case peer.Transport == nil:
			err = x.route.handle(x)
			var again bool
			f.shard, again = x.elsewhere(err)
			done = !again
		default:
			x.leader = peer.Node
			done, err = f.send(peer)
		}
		if done {
			return f.outcome(err)
		}
		x.server.metrics.forwardRepeated.Add(1)
	}
}

// outcome is err, unless it says that nothing was done while a node that did not answer may have
// done it.
func (f *forwarding) outcome(err error) error {
	if f.unknown && err != nil && f.x.status == 0 && leavesOpen(mappingOf(err).status) {
		err = failure.Errorf(failure.ErrOutcomeUnknown, "%w", err)
	}
	if err != nil && f.x.status == 0 {
		f.x.renewWriteTime() // NB: WriteMax may be over, since a node was silent for as long
		switch mappingOf(err).status {
		case http.StatusGatewayTimeout:
			f.x.server.metrics.forwardUnknown.Add(1)
		case http.StatusServiceUnavailable:
			f.x.server.metrics.forwardRefused.Add(1)
		}
	}
	return err
}

// leavesOpen reports whether an answer can come before the idempotency key is looked up, so that
// it says nothing of an earlier try.
func leavesOpen(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// leader returns the node to try next. A node that was tried in vain is returned after a pause.
// Requests that wait here have at most half of the places, so that a shard without a leader leaves
// the other half to the others; and they wait no longer than their callers. NB: a caller who has closed
// one side of the connection, which net/http takes for one who has left, reads an answer that needs no wait.
func (f *forwarding) leader(ctx context.Context) (Peer, error) {
	x, s := f.x, f.x.server
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.r.Context(), cancel)()
	defer s.leaderWaits.Add(-1)
	if s.leaderWaits.Add(1) > half(s.pressure.limit.Load()) {
		return Peer{}, x.shed()
	}
	begun := time.Now()
	peer, err := x.services.Peers.Leader(waiting, f.shard)
	if err == nil && f.tried && peer.Node == f.node {
		timer := time.NewTimer(f.pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-waiting.Done():
			return Peer{}, failure.Errorf(failure.ErrUnavailable, "leader of shard %d: %w", f.shard, waiting.Err())
		}
		f.pause = min(2*f.pause, leaderPauseMax)
		peer, err = x.services.Peers.Leader(waiting, f.shard)
	}
	if time.Since(begun) >= leaderPauseMin {
		s.metrics.leaderWaits.Add(1)
	}
	if err == nil { // NB: a Leader that need not wait does not look at ctx
		err = ctx.Err()
	}
	if err != nil {
		return Peer{}, failure.Errorf(failure.ErrUnavailable, "leader of shard %d: %w", f.shard, err)
	}
	if !f.tried || peer.Node != f.node {
		f.node, f.tried, f.pause = peer.Node, true, leaderPauseMin
	}
	return peer, nil
}

// send sends the request to a node and its answer to the caller. It reports false when another
// try is due.
func (f *forwarding) send(to Peer) (done bool, err error) {
	x := f.x
	ctx, cancel := context.WithCancel(x.server.requests) // NB: a caller who left does not cancel the request
	defer cancel()
	silence := time.AfterFunc(x.server.options.WriteMax, cancel)
	defer silence.Stop()
	connecting := new(connecting)
	request, err := x.forwarded(connecting.trace(ctx), to.Node)
	if err != nil {
		return true, err
	}
	answer, err := to.Transport.RoundTrip(request)
	switch {
	case err != nil && connecting.failed():
		return false, nil
	case err != nil && isSafe(x.r.Method) && !x.route.once:
		return false, nil
	case err != nil && x.keyed:
		f.unknown = true
		return false, nil
	case err != nil:
		return true, failure.Errorf(failure.ErrOutcomeUnknown, "forward to %s: %w", to.Node, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusMisdirectedRequest:
		_, _ = io.CopyN(io.Discard, answer.Body, pieceBytes) // the connection can be used again
		return false, nil
	case f.unknown && leavesOpen(answer.StatusCode):
		return true, failure.Errorf(failure.ErrUnavailable, "%s answered %s", to.Node, answer.Status)
	}
	x.server.metrics.forwarded.Add(1)
	p := passing{x: x, answer: answer, silence: silence, cancel: cancel}
	return true, p.run()
}

// connecting follows how far a request has got.
type connecting struct{ begun, connected atomic.Bool }

func (c *connecting) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.begun.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	})
}

// failed reports whether there never was a connection. NB: a transport that tells nothing may
// have sent something.
func (c *connecting) failed() bool { return c.begun.Load() && !c.connected.Load() }

// hopByHop are the headers that belong to one connection (RFC 9110, 7.6.1), and those that a
// transport sets.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Expect",
}

// forwarded returns the request for another node.
func (x *exchange) forwarded(ctx context.Context, node string) (*http.Request, error) {
	from, err := x.introduce()
	if err != nil {
		return nil, err
	}
	h, err := x.headerFor(from)
	if err != nil {
		return nil, err
	}
	if !x.keyed {
		delete(h, "Idempotency-Key")
	}
	body := x.body // NB: a transport may look at it when the exchange is in the pool again
	if isSafe(x.r.Method) {
		body = nil
	}
	return x.requestFor(ctx, node, h, body), nil
}

// headerFor returns the header of the request for another node, but for what concerns its body.
func (x *exchange) headerFor(from *sender) (http.Header, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	h := x.r.Header.Clone()
	// NB: headers that Connection names stay. A node takes a key that is among them when it is asked
	// itself, so it must take it when another one asks.
	for _, name := range hopByHop {
		delete(h, name)
	}
	// NB: by these headers net/http believes that it may send a request twice.
	delete(h, "X-Idempotency-Key")
	if len(h["Accept-Encoding"]) == 0 { // NB: otherwise net/http asks for gzip and unpacks it
		h["Accept-Encoding"] = []string{"identity"}
	}
	h[senderHeader] = []string{string(text)}
	return h, nil
}

// requestFor returns a request for another node, whose body may be empty.
func (x *exchange) requestFor(ctx context.Context, node string, h http.Header, body []byte) *http.Request {
	target := *x.r.URL
	target.Scheme, target.Host = "https", node
	r := &http.Request{
		Method: x.r.Method, URL: &target, Host: x.r.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if len(body) > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(body))
	}
	return r.WithContext(ctx)
}

// passing is the answer of another node on its way to the caller.
type passing struct {
	x      *exchange
	answer *http.Response
	// silence ends the request when the node says nothing for WriteMax, and cancel at once.
	silence *time.Timer
	cancel  context.CancelFunc
}

// run sends the answer. A stream of events is counted as one of this node's watchers.
func (p *passing) run() error {
	x := p.x
	if x.usage != nil && parse.HasType(p.answer.Header, valueEventStream[0]) {
		if err := x.admitWatcher(); err != nil {
			return err
		}
		defer x.releaseWatcher()
		defer context.AfterFunc(x.server.watching, p.cancel)()
		defer x.followRights(2 * rightsEvery)() // NB: the node that makes the stream says more when it ends it
		defer context.AfterFunc(x.r.Context(), p.cancel)()
		p.begin()
		x.endAdmission()
		return x.endStream(p.copy(true))
	}
	refused := p.answer.StatusCode == http.StatusServiceUnavailable && x.connection != nil
	p.silence.Stop()
	if refused && !x.awaitRetry() {
		return errAborted
	}
	p.begin()
	err := p.copy(false)
	if refused {
		x.expectRetry()
	}
	return err
}

// begin sends the header.
func (p *passing) begin() {
	x, h := p.x, p.x.w.Header()
	for name, lines := range p.answer.Header {
		if !slices.Contains(hopByHop, name) {
			h[name] = lines
		}
	}
	x.server.setConnectionHeader(h, x.r)
	x.renewWriteTime()
	x.status = p.answer.StatusCode
	x.w.WriteHeader(x.status)
}

// copy sends the body as it comes. A stream of events must not outlive its credential.
func (p *passing) copy(events bool) error {
	x := p.x
	x.out = slices.Grow(x.out[:0], pieceBytes)
	for {
		p.silence.Reset(x.server.options.WriteMax)
		n, readErr := p.answer.Body.Read(x.out[:pieceBytes])
		p.silence.Stop()
		if n > 0 && events {
			if _, err := x.reauthorize(); err != nil {
				return err
			}
		}
		if err := p.write(x.out[:n]); err != nil {
			return err
		}
		switch {
		case readErr == nil:
		case events && isOverByRights(context.Cause(x.r.Context())):
			return context.Cause(x.r.Context())
		case errors.Is(readErr, io.EOF), events && x.server.watching.Err() != nil:
			return nil
		default:
			return failure.Errorf(failure.ErrUnavailable, "the answer of %s ended early: %w", x.leader, readErr)
		}
	}
}

// write sends a piece. What has no length is sent at once, since more may come late.
func (p *passing) write(piece []byte) error {
	x := p.x
	if len(piece) == 0 {
		return nil
	}
	streamed := p.answer.ContentLength < 0
	if streamed {
		x.renewWriteTime()
	}
	if _, err := x.w.Write(piece); err != nil {
		return errors.Join(errAborted, err)
	}
	if streamed {
		return x.push()
	}
	return nil
}
