package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/export"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/statemachine/document"
)

// Identities is what the commands need of the identity service.
type Identities interface {
	Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (secret string, made identity.Credential, err error)
	Credentials(ctx context.Context, kind identity.Kind) ([]identity.Credential, error)
	Revoke(ctx context.Context, kind identity.Kind, id string) error
	SetPassword(ctx context.Context, user identity.UserID, password string) error
}

// Homes is what publishing a home needs.
type Homes interface {
	// Publish checks a packed home as one set and makes it what is in use in the whole cluster, whichever node leads
	// that. dryRun only checks it. The error of a home with faults is failure.ErrInvalid and wraps document.Faults.
	Publish(ctx context.Context, archive []byte, dryRun bool) (api.PublishedHome, error)
}

// Options says how a Server works. Path and Identities must be set.
type Options struct {
	// Path is where the socket is made: HOME/admin.sock. Its folder must exist.
	Path       string
	Identities Identities // Identities must work until Stop has returned
	// Check returns the faults for which the server would refuse the definitions in its
	// home now, and what else it says of them. Nil: there are none.
	Check func() (faults, warnings document.Faults, err error)
	// Actors returns the tree of the actors of this process, to be encoded as JSON. Nil: there is none.
	Actors func() any
	// Checkpoint makes a checkpoint of the store in a folder, for a command that copies it; the server removes the folder
	// when the command has gone. Nil: commands that ask for one are ErrUnknownRequest.
	Checkpoint func(ctx context.Context) (dir string, err error)
	// Tools are what commands do with the store, by name. Nil: there are none.
	Tools map[string]Tool
	// Exports returns how far the exports are, on all nodes. Nil: there are none.
	Exports func(context.Context) ([]export.Status, error)
	// Homes publishes homes. Nil: the server is standalone, and what asks for it is failure.ErrConflict.
	Homes Homes
	// Cluster is the node that the server is. Nil: the server is standalone.
	Cluster Cluster
	// Leader sends a command to PeerHandler of the node that leads the shard Meta, and returns
	// its answer; nil when that is this node. It waits for one until the request's context ends. After
	// failure.ErrNotLeader nothing was sent, and it is called again. Nil: the server is standalone.
	Leader func(*http.Request) (*http.Response, error)
	// Operator answers requests below /workflow. Nil: nobody does.
	Operator http.Handler
	// Log gets requests that failed with an unexpected error (error), and start and stop (debug).
	Log zerolog.Logger
}

// Limits of the socket. Its callers are commands of the same user, so nobody needs to change them.
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
	stopping chan struct{} // closed when it is to end
	stopOnce sync.Once
	tools    sync.WaitGroup // that run
}

// Start makes the socket and serves until Stop. Errors: ErrInUse, ErrNotSocket, those of the file system.
func Start(o Options) (*Server, error) {
	l, err := listen(o.Path)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", o.Path, err)
	}
	s := &Server{options: o, served: make(chan struct{}), stopping: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.routes(true),
		ReadHeaderTimeout: readMax,
		ReadTimeout:       readMax,
		WriteTimeout:      writeMax,
		ErrorLog:          stdlog.New(o.Log, "", 0),
	}
	s.http.SetKeepAlivesEnabled(false)
	go s.run(l)
	o.Log.Debug().Str("socket", o.Path).Msg("admin socket open")
	return s, nil
}

func (s *Server) run(l net.Listener) {
	defer close(s.served)
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.options.Log.Error().Err(err).Str("socket", s.options.Path).Msg("admin socket failed")
	}
}

// Stop answers what was accepted, for a few seconds at most or until ctx ends, and
// removes the socket. Calling it again waits for the first call. It has no error.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		close(s.stopping)
		// NB: the file goes first, so that the file of a new server is not removed.
		if err := os.Remove(s.options.Path); err != nil {
			s.options.Log.Warn().Err(err).Msg("admin socket could not be removed")
		}
		ctx, cancel := context.WithTimeout(ctx, drainMax)
		defer cancel()
		if err := s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close() // connections that wait for no answer
		}
		<-s.served
		s.tools.Wait()
	})
	return nil
}

