package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/wiretest"
	"troupe/persistence/clocktest"
	"troupe/statemachine/data"
)

// gate lets a test hold a request inside the workflows.
type gate struct{ entered, leave chan struct{} }

func newGate() *gate {
	return &gate{entered: make(chan struct{}, 100), leave: make(chan struct{})}
}

// send is for fakeWorkflows: it waits until leave is closed or the request's
// context ends.
func (g *gate) send(ctx context.Context, r *message.Event) (*message.Reply, error) {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return smallReply(r.WorkflowID, r.InstanceID, 2, true), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// holding starts a server with an event inside its workflows.
func holding(t *testing.T, o Options) (s *testServer, g *gate, first <-chan answer) {
	t.Helper()
	g = newGate()
	s = startServer(t, o, &fakeWorkflows{send: g.send})
	first = s.async(t, post("event", eventBody))
	<-g.entered
	return s, g, first
}

func (s *testServer) async(t *testing.T, r request) <-chan answer {
	t.Helper()
	result := make(chan answer, 1)
	go func() { result <- s.do(t, r) }()
	return result
}

// TestStart holds who may start, and that the caller hears of a listener that broke.
func TestStart(t *testing.T) {
	never, err := New(Options{})
	require.NoError(t, err)
	stop(t, never)
	s := startClosed(t, Options{})
	for what, again := range map[string]*Server{"after Stop": never, "twice": s.Server} {
		assert.ErrorIs(t, again.Start(), ErrStopped, what)
	}
	if never.Addr() != nil {
		t.Errorf("Addr: got %v, want nil", never.Addr())
	}
	other, err := New(Options{Addr: s.Addr().String()})
	require.NoError(t, err)
	assert.Error(t, other.Start(), "two servers have one port")
	stop(t, other)
	ends := startClosed(t, Options{})
	stop(t, ends)
	stop(t, ends)
	if c, err := net.Dial("tcp", ends.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the port is open after Stop")
	}
	assert.ErrorIs(t, ends.Start(), ErrStopped, "Start after Stop")
	assert.Empty(t, ends.Failed(), "after a regular Stop")
	require.NoError(t, s.mu.listener.Close())
	assert.ErrorIs(t, <-s.Failed(), net.ErrClosed)
}

// TestOptions holds that all errors are reported together.
func TestOptions(t *testing.T) {
	_, err := New(Options{
		BasePath: "platform", SessionCookie: "a b", BodyBytesMax: -1, HeaderBytesMax: -1, ConnectionsMax: -1,
		InFlightMax: -1, AnswerBytesMax: -1, WatchersMax: -1, HeaderReadMax: -1, ReadMax: -1, WriteMax: -1, IdleMax: -1, DrainMax: -1, DrainDelay: -1,
	})
	for name := range strings.FieldsSeq(`BasePath SessionCookie BodyBytesMax HeaderBytesMax ConnectionsMax InFlightMax AnswerBytesMax WatchersMax
		HeaderReadMax ReadMax WriteMax IdleMax DrainMax DrainDelay`) {
		assert.Contains(t, fmt.Sprint(err), "option "+name+" ", "the error does not name %s: %v", name, err)
	}
	for path, ok := range map[string]bool{
		"": true, "/": true, "/a": true, "/a/b.c-d_e~f/": true,
		"a": false, "//": false, "/a//": false, "/a//b": false, "/:a": false, "/*a": false, "/a/..": false, "/./a": false, "/%41": false, "/a b": false,
	} {
		_, err := New(Options{BasePath: path})
		assert.Equal(t, ok, err == nil, "BasePath %q: got %v, want ok", path, err)
	}
}

// TestDrain holds gateway/INTERFACE.md, "Stopping", and persistence/PROMISES.md,
// "P16": accepted requests are answered, streams end in order meanwhile, new requests
// get 503, and the server is gone.
func TestDrain(t *testing.T) {
	g, f := newGate(), newFeed()
	workflows := f.workflows()
	workflows.send = g.send
	s := startServer(t, Options{DrainMax: time.Hour}, workflows)
	w := s.watch(t, withToken)
	w.expect(t, opening)
	idle := s.open(t, "") // a keep-alive connection that was used before
	idleReader := bufio.NewReader(idle)
	const plain = "GET /workflow/api/v1/choices HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n\r\n"
	status, last := exchangeOn(t, idle, idleReader, plain)
	require.True(t, status == 200 && !last, "before: got %d, close %v", status, last)
	accepted := s.async(t, post("event", eventBody))
	<-g.entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, s)
	}()
	waitFor(t, "draining", s.kernel.Draining.Load)

	w.expectEnd(t)
	a := s.do(t, request{Method: "GET", Path: "/readyz"})
	assert.True(t, a.Status == 503 && a.Message() == "gateway: stopping", "/readyz: got %d %s, want 503", a.Status, a.Body)
	assert.Equal(t, 200, s.do(t, request{Method: "GET", Path: "/livez"}).Status, "/livez")
	for _, r := range []request{post("event", eventBody), get(watchPath)} {
		s.do(t, r).WantFault(t, 503, "Unavailable")
	}
	status, last = exchangeOn(t, idle, idleReader, plain)
	assert.True(t, status == 503 && last, "on an old connection: got %d, close %v; want 503 and the end", status, last)
	select {
	case <-stopped:
		t.Fatal("Stop returned while an accepted request was not answered")
	default:
	}
	close(g.leave)
	a = <-accepted
	assert.Equal(t, 200, a.Status, "the accepted request, %s", a.Body)
	<-stopped
}

