// Package servertest runs the service in a test: the handler of package gateway on the actors, the identities and a
// store in memory, behind a port of this machine. Faults can be planted between the port and the handler.
//
//	s := servertest.Start(t)
//	id := s.Create(`{"days":5}`, "submit")
//	s.Fail("create", servertest.Fault{Status: 503, RetryAfter: "1"})
//	… ask s.URL with s.Token …
//	s.Requests()
//
// Only tests import it. What it serves is the one workflow of leave.yaml, or that of notice.yaml, which does something on
// its own, and its one user may do everything.
package servertest

import (
	"bytes"
	"context"
	_ "embed" // for the texts below
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"troupe/actors/actorstest"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/api"
)

// Workflow is the workflow that the service has, and User its user.
const (
	Workflow = "leave"
	User     = "john.doe"
	// Notice is the workflow of StartNotice.
	Notice = "notice"
)

var (
	//go:embed leave.yaml
	definition []byte
	//go:embed notice.yaml
	notice []byte
	//go:embed order.yaml
	order []byte
	//go:embed identity.yaml
	users []byte
)

// Server is a running service. Its methods may be called by any number of goroutines.
type Server struct {
	URL, Token string // the address, Token a token of User

	t         testing.TB
	service   http.Handler
	write     func(name, text string) // a file of the home
	workflows *workflow.Router

	mu struct {
		sync.Mutex
		now      time.Time // of the actors, see tick
		requests []Request
		faults   map[string][]Fault
		streams  *streams // those that the next Drain ends
	}
}

// Start runs a service until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, map[string]string{"workflows/leave.yaml": string(definition)})
}

// StartOrder runs a service with the workflow order, whose instances wait for a job of the type charge, until the test ends.
func StartOrder(t testing.TB) *Server {
	t.Helper()
	return start(t, map[string]string{"workflows/order.yaml": string(order)})
}

// StartNotice runs a service with the workflow notice until the test ends. It returns an instance whose event "tell" has
// sent something to a webhook that answered 500, so that it is a dead letter, and an internal event of which has failed, so that it
// is an incident.
func StartNotice(t testing.TB) (s *Server, id string) {
	t.Helper()
	s = start(t, map[string]string{"workflows/notice.yaml": string(notice)})
	id = s.post("create", api.CreateRequest{WorkflowID: Notice})
	s.post("event", api.EventRequest{WorkflowID: Notice, InstanceID: id, Event: api.SentEvent{Name: "tell"}})
	for {
		dead, err := s.workflows.Waiting.Deliveries(t.Context(), &pending.DeliveryList{State: outbox.Dead, Limit: 1})
		s.must(err)
		incidents, err := s.workflows.Waiting.Incidents(t.Context(), &pending.IncidentList{Limit: 1})
		s.must(err)
		if len(dead.Deliveries)+len(incidents.Incidents) == 2 {
			return s, id
		}
		<-time.After(time.Millisecond)
	}
}

// shown has the definitions in use. Nobody can publish here.
type shown struct {
	*catalog.Catalog
	*home.Simulator
}

func (shown) PublishDefinition(context.Context, *gateway.DefinitionRequest) (api.PublishedDefinition, error) {
	return api.PublishedDefinition{}, failure.ErrForbidden
}

type refusing struct{}

func (refusing) Send(context.Context, outbox.Attempt) outbox.Answer {
	return outbox.Answer{Status: http.StatusInternalServerError, Err: errors.New("the answer was 500")}
}
func (refusing) URL(a outbox.Attempt) string { return a.Webhook.URL }

func start(t testing.TB, files map[string]string) *Server {
	t.Helper()
	s := &Server{t: t}
	files["identity.yaml"] = string(users)
	s.mu.now = time.Date(2026, 11, 21, 9, 59, 59, 0, time.UTC)
	s.mu.faults, s.mu.streams = map[string][]Fault{}, newStreams()
	a := actorstest.Start(t, actorstest.Options{
		Files: files, Clock: s.clock, Workflow: workflow.Options{Sender: refusing{}},
	})
	s.Token = a.Token(User)
	handler, err := gateway.New(gateway.Options{})
	s.must(err)
	t.Cleanup(func() { s.must(handler.Stop(context.Background())) })
	s.workflows = a.Workflows
	s.write = a.Write
	handler.Open(gateway.Services{
		Workflows: a.Workflows, Queries: a.Workflows.Queries, Watches: a.Workflows.Watches, Changes: a.Workflows.Changes,
		Worklists: a.Workflows.Worklists, TaskWatches: a.Workflows.TaskWatches, Waiting: a.Workflows.Waiting,
		Credentials: a.Identities, Users: a.Identities, Presentations: a.Presentations, Portal: a.Portal, Migrations: a.Migrations, BulkJobs: a.Workflows.Bulk, Jobs: a.Workflows.Jobs, Definitions: shown{a.Catalog(), a.Simulator()},
	})
	s.service = handler
	port := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		port.CloseClientConnections() // streams would not end on their own
		port.Close()
	})
	s.URL = port.URL
	return s
}

// Revise publishes version 2 of Workflow, in which a node has another name. User owns it.
func (s *Server) Revise(node, name string) {
	s.t.Helper()
	s.write("workflows/leave.yaml", "version: 2\nowners: {users: ["+User+"]}\n"+strings.ReplaceAll(string(definition), node, name))
}

func (s *Server) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatalf("servertest: %v", err)
	}
}

func (s *Server) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.now
}

// tick moves the clock of the actors by a second. Each POST does it, so that the
// times in histories are known: the first one comes at 10:00:00.
func (s *Server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.now = s.mu.now.Add(time.Second)
}

// Create makes an instance, sends it events, and returns its id. public is the
// JSON of its svcPublic. It passes by Requests and faults.
func (s *Server) Create(public string, events ...string) (id string) {
	s.t.Helper()
	id = s.post("create", api.CreateRequest{WorkflowID: Workflow, Data: &api.CreateData{Public: json.RawMessage(public)}})
	for _, event := range events {
		s.Send(id, event)
	}
	return id
}

// Send sends an event as Create does.
func (s *Server) Send(id, event string) {
	s.t.Helper()
	s.post("event", api.EventRequest{WorkflowID: Workflow, InstanceID: id, Event: api.SentEvent{Name: event}})
}

func (s *Server) post(operation string, body any) (id string) {
	s.t.Helper()
	text, err := json.Marshal(body)
	s.must(err)
	r := httptest.NewRequest(http.MethodPost, api.BasePath+"/"+operation, strings.NewReader(string(text)))
	r.Header.Set("Authorization", "svc.token "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	s.tick()
	w := httptest.NewRecorder()
	s.service.ServeHTTP(w, r)
	var reply api.InstanceReply
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != http.StatusOK {
		s.t.Errorf("servertest: %s: %d %s", operation, w.Code, w.Body)
	}
	return reply.InstanceID
}

// Request is a request as it arrived.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         string
}

// Fault is what happens in place of an answer of the service.
type Fault struct {
	Status           int // Status, Code and RetryAfter are answered; a Status of 0 cuts the connection instead
	Code, RetryAfter string
	Done             bool // Done lets the service carry the request out before
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

// serve notes a request and answers with the next fault, or lets the service do it.
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

// Nobody returns an address, "host:port", where nobody listens until the test ends. The port of a server that was
// closed would not do: it may be somebody else's a moment later.
func Nobody(t testing.TB) string {
	t.Helper()
	// The near end of a connection has its port for itself and does not listen.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// With a local address the port is bound as a server's is, so that not even a connection to elsewhere shares it.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("servertest: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.LocalAddr().String()
}
