package kernel

import (
	"cmp"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/listener"
	"troupe/gateway/internal/parse"
)

// Exchange is one request and its answer. The goroutine of net/http that serves
// the request owns it; between requests it is in a pool.
type Exchange struct {
	Kernel     *Kernel
	Services   *Services // nil before open
	Route      *Route
	Writer     http.ResponseWriter
	Request    *http.Request
	Connection *listener.Conn // nil when the server did not accept it, as in tests
	Params     httprouter.Params
	Query      url.Values // nil without parameters
	Body       []byte     // belongs to the request; never pooled, since values alias it

	Identified
	Slot
	Hop
	Answer
	id    string    // see RequestID
	begun time.Time // zero unless requests are logged
}

// Slot is how a request is counted.
type Slot struct {
	Usage   *UserUsage // the caller's; nil until the caller is known
	Counted bool       // in Kernel.InFlight, and in Usage
	idle    bool       // see LeaveSlot
	// BeyondShare: the request is refused because its user has too much already.
	BeyondShare bool
	// anonymous: the request is counted in Kernel.Anonymous too, under network.
	anonymous bool
	network   netip.Prefix
	BodyKept  int64 // bytes of a batch's body that are counted
}

// Hop is where a request came from and went to in a cluster.
type Hop struct {
	// Sender is what another node that forwarded the request says of it; nil when the caller
	// asked here.
	Sender *Sender
	// Keyed: the request has an idempotency key that its handler knows.
	Keyed bool
	// Leader is the node that the request was forwarded to last; empty for none.
	Leader string
}

// outBytesKept is the largest buffer that goes back to the pool.
const outBytesKept = 1 << 20

// ServeHTTP answers every request, from any goroutine. doc.go says with what.
func (s *Kernel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c := listener.Of(r); c != nil {
		if !c.Begin(r) {
			panic(http.ErrAbortHandler) // the connection is being closed; nothing was done
		}
		defer c.End()
	}
	// NB: only the origin form (RFC 9112, 3.2.1) names a path of this server. "*" would list the methods
	// of the whole table, and with an absolute form the Host is not the header's.
	// %2F is data to whoever sends it, but a separator once decoded.
	if r.URL.Host != "" || !strings.HasPrefix(r.URL.Path, "/") || HasEncodedSlash(r.URL.RawPath) {
		s.answerNotFound(w, r)
		return
	}
	s.routerOf(r.URL.Path).ServeHTTP(w, r)
}

// HasEncodedSlash reports whether a path has a slash that is data to whoever sent it.
func HasEncodedSlash(rawPath string) bool {
	return rawPath != "" && (strings.Contains(rawPath, "%2F") || strings.Contains(rawPath, "%2f"))
}

// serve runs before and after the handler of every route.
func (s *Kernel) serve(rt *Route, w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	s.warnUntrustedProxy(r)
	x := s.Acquire(rt, w, r, params)
	defer func() {
		reason := recover()
		if reason != nil {
			x.answerPanic(reason)
		}
		aborted := x.finish()
		if reason == nil { // after a panic, x may still be referenced
			s.release(x)
		}
		if aborted {
			s.abort(r)
		}
	}()
	if !rt.Access.Probe {
		inFlight := s.InFlight.Add(1)
		x.Counted = true
		defer x.EndAdmission()
		// NB: the order matters to Stop, which sets draining and then waits for
		// InFlight: every request is either counted or sees draining.
		if s.Draining.Load() {
			x.writeError(x.closed())
			return
		}
		if inFlight-s.Idle.Load() > s.Pressure.Limit.Load() || inFlight+s.watchers.Load() > s.Limits.busyConnections || !x.admitAnonymous() {
			x.writeErrorInTime(x.RejectOverload())
			return
		}
	}
	if err := x.run(); err != nil {
		x.writeErrorInTime(err)
	}
}

// Acquire takes an exchange from the pool.
func (s *Kernel) Acquire(rt *Route, w http.ResponseWriter, r *http.Request, params httprouter.Params) *Exchange {
	x := s.Exchanges.Get().(*Exchange)
	*x = Exchange{Kernel: s, Route: rt, Writer: w, Request: r, Params: params, Connection: listener.Of(r), Hop: Hop{Sender: senderOf(r)}, Answer: Answer{Out: x.Out[:0]}}
	if s.logsRequests {
		x.begun = time.Now()
	}
	return x
}

// release returns an exchange to the pool.
func (s *Kernel) release(x *Exchange) {
	if cap(x.Out) > outBytesKept {
		x.Out = nil
	}
	*x = Exchange{Answer: Answer{Out: x.Out[:0]}}
	s.Exchanges.Put(x)
}

// run checks what all routes have in common and calls the handler. The order is
// part of the interface: the caller is checked before the request.
func (x *Exchange) run() error {
	if x.Route.Access.Probe {
		x.Services = x.Kernel.services.Load()
		return x.Route.Handle(x) // NB: probes are not counted, so they must not wait for a body
	}
	if x.Services = x.Kernel.services.Load(); x.Services == nil {
		return x.closed()
	}
	if err := x.authenticate(); err != nil {
		return err
	}
	if x.Caller != nil && !x.admitUser() {
		return x.rejectUser()
	}
	if err := x.ParseQuery(); err != nil {
		return err
	}
	if err := x.checkContent(); err != nil {
		return err
	}
	var err error
	if x.Route.ReadsBody {
		return x.Route.Handle(x)
	}
	if x.Body, err = ReadBody(x.Writer, x.Request, x.bodyBytesMax(), x.Pay); err != nil {
		return err // NB: net/http closes a connection whose body it could not read to the end
	}
	if x.Connection != nil {
		x.Connection.BodyPending = false
	}
	return x.handle()
}

