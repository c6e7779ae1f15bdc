package gateway

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	_, err := fmt.Fprintf(c, "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Forwarded-For: %s\r\nContent-Length: 100\r\n\r\n{", from)
	require.NoError(t, err)
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

// TestAnonymousBodies: nobody keeps much for a caller whom nobody knows.
func TestAnonymousBodies(t *testing.T) {
	s := startServer(t, Options{}, nil)
	c := s.dial(t)
	if _, err := io.WriteString(c, "POST /session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 131073\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := c.Read(answer)
	got := string(answer[:n])
	assert.True(t, err == nil && strings.HasPrefix(got, "HTTP/1.1 413 "), "got %q, %v; want 413", got, err)
	_ = c.Close()
	waitFor(t, "the connection to be gone", func() bool { return s.Metrics().Connections == 0 })
}
