package gateway

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

// exchange is one request and its answer. The goroutine of net/http that serves
// the request owns it; between requests it is in a pool.
type exchange struct {
	server   *Server
	route    *route
	w        http.ResponseWriter
	r        *http.Request
	params   httprouter.Params
	services *Services // nil for probes

	caller *identity.Principal // nil for probes
	// kind and credential are what the caller authenticated with.
	kind       identity.Kind
	credential string
	query      url.Values     // nil without parameters
	body       []byte         // belongs to the request; never pooled, since values alias it
	status     int            // 0 until the answer has begun
	connection *listener.Conn // nil when the server did not accept it, as in tests
	counted    bool           // in Server.inFlight, and in usage
	usage      *userUsage     // the caller's; nil until the caller is known
	idle       bool           // see leavePlace
	// beyondShare: the request is refused because its user has too much already.
	beyondShare bool
	// anonymous: the request is counted in Server.anonymous too, under network.
	anonymous bool
	network   netip.Prefix
	// contentType is that of the answer; nil is JSON.
	contentType []string
	// cacheControl says how long the answer may be kept; nil is not at all.
	cacheControl []string
	// varyAccept, varyEncoding and varyLanguage say that the answer depends on the headers Accept,
	// Accept-Encoding and Accept-Language.
	varyAccept, varyEncoding, varyLanguage bool
	// next and flowEnded belong to a sign-in through the provider: where the person
	// wants to go, and whether the cookie of that sign-in has to be removed.
	next      string
	flowEnded bool
	// sender is what another node that forwarded the request says of it; nil when the caller
	// asked here.
	sender *sender
	// keyed: the request has an idempotency key that its handler knows.
	keyed bool
	// leader is the node that the request was forwarded to last; empty for none.
	leader   string
	bodyKept int64     // see keepBody
	id       string    // see requestID
	begun    time.Time // zero unless requests are logged

	// out is where the answer is built. It is kept from request to request.
	out []byte
}

// outBytesKept is the largest buffer that goes back to the pool.
const outBytesKept = 1 << 20

// ServeHTTP answers every request, from any goroutine. doc.go says with what.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c := listener.Of(r); c != nil {
		if !c.Begin(r) {
			panic(http.ErrAbortHandler) // the connection is being closed; nothing was done
		}
		defer c.End()
	}
	// NB: only the origin form (RFC 9112, 3.2.1) names a path of this server. "*" would list the methods
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

// serve runs before and after the handler of every route.
func (s *Server) serve(rt *route, w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	s.warnUntrustedProxy(r)
	x := s.acquire(rt, w, r, params)
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
	if !rt.access.probe {
		inFlight := s.inFlight.Add(1)
		x.counted = true
		defer x.endAdmission()
		// NB: the order matters to Stop, which sets draining and then waits for
		// inFlight: every request is either counted or sees draining.
		if s.draining.Load() {
			x.refuse(x.closed())
			return
		}
		if inFlight-s.idle.Load() > s.pressure.limit.Load() || inFlight+s.watchers.Load() > s.limits.busyConnections || !x.admitAnonymous() {
			x.refuseInTime(x.shed())
			return
		}
	}
	if err := x.run(); err != nil {
		x.refuseInTime(err)
	}
}

// acquire takes an exchange from the pool.
func (s *Server) acquire(rt *route, w http.ResponseWriter, r *http.Request, params httprouter.Params) *exchange {
	x := s.exchanges.Get().(*exchange)
	*x = exchange{server: s, route: rt, w: w, r: r, params: params, connection: listener.Of(r), sender: senderOf(r), out: x.out[:0]}
	if s.logsRequests {
		x.begun = time.Now()
	}
	return x
}

// release returns an exchange to the pool.
func (s *Server) release(x *exchange) {
	if cap(x.out) > outBytesKept {
		x.out = nil
	}
	*x = exchange{out: x.out[:0]}
	s.exchanges.Put(x)
}

