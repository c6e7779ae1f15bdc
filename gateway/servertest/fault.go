package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"troupe/gateway/api"
)

// Request is a request as it arrived.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         string
}

// Fault is what happens in place of an answer of the service.
type Fault struct {
	// Status, Code and RetryAfter are answered; a Status of 0 cuts the connection
	// instead.
	Status           int
	Code, RetryAfter string
	// Done lets the service carry the request out before.
	Done bool
}

// Fail plants faults for the next requests of an operation, which is the first
// word of the path: create, event, instance, instances, choices, watch.
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

// streams are the watches that were open at some time.
type streams struct {
	ctx  context.Context
	end  context.CancelFunc
	open sync.WaitGroup
}

func newStreams() *streams {
	s := &streams{}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Drain ends the streams that are open, as a service does that stops, and returns
// when they have ended. New ones are taken.
func (s *Server) Drain() {
	s.mu.Lock()
	old := s.mu.streams
	s.mu.streams = newStreams()
	s.mu.Unlock()
	old.end()
	old.open.Wait()
}

// serve notes a request and answers with the next fault, or lets the service do
// it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	operation, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, api.BasePath+"/"), "/")
	if r.Method == http.MethodPost {
		s.tick()
	}
	s.mu.Lock()
	s.mu.requests = append(s.mu.requests, Request{r.Method, r.URL.Path, r.URL.Query(), r.Header.Clone(), string(body)})
	queue, open := s.mu.faults[operation], s.mu.streams
	s.mu.faults[operation] = queue[min(1, len(queue)):]
	open.open.Add(1)
	s.mu.Unlock()
	defer open.open.Done()
	if len(queue) > 0 {
		if queue[0].Done {
			s.service.ServeHTTP(httptest.NewRecorder(), r)
		}
		queue[0].answer(w)
		return
	}
	if operation == "watch" {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(open.ctx, cancel)()
		r = r.WithContext(ctx)
	}
	s.service.ServeHTTP(w, r)
}

func (f *Fault) answer(w http.ResponseWriter) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler) // net/http cuts the connection
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(api.Fault{Error: f.Code, Message: "as the test wants it"})
}
