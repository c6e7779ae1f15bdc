package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/logtest"
	"troupe/gateway/internal/session"
	"troupe/gateway/login"
)

const jsonLine = "Content-Type: application/json"

// TestUntrustedProxyIsLoggedOnce: a proxy that nobody has configured is told of once, because all
// callers behind it share the limits of one address.
func TestUntrustedProxyIsLoggedOnce(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		line    string
		proxies []netip.Prefix
		headers []string
		want    int
	}{
		{"no proxy is trusted", nil, []string{"X-Forwarded-For: 198.51.100.9"}, 1},
		{"nobody forwards", nil, nil, 0},
		{"others are trusted", proxies, []string{"X-Forwarded-For: 198.51.100.9"}, 0},
	} {
		log := new(logtest.Log)
		s, err := New(Options{TrustedProxies: c.proxies, Log: zerolog.New(log)})
		require.NoError(t, err)
		s.Open(Services{})
		for range 3 {
			r := newTestRequest("GET", "/workflow/api/v1/choices", "", c.headers...)
			r.RemoteAddr = "192.0.2.7:1"
			s.ServeHTTP(newRecorder(), r)
		}
		got := strings.Count(log.String(), "trustedProxies")
		assert.True(t, got == c.want && (got == 0 || strings.Contains(log.String(), `"level":"warn"`)), "%v %v %v %v", c.line, got, c.want, log.String())
	}
}

// TestALinkNeedsAListenerOfThisMachine: a server whose port others reach takes no link.
func TestALinkNeedsAListenerOfThisMachine(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": false, "::": false, "192.0.2.1": false} {
		assert.Equal(t, want, session.IsLoopback(&net.TCPAddr{IP: net.ParseIP(address)}), address)
	}
	s, err := New(Options{})
	require.NoError(t, err)
	links := login.NewLinks(nil)
	s.Open(Services{Sessions: new(fakeSessions), Links: links})
	_, secret, _ := strings.Cut(links.Add(userAnn, "/"), "#link=")
	r := newTestRequest("POST", "/session", `{"link":"`+secret+`"}`, jsonLine)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
	w := newRecorder()
	s.ServeHTTP(w, r)
	assert.Equal(t, http.StatusUnauthorized, w.status, "without a listener on loopback")
}

// TestNobodyIsLedElsewhere: a cookie in which next leads to another site cannot be made, but would not help.
func TestNobodyIsLedElsewhere(t *testing.T) {
	s := startServer(t, Options{}, nil)
	s.provider.next = "//evil.example"
	a := s.do(t, request{Method: "GET", Path: "/login/oidc/callback?user=ann", Headers: []string{"Cookie: session-oidc=" + flowCookie}})
	assert.Equal(t, "303 /", fmt.Sprint(a.Status, " ", a.Header.Get("Location")))
	_, err := New(Options{TrustedProxies: []netip.Prefix{{}}})
	assert.Error(t, err, "a range of proxies that is none")
}

// FuzzForwarded holds that nobody but a trusted proxy can choose an address, and
// that an untrusted last element is always the answer.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.9", "a, 10.0.0.9", ",,", "[::1]:1, ::ffff:1.2.3.4", "fe80::1%x"} {
		f.Add(seed, seed)
	}
	s, err := New(Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, first, second string) {
		lines := []string{first, second}
		r := &http.Request{RemoteAddr: "192.0.2.7:1", Header: http.Header{"X-Forwarded-For": lines, "X-Forwarded-Proto": lines}}
		if got, secure := s.kernel.ClientOf(r); got.String() != "192.0.2.7" || secure {
			t.Errorf("%q: got %v, %v from somebody who is not trusted", lines, got, secure)
		}
		r.RemoteAddr = "10.0.0.1:1"
		got, _ := s.kernel.ClientOf(r)
		elements := strings.Split(first+","+second, ",")
		element := strings.Trim(elements[len(elements)-1], " \t")
		last, err := netip.ParseAddr(element)
		plain := err == nil && !strings.ContainsAny(element, "[]") // brackets belong to an address with a port; here they would be in the zone
		assert.False(t, plain && !s.kernel.IsTrusted(last.Unmap().WithZone("")) && got != last.Unmap().WithZone(""), "%q: got %v, want the last one", lines, got)
		assert.True(t, got.IsValid() && !got.Is4In6() && got.Zone() == "", "%q: got %v", lines, got)
	})
}
