package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/trace"
	"troupe/gateway/internal/cors"
	"troupe/gateway/internal/listener"
)

// ServeHTTP answers every request, from any goroutine. gateway/doc.go says with what.
func (s *Kernel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c := listener.Of(r); c != nil {
		if !c.Begin(r) {
			panic(http.ErrAbortHandler) // the connection is being closed; nothing was done
		}
		defer c.End()
	}
	if senderOf(r) == nil { // else the node that the caller has asked sets them
		s.setOuterHeaders(w.Header(), r)
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

// valueHSTS has browsers come by TLS only, for a year.
var valueHSTS = []string{"max-age=31536000"}

// setOuterHeaders sets what holds for every answer to the caller, whichever node gives it.
func (s *Kernel) setOuterHeaders(h http.Header, r *http.Request) {
	// NB: localhost would be bound for the other programs of that machine, too.
	if host, _, _ := strings.Cut(r.Host, ":"); r.TLS != nil && host != "localhost" {
		h["Strict-Transport-Security"] = valueHSTS
	}
	s.Options.Origins.Allow(h, r)
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
		x.beginSpan()
		inFlight := s.InFlight.Add(1)
		x.Counted = true
		defer x.EndAdmission()
		// NB: the order matters to Stop, which sets Draining and then waits for
		// InFlight: every request is either counted or sees Draining.
		if s.Draining.Load() {
			x.writeError(x.closed())
			return
		}
		if inFlight-s.Idle.Load() > s.Pressure.Limit.Load() || inFlight+s.watchers.Load()+s.waits.Load() > s.Limits.busyConnections || !x.admitAnonymous() {
			x.writeErrorInTime(x.RejectOverload())
			return
		}
	}
	if err := x.run(); err != nil {
		x.writeErrorInTime(err)
	}
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
		x.Connection.BodyRead()
	}
	return x.handle()
}

// handle calls the handler. When another node leads what the request needs, that node carries it out.
func (x *Exchange) handle() error {
	err := x.Route.Handle(x)
	if err == nil || x.Sender != nil || x.Kernel.hooks.Elsewhere == nil {
		return err
	}
	return x.Kernel.hooks.Elsewhere(x, err)
}

// closed is why nothing is taken before Open and while the server stops. Another node asks for the leader again then.
func (x *Exchange) closed() error {
	if x.Sender != nil {
		return failure.ErrNotLeader
	}
	return failure.ErrUnavailable
}

// writeErrorInTime is writeError for a request that has no answer yet: who was told to come again later hears of it then.
func (x *Exchange) writeErrorInTime(err error) {
	busy := x.Status == 0 && x.Connection != nil && failure.Of(err).Kind == failure.ErrBusy
	if busy && !x.AwaitRetry() {
		err = ErrAborted
	}
	x.writeError(err)
	if busy && x.Status != statusAborted {
		x.ExpectRetry()
	}
}

