package gateway

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// anonymousNow is how many requests without a credential are counted.
func (s *testServer) anonymousNow() int64 {
	s.kernel.Anonymous.Mu.Lock()
	defer s.kernel.Anonymous.Mu.Unlock()
	return s.kernel.Anonymous.Mu.All
}

// slowSignIn begins a sign-in from an address and never ends it.
func (s *testServer) slowSignIn(t *testing.T, from string) net.Conn {
	t.Helper()
	c := s.dial(t)
	before := s.anonymousNow()
	if _, err := fmt.Fprintf(c, "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Forwarded-For: %s\r\nContent-Length: 100\r\n\r\n{", from); err != nil {
		t.Fatal(err)
	}
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
	if got := get("192.0.2.1"); got != 503 {
		t.Errorf("a fifth of one address: got %d, want 503", got)
	}
	if got := get("192.0.2.2"); got != 200 {
		t.Errorf("another address: got %d, want 200", got)
	}
	for n := range 4 {
		slow = append(slow, s.slowSignIn(t, fmt.Sprintf("2001:db8:0:%d::1", n)))
	}
	if got := get("192.0.2.2"); got != 503 {
		t.Errorf("a ninth of all: got %d, want 503", got)
	}
	if a := s.do(t, post("event", eventBody)); a.Status != 200 {
		t.Errorf("with a credential: got %d, want 200", a.Status)
	}
	for _, c := range slow {
		_ = c.Close()
	}
	waitFor(t, "the slow ones to be gone", func() bool { return s.anonymousNow() == 0 })
	if got := get("192.0.2.1"); got != 200 {
		t.Errorf("after them: got %d, want 200", got)
	}
	waitFor(t, "nobody to be counted", func() bool { return s.anonymousNow() == 0 })
	s.kernel.Anonymous.Mu.Lock()
	defer s.kernel.Anonymous.Mu.Unlock()
	if n := len(s.kernel.Anonymous.Mu.ByNetwork); n != 0 {
		t.Errorf("%d addresses are still counted", n)
	}
}

// TestAnonymousBodies: nobody keeps much for a caller whom nobody knows.
func TestAnonymousBodies(t *testing.T) {
	s := startServer(t, Options{}, nil)
	c := s.dial(t)
	if _, err := io.WriteString(c, "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 131073\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := c.Read(answer)
	if got := string(answer[:n]); err != nil || !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Errorf("got %q, %v; want 413", got, err)
	}
	_ = c.Close()
	waitFor(t, "the connection to be gone", func() bool { return s.Metrics().Connections == 0 })
}
