package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"troupe/persistence/clocktest"
)

// open sends the beginning of a request, or nothing, and leaves the connection
// open until the end of the test.
func (s *testServer) open(t *testing.T, text string) net.Conn {
	t.Helper()
	c := s.dial(t)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// checkLive asks for health on new connections, more than there may be open.
func (s *testServer) checkLive(t *testing.T) {
	t.Helper()
	for range 2 * s.options.ConnectionsMax {
		if a := s.do(t, request{Method: "GET", Path: "/livez"}); a.Status != 200 {
			t.Errorf("/livez: got %d, want 200", a.Status)
		}
	}
	if n := s.Metrics().Connections; n > int64(s.options.ConnectionsMax) {
		t.Errorf("%d connections are open, want at most %d", n, s.options.ConnectionsMax)
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
			if a := s.do(t, postAsBob("event", eventBody)); a.Status != 200 {
				t.Errorf("another user: got %d, want 200", a.Status)
			}
			if m := s.Metrics(); m.ConnectionsEvicted == 0 {
				t.Error("no connection was closed for another one")
			}
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
		if got := s.Metrics().InFlight; got != int64(n+1) {
			t.Fatalf("%d are in flight, want %d", got, n+1)
		}
	}
	// An eighth of the connections stays for health.
	if a := s.do(t, request{Method: "GET", Path: "/workflow/api/v1/choices", Headers: []string{withModToken}}); a.Status != 503 {
		t.Errorf("one more: got %d, want 503", a.Status)
	}
	s.checkLive(t)
	close(g.leave)
	for n, a := range answers {
		if a := <-a; a.Status != 200 {
			t.Errorf("request %d: got %d, want 200", n, a.Status)
		}
	}
}

// TestOneUserHasHalfOfTheRequests holds gateway/INTERFACE.md, "Fair shares":
// slow bodies of one user leave places for others.
func TestOneUserHasHalfOfTheRequests(t *testing.T) {
	s := startServer(t, Options{InFlightMax: 16}, nil)
	mine := s.usage.of(ann.ID)
	var slow []net.Conn
	for n := range 8 {
		slow = append(slow, s.open(t, slowEvent(withToken)))
		// The user's count comes after the count of all.
		waitFor(t, "the request to be counted", func() bool { return mine.requests.Load() == int64(n+1) })
	}
	for range 16 {
		if a := s.do(t, post("event", eventBody)); a.Status != 503 || a.Label() != "Busy" || a.Header.Get("Retry-After") == "" {
			t.Errorf("a ninth: got %d %s, want 503 Busy", a.Status, a.Body)
		}
		if mine.retryAt.Swap(0) == 0 { // else the next one would wait
			t.Error("the user is not known to have been refused")
		}
	}
	for range 16 {
		if a := s.do(t, postAsBob("event", eventBody)); a.Status != 200 {
			t.Errorf("another user: got %d, want 200", a.Status)
		}
	}
	for _, c := range slow {
		_ = c.Close()
	}
	waitFor(t, "the slow ones to be gone", func() bool { return s.Metrics().InFlight == 0 })
	if a := s.do(t, post("event", eventBody)); a.Status != 200 {
		t.Errorf("after them: got %d, want 200", a.Status)
	}
	if mine.requests.Load() != 0 || mine.answerBytes.Load() != 0 {
		t.Errorf("at the end the user has %d requests and %d bytes", mine.requests.Load(), mine.answerBytes.Load())
	}
}

// from is a connection that has an address and nothing else.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// admitAll makes a listener with a connection of each address, in order. Only the
// address 10.0.0.1 is a proxy's.
func admitAll(addresses ...string) (*listener, []*connection) {
	l := limitConnections(nil, 100, new(connectionCounts), func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") })
	var all []*connection
	for _, a := range addresses {
		one, other := net.Pipe()
		_ = other.Close()
		all = append(all, l.admit(from{one, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(a), 4711))}))
	}
	return l, all
}

// request makes the connection serve a request.
func (c *connection) request(withCredential bool) {
	c.begin(new(http.Request))
	if withCredential {
		c.markAuthenticated()
	}
	c.end()
	c.sent()
}

// evictAll closes one after the other and returns the order.
func evictAll(l *listener, all []*connection) (order []int) {
	for l.evict() {
		for n, c := range all {
			if c.state.Load() == connectionEvicted && c.position.group == nil && !slices.Contains(order, n) {
				order = append(order, n)
			}
		}
	}
	return order
}

