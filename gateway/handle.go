package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/identity"
)

// exchange is one request and its answer. The goroutine of net/http that serves
// the request owns it; between requests it waits in a pool.
type exchange struct {
	server   *Server
	route    *route
	w        http.ResponseWriter
	r        *http.Request
	params   httprouter.Params
	services *Services // nil for probes

	caller *identity.Principal // nil for probes
	// kind and credential are what the caller signed with.
	kind       identity.Kind
	credential string
	query      url.Values  // nil without parameters
	body       []byte      // belongs to the request; never pooled, since values alias it
	status     int         // 0 until the answer has begun
	connection *connection // nil where the request has none of ours
	counted    bool        // in Server.inFlight, and in share
	share      *share      // the caller's; nil until there is one
	// stranger: it is counted in Server.strangers as well, as one from there.
	stranger bool
	from     netip.Prefix
	// contentType is that of the answer; nil is JSON.
	contentType []string
	// cacheControl says how long the answer may be kept; nil is not at all.
	cacheControl []string
	// varyAccept and varyEncoding say that the answer depends on the headers Accept and
	// Accept-Encoding.
	varyAccept, varyEncoding bool
	// next and ended belong to a sign-in by the provider: where the person wants
	// to go, and whether the cookie of that sign-in is of no use any more.
	next  string
	ended bool
	id    string    // see requestID
	begun time.Time // zero unless requests are logged

	// out is where the answer is built. It is kept from request to request.
	out []byte
}

// outBytesKept is the largest buffer that goes back to the pool.
const outBytesKept = 1 << 20

// ServeHTTP answers every request, from any goroutine, with a JSON body.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c := connectionOf(r); c != nil {
		if !c.begin(r) {
			panic(http.ErrAbortHandler) // nothing was done
		}
		defer c.end()
	}
	// NB: only the origin form names a path of ours. "*" would list the methods
	// of the whole table, and with an absolute form the Host is not the header's.
	// %2F is data to whoever sends it, but a separator once decoded.
	if r.URL.Host != "" || !strings.HasPrefix(r.URL.Path, "/") || hasEncodedSlash(r.URL.RawPath) {
		s.answerNotFound(w, r)
		return
	}
	s.routerOf(r.URL.Path).ServeHTTP(w, r)
}

func hasEncodedSlash(rawPath string) bool {
	return rawPath != "" && (strings.Contains(rawPath, "%2F") || strings.Contains(rawPath, "%2f"))
}

// serve is around every handler of the table.
func (s *Server) serve(rt *route, w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	s.warnOfProxy(r)
	x := s.begin(rt, w, r, params)
	defer func() {
		reason := recover()
		if reason != nil {
			x.panicked(reason)
		}
		cut := x.finish()
		if reason == nil { // a handler that panicked may have left x anywhere
			s.release(x)
		}
		if cut {
			s.cut(r)
		}
	}()
	if !rt.access.probe {
		inFlight := s.inFlight.Add(1)
		x.counted = true
		defer x.leave()
		// NB: the order matters to Stop, which sets draining and then waits for
		// inFlight: every request is either counted or sees draining.
		if s.draining.Load() {
			x.refuse(errNotReady)
			return
		}
		if inFlight > s.limits.inFlight || inFlight+s.watchers.Load() > s.limits.busy || !x.enterStranger() {
			x.shed()
			return
		}
	}
	if err := x.run(); err != nil {
		x.refuse(err)
	}
}

// shed refuses a request because there is no room for it.
func (x *exchange) shed() {
	x.server.metrics.shed.Add(1)
	x.refuse(errBusy)
}

// enterStranger admits a request to a route that takes no credential.
func (x *exchange) enterStranger() bool {
	if x.route.access.kinds != 0 {
		return true
	}
	address, _ := x.server.clientOf(x.r)
	x.from = networkOf(address)
	x.stranger = x.server.strangers.enter(x.from, &x.server.limits)
	return x.stranger
}