func (s *Server) routes(passes bool) http.Handler {
	mux := http.NewServeMux()
	handleUpTo := func(bytesMax int64, pattern string, do func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, bytesMax)
			s.handle(w, r, do, passes && s.options.Leader != nil)
		})
	}
	handle := func(pattern string, do func(r *http.Request) (any, error)) { handleUpTo(bodyBytesMax, pattern, do) }
	for _, kind := range []identity.Kind{identity.Token, identity.Session} {
		path := pathOf(kind)
		handle("POST "+path, func(r *http.Request) (any, error) { return s.create(r, kind) })
		handle("GET "+path, func(r *http.Request) (any, error) { return s.list(r.Context(), kind) })
		handle("DELETE "+path+"/{id}", func(r *http.Request) (any, error) {
			return emptyReply{}, s.options.Identities.Revoke(r.Context(), kind, r.PathValue("id"))
		})
	}
	handle("PUT "+pathPassword, s.setPassword)
	handle("GET "+pathFaults, s.check)
	if s.options.Actors != nil {
		handle("GET "+pathActors, func(*http.Request) (any, error) { return s.options.Actors(), nil })
	}
	if s.options.Exports != nil {
		handle("GET "+pathExports, func(r *http.Request) (any, error) {
			list, err := s.options.Exports(r.Context())
			return exportList{list}, err
		})
	}
	handleUpTo(home.MaxPackedBytes, "PUT "+pathHome, s.publish)
	if s.options.Checkpoint != nil {
		mux.HandleFunc("POST "+pathMoment, s.checkpoint)
	}
	if passes { // other nodes use their own
		mux.HandleFunc("POST "+pathTools+"/{name}", s.useTool)
	}
	s.clusterRoutes(handle)
	if s.options.Operator != nil {
		mux.Handle("/workflow/", s.options.Operator)
		mux.Handle("/admin/api/", s.options.Operator)
	}
	handle("/", func(*http.Request) (any, error) { return nil, ErrUnknownRequest })
	return mux
}

func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return errors.Join(ErrUnknownRequest, err)
	}
	return nil
}

func (s *Server) setPassword(r *http.Request) (any, error) {
	var request passwordRequest
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	if request.User == "" {
		return nil, fmt.Errorf("%w: the user is missing", ErrUnknownRequest)
	}
	return emptyReply{}, s.options.Identities.SetPassword(r.Context(), identity.UserID(request.User), request.Password)
}

func (s *Server) create(r *http.Request, kind identity.Kind) (any, error) {
	var request createRequest
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	parsed, err := request.parse()
	if err != nil {
		return nil, err
	}
	secret, c, err := s.options.Identities.Create(r.Context(), kind, parsed)
	return createReply{Secret: secret, Credential: c}, err
}

func (s *Server) check(*http.Request) (any, error) {
	answer := faultList{Faults: []api.FileFault{}}
	if s.options.Check == nil {
		return answer, nil
	}
	faults, warnings, err := s.options.Check()
	answer.Faults, answer.Warnings = faultsToWire(faults), faultsToWire(warnings)
	return answer, err
}

func (s *Server) publish(r *http.Request) (any, error) {
	if s.options.Homes == nil {
		return nil, failure.Refuse(failure.ErrConflict, "%s", api.NotANode)
	}
	archive, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, errors.Join(ErrUnknownRequest, err)
	}
	published, err := s.options.Homes.Publish(r.Context(), archive, r.URL.Query().Get("dryRun") == "true")
	if faults := (document.Faults{}); errors.As(err, &faults) {
		return publishReply{Faults: faultsToWire(faults)}, nil
	}
	return publishReply{PublishedHome: published}, err
}

func (s *Server) list(ctx context.Context, kind identity.Kind) (any, error) {
	list, err := s.options.Identities.Credentials(ctx, kind)
	if list == nil {
		list = []identity.Credential{} // NB: not null
	}
	return credentialList{list}, err
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request, do func(*http.Request) (any, error), passes bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.answer(w, r, nil, errors.Join(ErrUnknownRequest, err))
		return
	}
	var value any
	here := func() error {
		r.Body = io.NopCloser(bytes.NewReader(body))
		value, err = do(r)
		return err
	}
	err = here()
	if passes && errors.Is(err, failure.ErrNotLeader) {
		var answered bool
		if answered, err = s.pass(w, r, body, here); answered {
			return
		}
	}
	s.answer(w, r, value, err)
}

