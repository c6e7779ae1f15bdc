package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"
	"github.com/rs/zerolog"

	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/console"
	"troupe/gateway/internal/listener"
	"troupe/gateway/toll"
)

// Credentials authenticates callers. Errors are failure.ErrUnauthorized for every cause.
type Credentials interface {
	Authenticate(kind identity.Kind, credential string) (*identity.Principal, error)
	// Principal returns a user whose credential another node has authenticated. roles are
	// those that the credential has beyond the user's own.
	Principal(user identity.UserID, roles []string) (*identity.Principal, error)
}

// Services is what the handlers call. The server does not change it.
type Services struct {
	Workflows   Workflows
	Credentials Credentials
	// Presentations has how people see workflows and instances. Nil: nobody knows, and the routes for it answer 404.
	Presentations Presentations
	Portal        Portal
	// Sessions signs people in and out. Nil: nobody can sign in, and the routes for
	// it answer 404.
	Sessions Sessions
	// Links signs people in who have a link. Nil: there are none.
	Links Links
	// Provider signs people in through an identity provider. Nil: there is none, and
	// the routes for it answer 404.
	Provider Provider
	// Users says who there is. Nil: users have no names but their login names.
	Users Users
	// Repository lists files. Nil: there are none, and its route answers 404.
	Repository Repository
	// Templates lists the parameters that templates declare. Nil: there are none, and the routes
	// for them answer 404.
	Templates Templates
	// Definitions shows what was published. Nil: nothing, and the routes for it answer 404.
	Definitions Definitions
	// Migrations gives running instances other versions. Nil: nothing does, and the route for it answers 404.
	Migrations Migrations
	// Homes publishes homes. Nil: the node stands alone, and the route for it answers 409.
	Homes Homes
	// Peers reaches the other nodes of a cluster. Nil: the node stands alone.
	Peers Peers
	// Cluster is the cluster as this node knows it, for "verbose" of /readyz: something that is
	// JSON, and that everybody may see who can reach the server. Nil: the node stands alone.
	Cluster func() any
	// Vitals is what the node holds and has done. It is asked once a second at most. Nil: nobody counts.
	Vitals func() api.Vitals
	// Parts are asked by /readyz; they do not decide whether a request is taken.
	Parts []Part
}

