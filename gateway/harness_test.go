package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/job"
	"troupe/actors/logtest"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/watch"
	"troupe/actors/workflow"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/provider"
	"troupe/gateway/wiretest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// The credentials of the fakes. Their letters have no meaning.
const (
	tokenAnn    = "tok_aaaaaaaaaaaaaaaa.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	tokenBob    = "tok_bbbbbbbbbbbbbbbb.BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
	sessionAnn  = "ses_cccccccccccccccc.CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC"
	tokenNobody = "tok_dddddddddddddddd.DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"
	tokenMod    = "tok_eeeeeeeeeeeeeeee.EEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE"
	instanceOne = "01JD0000000000000000000001"
)

var (
	ann = &identity.Principal{ID: "ann", Name: "Ann", Roles: []string{"clerk"}, Privileges: []string{"mod-form"}}
	bob = &identity.Principal{ID: "bob", Name: "Bob"}
	mod = &identity.Principal{ID: "mod", Name: "Mo", Privileges: []string{"mod-workflows"}}
)

type fakeCredentials struct{}

func (fakeCredentials) Authenticate(kind identity.Kind, credential string) (*identity.Principal, error) {
	kind &^= identity.Ending // none is
	switch {
	case kind == identity.Token && credential == tokenAnn, kind == identity.Session && credential == sessionAnn:
		return ann, nil
	case kind == identity.Token && credential == tokenBob:
		return bob, nil
	case kind == identity.Token && credential == tokenMod:
		return mod, nil
	}
	for set, user := range usersOfSets {
		if kind == identity.Session && credential == sessionOf(set) {
			return user, nil
		}
	}
	return nil, failure.ErrUnauthorized
}

func (fakeCredentials) Principal(user identity.UserID, roles []string) (*identity.Principal, error) {
	for _, p := range append([]*identity.Principal{ann, bob, mod}, usersOfSets...) {
		if p.ID == user && len(roles) > 0 {
			more := *p
			more.Roles = append(slices.Clone(p.Roles), roles...)
			p = &more
		}
		if p.ID == user {
			return p, nil
		}
	}
	return nil, failure.ErrUnauthorized
}

// The only user of fakeSessions with a password, and what it is.
const (
	userAnn     = "ann"
	passwordAnn = `a "quoted" \ oak`
	sessionNew  = "ses_nnnnnnnnnnnnnnnn.NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN"
	signInBody  = `{"user":"ann","password":"a \"quoted\" \\ oak"}`
)

// planned counts the calls of a fake, remembers the last request that had a body, and
// has the error that answers all of them.
type planned struct {
	mu    sync.Mutex
	count int // guarded by mu, as is the rest
	asked any
	fail  error
}

func (p *planned) ask(notes ...func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	for _, note := range notes {
		note()
	}
	return p.fail
}

func (p *planned) setFail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = err
}

func (p *planned) calls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

type fakeSessions struct {
	planned
	address netip.Addr
	ended   []string
	vouched []identity.Vouched
	// elsewhere is what Writable returns, and endFails what SignOut does.
	elsewhere, endFails error
}

func (f *fakeSessions) Writable() error { return f.elsewhere }

func (f *fakeSessions) SignIn(_ context.Context, user identity.UserID, password string, address netip.Addr) (string, *identity.Principal, error) {
	if err := f.ask(func() { f.address, f.asked = address, [2]string{string(user), password} }); err != nil {
		return "", nil, err
	}
	if user == userAnn && password == passwordAnn {
		return sessionNew, ann, nil
	}
	return "", nil, fmt.Errorf("sign in %q: %w", user, failure.ErrUnauthorized)
}

// SignInVouched signs ann in, and turns everybody else away.
func (f *fakeSessions) SignInVouched(_ context.Context, v identity.Vouched) (string, *identity.Principal, error) {
	if err := f.ask(func() { f.vouched = append(f.vouched, v) }); err != nil {
		return "", nil, err
	}
	if v.User == userAnn {
		return sessionNew, ann, nil
	}
	return "", nil, fmt.Errorf("sign in: %w", failure.ErrUnauthorized)
}

func (f *fakeSessions) SignOut(_ context.Context, session string) error {
	return errors.Join(f.endFails, f.ask(func() { f.ended = append(f.ended, session) }))
}

func (*fakeSessions) Directory() *identity.Directory {
	d, err := identity.ParseDirectory("identity.yaml", []byte("roles: [{id: clerk}]\nusers: [{id: ann, roles: [clerk]}]\n"))
	if err != nil {
		panic(err)
	}
	return d
}

func (f *fakeSessions) Create(_ context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error) {
	return tokenAnn, identity.Credential{ID: tokenAnn[:20], Kind: kind, User: c.User}, f.ask()
}

