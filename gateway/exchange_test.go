package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/logtest"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/actors/template"
	"troupe/gateway/internal/kernel"
)

// TestPanic holds gateway/INTERFACE.md, "Messages": a panic is a 500 with an id
// that is in the log, and nothing of the error; the next request works.
func TestPanic(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{
		load: func(context.Context, *message.Load) (*message.Reply, error) { panic("secret thing") },
	})
	a := s.do(t, get("/workflow/api/v1/instance/leave/i1"))
	assert.True(t, a.Status == 500 && a.Label() == "Internal" && !strings.Contains(a.Body, "secret"), "got %d %s, want 500 Internal without the reason", a.Status, a.Body)
	id := a.Message()[strings.LastIndexByte(a.Message(), ' ')+1:]
	log := s.log.String()
	assert.True(t, strings.Contains(log, `"request":"`+id+`"`) && strings.Contains(log, "secret thing") && strings.Contains(log, "exchange_test.go"), log)
	assert.Equal(t, 200, s.do(t, post("event", eventBody)).Status, "the next request")
	m := s.Metrics()
	assert.True(t, m.Panics == 1 && m.InFlight == 0, "metrics: got %d panics and %d in flight, want 1 and 0", m.Panics, m.InFlight)
}

// bigItem makes lists that do not fit into one piece. The end of a list is not in it.
var bigItem = []byte(`{"_id":"i1","workflowId":"leave","states":[],"svcPublic":{"a":"` + strings.Repeat("x", 10_000) + `"}}`)

// TestListsThatFail holds gateway/INTERFACE.md, "Budget", and gateway/INTERFACE.md,
// "What an answer means": before the first byte a status, after it the end of the
// connection.
func TestListsThatFail(t *testing.T) {
	const before, after = 3, 20_000 // items; a piece has 64 KiB
	const instances = "/workflow/api/v1/instances/leave HTTP/1."
	for line, rest := range map[string]string{
		"instances": instances + "1\r\nHost: x\r\n" + withToken, "instances, HTTP/1.0": instances + "0\r\nHost: x\r\n" + withToken,
		"forms": "/form-portal/forms/mysubmitted HTTP/1.1\r\nHost: x\r\n" + withPortal, "files": filesPath + " HTTP/1.1\r\nHost: x\r\n" + withToken,
	} {
		for _, items := range []int{before, after} {
			for status, fail := range map[string]func() error{
				" 503 ": func() error { return fmt.Errorf("query: %w", failure.ErrBusy) },
				" 500 ": func() error { panic("in the middle") },
			} {
				t.Run(fmt.Sprintf("%s after %d items,%s", line, items, status), func(t *testing.T) {
					list := func(item func() error) error {
						for range items {
							if err := item(); err != nil {
								return err
							}
						}
						return fail()
					}
					s := startServer(t, Options{}, &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
						return nil, list(func() error { return item([]byte(`{"_id":"i1","workflowId":"leave","states":[],"svcPublic":{}}`)) })
					}})
					s.portal.list = func(item func(*formportal.Summary) error) error {
						return list(func() error { return item(leaveForm) })
					}
					s.Open(s.workflows.with(Services{Credentials: fakeCredentials{}, Portal: s.portal, Repository: fakeFiles{list: func(yield func(string) error) error {
						return list(func() error { return yield("/a.rml") })
					}}}))
					text, err := s.rawErr(t, "GET "+rest+"\r\n\r\n")
					if items == before {
						assert.True(t, err == nil && strings.Contains(text[:20], status) && strings.Contains(text, "\r\n\r\n{\"error\":"), "%v %v %v", text, err, status)
						return
					}
					// NB: a reset takes away what was not read yet, so nothing is said
					// about text; whatever arrived must not look whole.
					assert.True(t, errors.Is(err, syscall.ECONNRESET) && !strings.Contains(text, "]}") && !strings.HasSuffix(text, "]\r\n0\r\n\r\n"), "got the end %v behind %d bytes, want a reset", err, len(text))
					assert.Equal(t, uint64(1), s.Metrics().Cut, "answers were aborted, want 1")
				})
			}
		}
	}
}

// endless is a list that ends when it cannot be sent; ended gets the reason.
func endless() (workflows *fakeWorkflows, ended <-chan error) {
	end := make(chan error, 1)
	return &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for {
			if err := item(bigItem); err != nil {
				end <- err
				return nil, err
			}
		}
	}}, end
}

// TestCallerLeavesAStream holds that a query ends when nobody reads it.
func TestCallerLeavesAStream(t *testing.T) {
	workflows, ended := endless()
	s := startServer(t, Options{}, workflows)
	c := s.open(t, "GET /workflow/api/v1/instances/leave HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n\r\n")
	_, err := io.ReadFull(c, make([]byte, 100_000))
	require.NoError(t, err)
	_ = c.Close()
	assert.ErrorIs(t, <-ended, kernel.ErrAborted)
	waitFor(t, "the answer to be counted as aborted", func() bool { return s.Metrics().Cut == 1 })
}

