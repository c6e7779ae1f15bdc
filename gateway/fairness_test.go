package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/listener"
	"troupe/persistence/clocktest"
)

// open sends the beginning of a request, or nothing, and leaves the connection
// open until the end of the test.
func (s *testServer) open(t testing.TB, text string) net.Conn {
	t.Helper()
	c := s.connect(t)
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
	n := s.Metrics().Connections
	assert.LessOrEqual(t, n, int64(s.kernel.Options.ConnectionsMax), "connections are open")
}

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
		s.do(t, post("event", eventBody)).WantFault(t, 503, "Busy")
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
	assert.False(t, mine.Requests.Load() != 0 || mine.AnswerBytes.Load() != 0, "at the end the user has %d requests and %d bytes", mine.Requests.Load(), mine.AnswerBytes.Load())
}

// TestEvictedConnectionServesNothing: a request that comes while its connection is
// being closed is not done, because its caller would not know.
func TestEvictedConnectionServesNothing(t *testing.T) {
	workflows := new(fakeWorkflows)
	s, err := New(Options{})
	require.NoError(t, err)
	s.Open(workflows.with(Services{Credentials: fakeCredentials{}}))
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
		reason, _ := recover().(error)
		assert.False(t, !errors.Is(reason, http.ErrAbortHandler) || workflows.calls() != 0, "got %v and %d calls, want the end of the connection", reason, workflows.calls())
	}()
	s.ServeHTTP(newRecorder(), r)
}

// TestKeptConnectionIsAuthenticated: a credential counts for the connection, not only for
// its request.
func TestKeptConnectionIsAuthenticated(t *testing.T) {
	s := startServer(t, Options{ConnectionsMax: 4}, nil)
	c := s.open(t, "")
	reader := bufio.NewReader(c)
	text := "GET /workflow/api/v1/choices HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\n\r\n"
	exchangeOn(t, c, reader, text)
	for range 20 {
		s.open(t, "")
	}
	waitFor(t, "room for the last of them", func() bool { return s.Metrics().ConnectionsEvicted == 17 })
	exchangeOn(t, c, reader, text) // it is still open
}

func askAs(s *Server, token string) int {
	w := newRecorder()
	s.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, "Authorization: svc.token "+token))
	return w.status
}

func wantNobody(t *testing.T, s *Server) {
	t.Helper()
	u := s.kernel.Usage.Of(ann.ID)
	if s.kernel.InFlight.Load() != 0 || s.kernel.Idle.Load() != 0 || u.Requests.Load() != 0 || u.Idle.Load() != 0 || s.groups.instances.Shares.Batches.Load() != 0 || s.groups.instances.Shares.Bytes.Load() != 0 || u.BatchBytes.Load() != 0 {
		t.Errorf("at the end %d requests are in flight, %d idle, of the user %d and %d; %d batches and %d bytes", s.kernel.InFlight.Load(), s.kernel.Idle.Load(),
			u.Requests.Load(), u.Idle.Load(), s.groups.instances.Shares.Batches.Load(), s.groups.instances.Shares.Bytes.Load())
	}
}

// TestSilentBatchesHaveNoPlaces holds gateway/INTERFACE.md, "Batches": however many batches of one user wait for lines, all others have
// their places, also when there are few of them.
func TestSilentBatchesHaveNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{InFlightMax: 8})
		var silent []*stream
		for range 300 {
			silent = append(silent, openStream(s, w, tokenAnn))
			synctest.Wait()
		}
		assert.Zero(t, s.Metrics().InFlight, "requests are in flight, want none")
		for range 8 {
			mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
			require.True(t, mine == 200 && others == 200, "beside silent batches: got %d, and %d for another user, want 200", mine, others)
		}
		s.kernel.Pressure.Limit.Store(2) // processors have become short
		mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
		assert.True(t, mine == 200 && others == 200, "with two places: got %d, and %d for another user, want 200", mine, others)
		for _, b := range silent {
			got := b.end(t)
			require.True(t, b.answer.Code == 200 && got == "", "a silent batch: got %d %q", b.answer.Code, got)
		}
		wantNobody(t, s)
	})
}

// TestLinesThatAreWorkedOnHavePlaces: a batch counts from its line to the answer. One that finds no place for its line waits
// for one.
func TestLinesThatAreWorkedOnHavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{InFlightMax: 8}) // four for one user
		var all []*stream
		for range 6 {
			all = append(all, openStream(s, w, tokenAnn))
			synctest.Wait()
		}
		for _, b := range all {
			b.send(t, 1)
		}
		if n := s.Metrics().InFlight; n != 4 || len(w.asked) != 4 || s.groups.instances.Shares.Batches.Load() != 4 {
			t.Fatalf("%d are in flight, %d lines handed over, %d batches share the window; want 4", n, len(w.asked), s.groups.instances.Shares.Batches.Load())
		}
		mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
		assert.True(t, mine == 503 && others == 200, "beside four lines: got %d, and %d for another user, want 503 and 200", mine, others)
		(<-w.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
		clocktest.Advance(2 * instances.PlacePauseMax)
		n := s.Metrics().InFlight
		assert.True(t, n == 4 && len(w.asked) == 4, "when one is answered: %d are in flight, %d lines handed over, want 4", n, len(w.asked))
		for range 5 {
			(<-w.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
			clocktest.Advance(2 * instances.PlacePauseMax)
		}
		assert.Equal(t, 200, askAs(s, tokenAnn), "when all are answered")
		for _, b := range all {
			got := b.end(t)
			assert.Equal(t, 1, strings.Count(got, `"status":200`), "got %q, want one result", got)
		}
		wantNobody(t, s)
	})
}