func (f *fakeSessions) Credentials(context.Context, identity.Kind) ([]identity.Credential, error) {
	return nil, f.ask()
}

func (f *fakeSessions) Revoke(context.Context, identity.Kind, string) error { return f.ask() }

// fakeProvider takes one cookie, and brings back whom the parameter user names.
type fakeProvider struct {
	planned
	next string
}

const flowCookie = "a-flow-that-was-sealed-by-the-provider-client"

func (f *fakeProvider) Name() string { return `Staff & "friends"` }

func (f *fakeProvider) Begin(_ context.Context, next, redirect string) (provider.Start, error) {
	if err := f.ask(func() { f.next, f.asked = next, next+" "+redirect }); err != nil {
		return provider.Start{}, fmt.Errorf("begin: %w", err)
	}
	return provider.Start{Location: "https://login.example/auth?x=y", Cookie: flowCookie}, nil
}

func (f *fakeProvider) Finish(_ context.Context, cookie string, query url.Values) (provider.Person, error) {
	if cookie != flowCookie {
		return provider.Person{}, fmt.Errorf("finish: %w", provider.ErrFlow)
	}
	person := provider.Person{Next: f.next}
	if err := f.ask(); err != nil {
		return person, fmt.Errorf("finish: %w", err)
	}
	person.User, person.Roles = identity.UserID(query.Get("user")), []identity.RoleID{"clerk"}
	return person, nil
}

// with returns services whose workflows, and what stands beside them, are f.
func (f *fakeWorkflows) with(s Services) Services {
	s.Workflows, s.Queries, s.Watches, s.Changes, s.Waiting = f, f, f, f, f
	s.Worklists, s.TaskWatches, s.Jobs = worklists{f}, worklists{f}, fakeJobs{f}
	return s
}

// fakeWorkflows answers from functions. A nil function answers with a small instance.
type fakeWorkflows struct {
	planned
	send  func(context.Context, *message.Event) (*message.Reply, error)
	load  func(context.Context, *message.Load) (*message.Reply, error)
	query func(context.Context, *query.Request, func([]byte) error) (*query.End, error)
	watch func(context.Context, *watch.Request, func(watch.Event) error) error
	// activate answers fakeJobs.
	activate func(context.Context, *job.Activation) ([]job.Leased, error)
	paused   string // why they give none; "": they do
	stop     func()

	backlog atomic.Int64
}

func (f *fakeWorkflows) Create(_ context.Context, r *message.Create) (*message.Reply, error) {
	return smallReply(r.WorkflowID, instanceOne, 1, r.WithHistory), f.ask(func() { f.asked = r })
}

func (f *fakeWorkflows) Send(ctx context.Context, r *message.Event) (*message.Reply, error) {
	err := f.ask(func() { f.asked = r })
	if f.send != nil {
		return f.send(ctx, r)
	}
	return smallReply(r.WorkflowID, r.InstanceID, 2, r.WithHistory), err
}

func (f *fakeWorkflows) PostEvent(r *message.Event, to message.Recipient) (workflow.Posted, error) {
	reply, err := f.Send(context.Background(), r)
	if err == nil {
		to.Answered(reply, nil)
	}
	return workflow.Posted{}, err
}

func (f *fakeWorkflows) PostCreate(r *message.Create, to message.Recipient) (workflow.Posted, error) {
	reply, err := f.Create(context.Background(), r)
	if err == nil {
		to.Answered(reply, nil)
	}
	return workflow.Posted{}, err
}

func (f *fakeWorkflows) Permission(*message.Load, string) (message.Permission, error) {
	return message.Permission{Allowed: true, Why: []string{"because"}}, f.ask()
}

func (f *fakeWorkflows) Backlog() int64   { return f.backlog.Load() }
func (f *fakeWorkflows) InFlightMax() int { return 16_384 }

func (f *fakeWorkflows) KeepKey(*identity.Principal, message.Retry) error { return f.ask() }

func (f *fakeWorkflows) Load(ctx context.Context, r *message.Load) (*message.Reply, error) {
	err := f.ask()
	if f.load != nil {
		return f.load(ctx, r)
	}
	return smallReply(r.WorkflowID, r.InstanceID, 2, r.WithHistory), err
}

func (f *fakeWorkflows) Query(ctx context.Context, r *query.Request, item func([]byte) error) (*query.End, error) {
	err := f.ask()
	if f.query != nil {
		return f.query(ctx, r, item)
	}
	if err != nil {
		return nil, err
	}
	if err := item([]byte(listedOne)); err != nil {
		return nil, err
	}
	return smallEnd(), item([]byte(listedTwo))
}

