package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/listener"
	"troupe/gateway/internal/pages"
)

// Server is the HTTP server of the service. Its life:
//
//	New ──► Start ──► Open ──► Stop
//	         │         │        └ /readyz 503, new requests 503, accepted ones answered
//	         │         └ requests are answered
//	         └ port open; /livez 200, /readyz 503, requests 503
//
// Open may come before Start. Stop may come at any time and more than once.
type Server struct {
	kernel       *kernel.Kernel
	groups       *groups
	services     Services // since Open
	http         *http.Server
	listen       listenFunc    // net.Listen, but for tests
	lastBytesMax time.Duration // how long Stop waits for the last bytes of answers; set by New
	failed       chan error    // failed gets the error that ended serving, if it was not Stop

	mu struct {
		sync.Mutex
		used     bool               // by Start or Stop
		listener *listener.Listener // nil until Start
		served   chan struct{}      // closed when serving has ended; nil until Start
	}
	stopOnce sync.Once
}

// New returns a server that does nothing yet. An error names everything that is wrong with the options.
func New(o Options) (*Server, error) {
	return newServer(o, func(table []kernel.Route) []kernel.Route { return table })
}

// newServer makes a server with a table that change has made of the usual one.
func newServer(o Options, change func(table []kernel.Route) []kernel.Route) (*Server, error) {
	g := newGroups(strings.TrimSuffix(o.BasePath, "/"))
	s := &Server{groups: g, lastBytesMax: time.Second, failed: make(chan error, 1), listen: net.Listen}
	k, err := kernel.New(o, change(g.routes()), kernel.Hooks{ErrorPage: pages.ShowError, Elsewhere: g.forwarder.Handle})
	if err != nil {
		return nil, fmt.Errorf("new gateway: %w", err)
	}
	s.kernel, o = k, k.Options
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(o.TLS != nil)
	s.http = &http.Server{
		Handler:                      k,
		Protocols:                    protocols,
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * without a body
		ReadHeaderTimeout:            o.HeaderReadMax,
		ReadTimeout:                  o.ReadMax,
		WriteTimeout:                 o.WriteMax,
		IdleTimeout:                  o.IdleMax,
		MaxHeaderBytes:               o.HeaderBytesMax,
		ErrorLog:                     stdlog.New(logWriter{o.Log}, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return k.Requests },
		ConnContext:                  listener.ConnContext,
		ConnState:                    listener.OnState,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: streamsMax, MaxReceiveBufferPerConnection: receiveBytesMax, MaxReceiveBufferPerStream: receiveBytesMax},
	}
	if o.TLS != nil {
		s.http.TLSConfig = o.TLS.Config()
	}
	return s, nil
}

// Bounds of one connection of HTTP/2: concurrent requests, and bytes of their bodies that nobody has read.
const (
	streamsMax      = 100
	receiveBytesMax = 256 << 10
)

// logWriter turns the log lines of net/http, which are about single connections and the listener, into warnings. Of a
// handshake that fails its caller hears.
type logWriter struct{ log zerolog.Logger }

func (w logWriter) Write(line []byte) (int, error) {
	level := zerolog.WarnLevel
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	w.log.WithLevel(level).Msg(strings.TrimSpace(string(line)))
	return len(line), nil
}

type listenFunc func(network, address string) (net.Listener, error)

// Start opens the port and serves until Stop. It returns when the port is open.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.used {
		return fmt.Errorf("start gateway: %w", ErrStopped)
	}
	s.mu.used = true
	inner, err := s.listen("tcp", s.kernel.Options.Addr)
	if err != nil {
		return fmt.Errorf("start gateway: %w", err)
	}
	s.mu.listener = listener.New(inner, s.kernel.Options.ConnectionsMax, &s.kernel.Connections, s.kernel.IsTrusted)
	s.mu.served = make(chan struct{})
	go guard.Loop(s.kernel.Stopping, s.kernel.Options.Log, "places", s.kernel.FollowPressure)
	go s.run(s.mu.listener, s.mu.served)
	line := s.kernel.Options.Log.Info().Stringer("address", inner.Addr())
	if s.kernel.Options.BasePath != "" {
		line = line.Str("basePath", s.kernel.Options.BasePath)
	}
	line.Msg("listening")
	return nil
}