// run checks what all routes have in common and calls the handler. The order is
// part of the interface: the caller is checked before the request.
func (x *exchange) run() error {
	if x.route.access.probe {
		return x.route.handle(x) // NB: probes are not counted, so they must not wait for a body
	}
	if x.services = x.server.services.Load(); x.services == nil {
		return x.closed()
	}
	if err := x.authenticate(); err != nil {
		return err
	}
	if x.caller != nil && !x.admitUser() {
		return x.shedUser()
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	if err := x.checkContent(); err != nil {
		return err
	}
	var err error
	if x.route.readsBody {
		return x.route.handle(x)
	}
	if x.body, err = readBody(x.w, x.r, x.bodyBytesMax(), x.pay); err != nil {
		return err // NB: net/http closes a connection whose body it could not read to the end
	}
	if x.connection != nil {
		x.connection.BodyPending = false
	}
	return x.carryOut()
}

// closed is why nothing is taken before Open and while the server stops. Another node asks
// for the leader again then.
func (x *exchange) closed() error {
	if x.sender != nil {
		return failure.ErrElsewhere
	}
	return failure.ErrUnavailable
}

func (x *exchange) bodyBytesMax() int64 {
	if x.route.contentBytesMax > 0 {
		return x.route.contentBytesMax
	}
	if x.route.access.kinds == 0 {
		return min(x.server.options.BodyBytesMax, anonymousBodyBytesMax)
	}
	return x.server.options.BodyBytesMax
}

// authenticate identifies the caller and checks that the caller may use the route.
func (x *exchange) authenticate() error {
	kinds := x.route.access.kinds
	if kinds == 0 && !x.route.access.signIn {
		return nil
	}
	if x.route.privilege == identity.Workflows && x.isOperator() {
		x.kind, x.caller = identity.Token, operator
		return nil
	}
	presented, err := parse.ReadCredentials(x.r.Header, x.server.options.SessionCookie)
	if err != nil {
		return err
	}
	if kinds == 0 { // a credential is not looked up here, but must not be ambiguous
		return x.checkOrigin()
	}
	if x.kind, x.credential, err = presented.Pick(kinds); err != nil {
		return err
	}
	// NB: this comes before the session is looked up: a look-up counts as use, and
	// another site must not keep a session alive.
	if x.kind == identity.Session {
		if err := x.checkOrigin(); err != nil {
			return err
		}
	}
	accepted := x.kind
	if x.route.access.ending {
		accepted |= identity.Ending
	}
	if x.caller, err = x.identify(accepted); err != nil {
		return err
	}
	if x.connection != nil {
		x.connection.MarkAuthenticated()
	}
	if p := x.route.privilege; p != "" && !x.caller.Has(p) && (x.route.orPrivilege == "" || !x.caller.Has(x.route.orPrivilege)) {
		if x.route.orPrivilege != "" {
			p += " or " + x.route.orPrivilege
		}
		return failure.Needs(p)
	}
	return nil
}

// checkOrigin refuses requests that a page of another site makes with the
// browser's cookie.
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

// parseQuery parses the query strictly: net/http's own parser drops what it
// does not understand (persistence/PROMISES.md, "F17").
func (x *exchange) parseQuery() error {
	if x.r.URL.RawQuery == "" || x.route.ignoresQuery {
		return nil
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return parse.Malformed("the query is malformed")
	}
	for name, values := range query {
		if !x.route.anyQuery && !slices.Contains(x.route.query, name) {
			return parse.Malformed("unknown query parameter %s", parse.Quote(name))
		}
		if len(values) > 1 {
			return parse.Malformed("the query parameter %q is repeated", name)
		}
	}
	x.query = query
	return nil
}

// checkContent checks the headers about the body, for methods that have one. The
// body of any other request is read and ignored.
func (x *exchange) checkContent() error {
	if isSafe(x.r.Method) {
		return nil
	}
	if err := parse.CheckEncoding(x.r.Header); err != nil {
		return err
	}
	// An HTML form of another site can send a body, but not as application/json.
	contentType := parse.HeaderOptional
	if x.kind == identity.Session && x.r.ContentLength != 0 || x.route.access.signIn {
		contentType = parse.HeaderRequired
	}
	if x.route.readsBody && parse.IsLines(x.r.Header) || x.route.takesYAML && parse.IsYAML(x.r.Header) {
		return nil
	}
	err := parse.CheckContentType(x.r.Header, cmp.Or(x.route.content, "application/json"), contentType)
	if err != nil && x.route.readsBody {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/x-ndjson, in UTF-8")
	}
	if err != nil && x.route.takesYAML {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json or application/yaml, in UTF-8")
	}
	return err
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
	valueRepresented  = []string{"return=representation"}
	valueLines        = []string{"application/x-ndjson"}
	lengthSetBytesMin = 2048 // below, net/http sets Content-Length without an allocation
)

// largeAnswerBytes is the size from which an answer counts towards
// Options.AnswerBytesMax while it is sent.
const largeAnswerBytes = 256 << 10

// send writes x.out as the whole answer. The bytes of large answers are limited,
// for all callers and for one: above the limit, answers to safe methods are shed.
func (x *exchange) send(status int) {
	if size := int64(len(x.out)); size >= largeAnswerBytes && x.usage != nil {
		s := x.server
		// One answer may be of any size, but counts for no more than its caller may have.
		size = min(size, s.limits.userAnswerBytes)
		ofUser, ofAll := x.usage.answerBytes.Add(size), s.answerBytes.Add(size)
		defer x.usage.answerBytes.Add(-size)
		defer s.answerBytes.Add(-size)
		var err error
		switch {
		case !isSafe(x.r.Method): // what was done is answered at once
			x.charge(int64(len(x.out)))
		case ofUser > s.limits.userAnswerBytes || ofAll > s.options.AnswerBytesMax:
			err = x.shed()
		default:
			err = x.pay(int64(len(x.out)))
		}
		if err != nil {
			x.out = nil
			x.refuse(err)
			return
		}
	}
	answer := x.compress()
	x.sendHeader(status, len(answer))
	_, _ = x.w.Write(answer) // NB: an error means that the caller has gone
}

// isSafe reports whether a method changes nothing (RFC 9110, 9.2.1), so that its
// answer may be refused after the work is done.
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
	x.addVaryLanguage(h)
	if length >= lengthSetBytesMin {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	x.status = status
	x.w.WriteHeader(status)
}

// addVaryLanguage says that the answer depends on Accept-Language, if it does.
func (x *exchange) addVaryLanguage(h http.Header) {
	if x.varyLanguage {
		h["Vary"] = []string{h["Vary"][0] + ", Accept-Language"}
	}
}

// setCommonHeaders sets what every answer has.
func (s *Server) setCommonHeaders(h http.Header, r *http.Request) {
	h["Content-Type"] = valueJSON
	h["Cache-Control"] = valueNoStore
	h["Vary"] = valueVary
	h["X-Content-Type-Options"] = valueNosniff
	s.setConnectionHeader(h, r)
}

// setConnectionHeader says whether the connection is closed behind the answer.
func (s *Server) setConnectionHeader(h http.Header, r *http.Request) {
	// NB: net/http serves the request behind a chunked body even when there was
	// a Content-Length too (persistence/PROMISES.md, "F11"); so the connection is closed.
	if len(r.TransferEncoding) > 0 || s.draining.Load() {
		h["Connection"] = valueClose
	}
}

// finish counts and logs the request. It reports whether the connection must be
// closed.
func (x *exchange) finish() (aborted bool) {
	x.route.metrics.count(x.status)
	if aborted = x.status == statusAborted; aborted {
		x.server.metrics.aborted.Add(1)
	}
	if x.server.logsRequests {
		e := x.server.options.Log.Debug().Str("request", x.requestID()).
			Str("method", x.r.Method).Str("route", x.route.name).
			Int("status", x.status).Dur("tookMs", time.Since(x.begun))
		if x.caller != nil {
			e = e.Str("user", string(x.caller.ID))
		}
		if x.leader != "" {
			e = e.Str("leader", x.leader)
		}
		if x.sender != nil { // its log has the request under that id
			e = e.Str("from", x.sender.node).Str("origin", x.sender.Request)
		}
		e.Msg("request")
	}
	return aborted
}

// requestID names the request in the log and in the answers to internal errors.
// It is made when it is first asked for.
func (x *exchange) requestID() string {
	if x.id == "" {
		x.id = x.server.idPrefix + strconv.FormatUint(x.server.lastID.Add(1), 10)
	}
	return x.id
}

// answerNotFound answers requests for paths that are not in the table. The paths
// are public, so no credential is needed.
func (s *Server) answerNotFound(w http.ResponseWriter, r *http.Request) {
	s.answerUnmatched(w, r, failure.ErrNotFound)
}

// answerNotAllowed answers requests for a path of the table with another method.
func (s *Server) answerNotAllowed(w http.ResponseWriter, r *http.Request) {
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
func (s *Server) answerUnmatched(w http.ResponseWriter, r *http.Request, err error) {
	x := s.acquire(&s.unmatched[s.groupOf(r.URL.Path)], w, r, nil)
	x.refuse(err)
	x.finish()
	s.release(x)
}

// groupOf returns the group that a path belongs to, also where there is no route.
func (s *Server) groupOf(path string) group {
	for _, prefix := range []string{portalPath, runtimePath} {
		if strings.HasPrefix(path, s.options.BasePath+prefix+"/") {
			return groupPortal
		}
	}
	return groupWorkflow
}

// abort resets the connection of a request. It does not return.
func (s *Server) abort(r *http.Request) {
	if c := listener.Of(r); c != nil {
		c.ResetAtClose()
	}
	panic(http.ErrAbortHandler)
}
