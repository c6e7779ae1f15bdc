// Package forward sends requests, and parts of batches, to the node that leads what they need. It knows no
// route: it is asked when a handler finds that another node leads (kernel.Hooks.Elsewhere).
package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/gateway/internal/kernel"
)

// Any node accepts any request (gateway/DESIGN.md, "Forwarding"):
//
//	handler ── ErrNotLeader ──► who leads? ──► this node ──► handler again
//	                              ▲    │
//	 421, not reached, no answer  │    └─────► another one ──► its answer is copied
//	                              └──────────────────┘

const (
	// leaderPauseMin is the pause before a node is tried again that was tried in vain. It doubles up to leaderPauseMax.
	leaderPauseMin, leaderPauseMax = 10 * time.Millisecond, 500 * time.Millisecond
	// pieceBytes is how much of an answer is read before it is sent on.
	pieceBytes = 32 << 10
)

// Forwarder sends requests to the nodes that lead what they need.
type Forwarder struct {
	Peers   Peers        // nil: the node is standalone; set before the kernel is opened
	Waiting atomic.Int64 // Waiting counts the requests that wait for a leader
	Metrics forwardMetrics
}

type forwardMetrics struct {
	Forwarded, Repeated, Refused, Unknown, Waits atomic.Uint64
}

// Handle has another node carry out what a handler could not. Any other error is returned.
func (f *Forwarder) Handle(x *kernel.Exchange, err error) error {
	if shard, ok := Elsewhere(x, err); ok && f.Peers != nil {
		of := Forwarding{Forwarder: f, X: x, Shard: shard}
		return of.run()
	}
	return err
}

// Elsewhere reports whether another node leads what the handler needed, and nothing was done or answered.
func Elsewhere(x *kernel.Exchange, err error) (shard uint16, ok bool) {
	if err == nil || x.Status != 0 {
		return 0, false
	}
	of := failure.Of(err)
	return of.Shard, of.Kind == failure.ErrNotLeader
}

// startOver forgets what a handler has prepared that did nothing.
func startOver(x *kernel.Exchange) {
	clear(x.Writer.Header())
	x.Answer = kernel.Answer{Out: x.Out[:0]}
}

// Forwarding is a request on its way to the leader of a shard.
type Forwarding struct {
	*Forwarder
	X       *kernel.Exchange
	Shard   uint16
	node    string // node was tried last, if tried, and is tried again after pause
	tried   bool
	pause   time.Duration
	unknown bool // a node that did not answer may have carried the request out
}

// run tries until a node has answered, or LeaderWaitMax is over.
func (f *Forwarding) run() error {
	x := f.X
	ctx, cancel := context.WithTimeout(x.Kernel.Requests, x.Kernel.Options.LeaderWaitMax)
	defer cancel()
	for {
		startOver(x)
		peer, err := f.Leader(ctx)
		done := true
		switch {
		case err != nil:
		case peer.Transport == nil:
			err = x.Route.Handle(x)
			var again bool
			f.Shard, again = Elsewhere(x, err)
			done = !again
		default:
			x.Leader = peer.Node
			done, err = f.send(peer)
		}
		if done {
			return f.outcome(err)
		}
		f.Metrics.Repeated.Add(1)
	}
}

// outcome is err, unless it says that nothing was done while a node that did not answer may have done it.
func (f *Forwarding) outcome(err error) error {
	if f.unknown && err != nil && f.X.Status == 0 && leavesOpen(kernel.MappingOf(err).Status) {
		err = failure.Errorf(failure.ErrOutcomeUnknown, "%w", err)
	}
	if err != nil && f.X.Status == 0 {
		f.X.RenewWriteTime() // NB: WriteMax may be over, since a node was silent for as long
		switch kernel.MappingOf(err).Status {
		case http.StatusGatewayTimeout:
			f.Metrics.Unknown.Add(1)
		case http.StatusServiceUnavailable:
			f.Metrics.Refused.Add(1)
		}
	}
	return err
}