// TestDrainDelay runs on a false clock.
func TestDrainDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{DrainDelay: 3 * time.Second})
		require.NoError(t, err)
		begun := time.Now()
		assert.True(t, s.kernel.Drain(t.Context(), func() {}) && time.Since(begun) == 3*time.Second, "drain took %v, want 3s", time.Since(begun))
		s.kernel.InFlight.Add(1)
		begun = time.Now()
		assert.True(t, !s.kernel.Drain(t.Context(), func() {}) && time.Since(begun) == 11*time.Second, "drain with a request left took %v, want 11s", time.Since(begun))
	})
}

// exchangeOn sends a request and reads its answer: its status, and whether it
// says that the connection ends.
func exchangeOn(t *testing.T, c net.Conn, r *bufio.Reader, text string) (status int, last bool) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	a, err := wiretest.ReadAnswer(r, http.MethodGet)
	require.NoError(t, err)
	return a.Status, a.Closes
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	limit := time.NewTimer(wiretest.AnswerMax)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited too long for: %s", what)
		}
	}
}

// TestInFlightMax holds gateway/INTERFACE.md, "Refusals under load".
func TestInFlightMax(t *testing.T) {
	g := newGate()
	s := startServer(t, Options{InFlightMax: 2}, &fakeWorkflows{send: g.send})
	one, two := s.async(t, post("event", eventBody)), s.async(t, postAsBob("event", eventBody))
	<-g.entered
	<-g.entered
	a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/choices", Headers: []string{withModToken}})
	assert.True(t, a.Status == 503 && a.Label() == "Busy" && a.Header.Get("Retry-After") != "", "the third: got %d %s, want 503 Busy", a.Status, a.Body)
	assert.Equal(t, 200, s.do(t, request{Method: "GET", Path: "/readyz"}).Status, "/readyz")
	close(g.leave)
	a, b := <-one, <-two
	assert.True(t, a.Status == 200 && b.Status == 200, "the first two: got %d and %d, want 200", a.Status, b.Status)
	assert.Equal(t, 200, s.do(t, post("event", eventBody)).Status, "after them")
	m := s.Metrics()
	assert.True(t, m.Shed == 1 && m.InFlight == 0, "metrics: got %d shed and %d in flight, want 1 and 0", m.Shed, m.InFlight)
}

// TestAnswersThatNobodyReadsAreBounded in bytes; what was done is answered all the
// same.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const size = 24 << 20 // more than what lies between two sockets
	large := smallReply("leave", instanceOne, 1, true)
	large.Public = data.Value(`{"a":"` + strings.Repeat("x", size) + `"}`)
	s := startServer(t, Options{AnswerBytesMax: size}, &fakeWorkflows{
		load: func(context.Context, *message.Load) (*message.Reply, error) { return large, nil },
		send: func(context.Context, *message.Event) (*message.Reply, error) { return large, nil },
	})
	s.kernel.Limits.UserBytes = 1 << 40 // what they take is not waited for
	read := get("/workflow/api/v1/instance/leave/" + instanceOne)
	slow := s.open(t, "GET "+read.Path+" HTTP/1.1\r\nHost: x\r\n"+read.Headers[0]+"\r\n\r\n")
	waitFor(t, "the answer to be on its way", func() bool { return s.kernel.AnswerBytes.Load() > 0 })
	a := s.do(t, request{Method: read.Method, Path: read.Path, Headers: []string{asBob}})
	assert.True(t, a.Status == 200 && len(a.Body) >= size, "another user's: got %d and %d bytes, want 200 and all of them", a.Status, len(a.Body))
	a = s.do(t, read)
	assert.True(t, a.Status == 503 && a.Header.Get("Retry-After") != "", "a second: got %d, want 503", a.Status)
	a = s.do(t, post("event", eventBody))
	assert.True(t, a.Status == 200 && len(a.Body) >= size, "an event: got %d and %d bytes, want 200 and all of them", a.Status, len(a.Body))
	_ = slow.Close()
	// The user's bytes are free after those among all.
	waitFor(t, "the answer to be given up", func() bool {
		return s.kernel.AnswerBytes.Load() == 0 && s.kernel.Usage.Of(ann.ID).AnswerBytes.Load() == 0
	})
	a = s.do(t, read)
	assert.True(t, a.Status == 200 && len(a.Body) >= size, "one alone: got %d and %d bytes, want 200 and all of them", a.Status, len(a.Body))
}

