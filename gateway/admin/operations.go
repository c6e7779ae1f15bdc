package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Source is a part whose counters the operations listener shows.
type Source struct {
	Name string
	// Metrics returns a struct of counters. It must not block.
	Metrics func() any
}

// OperationsOptions configures the operations listener.
type OperationsOptions struct {
	// Addr is where it listens, "host:port". Whoever reaches it may look into
	// the process: it belongs on loopback or a closed network.
	Addr    string
	Sources []Source
	Log     zerolog.Logger
}

// Operations is the listener for those who run the service: /metrics is a JSON
// object of each part's counters, /debug/pprof/ are Go's profiles. It has no
// credentials and is off unless an address is set.
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
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		all := map[string]any{}
		for _, s := range o.Sources {
			all[s.Name] = s.Metrics()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	s := &Operations{
		http:     &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		listener: l,
		served:   make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error().Err(err).Msg("operations listener ended")
		}
	}()
	o.Log.Info().Stringer("address", l.Addr()).Msg("metrics and profiles")
	return s, nil
}

// Addr is where it listens.
func (s *Operations) Addr() net.Addr { return s.listener.Addr() }

// Stop closes the listener; a running profile is cut off.
func (s *Operations) Stop() {
	s.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close()
		}
		<-s.served
	})
}