// leavesOpen reports whether an answer can come before the idempotency key is looked up, so that
// it does not mention an earlier try.
func leavesOpen(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// Leader returns the node to try next. A node that was tried in vain is returned after a pause.
// Requests that wait here have at most half of the places, so that a shard without a leader leaves
// the other half to the others; and they wait no longer than their callers. NB: a caller who has closed
// one side of the connection, which net/http takes for one who has left, reads an answer that needs no wait.
func (f *Forwarding) Leader(ctx context.Context) (Peer, error) {
	x := f.X
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.Request.Context(), cancel)()
	defer f.Waiting.Add(-1)
	if f.Waiting.Add(1) > kernel.Half(x.Kernel.Pressure.Limit.Load()) {
		return Peer{}, x.RejectOverload()
	}
	begun := time.Now()
	peer, err := f.Peers.Leader(waiting, f.Shard)
	if err == nil && f.tried && peer.Node == f.node {
		timer := time.NewTimer(f.pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-waiting.Done():
			return Peer{}, failure.Errorf(failure.ErrUnavailable, "leader of shard %d: %w", f.Shard, waiting.Err())
		}
		f.pause = min(2*f.pause, leaderPauseMax)
		peer, err = f.Peers.Leader(waiting, f.Shard)
	}
	if time.Since(begun) >= leaderPauseMin {
		f.Metrics.Waits.Add(1)
	}
	if err == nil { // NB: a Leader that need not wait does not look at ctx
		err = ctx.Err()
	}
	if err != nil {
		return Peer{}, failure.Errorf(failure.ErrUnavailable, "leader of shard %d: %w", f.Shard, err)
	}
	if !f.tried || peer.Node != f.node {
		f.node, f.tried, f.pause = peer.Node, true, leaderPauseMin
	}
	return peer, nil
}

// send sends the request to a node and its answer to the caller. It reports false when another try is due.
func (f *Forwarding) send(to Peer) (done bool, err error) {
	x := f.X
	ctx, cancel := context.WithCancel(x.Kernel.Requests) // NB: a caller who left does not cancel the request
	defer cancel()
	silence := time.AfterFunc(x.Kernel.Options.WriteMax, cancel)
	defer silence.Stop()
	request, err := forwarded(ctx, x, to.Node)
	if err != nil {
		return true, err
	}
	answer, err := to.Transport.RoundTrip(request)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return false, nil
	case errors.Is(err, peer.ErrTooLarge):
		return true, TooLarge(err)
	case err != nil && kernel.IsSafe(x.Request.Method) && !x.Route.Once:
		return false, nil
	case err != nil && x.Keyed:
		f.unknown = true
		return false, nil
	case err != nil:
		return true, failure.Errorf(failure.ErrOutcomeUnknown, "forward to %s: %w", to.Node, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == http.StatusMisdirectedRequest:
		return false, nil
	case f.unknown && leavesOpen(answer.StatusCode):
		return true, failure.Errorf(failure.ErrUnavailable, "%s answered %s", to.Node, answer.Status)
	}
	f.Metrics.Forwarded.Add(1)
	p := passing{x: x, answer: answer, silence: silence}
	return true, p.run()
}

// TooLarge is the refusal of a request that no other node can be sent, where Options.HeaderBytesMax lets such in.
func TooLarge(err error) error {
	return &failure.Error{Kind: failure.ErrTooLarge, Reason: "the headers are too large to be forwarded", Cause: err}
}

// hopByHop are the headers that belong to one connection (RFC 9110, 7.6.1), and those that a transport sets.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Expect",
}

func forwarded(ctx context.Context, x *kernel.Exchange, node string) (*http.Request, error) {
	from, err := Introduce(x)
	if err != nil {
		return nil, err
	}
	h, err := headerFor(x, from)
	if err != nil {
		return nil, err
	}
	if !x.Keyed {
		delete(h, "Idempotency-Key")
	}
	body := x.Body // NB: a transport may look at it when the exchange is in the pool again
	if kernel.IsSafe(x.Request.Method) {
		body = nil
	}
	return requestFor(ctx, x, node, h, body), nil
}