// IsOpen reports whether there are services: requests before open are answered with errors only.
func (x *Exchange) IsOpen() bool { return x.Services != nil }

// handle calls the handler. When another node leads what the request needs, that node
// carries it out.
func (x *Exchange) handle() error {
	err := x.Route.Handle(x)
	if err == nil || x.Sender != nil || x.Kernel.hooks.Elsewhere == nil {
		return err
	}
	return x.Kernel.hooks.Elsewhere(x, err)
}

// closed is why nothing is taken before Open and while the server stops. Another node asks
// for the leader again then.
func (x *Exchange) closed() error {
	if x.Sender != nil {
		return failure.ErrElsewhere
	}
	return failure.ErrUnavailable
}

func (x *Exchange) bodyBytesMax() int64 {
	if x.Route.ContentBytesMax > 0 {
		return x.Route.ContentBytesMax
	}
	if x.Route.Access.Kinds == 0 {
		return min(x.Kernel.Options.BodyBytesMax, AnonymousBodyBytesMax)
	}
	return x.Kernel.Options.BodyBytesMax
}

// ParseQuery parses the query strictly: net/http's own parser drops what it
// does not understand (persistence/PROMISES.md, "F17").
func (x *Exchange) ParseQuery() error {
	if x.Request.URL.RawQuery == "" || x.Route.IgnoresQuery {
		return nil
	}
	query, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return parse.Malformed("the query is malformed")
	}
	for name, values := range query {
		if !x.Route.AnyQuery && !slices.Contains(x.Route.Query, name) {
			return parse.Malformed("unknown query parameter %s", parse.Quote(name))
		}
		if len(values) > 1 {
			return parse.Malformed("the query parameter %q is repeated", name)
		}
	}
	x.Query = query
	return nil
}

// checkContent checks the headers about the body, for methods that have one. The
// body of any other request is read and ignored.
func (x *Exchange) checkContent() error {
	if IsSafe(x.Request.Method) {
		return nil
	}
	if err := parse.CheckEncoding(x.Request.Header); err != nil {
		return err
	}
	// An HTML form of another site can send a body, but not as application/json.
	contentType := parse.HeaderOptional
	if x.Kind == identity.Session && x.Request.ContentLength != 0 || x.Route.Access.SignIn {
		contentType = parse.HeaderRequired
	}
	if x.Route.ReadsBody && parse.IsLines(x.Request.Header) || x.Route.TakesYAML && parse.IsYAML(x.Request.Header) {
		return nil
	}
	err := parse.CheckContentType(x.Request.Header, cmp.Or(x.Route.Content, "application/json"), contentType)
	if err != nil && x.Route.ReadsBody {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/x-ndjson, in UTF-8")
	}
	if err != nil && x.Route.TakesYAML {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/yaml, in UTF-8")
	}
	return err
}

// finish counts and logs the request. It reports whether the connection must be
// closed.
func (x *Exchange) finish() (aborted bool) {
	x.Route.metrics.count(x.Status)
	if aborted = x.Status == statusAborted; aborted {
		x.Kernel.metrics.aborted.Add(1)
	}
	if x.Kernel.logsRequests {
		e := x.Kernel.Options.Log.Debug().Str("request", x.RequestID()).
			Str("method", x.Request.Method).Str("route", x.Route.Name).
			Int("status", x.Status).Dur("tookMs", time.Since(x.begun))
		if x.Caller != nil {
			e = e.Str("user", string(x.Caller.ID))
		}
		if x.Leader != "" {
			e = e.Str("leader", x.Leader)
		}
		if x.Sender != nil { // its log has the request under that id
			e = e.Str("from", x.Sender.node).Str("origin", x.Sender.Request)
		}
		e.Msg("request")
	}
	return aborted
}

// RequestID names the request in the log and in the answers to internal errors.
// It is made when it is first asked for.
func (x *Exchange) RequestID() string {
	if x.id == "" {
		x.id = x.Kernel.IDPrefix + strconv.FormatUint(x.Kernel.lastID.Add(1), 10)
	}
	return x.id
}

// answerNotFound answers requests for paths that are not in the table. The paths
// are public, so no credential is needed.
func (s *Kernel) answerNotFound(w http.ResponseWriter, r *http.Request) {
	s.answerUnmatched(w, r, failure.ErrNotFound)
}

// answerNotAllowed answers requests for a path of the table with another method.
func (s *Kernel) answerNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range s.methods {
		if handle, _, _ := s.routerOf(r.URL.Path).Lookup(method, r.URL.Path); handle != nil {
			allowed = append(allowed, method)
		}
	}
	w.Header()["Allow"] = []string{strings.Join(allowed, ", ")} // httprouter's own names OPTIONS
	s.answerUnmatched(w, r, failure.ErrMethod)
}

// answerUnmatched answers a request that matches no route.
func (s *Kernel) answerUnmatched(w http.ResponseWriter, r *http.Request, err error) {
	x := s.Acquire(&s.Unmatched[s.groupOf(r.URL.Path)], w, r, nil)
	x.writeError(err)
	x.finish()
	s.release(x)
}

// groupOf returns the group that a path belongs to, also where there is no route.
func (s *Kernel) groupOf(path string) Group {
	for _, prefix := range []string{PortalPath, RuntimePath} {
		if strings.HasPrefix(path, s.Options.BasePath+prefix+"/") {
			return GroupPortal
		}
	}
	return GroupWorkflow
}

// abort resets the connection of a request. It does not return.
func (s *Kernel) abort(r *http.Request) {
	if c := listener.Of(r); c != nil {
		c.ResetAtClose()
	}
	panic(http.ErrAbortHandler)
}