// TestEvictionOrder holds the order of gateway/DESIGN.md, "Fairness".
func TestEvictionOrder(t *testing.T) {
	const one, two, proxy = "192.0.2.1 ", "192.0.2.2 ", "10.0.0.1 "
	for _, c := range []struct {
		line, addresses string
		prepare         func(all []*connection)
		want            []int // -1 for any
	}{
		{"the oldest of one address", one + one + one, nil, []int{0, 1, 2}},
		{"the address with the most, down to one each", one + two + two + two, nil, []int{1, 2, -1, -1}},
		{"one customer's IPv6 addresses are one", one + "2001:db8::1 2001:db8::2 2001:db8::3", nil, []int{1, 2, -1, -1}},
		{"those without a credential, wherever they are", one + one + one + two, func(all []*connection) {
			for _, c := range all[:3] {
				c.request(true)
			}
		}, []int{3, 0, 1, 2}},
		{"those that were never used", one + one + one, func(all []*connection) { all[0].request(false) }, []int{1, 2, 0}},
		{"those with a request never", one + one + two, func(all []*connection) { all[0].begin(new(http.Request)) }, []int{1, 2}},
		{"those whose body nobody wants", one + one, func(all []*connection) {
			all[0].begin(new(http.Request))
			all[1].begin(&http.Request{Body: io.NopCloser(strings.NewReader("x"))})
			all[1].end()
		}, []int{1}},
		{"a proxy's are not counted together", proxy + proxy + proxy + one + one, nil, []int{3, -1, -1, -1, -1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, all := admitAll(strings.Fields(c.addresses)...)
			clocktest.Advance(2 * stuckMin)
			if c.prepare != nil {
				c.prepare(all)
			}
			got := evictAll(l, all)
			for n, want := range c.want {
				if len(got) != len(c.want) || want >= 0 && got[n] != want {
					t.Errorf("%s: got the order %v, want %v", c.line, got, c.want)
					break
				}
			}
			for _, one := range all {
				_ = one.Close()
			}
			if open := l.count.open.Load(); open != 0 || len(l.mu.anonymous.groups)+len(l.mu.authenticated.groups) != 0 {
				t.Errorf("%s: at the end %d connections are open", c.line, open)
			}
		})
	}
}

// TestAddressWithMoreThanHalfIsEvictedFirst: who has more than half of the connections gives way before
// anybody without a credential does.
func TestAddressWithMoreThanHalfIsEvictedFirst(t *testing.T) {
	addresses := []string{"192.0.2.2"}
	for range 53 {
		addresses = append(addresses, "192.0.2.1")
	}
	l, all := admitAll(addresses...)
	for _, c := range all[1:] {
		c.request(true)
	}
	if got := fmt.Sprint(evictAll(l, all)[:4]); got != "[1 2 3 0]" {
		t.Errorf("got the order %s, want the address with 53 of 100 down to half, then the other", got)
	}
}

// TestStuckAnswersAreEvictedLast: an answer whose last bytes nobody takes does not keep a
// connection, but an answer that was just sent is not aborted.
func TestStuckAnswersAreEvictedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, all := admitAll("192.0.2.1", "192.0.2.1")
		all[0].begin(new(http.Request))
		all[0].end()
		all[1].begin(new(http.Request))
		if l.evict() {
			t.Error("an answer was aborted that was just sent")
		}
		clocktest.Advance(stuckMin)
		if !l.evict() || all[0].state.Load() != connectionEvicted || l.evict() {
			t.Errorf("got the states %d and %d, want the first closed", all[0].state.Load(), all[1].state.Load())
		}
	})
}

// TestUnfinishedAnswersEndWithAReset holds gateway/INTERFACE.md, "What an answer means",
// for the last bytes of an answer, which net/http sends after the handler.
func TestUnfinishedAnswersEndWithAReset(t *testing.T) {
	for line, end := range map[string]func(*listener, *connection) bool{
		"evicted for a new one": func(l *listener, c *connection) bool {
			c.opened = c.opened.Add(-stuckMin)
			return l.evict()
		},
		"nobody reads for the time of an answer": func(_ *listener, c *connection) bool {
			_ = c.SetWriteDeadline(time.Unix(1, 0))
			_, err := c.Write([]byte("the rest"))
			return err != nil && c.Close() == nil
		},
	} {
		t.Run(line, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = inner.Close() }()
			caller, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = caller.Close() }()
			l := limitConnections(inner, 1, new(connectionCounts), func(netip.Addr) bool { return false })
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c := accepted.(*connection)
			c.begin(new(http.Request))
			c.end()
			if !end(l, c) {
				t.Fatal("the connection was not closed")
			}
			if _, err := io.ReadAll(caller); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("got the end %v, want a reset", err)
			}
		})
	}
}

// TestEvictedConnectionServesNothing: a request that comes while its connection is
// being closed is not done, because its caller would not know.
func TestEvictedConnectionServesNothing(t *testing.T) {
	workflows := new(fakeWorkflows)
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Open(Services{Workflows: workflows, Credentials: fakeCredentials{}})
	l, all := admitAll("192.0.2.1")
	if !l.evict() {
		t.Fatal("nothing was closed")
	}
	r := newTestRequest("POST", "/workflow/api/v1/event", eventBody, withToken)
	r = r.WithContext(withConnection(r.Context(), all[0]))
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