// TestSilentBatchesAreBounded by the connections of their user, and by the memory of their lines.
func TestSilentBatchesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		used    int64 // bytes of the user's batches
		most    int
	}{
		"half of the connections": {Options{ConnectionsMax: 64}, 0, 32},
		"half of the memory":      {Options{}, instances.BatchBodiesMax/2 - 3*instances.LineBytes, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := startPatient(t, c.options)
				s.kernel.Usage.Of(ann.ID).BatchBytes.Store(c.used)
				var silent []*stream
				for range c.most {
					silent = append(silent, openStream(s, w, tokenAnn))
					synctest.Wait()
				}
				more := openStream(s, w, tokenAnn)
				<-more.done
				assert.Equal(t, 503, more.answer.Code, "batch %d: got %d, want 503", c.most+1, more.answer.Code)
				assert.Equal(t, 200, askAs(s, tokenBob), "another user")
				for _, b := range silent {
					b.end(t)
					assert.Equal(t, 200, b.answer.Code, "a silent batch: got %d, want 200", b.answer.Code)
				}
				s.kernel.Usage.Of(ann.ID).BatchBytes.Add(-c.used)
				wantNobody(t, s)
			})
		})
	}
}

// TestASilentBatchEndsWhenTheServerDrains: Stop waits for its last line.
func TestASilentBatchEndsWhenTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{})
		b := openStream(s, w, tokenAnn)
		synctest.Wait()
		s.kernel.Draining.Store(true)
		assert.Equal(t, int64(1), s.kernel.InFlight.Load(), "Stop does not wait for it")
		clocktest.Advance(time.Second)
		assert.Contains(t, b.end(t), `"status":503`)
		wantNobody(t, s)
	})
}

// TestNoTwoTakeTheLastPlace, of batches that get lines and have none again at any time.
func TestNoTwoTakeTheLastPlace(t *testing.T) {
	s, err := New(Options{})
	require.NoError(t, err)
	s.kernel.Pressure.Limit.Store(2) // one for one user
	usage := new(kernel.UserUsage)
	var working atomic.Int64
	var end sync.WaitGroup
	for range 4 {
		x := &kernel.Exchange{Kernel: s.kernel, Slot: kernel.Slot{Usage: usage, Counted: true}}
		s.kernel.InFlight.Add(1)
		usage.Requests.Add(1)
		x.LeaveSlot()
		end.Go(func() {
			for took := 0; took < 300_000; {
				if !x.TakeSlot() {
					runtime.Gosched()
					continue
				}
				n := working.Add(1)
				working.Add(-1)
				x.LeaveSlot()
				took++
				if n > 1 { // NB: an assertion each time would be most of the work
					t.Errorf("%d are worked on, want 1", n)
					return
				}
			}
		})
	}
	end.Wait()
	assert.Zero(t, s.kernel.Working(), "at the end")
}

func (s *testServer) anonymousNow() int64 {
	s.kernel.Anonymous.Mu.Lock()
	defer s.kernel.Anonymous.Mu.Unlock()
	return s.kernel.Anonymous.Mu.All
}

func (s *testServer) slowSignIn(t *testing.T, from string) net.Conn {
	t.Helper()
	before := s.anonymousNow()
	c := s.open(t, "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Forwarded-For: "+from+"\r\nContent-Length: 100\r\n\r\n{")
	waitFor(t, "the sign-in to be begun", func() bool { return s.anonymousNow() > before })
	return c
}

// TestAnonymousRequestsDoNotTakeAllPlaces holds gateway/INTERFACE.md, "Fair shares":
// requests without a credential leave places for those with one, and those of one
// address for those of others.
func TestAnonymousRequestsDoNotTakeAllPlaces(t *testing.T) {
	s := startServer(t, Options{InFlightMax: 16, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, nil)
	get := func(from string) int {
		return s.do(t, request{Method: "GET", Path: "/login", Headers: []string{"X-Forwarded-For: " + from}}).Status
	}
	var slow []net.Conn
	for range 4 {
		slow = append(slow, s.slowSignIn(t, "192.0.2.1"))
	}
	assert.Equal(t, 503, get("192.0.2.1"), "a fifth of one address")
	assert.Equal(t, 200, get("192.0.2.2"), "another address")
	for n := range 4 {
		slow = append(slow, s.slowSignIn(t, fmt.Sprintf("2001:db8:0:%d::1", n)))
	}
	assert.Equal(t, 503, get("192.0.2.2"), "a ninth of all")
	assert.Equal(t, 200, s.do(t, post("event", eventBody)).Status, "with a credential")
	for _, c := range slow {
		_ = c.Close()
	}
	waitFor(t, "the slow ones to be gone", func() bool { return s.anonymousNow() == 0 })
	assert.Equal(t, 200, get("192.0.2.1"), "after them")
	waitFor(t, "nobody to be counted", func() bool { return s.anonymousNow() == 0 })
	s.kernel.Anonymous.Mu.Lock()
	defer s.kernel.Anonymous.Mu.Unlock()
	assert.Empty(t, s.kernel.Anonymous.Mu.ByNetwork, "addresses are still counted")
}