// headerFor returns the header of the request for another node, but for what concerns its body.
func headerFor(x *kernel.Exchange, from *kernel.Sender) (http.Header, error) {
	text, err := json.Marshal(from)
	if err != nil {
		return nil, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	h := x.Request.Header.Clone()
	// NB: headers that Connection names stay. A node takes a key that is among them when it is asked
	// itself, so it must take it when another one asks.
	for _, name := range hopByHop {
		delete(h, name)
	}
	h[kernel.SenderHeader] = []string{string(text)}
	return h, nil
}

// requestFor returns a request for another node, whose body may be empty.
func requestFor(ctx context.Context, x *kernel.Exchange, node string, h http.Header, body []byte) *http.Request {
	target := *x.Request.URL
	target.Scheme, target.Host = "https", node
	r := &http.Request{
		Method: x.Request.Method, URL: &target, Host: x.Request.Host, Header: h,
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
	x       *kernel.Exchange
	answer  *http.Response
	silence *time.Timer // silence ends the request when the node tells nothing for WriteMax
}

// run sends the answer. NB: streams of events do not come here; the node that is asked gives them itself.
func (p *passing) run() error {
	x := p.x
	refused := p.answer.StatusCode == http.StatusServiceUnavailable && x.Connection != nil
	p.silence.Stop()
	if refused && !x.AwaitRetry() {
		return kernel.ErrAborted
	}
	p.begin()
	err := p.copy()
	if refused {
		x.ExpectRetry()
	}
	return err
}

func (p *passing) begin() {
	x, h := p.x, p.x.Writer.Header()
	for name, lines := range p.answer.Header {
		if !slices.Contains(hopByHop, name) {
			h[name] = lines
		}
	}
	x.Kernel.SetConnectionHeader(h, x.Request)
	x.RenewWriteTime()
	x.Status = p.answer.StatusCode
	x.Writer.WriteHeader(x.Status)
}

// copy sends the body as it comes.
func (p *passing) copy() error {
	x := p.x
	x.Out = slices.Grow(x.Out[:0], pieceBytes)
	for {
		p.silence.Reset(x.Kernel.Options.WriteMax)
		n, readErr := p.answer.Body.Read(x.Out[:pieceBytes])
		p.silence.Stop()
		if err := p.write(x.Out[:n]); err != nil {
			return err
		}
		switch {
		case readErr == nil:
		case errors.Is(readErr, io.EOF):
			return nil
		default:
			return failure.Errorf(failure.ErrUnavailable, "the answer of %s ended early: %w", x.Leader, readErr)
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
		x.RenewWriteTime()
	}
	if _, err := x.Writer.Write(piece); err != nil {
		return errors.Join(kernel.ErrAborted, err)
	}
	if streamed {
		return x.Push()
	}
	return nil
}

// Peers reaches the other nodes of a cluster.
type Peers interface {
	// Leader returns the node that leads a shard. It waits until there is one or ctx ends; an error means that there is
	// none.
	Leader(ctx context.Context, shard uint16) (Peer, error)
}

// Peer is a node of the cluster.
type Peer struct {
	Node string // its id
	// Transport sends requests to its PeerHandler; nil when it is this node. In a request's URL the scheme is "https"
	// and the host is Node, as peer.Port wants it; the header Host is the caller's. A Transport adds no encoding and
	// follows no redirect. A node that falls silent must become an error, at the latest when another one leads. An error
	// that is peer.ErrNotSent means that the node has done nothing.
	Transport http.RoundTripper
}

// Introduce returns what SenderHeader says of the request.
func Introduce(x *kernel.Exchange) (*kernel.Sender, error) {
	from := &kernel.Sender{Request: x.RequestID()}
	from.Client, from.Secure = x.Kernel.ClientOf(x.Request)
	switch {
	case x.Caller == kernel.Operator:
		from.Operator = true
	case x.Caller != nil:
		own, err := x.Services.Credentials.Principal(x.Caller.ID, nil)
		if err != nil {
			return nil, err
		}
		from.User = x.Caller.ID
		if own != x.Caller {
			from.Roles = slices.DeleteFunc(slices.Clone(x.Caller.Roles), func(role string) bool { return slices.Contains(own.Roles, role) })
		}
	}
	return from, nil
}
