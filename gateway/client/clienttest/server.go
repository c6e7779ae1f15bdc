package clienttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What the service knows from the start.
const (
	Workflow = "leave"
	Token    = "tok_aaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	User     = "john.doe"
)

const basePath = "/workflow/api/v1/"

// Server is a running service. Its methods may be called by any number of
// goroutines.
type Server struct {
	// URL is the address.
	URL  string
	t    testing.TB
	http *httptest.Server

	mu struct {
		sync.Mutex
		instances []*instance // in the order of their ids
		answers   map[string]saved
		requests  []Request
		faults    map[string][]Fault
		log       []committed   // all entries, in the order of their commits
		forgotten int           // so many entries of log can no longer be resumed
		moved     chan struct{} // closed when log grows
		draining  chan struct{} // closed when streams are to end
	}
}

// Request is a request as it arrived.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         string
}

// Fault is what happens in place of an answer.
type Fault struct {
	// Status, Code and RetryAfter are answered; a Status of 0 cuts the connection
	// instead. Nothing was done, unless Done.
	Status           int
	Code, RetryAfter string
	// Body replaces the body of the answer.
	Body string
	// Done carries the request out before.
	Done bool
}

// saved is the answer to an idempotency key.
type saved struct {
	request string
	answer  *httptest.ResponseRecorder
}

// Start runs a service until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t}
	s.mu.answers, s.mu.faults = map[string]saved{}, map[string][]Fault{}
	s.mu.moved, s.mu.draining = make(chan struct{}), make(chan struct{})
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.http.CloseClientConnections() // streams would not end by themselves
		s.http.Close()
	})
	return s
}

// Fail makes the next request of an operation fail. Operations are create,
// event, instance, instances, choices, events, history and watch. Faults are
// used up in the order in which they were given.
func (s *Server) Fail(operation string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.faults[operation] = append(s.mu.faults[operation], faults...)
}

// Requests returns what has arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.requests)
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.mu.requests = append(s.mu.requests, Request{r.Method, r.URL.Path, r.URL.Query(), r.Header.Clone(), string(body)})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	rest, ours := strings.CutPrefix(r.URL.Path, basePath)
	if !ours {
		refuse(w, 404, "NotFound", "there is nothing here")
		return
	}
	if r.Header.Get("Authorization") != "svc.token "+Token {
		refuse(w, 401, "Unauthorized", "a valid API token or session is needed")
		return
	}
	operation, handle := s.route(r.Method, strings.Split(rest, "/"))
	if handle == nil {
		refuse(w, 404, "NotFound", "there is nothing here")
		return
	}
	if f, ok := s.nextFault(operation); ok {
		if f.Done {
			handle(httptest.NewRecorder(), r, body)
		}
		f.answer(w)
		return
	}
	handle(w, r, body)
}

func (s *Server) nextFault(operation string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.mu.faults[operation]
	if len(queue) == 0 {
		return Fault{}, false
	}
	s.mu.faults[operation] = queue[1:]
	return queue[0], true
}

func (f *Fault) answer(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler) // net/http cuts the connection
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.Body != "" {
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	refuse(w, f.Status, f.Code, "as the test wants it")
}

type handler func(w http.ResponseWriter, r *http.Request, body []byte)

// route finds the operation of a path.
func (s *Server) route(method string, path []string) (operation string, h handler) {
	instanceOf := func(h func(w http.ResponseWriter, r *http.Request, i *instance)) handler {
		return func(w http.ResponseWriter, r *http.Request, _ []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if i := s.find(path[1], path[2]); i != nil {
				h(w, r, i)
				return
			}
			refuse(w, 404, "NotFound", "there is nothing here, or nothing that you may see")
		}
	}
	switch key := method + " " + path[0] + " " + strconv.Itoa(len(path)); {
	case key == "POST create 1":
		return "create", s.once(s.create)
	case key == "POST event 1":
		return "event", s.once(s.event)
	case key == "GET choices 1":
		return "choices", func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			_, _ = fmt.Fprintf(w, `{"workflows":[{"id":%q,"name":"Leave request"}]}`, Workflow)
		}
	case key == "GET instances 2":
		return "instances", func(w http.ResponseWriter, r *http.Request, _ []byte) { s.list(w, r, path[1]) }
	case key == "GET instance 3":
		return "instance", instanceOf(s.load)
	case key == "GET instance 4" && path[3] == "events":
		return "events", instanceOf(s.events)
	case key == "GET instance 4" && path[3] == "history":
		return "history", instanceOf(s.history)
	case key == "GET watch 2":
		return "watch", func(w http.ResponseWriter, r *http.Request, _ []byte) { s.watch(w, r, path[1], "") }
	case key == "GET watch 3":
		return "watch", func(w http.ResponseWriter, r *http.Request, _ []byte) { s.watch(w, r, path[1], path[2]) }
	}
	return "", nil
}

// once answers a key that was seen before as it was answered then.
func (s *Server) once(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		before, seen := s.mu.answers[key]
		if key != "" && seen && before.request != r.URL.Path+string(body) {
			refuse(w, 422, "KeyReused", "the idempotency key was used for another request")
			return
		}
		if key == "" || !seen {
			before = saved{r.URL.Path + string(body), httptest.NewRecorder()}
			h(before.answer, r, body)
			if key != "" && before.answer.Code == 200 {
				s.mu.answers[key] = before
			}
		}
		for name, values := range before.answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(before.answer.Code)
		_, _ = w.Write(before.answer.Body.Bytes())
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code, "message": message})
}

// compact returns JSON without white space, every number as it was spelled.
func compact(text []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return "null"
	}
	return b.String()
}