// TestAccessLog holds that requests are logged at debug only, and no secret and no data
// at any level (persistence/PROMISES.md, "P21").
func TestAccessLog(t *testing.T) {
	const private = "PRIVATEDATA"
	for level, lines := range map[zerolog.Level][]string{
		zerolog.DebugLevel: {`"route":"create"`, `"status":200`, `"status":500`, `"status":400`, `"user":"ann"`, `"level":"debug"`},
		zerolog.InfoLevel:  {`"level":"error"`},
	} {
		log := new(logtest.Log)
		server, err := New(Options{Log: zerolog.New(log).Level(level)})
		require.NoError(t, err)
		workflows := &fakeWorkflows{send: func(context.Context, *message.Event) (*message.Reply, error) { panic("no") }}
		server.Open(workflows.with(Services{Credentials: fakeCredentials{}}))
		for _, r := range []request{
			post("create", `{"workflowId":"w","data":{"svcPrivate":{"k":"`+private+`"}}}`),
			post("event", `{"workflowId":"w","instanceId":"i","event":{"name":"n","data":{"k":"`+private+`"}}}`),
			post("create", `{"`+private+`":1}`, "Cookie: session="+sessionAnn),
		} {
			server.ServeHTTP(newRecorder(), newTestRequest(r.Method, r.Path, r.Body, r.Headers...))
		}
		text := log.String()
		for _, want := range lines {
			assert.Contains(t, text, want, "%v: the log lacks", level)
		}
		for _, never := range []string{tokenAnn, sessionAnn, private} {
			assert.NotContains(t, text, never, "%v: the log holds", level)
		}
		assert.False(t, level == zerolog.InfoLevel && strings.Contains(text, `"status"`), "the log has requests at info: %s", text)
	}
}

// TestRoutesWithoutAnAccessPolicyAreRefused holds that a route without a policy is
// nobody's (persistence/PROMISES.md, "P18").
func TestRoutesWithoutAnAccessPolicyAreRefused(t *testing.T) {
	handle := func(*kernel.Exchange) error { return nil }
	good := kernel.Route{Name: "a", Method: "GET", Path: "/a", Access: kernel.SignedIn(identity.Token), Handle: handle}
	with := func(change func(*kernel.Route)) kernel.Route {
		r := good
		change(&r)
		return r
	}
	for line, c := range map[string]struct {
		table []kernel.Route
		want  string
	}{
		"a good row":                {[]kernel.Route{good}, ""},
		"no policy":                 {[]kernel.Route{with(func(r *kernel.Route) { r.Access = kernel.Access{} })}, "does not declare who may use it"},
		"a privilege for nobody":    {[]kernel.Route{with(func(r *kernel.Route) { r.Access, r.Privilege = kernel.Probed, "x" })}, "no credential"},
		"no name":                   {[]kernel.Route{with(func(r *kernel.Route) { r.Name = "" })}, "no name"},
		"no handler":                {[]kernel.Route{with(func(r *kernel.Route) { r.Handle = nil })}, "no handler"},
		"one name twice":            {[]kernel.Route{good, with(func(r *kernel.Route) { r.Path = "/b" })}, "name is taken"},
		"one path twice":            {[]kernel.Route{good, with(func(r *kernel.Route) { r.Name = "b" })}, "cannot be registered"},
		"a parameter beside a word": {[]kernel.Route{good, with(func(r *kernel.Route) { r.Name, r.Path = "b", "/:x" })}, "cannot be registered"},
		"a path without a slash":    {[]kernel.Route{with(func(r *kernel.Route) { r.Path = "a" })}, "cannot be registered"},
	} {
		_, err := newServer(Options{}, func([]kernel.Route) []kernel.Route { return c.table })
		assert.True(t, (err != nil) == (c.want != "") && strings.Contains(fmt.Sprint(err), c.want), "%s: got %v, want %q", line, err, c.want)
	}
}

// TestReadBody holds what the reader does with sources that are unusual.
func TestReadBody(t *testing.T) {
	free := func(int64) error { return nil }
	text := strings.Repeat("0123456789", 5000)
	for line, c := range map[string]struct {
		body   io.Reader
		length int64
		want   error
	}{
		"known length":                 {strings.NewReader(text), int64(len(text)), nil},
		"unknown length":               {strings.NewReader(text), -1, nil},
		"byte by byte":                 {iotest.OneByteReader(strings.NewReader(text)), -1, nil},
		"the end together with bytes":  {iotest.DataErrReader(strings.NewReader(text)), int64(len(text)), nil},
		"an error in the middle":       {iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(text))), int64(len(text)), failure.ErrInvalid},
		"a length that is too large":   {strings.NewReader(text), 60_001, failure.ErrTooLarge},
		"more than the limit unknown":  {strings.NewReader(text + text), -1, failure.ErrTooLarge},
		"exactly the limit":            {strings.NewReader(text + text[:10_000]), -1, nil},
		"exactly the limit and one on": {strings.NewReader(text + text[:10_001]), -1, failure.ErrTooLarge},
	} {
		r := newTestRequest("POST", "/", "")
		r.Body, r.ContentLength = io.NopCloser(c.body), c.length
		got, err := kernel.ReadBody(newRecorder(), r, 60_000, free)
		assert.True(t, errors.Is(err, c.want) && (c.want != nil || strings.HasPrefix(string(got), text)), "%s: got %d bytes and %v, want %v", line, len(got), err, c.want)
	}
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r := newTestRequest("GET", "/", "")
		r.Body = body
		got, err := kernel.ReadBody(newRecorder(), r, 10, free)
		assert.True(t, len(got) <= 0 && err == nil, "no body: got %d bytes and %v", len(got), err)
	}
}

