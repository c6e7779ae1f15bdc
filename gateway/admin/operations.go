package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// OperationsOptions configures the operations listener.
type OperationsOptions struct {
	// Addr is where it listens, "host:port". Anyone who reaches it may look into
	// the process: it belongs on loopback or a closed network.
	Addr     string
	Metrics  http.Handler // Metrics answers /metrics
	Profiles bool         // Profiles: /debug/pprof/ has Go's profiles
	Log      zerolog.Logger
}

// Operations is the listener for those who run the service. It has no credentials. On loopback it answers only requests
// that name it or a loopback address in Host; others are 421.
type Operations struct {
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when serving has ended
	stopOnce sync.Once
}

// StartOperations opens the listener.
func StartOperations(o OperationsOptions) (*Operations, error) {
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for operations: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", o.Metrics)
	shown := "metrics"
	if o.Profiles {
		shown = "metrics and profiles"
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	s := &Operations{
		http:     &http.Server{Handler: checkHost(o.Addr, mux), ReadHeaderTimeout: 5 * time.Second},
		listener: l,
		served:   make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error().Err(err).Msg("operations listener failed")
		}
	}()
	o.Log.Info().Stringer("address", l.Addr()).Msg(shown)
	return s, nil
}

// Addr is where it listens.
func (s *Operations) Addr() net.Addr { return s.listener.Addr() }

// Stop closes the listener; a running profile is cut off. It can be called again, and has no error.
func (s *Operations) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
		<-s.served
	})
	return nil
}

// checkHost refuses requests that reached the listener under a foreign name: a page in a browser on this machine can
// make its own name resolve to loopback (DNS rebinding), and then read the answers.
func checkHost(configured string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !servesHost(configured, local, r.Host) {
			http.Error(w, "the header Host must name this listener, localhost or a loopback address", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servesHost reports whether a request with the header host, which came in at the address local, is meant for the
// listener at the configured address. Away from loopback any name is: there the network decides who reaches it.
func servesHost(configured string, local net.Addr, host string) bool {
	if at, ok := local.(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return ok
	}
	name := hostOf(host)
	if address, err := netip.ParseAddr(name); err == nil && address.Unmap().IsLoopback() {
		return true
	}
	return strings.EqualFold(name, "localhost") || name != "" && strings.EqualFold(name, hostOf(configured))
}

// hostOf returns the host of "host", "host:port", "[v6]" or "[v6]:port", empty for anything else.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return ""
		}
		return inner
	}
	if strings.Contains(host, ":") {
		return ""
	}
	return host
}