// leave ends what serve began by counting the request. The second call does
// nothing.
func (x *exchange) leave() {
	if x.stranger {
		x.stranger = false
		x.server.strangers.leave(x.from)
	}
	if x.counted {
		x.counted = false
		if x.share != nil {
			x.share.requests.Add(-1)
		}
		x.server.leave()
	}
}

// begin takes an exchange from the pool.
func (s *Server) begin(rt *route, w http.ResponseWriter, r *http.Request, params httprouter.Params) *exchange {
	x := s.exchanges.Get().(*exchange)
	*x = exchange{server: s, route: rt, w: w, r: r, params: params, connection: connectionOf(r), out: x.out[:0]}
	if s.logsRequests {
		x.begun = time.Now()
	}
	return x
}

// release gives an exchange back to the pool.
func (s *Server) release(x *exchange) {
	if cap(x.out) > outBytesKept {
		x.out = nil
	}
	*x = exchange{out: x.out[:0]}
	s.exchanges.Put(x)
}

// run checks what all routes have in common and calls the handler. The order is
// part of the interface: who asks comes before what is asked.
func (x *exchange) run() error {
	if x.route.access.probe {
		return x.route.handle(x) // NB: it is counted nowhere, so it waits for no body
	}
	if x.services = x.server.services.Load(); x.services == nil {
		return errNotReady
	}
	if err := x.authenticate(); err != nil {
		return err
	}
	if x.caller != nil && !x.enterUser() {
		x.shed()
		return nil
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	if err := x.checkContent(); err != nil {
		return err
	}
	var err error
	if x.body, err = readBody(x.w, x.r, x.bodyBytesMax()); err != nil {
		return err // NB: net/http does not go on with a connection whose body it could not finish
	}
	if x.connection != nil {
		x.connection.bodyToCome = false
	}
	return x.route.handle(x)
}

func (x *exchange) bodyBytesMax() int64 {
	if x.route.access.kinds == 0 {
		return min(x.server.options.BodyBytesMax, strangerBodyBytesMax)
	}
	return x.server.options.BodyBytesMax
}

// authenticate finds out who asks, and whether this caller may use the route.
func (x *exchange) authenticate() error {
	kinds := x.route.access.kinds
	if kinds == 0 && !x.route.access.signIn {
		return nil
	}
	presented, err := parseCredentials(x.r.Header, x.server.options.SessionCookie)
	if err != nil {
		return err
	}
	if kinds == 0 { // what stands there is not looked up, but it must be one thing
		return x.checkOrigin()
	}
	if x.kind, x.credential, err = presented.pick(kinds); err != nil {
		return err
	}
	// NB: before the session is looked up, because that counts as its use and
	// another site must not keep a session alive.
	if x.kind == identity.Session {
		if err := x.checkOrigin(); err != nil {
			return err
		}
	}
	if x.caller, err = x.services.Credentials.Authenticate(x.kind, x.credential); err != nil {
		return err
	}
	if x.connection != nil {
		x.connection.know()
	}
	if p := x.route.privilege; p != "" && !x.caller.Has(p) {
		return errPrivilege
	}
	return nil
}

// checkOrigin refuses what a page of another site asks for with the browser's
// cookie.
func (x *exchange) checkOrigin() error {
	r := x.r
	if x.route.strict { // the check lets safe methods pass
		r = r.WithContext(r.Context())
		r.Method = http.MethodPost
	}
	if err := x.server.crossOrigin.Check(r); err != nil {
		return errCrossOrigin
	}
	return nil
}

// parseQuery reads the query strictly: net/http's own reading drops what it
// does not understand (persistence/PROMISES.md, "F17").
func (x *exchange) parseQuery() error {
	if x.r.URL.RawQuery == "" || x.route.ignoresQuery {
		return nil
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return refuse(errMalformed, "the query is malformed")
	}
	for name, values := range query {
		if !x.route.anyQuery && !slices.Contains(x.route.query, name) {
			return refuse(errMalformed, "unknown query parameter %s", quote(name))
		}
		if len(values) > 1 {
			return refuse(errMalformed, "the query parameter %q is repeated", name)
		}
	}
	x.query = query
	return nil
}

// checkContent checks what the headers say about the body of a request that has
// one by its method. What other requests carry is read and forgotten.
func (x *exchange) checkContent() error {
	if isSafe(x.r.Method) {
		return nil
	}
	if err := checkEncoding(x.r.Header); err != nil {
		return err
	}
	// A form of another site can send a body, but not with this content type.
	mayMiss := missingAllowed
	if x.kind == identity.Session && x.r.ContentLength != 0 || x.route.access.signIn {
		mayMiss = missingRefused
	}
	return checkContentType(x.r.Header, mayMiss)
}

// Values of headers. They are shared by all answers and never changed.
var (
	valueJSON         = []string{"application/json"}
	valueNoStore      = []string{"no-store"}
	valueVary         = []string{"Cookie, Authorization, Authentication"}
	valueVaryAccept   = []string{"Cookie, Authorization, Authentication, Accept"}
	valueVaryEncoding = []string{"Cookie, Authorization, Authentication, Accept-Encoding"}
	valueVaryBoth     = []string{"Cookie, Authorization, Authentication, Accept, Accept-Encoding"}
	valueNosniff      = []string{"nosniff"}
	valueClose        = []string{"close"}
	valueChallenge    = []string{`svc.token realm="troupe", Bearer realm="troupe"`}
	valueMinimal      = []string{"return=minimal"}
	lengthSetBytesMin = 2048 // below, net/http sets Content-Length without an allocation
)

// largeAnswerBytes is from where an answer counts among those that are held until
// slow callers have read them.
const largeAnswerBytes = 256 << 10

// send writes x.out as the whole answer. Of large ones only so many bytes are held
// at a time, of all callers and of one: above that what changes nothing is refused.
func (x *exchange) send(status int) {
	if size := int64(len(x.out)); size >= largeAnswerBytes && x.share != nil {
		s := x.server
		// One answer may be of any size, but takes no more than its caller's share.
		size = min(size, s.limits.userAnswerBytes)
		mine, all := x.share.answerBytes.Add(size), s.answerBytes.Add(size)
		defer x.share.answerBytes.Add(-size)
		defer s.answerBytes.Add(-size)
		if (mine > s.limits.userAnswerBytes || all > s.options.AnswerBytesMax) && isSafe(x.r.Method) {
			x.out = nil
			x.shed()
			return
		}
	}
	answer := x.pack()
	x.sendHeader(status, len(answer))
	_, _ = x.w.Write(answer) // NB: an error means that the caller has gone
}

// isSafe reports whether a method changes nothing, so that an answer may be left
// out.
func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// sendHeader begins the answer. A negative length means that it is streamed.
func (x *exchange) sendHeader(status, length int) {
	h := x.w.Header()
	x.server.setCommonHeaders(h, x.r)
	if x.contentType != nil {
		h["Content-Type"] = x.contentType
	}
	if x.cacheControl != nil {
		h["Cache-Control"] = x.cacheControl
	}
	switch {
	case x.varyAccept && x.varyEncoding:
		h["Vary"] = valueVaryBoth
	case x.varyAccept:
		h["Vary"] = valueVaryAccept
	case x.varyEncoding:
		h["Vary"] = valueVaryEncoding
	}
	if length >= lengthSetBytesMin {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	x.status = status
	x.w.WriteHeader(status)
}

// setCommonHeaders sets what every answer has.
func (s *Server) setCommonHeaders(h http.Header, r *http.Request) {
	h["Content-Type"] = valueJSON
	h["Cache-Control"] = valueNoStore
	h["Vary"] = valueVary
	h["X-Content-Type-Options"] = valueNosniff
	// NB: net/http serves what follows a chunked body even when the request had
	// a Content-Length too (persistence/PROMISES.md, "F11"); so nothing follows it.
	if len(r.TransferEncoding) > 0 || s.draining.Load() {
		h["Connection"] = valueClose
	}
}

// refuse answers with an error, or cuts the connection when the answer has
// begun already.
func (x *exchange) refuse(err error) {
	f := faultOf(err)
	if f.ours && !errors.Is(err, errGone) {
		x.server.options.Log.Error().Err(err).Str("request", x.requestID()).Str("route", x.route.name).
			Msg("request failed")
	}
	if x.status != 0 || errors.Is(err, errGone) {
		x.server.metrics.cut.Add(1)
		x.status = statusCut
		return
	}
	x.answerFault(f, err)
}

// answerFault writes the answer to an error; err may be nil for faults of ours.
func (x *exchange) answerFault(f *fault, err error) {
	id := ""
	if f.ours {
		id = x.requestID()
	}
	setFaultHeaders(x.w.Header(), f)
	if wait := waitOf(err); wait > 0 {
		x.w.Header()["Retry-After"] = []string{strconv.Itoa(int((wait + time.Second - 1) / time.Second))}
	}
	x.contentType, x.cacheControl = nil, nil
	if x.route.page {
		x.answerPage(f)
		return
	}
	if x.server.wantsPage(x.r, f.status) {
		x.answerNotice(f, id)
		return
	}
	message := f.message(err, id)
	if f.status == http.StatusUnauthorized && x.route.group == groupPortal {
		message = textSessionNeeded
		x.w.Header()["Www-Authenticate"] = x.server.sessionChallenge
	}
	x.out = f.appendBody(x.out[:0], x.route.group, message)
	x.send(f.status)
}

func setFaultHeaders(h http.Header, f *fault) {
	delete(h, "Etag")
	delete(h, "Preference-Applied")
	delete(h, "Link")
	delete(h, "Set-Cookie")
	delete(h, "Content-Encoding")
	if f.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = valueChallenge
	}
	if f.retry {
		h["Retry-After"] = retryAfter()
	}
}

// statusCut stands for an answer that was broken off.
const statusCut = -1

// panicked answers a request whose handler panicked.
func (x *exchange) panicked(reason any) {
	x.server.metrics.panics.Add(1)
	x.server.options.Log.Error().Str("request", x.requestID()).Str("route", x.route.name).
		Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Msg("handler panicked")
	if x.status != 0 {
		x.status = statusCut
		return
	}
	x.answerFault(&internal, nil)
}

// finish counts and logs the request. It reports whether the connection must be
// cut.
func (x *exchange) finish() (cut bool) {
	x.route.metrics.count(x.status)
	if x.server.logsRequests {
		e := x.server.options.Log.Debug().Str("request", x.requestID()).
			Str("method", x.r.Method).Str("route", x.route.name).
			Int("status", x.status).Dur("took", time.Since(x.begun))
		if x.caller != nil {
			e = e.Str("user", string(x.caller.ID))
		}
		e.Msg("request")
	}
	return x.status == statusCut
}

// requestID names the request in the log and in the answers to faults of ours.
// Most requests need none.
func (x *exchange) requestID() string {
	if x.id == "" {
		x.id = x.server.idPrefix + strconv.FormatUint(x.server.lastID.Add(1), 10)
	}
	return x.id
}

// answerNotFound is for paths outside the table. They are public knowledge, so
// no credential is asked for.
func (s *Server) answerNotFound(w http.ResponseWriter, r *http.Request) {
	s.answerOutside(w, r, errNotFound)
}

// answerNotAllowed is for a path of the table with another method.
func (s *Server) answerNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range s.methods {
		if handle, _, _ := s.routerOf(r.URL.Path).Lookup(method, r.URL.Path); handle != nil {
			allowed = append(allowed, method)
		}
	}
	w.Header()["Allow"] = []string{strings.Join(allowed, ", ")} // httprouter's own names OPTIONS
	s.answerOutside(w, r, errMethod)
}

// answerOutside answers a request that no row of the table takes.
func (s *Server) answerOutside(w http.ResponseWriter, r *http.Request, err error) {
	x := s.begin(&s.outside[s.groupOf(r.URL.Path)], w, r, nil)
	x.refuse(err)
	x.finish()
	s.release(x)
}

// groupOf returns the group whose words are spoken below a path, also where no
// route is.
func (s *Server) groupOf(path string) group {
	for _, prefix := range []string{portalPath, runtimePath} {
		if strings.HasPrefix(path, s.options.BasePath+prefix+"/") {
			return groupPortal
		}
	}
	return groupWorkflow
}