// Server is the HTTP server of the service. Its life:
//
//	New ──► Start ──► Open ──► Stop
//	         │         │        └ /readyz 503, new requests 503, accepted ones answered
//	         │         └ requests are answered
//	         └ port open; /livez 200, /readyz 503, requests 503
//
// Open may come before Start. Stop may come at any time and more than once.
type Server struct {
	options       Options
	router        *httprouter.Router           // built by New, then only read
	runtimeRouter *httprouter.Router           // the same for the form runtime, see routerOf
	table         []route                      // likewise
	unmatched     [groups]route                // for requests that match no route, by group; likewise
	shells        map[console.Page]*staticFile // likewise
	methods       []string                     // of the table, sorted; likewise
	http          *http.Server
	listen        listenFunc                 // net.Listen, but for tests
	crossOrigin   http.CrossOriginProtection // the zero value; trusts nobody
	exchanges     sync.Pool                  // *exchange; BenchmarkExchangePool is the reason
	idPrefix      string                     // of request ids, different in each process
	// sessionChallenge is the header WWW-Authenticate of group A.
	sessionChallenge []string
	// logsRequests: Options.Log takes debug lines.
	logsRequests bool
	lastID       atomic.Uint64

	// services is nil until Open.
	services atomic.Pointer[Services]
	// warnedUntrustedProxy is set at the first X-Forwarded-For of an untrusted peer.
	warnedUntrustedProxy atomic.Bool
	// draining is set by Stop, before it waits for inFlight to become 0.
	draining atomic.Bool
	// stopping is closed when draining is set.
	stopping chan struct{}
	// packing counts the files that are packed behind a request (packBrotli); Stop waits for them.
	packing  sync.WaitGroup
	pressure *pressure
	// inFlight counts the requests in serve, probes and watchers left out, and idle those of them that have left their
	// places (leavePlace).
	inFlight, idle atomic.Int64
	placing        sync.Mutex // takePlace
	anonymous      anonymousRequests
	// anonymousBytes is what all requests without a credential together owe for large bodies.
	anonymousBytes toll.Account
	// answerBytes counts the bytes of large answers that are being sent.
	answerBytes atomic.Int64
	// drawing has an element for each picture that is being drawn.
	drawing chan struct{}
	// batches counts the batches on their way, and batchBytes the bytes of their large
	// bodies.
	batches, batchBytes atomic.Int64
	// names are what people are called.
	names knownNames
	// watchers counts the streams that are open or about to be, and leaderWaits the requests
	// that wait for a leader.
	watchers, leaderWaits atomic.Int64
	usage                 usageTable
	limits                limits // set by New, then only read
	// allAnswered gets an entry when inFlight becomes 0 while draining.
	allAnswered chan struct{}
	// lastBytesMax is how long Stop waits for the last bytes of answers; set by New.
	lastBytesMax time.Duration
	// failed gets the error that ended serving, if it was not Stop.
	failed chan error
	// requests is the context of all requests; cancel ends it.
	requests context.Context
	cancel   context.CancelFunc
	// watching ends when drain ends the streams; endWatching ends it.
	watching    context.Context
	endWatching context.CancelFunc

	metrics     metrics
	connections listener.Counts
	// started is when the server was made: its counters begin there.
	started time.Time
	vitals  vitalsReading

	mu struct {
		sync.Mutex
		used     bool               // by Start or Stop
		listener *listener.Listener // nil until Start
		served   chan struct{}      // closed when serving has ended; nil until Start
	}
	stopOnce sync.Once
}

// New returns a server that does nothing yet. An error names everything that is
// wrong with the options.
func New(o Options) (*Server, error) {
	return newServer(o, routes())
}

func newServer(o Options, table []route) (*Server, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("new gateway: %w", err)
	}
	s := &Server{
		started:          time.Now(),
		drawing:          make(chan struct{}, drawnAtOnce),
		options:          o,
		idPrefix:         newIDPrefix(),
		sessionChallenge: []string{`Cookie realm="troupe", cookie-name="` + o.SessionCookie + `"`},
		logsRequests:     o.Log.Debug().Enabled(),
		shells:           newShells(o.BasePath),
		stopping:         make(chan struct{}),
		pressure:         newPressure(newLimits(&o).inFlight),
		allAnswered:      make(chan struct{}, 1),
		lastBytesMax:     time.Second,
		failed:           make(chan error, 1),
		usage:            newUsageTable(),
		limits:           newLimits(&o),
	}
	s.exchanges.New = func() any { return new(exchange) }
	s.metrics.unmatched.name = "outside"
	for g := range s.unmatched {
		s.unmatched[g] = route{name: s.metrics.unmatched.name, group: group(g), metrics: &s.metrics.unmatched}
	}
	if err := s.compile(table); err != nil {
		return nil, fmt.Errorf("new gateway: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.requests, s.cancel = ctx, cancel
	s.watching, s.endWatching = context.WithCancel(ctx)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.listen = net.Listen
	s.http = &http.Server{
		Handler:                      s,
		Protocols:                    protocols,
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * without a body
		ReadHeaderTimeout:            o.HeaderReadMax,
		ReadTimeout:                  o.ReadMax,
		WriteTimeout:                 o.WriteMax,
		IdleTimeout:                  o.IdleMax,
		MaxHeaderBytes:               o.HeaderBytesMax,
		ErrorLog:                     stdlog.New(logWriter{o.Log}, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext:                  listener.ConnContext,
		ConnState:                    listener.OnState,
	}
	return s, nil
}

// newIDPrefix makes the request ids of one process differ from another's.
func newIDPrefix() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand never returns an error; it ends the program
	return hex.EncodeToString(random[:]) + "-"
}

// logWriter turns the log lines of net/http, which are about single connections
// and the listener, into warnings.
type logWriter struct{ log zerolog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	w.log.Warn().Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}

// listenFunc is the type of net.Listen.
type listenFunc func(network, address string) (net.Listener, error)

// Start opens the port and serves until Stop. It returns when the port is open.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.used {
		return fmt.Errorf("start gateway: %w", ErrStopped)
	}
	s.mu.used = true
	inner, err := s.listen("tcp", s.options.Addr)
	if err != nil {
		return fmt.Errorf("start gateway: %w", err)
	}
	s.mu.listener = listener.New(inner, s.options.ConnectionsMax, &s.connections, s.isTrusted)
	s.mu.served = make(chan struct{})
	go guard.Loop(s.stopping, s.options.Log, "places", func() { s.pressure.run(s.stopping, s.working, &s.metrics.shed) })
	go s.run(s.mu.listener, s.mu.served)
	line := s.options.Log.Info().Stringer("address", inner.Addr())
	if s.options.BasePath != "" {
		line = line.Str("basePath", s.options.BasePath)
	}
	line.Msg("listening")
	return nil
}