// smallEnd is the end of a query of two instances that was a scan.
func smallEnd() *query.End {
	return &query.End{Count: 2, Explain: &query.Explain{Plan: "scan", RecordsRead: 2, Matched: 2}}
}

func (f *fakeWorkflows) Events(*message.Load) (*message.Events, error) {
	return &message.Events{Sequence: 2, Of: presented(), Events: []statemachine.Available{{Name: "approve", Guard: statemachine.GuardTrue}}}, f.ask()
}

func (f *fakeWorkflows) History(*message.History) (*message.Page, error) {
	return &message.Page{Entries: []byte(entryOfAnn + "," + entryOfBob)}, f.ask()
}

func (f *fakeWorkflows) Watch(ctx context.Context, r *watch.Request, tell func(watch.Event) error) error {
	err := f.ask()
	if f.watch != nil {
		return f.watch(ctx, r, tell)
	}
	if err != nil {
		return err
	}
	if err := tell(watch.Event{Kind: watch.Opened, ID: "p1"}); err != nil {
		return err
	}
	return tell(watch.Event{Kind: watch.Entry, ID: "p2", Data: []byte(watchedOne)})
}

func (f *fakeWorkflows) Changes(_ context.Context, r *changefeed.Request) (*changefeed.Page, error) {
	row := &changefeed.Row{Workflow: "order", Sequence: 1}
	page := &changefeed.Page{Next: "n", Changes: []*changefeed.Entry{{Row: row, Name: instanceOne, Text: []byte(entryOfAnn), States: []byte(`[]`)}}}
	return page, f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) StopWatching() {
	if f.stop != nil {
		f.stop()
	}
}

func (f *fakeWorkflows) List() ([]catalog.Listed, error) {
	return canned[[]catalog.Listed]("workflows"), f.ask()
}

func (f *fakeWorkflows) Text(_ string, version uint64) (catalog.Text, error) {
	return catalog.Text{Version: max(version, 1), File: "workflows/leave.yaml", Text: "id: leave\n", Refs: map[string]string{"a.schema.json": "{}"}}, f.ask()
}

func (f *fakeWorkflows) PublishDefinition(_ context.Context, r *DefinitionRequest) (api.PublishedDefinition, error) {
	err := f.ask(func() {
		f.asked = fmt.Sprint(r.Caller.ID, " ", r.WorkflowID, " ", r.Version, " ", r.File, " ", string(r.Text), " ", r.DryRun)
	})
	return api.PublishedDefinition{ID: "leave", Version: 3, Current: true, Warnings: []api.FileFault{}}, err
}

func (f *fakeWorkflows) Simulate(_ context.Context, r *home.Simulation) (json.RawMessage, error) {
	err := f.ask(func() {
		f.asked = fmt.Sprint(r.Caller.ID, " simulates ", r.Workflow, " ", r.File, " ", string(r.Text), " ", r.As, " ", string(r.Steps))
	})
	return json.RawMessage(`{"steps":[]}`), err
}

func (f *fakeWorkflows) Retire(_ context.Context, workflow string, version uint64, by *identity.Principal) ([]uint64, error) {
	err := f.ask(func() { f.asked = fmt.Sprint(by.ID, " retires ", workflow, " ", version) })
	return []uint64{1, 2}, err
}

func (f *fakeWorkflows) PublishHome(_ context.Context, _ *identity.Principal, archive []byte, dryRun bool) (api.PublishedHome, error) {
	err := f.ask(func() { f.asked = fmt.Sprint(string(archive), dryRun) })
	return api.PublishedHome{Workflows: 1, Warnings: []api.FileFault{}}, err
}

func (f *fakeWorkflows) Choices(*identity.Principal) []catalog.Choice {
	_ = f.ask() // the caller is told of no error
	return nil
}

func smallReply(workflowID, instanceID string, sequence uint64, withHistory bool) *message.Reply {
	return &message.Reply{
		WorkflowID: workflowID, InstanceID: instanceID, Sequence: sequence, WithHistory: withHistory,
		Public: data.Value(`{}`), Private: data.Value(`{}`), States: data.Value(`[{"stateMachineId":"main","nodeId":"draft"}]`),
		History: []byte(entryOfAnn),
	}
}

// What the fakes show of two instances, an event and two entries of a history.
const (
	listedOne  = `{"_id":"` + instanceOne + `","workflowId":"leave","svcPublic":{},"states":[]}`
	listedTwo  = `{"_id":"01JD0000000000000000000002","workflowId":"leave","svcPublic":{},"states":[]}`
	entryOfAnn = `{"user":"ann","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-01-02T03:04:05.006Z"}`
	entryOfBob = `{"user":"bob","startState":["draft"],"transitionEvent":"approve","endState":["draft"],"ts":"2026-01-02T03:04:05.007Z"}`
	watchedOne = `{"workflowId":"leave","instanceId":"` + instanceOne + `","sequence":1,"entry":` + entryOfAnn + `,"states":[]}`
)