// TestConnectionsMax holds that connections beyond the limit wait when all have a
// request.
func TestConnectionsMax(t *testing.T) {
	s, g, first := holding(t, Options{ConnectionsMax: 1})
	second := s.async(t, request{Method: "GET", Path: "/livez"})
	waitFor(t, "the limit to be noticed", func() bool { return s.Metrics().ConnectionsFull > 0 })
	select {
	case a := <-second:
		t.Fatalf("the second connection was served: %d", a.Status)
	default:
	}
	close(g.leave)
	a, b := <-first, <-second
	assert.True(t, a.Status == 200 && b.Status == 200, "got %d and %d, want 200 twice", a.Status, b.Status)
	waitFor(t, "the connections to be gone", func() bool { return s.Metrics().Connections == 0 })
}

// TestDrainIsBounded holds that Stop does not wait forever, whoever is left is told
// that the outcome is unknown, and the limit of connections does not keep it.
func TestDrainIsBounded(t *testing.T) {
	s, _, first := holding(t, Options{ConnectionsMax: 1, DrainMax: time.Millisecond})
	s.open(t, "")
	waitFor(t, "the limit to be noticed", func() bool { return s.Metrics().ConnectionsFull > 0 })
	stop(t, s)
	a := <-first
	assert.True(t, a.Status == 504 && a.Label() == "OutcomeUnknown", "got %d %s, want 504 OutcomeUnknown", a.Status, a.Body)
}

// TestDrainCutsWhatIsLeft holds gateway/INTERFACE.md, "Stopping": an answer that its caller
// does not read in time ends with a reset, so that its part never looks whole.
func TestDrainCutsWhatIsLeft(t *testing.T) {
	workflows, ended := endless()
	s := startServer(t, Options{DrainMax: time.Millisecond}, workflows)
	s.lastBytesMax = time.Millisecond
	c := s.open(t, "GET /workflow/api/v1/instances/leave HTTP/1.0\r\nHost: x\r\n"+withToken+"\r\n\r\n")
	_, err := io.ReadFull(c, make([]byte, 100_000))
	require.NoError(t, err)
	stop(t, s)
	_, err = io.Copy(io.Discard, c)
	assert.ErrorIs(t, err, syscall.ECONNRESET, "got the end")
	assert.ErrorIs(t, <-ended, net.ErrClosed, "the list ended")
}

func (f *fakeWorkflows) vitals() api.Vitals {
	return api.Vitals{Store: api.StoreVitals{DiskBytes: 4096, FreeBytes: -1, Committed: 7}, Work: api.WorkVitals{Awake: 2, Events: 5}}
}

// TestVitalsAreReadSeldom holds gateway/INTERFACE.md, "Service health": they are asked for at most once in a second.
func TestVitalsAreReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := int64(0)
		s, err := New(Options{})
		require.NoError(t, err)
		s.Open((&fakeWorkflows{}).with(Services{Credentials: fakeCredentials{}, Sessions: new(fakeSessions), Vitals: func() api.Vitals {
			asked++
			return api.Vitals{Work: api.WorkVitals{Events: asked}}
		}}))
		for i, after := range []time.Duration{0, time.Second - 1, 1} {
			clocktest.Advance(after)
			w := newRecorder()
			s.ServeHTTP(w, newTestRequest("GET", "/admin/api/v1/health", "", "Cookie: session="+sessionOf(privilegeAdmin)))
			assert.Contains(t, w.body.String(), []string{`"events":1,`, `"events":1,`, `"events":2,`}[i])
		}
	})
}
