package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/identity"
	"troupe/statemachine/document"
)

// Identities is what the commands need of the identity service.
type Identities interface {
	CreateToken(context.Context, identity.CreateCredential) (secret string, c identity.Credential, err error)
	CreateSession(context.Context, identity.CreateCredential) (secret string, c identity.Credential, err error)
	Credentials(kind identity.Kind) []identity.Credential
	Revoke(ctx context.Context, kind identity.Kind, id string) error
	SetPassword(ctx context.Context, user identity.UserID, password string) error
}

// Options says how a Server works. Path and Identities must be set.
type Options struct {
	// Path is where the socket is made: HOME/admin.sock. Its folder must exist.
	Path string
	// Identities must work until Stop has returned.
	Identities Identities
	// Check returns what the server would refuse of the definitions in its home now.
	// Nil: it refuses nothing.
	Check func() (document.Faults, error)
	// Log takes requests that failed for reasons of ours (error), and start and
	// stop (debug).
	Log zerolog.Logger
}

// Limits of the socket. Its callers are commands of the same user, so nobody
// needs to change them.
const (
	bodyBytesMax = 64 << 10
	readMax      = 5 * time.Second
	writeMax     = time.Minute
	drainMax     = 5 * time.Second
)

// Server listens at the socket. It has no state of its own.
type Server struct {
	options  Options
	http     *http.Server
	served   chan struct{} // closed when serving has ended
	stopOnce sync.Once
}

// Start makes the socket and serves until Stop. Errors: ErrInUse, ErrNotSocket,
// those of the file system.
func Start(o Options) (*Server, error) {
	l, err := listen(o.Path)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", o.Path, err)
	}
	s := &Server{options: o, served: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: readMax,
		ReadTimeout:       readMax,
		WriteTimeout:      writeMax,
		ErrorLog:          stdlog.New(o.Log, "", 0),
	}
	s.http.SetKeepAlivesEnabled(false)
	go s.run(l)
	o.Log.Debug().Str("socket", o.Path).Msg("commands are taken")
	return s, nil
}

func (s *Server) run(l net.Listener) {
	defer close(s.served)
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.options.Log.Error().Err(err).Str("socket", s.options.Path).Msg("commands are not taken any more")
	}
}

// Stop answers what was accepted, for a few seconds at most or until ctx ends, and
// removes the socket. Calling it again waits for the first call. It has no error.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		// NB: first the file, so that a new server's is not taken away.
		if err := os.Remove(s.options.Path); err != nil {
			s.options.Log.Warn().Err(err).Msg("the socket could not be removed")
		}
		ctx, cancel := context.WithTimeout(ctx, drainMax)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close() // connections that have no answer coming
		}
		<-s.served
	})
	return nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, kind := range []identity.Kind{identity.Token, identity.Session} {
		path := pathOf(kind)
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func() (any, error) { return s.create(w, r, kind) })
		})
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func() (any, error) { return s.list(kind), nil })
		})
		mux.HandleFunc("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
			s.answer(w, r, func() (any, error) {
				return done{}, s.options.Identities.Revoke(r.Context(), kind, r.PathValue("id"))
			})
		})
	}
	mux.HandleFunc("PUT "+pathPassword, func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, func() (any, error) { return s.setPassword(w, r) })
	})
	mux.HandleFunc("GET "+pathFaults, func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, func() (any, error) { return s.check() })
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, func() (any, error) { return nil, ErrRequest })
	})
	return mux
}

// decode reads a body of one known shape.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return errors.Join(ErrRequest, err)
	}
	return nil
}

func (s *Server) setPassword(w http.ResponseWriter, r *http.Request) (any, error) {
	var asked newPassword
	if err := decode(w, r, &asked); err != nil {
		return nil, err
	}
	if asked.User == "" {
		return nil, fmt.Errorf("%w: it names no user", ErrRequest)
	}
	return done{}, s.options.Identities.SetPassword(r.Context(), identity.UserID(asked.User), asked.Password)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, kind identity.Kind) (any, error) {
	var asked creation
	if err := decode(w, r, &asked); err != nil {
		return nil, err
	}
	request, err := asked.parse()
	if err != nil {
		return nil, err
	}
	issue := s.options.Identities.CreateToken
	if kind == identity.Session {
		issue = s.options.Identities.CreateSession
	}
	secret, c, err := issue(r.Context(), request)
	return created{Secret: secret, Credential: toWire(c)}, err
}

func (s *Server) check() (any, error) {
	answer := faultList{Faults: []textFault{}}
	if s.options.Check == nil {
		return answer, nil
	}
	faults, err := s.options.Check()
	for _, f := range faults {
		answer.Faults = append(answer.Faults, textFault(f))
	}
	return answer, err
}

func (s *Server) list(kind identity.Kind) any {
	answer := list{Credentials: []credential{}}
	for _, c := range s.options.Identities.Credentials(kind) {
		answer.Credentials = append(answer.Credentials, toWire(c))
	}
	return answer
}

// answer writes what do returns: a value as JSON, or an error by the table of
// errors.go. Errors that the table does not know are logged, because nobody
// else will see what was behind them.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, do func() (any, error)) {
	body, err := do()
	status := http.StatusOK
	if err != nil {
		f := faultOf(err)
		if errors.Is(f.cause, ErrFailed) {
			s.options.Log.Error().Err(err).Str("method", r.Method).Msg("command failed")
		}
		status, body = f.status, failure{Error: f.word, Message: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // NB: an error means that the command has gone
}