// checkpoint keeps a folder for a command until it goes or the server stops.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})); err != nil {
		s.answer(w, r, nil, err)
		return
	}
	dir, err := s.options.Checkpoint(r.Context())
	if err != nil {
		s.answer(w, r, nil, err)
		return
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			s.options.Log.Warn().Err(err).Str("folder", dir).Msg("a checkpoint could not be removed; the next start does it")
		}
	}()
	s.answer(w, r, checkpointReply{Folder: filepath.Base(dir)}, nil)
	_ = c.Flush() // NB: an error means that the command has gone, and so does the end of its context
	select {
	case <-r.Context().Done():
	case <-s.stopping:
	}
}

// answer writes a value as JSON, or an error as errorMappings says.
// Errors that are in no row are logged, because the command shows only their text.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, value any, err error) {
	status := http.StatusOK
	if err != nil {
		f := mappingOf(err)
		if errors.Is(f.cause, ErrFailed) {
			s.options.Log.Error().Err(err).Str("method", r.Method).Msg("admin request failed")
		}
		status, value = f.status, errorReply{Error: f.label, Message: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // NB: an error means that the command has gone
}

// Cluster is what the commands need of the node that the server is.
type Cluster interface {
	// Invite returns the text of a key with which one node can join.
	Invite(ctx context.Context, expires time.Duration) (string, error)
	// Remove begins the removal of a node; lost: it will not come back.
	Remove(ctx context.Context, node string, lost bool) error
	// Status is what `troupe cluster status` shows, to be encoded as JSON.
	Status() any
}

// errAlone is the error of commands for a cluster at a standalone server.
var errAlone = failure.Refuse(failure.ErrConflict, "this server is standalone: `troupe cluster init` makes its home the first node of a cluster")

func (s *Server) clusterRoutes(handle func(pattern string, do func(r *http.Request) (any, error))) {
	with := func(do func(c Cluster, r *http.Request) (any, error)) func(*http.Request) (any, error) {
		return func(r *http.Request) (any, error) {
			if s.options.Cluster == nil {
				return nil, errAlone
			}
			return do(s.options.Cluster, r)
		}
	}
	handle("GET "+pathCluster, with(func(c Cluster, _ *http.Request) (any, error) { return c.Status(), nil }))
	handle("POST "+pathInvite, with(func(c Cluster, r *http.Request) (any, error) {
		var request inviteRequest
		if err := decode(r, &request); err != nil {
			return nil, err
		}
		key, err := c.Invite(r.Context(), request.Expires)
		return inviteReply{key}, err
	}))
	handle("DELETE "+pathNodes+"/{id}", with(func(c Cluster, r *http.Request) (any, error) {
		return emptyReply{}, c.Remove(r.Context(), r.PathValue("id"), r.URL.Query().Get("lost") == "true")
	}))
}

// passMax is how long a command waits for a node that leads the shard Meta, and passPause the pause between two tries.
const (
	passMax   = 10 * time.Second
	passPause = 50 * time.Millisecond
)

// PeerHandler answers commands that other nodes pass on, because this one leads the shard Meta. Only
// nodes of the cluster may reach it.
func (s *Server) PeerHandler() http.Handler { return s.routes(false) }

// pass has the node that leads the shard Meta carry a command out, and answers with what that says.
// Nothing was done here yet; when this node has come to lead, here does it, and nothing is answered.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, body []byte, here func() error) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), passMax)
	defer cancel()
	for {
		request := r.Clone(ctx)
		request.RequestURI, request.Body, request.ContentLength = "", io.NopCloser(bytes.NewReader(body)), int64(len(body))
		answer, err := s.options.Leader(request)
		switch {
		case errors.Is(err, failure.ErrNotLeader): // a leader is believed in that is gone
		case err != nil:
			return false, err
		case answer == nil:
			if err := here(); !errors.Is(err, failure.ErrNotLeader) {
				return false, err
			}
		case answer.StatusCode != http.StatusMisdirectedRequest:
			defer func() { _ = answer.Body.Close() }()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
			return true, nil
		default:
			_ = answer.Body.Close()
		}
		select {
		case <-time.After(passPause):
		case <-ctx.Done():
			return false, failure.Refuse(failure.ErrUnavailable, "no node leads the cluster's own shard: are most of its nodes running?")
		}
	}
}
