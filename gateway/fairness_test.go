package gateway

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/internal/listener"
)

// open sends the beginning of a request, or nothing, and leaves the connection
// open until the end of the test.
func (s *testServer) open(t *testing.T, text string) net.Conn {
	t.Helper()
	c := s.dial(t)
	t.Cleanup(func() { _ = c.Close() })
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	return c
}

// checkLive asks for health on new connections, more than there may be open.
func (s *testServer) checkLive(t *testing.T) {
	t.Helper()
	for range 2 * s.kernel.Options.ConnectionsMax {
		assert.Equal(t, 200, s.do(t, request{Method: "GET", Path: "/livez"}).Status, "/livez")
	}
	if n := s.Metrics().Connections; n > int64(s.kernel.Options.ConnectionsMax) {
		t.Errorf("%d connections are open, want at most %d", n, s.kernel.Options.ConnectionsMax)
	}
}

// slowEvent is an event whose body never ends.
func slowEvent(credential string) string {
	return "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\nContent-Length: 106\r\n" + credential + "\r\n\r\n{"
}

// TestHealthAnswersWithAllConnectionsOpen holds gateway/INTERFACE.md, "Health":
// connections that do nothing, whatever they have sent, leave room for others.
func TestHealthAnswersWithAllConnectionsOpen(t *testing.T) {
	const most = 16
	kept := "GET /workflow/api/v1/choices HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n\r\n"
	for line, text := range map[string]string{
		"nothing":                          "",
		"half of the headers":              "GET /livez HTTP/1.1\r\nHost: x\r\n",
		"health that is kept":              "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
		"health with a body to come":       "GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n",
		"a path that is none with a body":  "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n",
		"an event without a credential":    slowEvent("X: y"),
		"a sign-in with a body to come":    "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"a kept connection with a token":   kept,
		"an event with a body to come":     slowEvent(withToken),
		"the second request is incomplete": kept + "GET /livez HTTP/1.1\r\n",
	} {
		t.Run(line, func(t *testing.T) {
			// No time limit closes anything meanwhile.
			s := startServer(t, Options{ConnectionsMax: most, HeaderReadMax: time.Hour, ReadMax: time.Hour, IdleMax: time.Hour}, nil)
			for range 2 * most {
				s.open(t, text)
			}
			s.checkLive(t)
			assert.Equal(t, 200, s.do(t, postAsBob("event", eventBody)).Status, "another user")
			assert.NotZero(t, s.Metrics().ConnectionsEvicted, "no connection was closed for another one")
		})
	}
}

// TestRequestsAreNotAborted: what is closed for new connections has no request.
func TestRequestsAreNotAborted(t *testing.T) {
	const most = 8
	g := newGate()
	s := startServer(t, Options{ConnectionsMax: most}, &fakeWorkflows{send: g.send})
	var answers []<-chan answer
	for n, credential := range []string{withToken, withToken, withToken, asBob, asBob, asBob, withModToken} {
		r := post("event", eventBody)
		r.Headers = []string{credential}
		answers = append(answers, s.async(t, r))
		<-g.entered
		require.Equal(t, int64(n+1), s.Metrics().InFlight, "are in flight, want %d", n+1)
	}
	// An eighth of the connections stays for health.
	assert.Equal(t, 503, s.do(t, request{Method: "GET", Path: "/workflow/api/v1/choices", Headers: []string{withModToken}}).Status)
	s.checkLive(t)
	close(g.leave)
	for n, a := range answers {
		a := <-a
		assert.Equal(t, 200, a.Status, "request %d", n)
	}
}

// TestOneUserHasHalfOfTheRequests holds gateway/INTERFACE.md, "Fair shares":
// slow bodies of one user leave places for others.
func TestOneUserHasHalfOfTheRequests(t *testing.T) {
	s := startServer(t, Options{InFlightMax: 16}, nil)
	mine := s.kernel.Usage.Of(ann.ID)
	var slow []net.Conn
	for n := range 8 {
		slow = append(slow, s.open(t, slowEvent(withToken)))
		// The user's count comes after the count of all.
		waitFor(t, "the request to be counted", func() bool { return mine.Requests.Load() == int64(n+1) })
	}
	for range 16 {
		a := s.do(t, post("event", eventBody))
		assert.True(t, a.Status == 503 && a.Label() == "Busy" && a.Header.Get("Retry-After") != "", "a ninth: got %d %s, want 503 Busy", a.Status, a.Body)
		if mine.RetryAt.Swap(0) == 0 { // else the next one would wait
			t.Error("the user is not known to have been refused")
		}
	}
	for range 16 {
		assert.Equal(t, 200, s.do(t, postAsBob("event", eventBody)).Status, "another user")
	}
	for _, c := range slow {
		_ = c.Close()
	}
	waitFor(t, "the slow ones to be gone", func() bool { return s.Metrics().InFlight == 0 })
	assert.Equal(t, 200, s.do(t, post("event", eventBody)).Status, "after them")
	if mine.Requests.Load() != 0 || mine.AnswerBytes.Load() != 0 {
		t.Errorf("at the end the user has %d requests and %d bytes", mine.Requests.Load(), mine.AnswerBytes.Load())
	}
}

// TestEvictedConnectionServesNothing: a request that comes while its connection is
// being closed is not done, because its caller would not know.
func TestEvictedConnectionServesNothing(t *testing.T) {
	workflows := new(fakeWorkflows)
	s, err := New(Options{})
	require.NoError(t, err)
	s.Open(Services{Workflows: workflows, Credentials: fakeCredentials{}})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = inner.Close() }()
	l := listener.New(inner, 1, new(listener.Counts), func(netip.Addr) bool { return false })
	var evicted net.Conn
	for n := range 2 { // the second one takes the place of the first
		caller, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		defer func() { _ = caller.Close() }()
		accepted, err := l.Accept()
		require.NoError(t, err)
		defer func() { _ = accepted.Close() }()
		if n == 0 {
			evicted = accepted
		}
	}
	r := newTestRequest("POST", "/workflow/api/v1/event", eventBody, withToken)
	r = r.WithContext(listener.ConnContext(r.Context(), evicted))
	defer func() {
		if reason, _ := recover().(error); !errors.Is(reason, http.ErrAbortHandler) || workflows.calls() != 0 {
			t.Errorf("got %v and %d calls, want the end of the connection", reason, workflows.calls())
		}
	}()
	s.ServeHTTP(newRecorder(), r)
}

// TestKeptConnectionIsAuthenticated: a credential counts for the connection, not only for
// its request.
func TestKeptConnectionIsAuthenticated(t *testing.T) {
	s := startServer(t, Options{ConnectionsMax: 4}, nil)
	c := s.dial(t)
	defer func() { _ = c.Close() }()
	reader := bufio.NewReader(c)
	text := "GET /workflow/api/v1/choices HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n\r\n"
	exchangeOn(t, c, reader, text)
	for range 20 {
		s.open(t, "")
	}
	waitFor(t, "room for the last of them", func() bool { return s.Metrics().ConnectionsEvicted == 17 })
	exchangeOn(t, c, reader, text) // it is still open
}