// fakeFiles lists what list says, and has templates without parameters. Its zero
// value has nothing.
type fakeFiles struct {
	list func(yield func(string) error) error
	fail error // of Parameters
}

func (f fakeFiles) List(_ context.Context, _ *identity.Principal, _ string, yield func(string) error) error {
	if f.list == nil {
		return nil
	}
	return f.list(yield)
}

func (f fakeFiles) Parameters(context.Context, *identity.Principal, template.Kind, string) ([]template.Param, error) {
	return []template.Param{}, f.fail
}

const filesPath = "/repository/api/v1/list-files?extension=rml"

// pieces takes an answer and notes the largest piece that it came in.
type pieces struct {
	recorder
	largest int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.largest = max(p.largest, len(text))
	return p.recorder.Write(text)
}

// TestALongListIsStreamed holds that a list of any length needs the memory of one
// piece.
func TestALongListIsStreamed(t *testing.T) {
	const forms = 20_000
	s := startServer(t, Options{}, nil)
	s.portal.list = func(item func(*formportal.Summary) error) error {
		for range forms {
			if err := item(leaveForm); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		return nil
	}
	request := newTestRequest("GET", "/form-portal/forms/mycurrent", "", withPortal)
	w := &pieces{recorder: *newRecorder()}
	s.ServeHTTP(w, request)
	assert.Equal(t, "["+strings.Repeat(leaveJSON+",", forms-1)+leaveJSON+"]", w.body.String(), "got %d bytes", w.body.Len())
	assert.True(t, w.largest <= kernel.StreamBytes+len(leaveJSON)+1 && w.header.Get("Content-Length") == "", "%v %v", w.largest, w.header.Get("Content-Length"))
	perForm := testing.AllocsPerRun(1, func() {
		w.body.Reset()
		s.Server.ServeHTTP(w, request)
	}) / forms
	assert.LessOrEqual(t, perForm, 0.1, "allocations a form")
}

// TestPageThatFailsLate holds that a page whose list breaks off is a status, however
// much of it there was.
func TestPageThatFailsLate(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(_ context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		for range 100 {
			if err := item(bigItem); err != nil {
				return nil, err
			}
		}
		return nil, fmt.Errorf("query: %w", failure.ErrBusy)
	}})
	a := s.do(t, get("/workflow/api/v1/instances/leave?limit=100"))
	assert.True(t, a.Status == 503 && a.Header.Get("Link") == "", "got %d with Link %q, want 503 without", a.Status, a.Header.Get("Link"))
}

// TestExplainThatCannotBeWritten holds that a fault behind the Link takes it
// away.
func TestExplainThatCannotBeWritten(t *testing.T) {
	s := startServer(t, Options{}, &fakeWorkflows{query: func(context.Context, *query.Request, func([]byte) error) (*query.End, error) {
		return &query.End{Next: "c1", Explain: &query.Explain{Plan: "scan", Milliseconds: math.NaN()}}, nil
	}})
	a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/instances/leave?limit=1&explain=true", Headers: []string{withModToken}})
	assert.True(t, a.Status == 500 && a.Label() == "Internal" && a.Header.Get("Link") == "", "%v %v %v", a.Status, a.Body, a.Header.Get("Link"))
}

// TestALongHistoryNamesItsPages holds gateway/INTERFACE.md, "The record".
func TestALongHistoryNamesItsPages(t *testing.T) {
	from := uint64(0)
	f := &fakeWorkflows{load: func(_ context.Context, r *message.Load) (*message.Reply, error) {
		reply := smallReply(r.WorkflowID, r.InstanceID, 9, true)
		reply.HistoryFrom = from
		return reply, nil
	}}
	s := startServer(t, Options{}, f)
	for k, want := range []string{"", "", `</workflow/api/v1/instance/order/` + instanceOne + `/history>; rel="prev"`} {
		from = uint64(k)
		a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/instance/order/" + instanceOne, Headers: []string{withToken}})
		got := a.Header.Get("Link")
		assert.True(t, got == want && strings.Contains(a.Body, `],"historyFrom":2,"states"`) == (want != ""), "from %d: got %q, %s", k, got, a.Body)
	}
}