func (s *Server) run(l net.Listener, served chan<- struct{}) {
	defer close(served)
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("serve HTTP: %w", err)
	}
}

// ServeHTTP answers every request, from any goroutine. doc.go says with what.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.kernel.ServeHTTP(w, r) }

// Failed gets one error if the server stops accepting connections without Stop. The caller should end the process.
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

// Open begins to answer requests with the given services, which must work until Stop has returned.
func (s *Server) Open(services Services) {
	s.services = services
	s.groups.open(&services, s.Addr)
	s.kernel.Open(&kernel.Services{Credentials: services.Credentials, Users: services.Users, Audit: services.Audit, Locate: services.Locate})
}

// Stop drains and closes the server: /readyz and new requests are answered with 503, requests that were accepted before
// are answered as usual, for at most Options.DrainMax or until ctx ends; then their context is cancelled, and the
// connections are closed: with a reset in the middle of an answer. Streams to watchers end after DrainDelay. It takes
// at most DrainDelay, DrainMax and two seconds. Calling it again waits for the first call. It has no error; the log
// says whether all requests were answered in time.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stop(ctx) })
	return nil
}

func (s *Server) stop(ctx context.Context) {
	s.mu.Lock()
	s.mu.used = true
	listener, served := s.mu.listener, s.mu.served
	s.mu.Unlock()
	defer s.kernel.Cancel()
	if served == nil {
		return
	}
	begun := time.Now()
	s.kernel.BeginStop()
	drained := s.kernel.Drain(ctx, func() {
		if s.kernel.IsOpen() {
			s.services.Workflows.StopWatching()
			s.groups.jobs.StopWaiting()
		}
	})
	if !drained {
		s.kernel.Cancel() // the requests that are left answer that the outcome is unknown
	}
	// NB: net/http sends the last bytes of an answer after its handler has returned.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.lastBytesMax)
	defer cancel()
	if err := s.http.Shutdown(closing); err != nil {
		listener.ResetUnfinished()
		_ = s.http.Close()
	}
	<-served
	s.kernel.Packing.Wait()
	s.kernel.Options.Log.Info().Bool("drained", drained).Dur("tookMs", time.Since(begun)).Msg("stopped listening")
}

// PeerHandler answers requests that other nodes forward. Only nodes of the cluster may reach
// it: it believes them who the caller is. nodeOf returns the id of the node that sent a request,
// empty when that is not proved, which is answered 403. A request whose shard is not led here is
// answered 421, and so is every request before Open and while the server stops; nothing was done then.
//
// The listener must take headers of Options.HeaderBytesMax and 4 KiB, and must not end streams. All
// nodes need the same Options.BasePath and Options.SessionCookie.
func (s *Server) PeerHandler(nodeOf func(*http.Request) string) http.Handler {
	return s.kernel.PeerHandler(nodeOf)
}

// OperatorHandler answers requests of who runs the service, without a credential, where mod-workflows is required. The
// paths stand without Options.BasePath. Only that person may reach it: it is for the socket in the home.
func (s *Server) OperatorHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = kernel.AsOperator(r)
		r.URL.Path = s.kernel.Options.BasePath + r.URL.Path
		s.kernel.ServeHTTP(w, r)
	})
}

// Metrics returns the counters.
func (s *Server) Metrics() kernel.Metrics {
	m, f := s.kernel.Snapshot(), &s.groups.forwarder
	m.Forwarded = f.Metrics.Forwarded.Load()
	m.ForwardRepeated = f.Metrics.Repeated.Load()
	m.ForwardRefused = f.Metrics.Refused.Load()
	m.ForwardUnknown = f.Metrics.Unknown.Load()
	m.LeaderWaits = f.Metrics.Waits.Load()
	m.LeaderWaiting = f.Waiting.Load()
	return m
}

// ErrStopped is what Start answers on a server that was started or stopped
// before: a server is used once, make a new one.
var ErrStopped = errors.New("gateway was used before")