// finish counts and logs the request. It reports whether the connection must be closed.
func (x *Exchange) finish() (aborted bool) {
	took, method := time.Since(x.begun), x.Request.Method
	if x.Route.Name == Outside && !slices.Contains(x.Kernel.methods, method) {
		method = otherMethod
	}
	x.Route.metrics.count(method, x.Status, took)
	x.Span.Answered(x.Status)
	x.Span.End(nil)
	if aborted = x.Status == statusAborted; aborted {
		x.Kernel.metrics.aborted.Add(1)
	}
	if x.Kernel.logsRequests {
		e := x.logged(x.Kernel.Options.Log.Debug()).
			Str("method", x.Request.Method).
			Int("status", x.Status).Dur("tookMs", took)
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

// beginSpan begins the span of the request, which is above those of another node that it is forwarded to.
func (x *Exchange) beginSpan() {
	t := x.Kernel.Options.Tracer
	if t == nil {
		return
	}
	x.Span = t.Begin(x.Request.Header.Get(trace.Header), x.Route.Method+" "+x.Route.Path, trace.Server)
	x.Span.Set("http.request.method", x.Route.Method, "http.route", x.Route.Path, "troupe.request", x.RequestID())
	x.Request.Header.Set(trace.Header, x.Span.Parent())
	x.Request = x.Request.WithContext(x.Span.In(x.Request.Context()))
}

// logged adds to a line of the log which request it is about.
func (x *Exchange) logged(e *zerolog.Event) *zerolog.Event {
	e = e.Str("request", x.RequestID()).Str("route", x.Route.Name)
	if x.Span != nil {
		e = e.Str("trace", x.Span.ID())
	}
	return e
}

const outBytesKept = 1 << 20

// Acquire takes an exchange from the pool.
func (s *Kernel) Acquire(rt *Route, w http.ResponseWriter, r *http.Request, params httprouter.Params) *Exchange {
	x := s.Exchanges.Get().(*Exchange)
	*x = Exchange{Kernel: s, Route: rt, Writer: w, Request: r, Params: params, Connection: listener.Of(r), Hop: Hop{Sender: senderOf(r)}, Answer: Answer{Vary: s.vary, Out: x.Out[:0]}, begun: time.Now()}
	return x
}

func (s *Kernel) release(x *Exchange) {
	if cap(x.Out) > outBytesKept {
		x.Out = nil
	}
	*x = Exchange{Answer: Answer{Out: x.Out[:0]}}
	s.Exchanges.Put(x)
}

// abort resets the connection of a request, or of HTTP/2 its stream. It does not return.
func (s *Kernel) abort(r *http.Request) {
	if c := listener.Of(r); c != nil && r.ProtoMajor < 2 {
		c.ResetAtClose()
	}
	panic(http.ErrAbortHandler)
}

// compile checks the table and builds the router from it. It returns all faults of the table together.
func (s *Kernel) compile(table []Route) error {
	var faults []error
	s.router, s.runtimeRouter = s.newRouter(), s.newRouter()
	for i := range table {
		rt := &table[i]
		if err := s.register(rt); err != nil {
			faults = append(faults, fmt.Errorf("route %s %s: %w", rt.Method, rt.Path, err))
		}
	}
	s.Table = table
	slices.Sort(s.methods)
	s.methods = slices.Compact(s.methods)
	return errors.Join(faults...)
}

// register adds one row, and HEAD beside GET.
func (s *Kernel) register(rt *Route) (err error) {
	switch {
	case rt.Name == "" || rt.Handle == nil:
		return errors.New("it has no name or no handler")
	case !rt.Access.declared:
		return errors.New("it does not declare who may use it")
	case rt.Access.Kinds != 0 && (rt.Access.Probe || rt.Access.SignIn):
		return errors.New("it requires a credential from anonymous callers")
	case rt.Access.Kinds == 0 && rt.Privilege != "":
		return errors.New("it requires a privilege, but no credential")
	case slices.ContainsFunc(s.metrics.routes, func(m *routeMetrics) bool { return m.name == rt.Name }):
		return errors.New("its name is taken")
	}
	rt.metrics = s.newRouteMetrics(rt.Name, rt.Path)
	s.metrics.routes = append(s.metrics.routes, rt.metrics)
	// NB: httprouter panics on paths that are in each other's way.
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("it cannot be registered: %v", reason)
		}
	}()
	handle := func(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
		s.serve(rt, w, r, params)
	}
	methods := []string{rt.Method}
	if rt.Method == http.MethodGet {
		methods = append(methods, http.MethodHead)
	}
	for _, method := range methods {
		path := s.Options.BasePath + rt.Path
		s.routerOf(path).Handle(method, path, handle)
		s.methods = append(s.methods, method)
	}
	return nil
}

func (s *Kernel) newRouter() *httprouter.Router {
	r := httprouter.New()
	// NB: a redirect would turn a POST into a GET; a path is right or it is 404.
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleOPTIONS = false
	r.NotFound = http.HandlerFunc(s.answerNotFound)
	r.MethodNotAllowed = http.HandlerFunc(s.answerNotAllowed)
	return r
}

// routerOf returns the router that has a path. The pages of forms have the
// template's id where the API of the form runtime has the word "api", and httprouter
// cannot have both in one tree. formportal.reservedID keeps templates from that id.
func (s *Kernel) routerOf(path string) *httprouter.Router {
	if strings.HasPrefix(path, s.Options.BasePath+reservedPath) {
		return s.runtimeRouter
	}
	return s.router
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
	methods := strings.Join(allowed, ", ")
	if cors.Preflight(w.Header(), r, methods) {
		x := s.Acquire(&s.Unmatched[s.groupOf(r.URL.Path)], w, r, nil)
		x.Out = append(x.Out, "{}"...)
		x.Send(http.StatusOK)
		x.finish()
		s.release(x)
		return
	}
	w.Header()["Allow"] = []string{methods} // httprouter's own names OPTIONS
	s.answerUnmatched(w, r, failure.ErrMethod)
}

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

// PeerHandler is Server.PeerHandler.
func (s *Kernel) PeerHandler(nodeOf func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := &Sender{}
		lines := r.Header[SenderHeader]
		if from.node = nodeOf(r); from.node == "" || len(lines) != 1 || json.Unmarshal([]byte(lines[0]), from) != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s.metrics.taken.Add(1)
		s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), senderKey{}, from)))
	})
}