// testServer is a started server with its fakes. Its exchanges are held against
// openapi.yaml.
type testServer struct {
	*Server
	observed  http.Handler
	workflows *fakeWorkflows
	sessions  *fakeSessions
	portal    *fakePortal
	provider  *fakeProvider
	log       *logtest.Log
	client    *wiretest.Client
}

func startServer(t testing.TB, o Options, workflows *fakeWorkflows) *testServer {
	t.Helper()
	return startServerOn(t, o, workflows, net.Listen)
}

func startServerOn(t testing.TB, o Options, workflows *fakeWorkflows, listen listenFunc) *testServer {
	t.Helper()
	s := startClosedOn(t, o, listen)
	s.workflows = workflows
	if workflows == nil {
		s.workflows = new(fakeWorkflows)
	}
	s.sessions, s.portal, s.provider = new(fakeSessions), new(fakePortal), new(fakeProvider)
	s.Open(s.workflows.with(Services{Presentations: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Identities: s.sessions, Portal: s.portal, Provider: s.provider, Repository: fakeFiles{}, Templates: fakeFiles{}, Homes: s.workflows, Definitions: s.workflows, Migrations: s.workflows, BulkJobs: fakeBulk{s.workflows}, Vitals: s.workflows.vitals, Load: s.workflows.hour, Backups: s.workflows.backups, Exports: s.workflows.exports}))
	return s
}

func startClosed(t testing.TB, o Options) *testServer {
	t.Helper()
	return startClosedOn(t, o, net.Listen)
}

func startClosedOn(t testing.TB, o Options, listen listenFunc) *testServer {
	t.Helper()
	o.Addr = "127.0.0.1:0"
	// A machine may stand still between a connection and its request.
	o.HeaderReadMax = cmp.Or(o.HeaderReadMax, time.Minute)
	log := new(logtest.Log)
	o.Log = zerolog.New(log)
	server, err := New(o)
	require.NoError(t, err, "New")
	server.listen = listen
	observed := observe(t, server)
	server.http.Handler = observed
	require.NoError(t, server.Start(), "Start")
	t.Cleanup(func() { stop(t, server) }) // NB: before the observer says what it saw
	return &testServer{Server: server, observed: observed, log: log, client: &wiretest.Client{
		Address: func() (string, error) { return server.Addr().String(), nil },
	}}
}

func stop(tb testing.TB, s interface{ Stop(context.Context) error }) {
	tb.Helper()
	assert.NoError(tb, s.Stop(context.Background()), "Stop")
}

func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.observed.ServeHTTP(w, r) }

type (
	request = wiretest.Request
	answer  = wiretest.Answer
)

const (
	withToken    = "Authorization: svc.token " + tokenAnn
	withModToken = "Authorization: svc.token " + tokenMod // of a holder of mod-workflows
	asBob        = "Authorization: svc.token " + tokenBob
)

// do sends a request below the base path, on a connection of its own.
func (s *testServer) do(t testing.TB, r request) answer {
	t.Helper()
	r.Path = s.kernel.Options.BasePath + r.Path
	return s.client.Send(t, r)
}

func (s *testServer) rawErr(t testing.TB, text string) (string, error) {
	t.Helper()
	c := s.open(t, text)
	_ = c.(*net.TCPConn).CloseWrite() // the server may have reset the connection already
	reply, err := io.ReadAll(c)
	return string(reply), err
}

// connect makes a connection, by a pipe to a server that is on pipes.
func (s *testServer) connect(t testing.TB) net.Conn {
	t.Helper()
	connect := s.client.Connect
	if connect == nil {
		connect = func() (net.Conn, error) { return s.client.Dial() }
	}
	c, err := connect()
	require.NoError(t, err)
	return c
}

const eventBody = `{"workflowId":"leave","instanceId":"` + instanceOne + `","event":{"name":"approve","data":{"a":1}}}`

const createBody = `{"workflowId":"leave","data":{"svcPublic":{"a":1},"svcPrivate":{"b":2}}}`

func post(route, body string, headers ...string) request {
	return request{Method: "POST", Path: "/workflow/api/v1/" + route, Body: body, Headers: append([]string{withToken}, headers...)}
}

func postAsBob(route, body string) request {
	return request{Method: "POST", Path: "/workflow/api/v1/" + route, Body: body, Headers: []string{asBob}}
}

func get(path string, headers ...string) request {
	return request{Method: "GET", Path: path, Headers: append([]string{withToken}, headers...)}
}

func routes() []kernel.Route { return newGroups("").routes() }