func (s *Server) run(l net.Listener, served chan<- struct{}) {
	defer close(served)
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("serve HTTP: %w", err)
	}
}

// Failed gets one error if the server stops accepting connections without Stop.
// The caller should end the process.
func (s *Server) Failed() <-chan error { return s.failed }

// Addr returns the address that Start listens on, nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.listener == nil {
		return nil
	}
	return s.mu.listener.Addr()
}

// Open begins to answer requests with the given services, which must work until
// Stop has returned.
func (s *Server) Open(services Services) { s.services.Store(&services) }

// Stop drains and closes the server: /readyz and new requests are answered with
// 503, requests that were accepted before are answered as usual, for at most
// Options.DrainMax or until ctx ends; then their context is cancelled, and the
// connections are closed: with a reset in the middle of an answer. Streams to watchers end after DrainDelay. It takes at
// most DrainDelay, DrainMax and two seconds. Calling it again waits for the first
// call. It has no error; the log says whether all requests were answered in time.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stop(ctx) })
	return nil
}

func (s *Server) stop(ctx context.Context) {
	s.mu.Lock()
	s.mu.used = true
	listener, served := s.mu.listener, s.mu.served
	s.mu.Unlock()
	defer s.cancel()
	if served == nil {
		return
	}
	begun := time.Now()
	s.draining.Store(true)
	close(s.stopping)
	drained := s.drain(ctx)
	if !drained {
		s.cancel() // the requests that are left answer that the outcome is unknown
	}
	// NB: net/http sends the last bytes of an answer after its handler has returned.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.lastBytesMax)
	defer cancel()
	if err := s.http.Shutdown(closing); err != nil {
		listener.ResetUnfinished()
		_ = s.http.Close()
	}
	<-served
	s.packing.Wait()
	s.options.Log.Info().Bool("drained", drained).Dur("tookMs", time.Since(begun)).Msg("stopped listening")
}

// drain waits until the accepted requests are answered, and reports whether
// they were in time.
func (s *Server) drain(ctx context.Context) bool {
	if s.options.DrainDelay > 0 {
		select {
		case <-time.After(s.options.DrainDelay):
		case <-ctx.Done():
		}
	}
	s.endWatching()
	if services := s.services.Load(); services != nil {
		services.Workflows.StopWatching()
	}
	late := time.NewTimer(s.options.DrainMax)
	defer late.Stop()
	for s.inFlight.Load() > 0 {
		select {
		case <-s.allAnswered:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// requestEnded uncounts a request that serve has counted.
func (s *Server) requestEnded() {
	if s.inFlight.Add(-1) == 0 && s.draining.Load() {
		select {
		case s.allAnswered <- struct{}{}:
		default: // Stop has not checked yet
		}
	}
}
