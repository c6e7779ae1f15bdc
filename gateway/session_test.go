package gateway

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/logtest"
	"troupe/gateway/login"
)

const jsonLine = "Content-Type: application/json"

var (
	askSignIn  = request{Method: "POST", Path: "/session", Body: signInBody, Headers: []string{jsonLine}}
	askSignOut = request{Method: "DELETE", Path: "/session", Headers: []string{"Cookie: session=" + sessionAnn}}
)

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
		assert.True(t, got == c.want && (got <= 0 || strings.Contains(log.String(), `"level":"warn"`)), "%v %v %v %v", c.line, got, c.want, log.String())
	}
}

// TestClientAddress holds gateway/INTERFACE.md, "The caller's address": headers
// count only from configured proxies.
func TestClientAddress(t *testing.T) {
	s, err := New(Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}})
	require.NoError(t, err)
	for _, c := range []struct {
		line, peer string
		forwarded  []string // lines of X-Forwarded-For
		want       string
	}{
		{"no proxy", "192.0.2.7:1", nil, "192.0.2.7"},
		{"anybody who says to be another", "192.0.2.7:1", []string{"198.51.100.9"}, "192.0.2.7"},
		{"a proxy", "10.0.0.1:1", []string{"198.51.100.9"}, "198.51.100.9"},
		{"a proxy that says nothing", "10.0.0.1:1", nil, "10.0.0.1"},
		{"a proxy by IPv6", "[fd00::1]:1", []string{"2001:db8::9"}, "2001:db8::9"},
		{"a mapped proxy", "[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.9"}, "198.51.100.9"},
		{"two proxies of ours", "10.0.0.1:1", []string{"198.51.100.9, 10.9.9.9"}, "198.51.100.9"},
		{"what the caller wrote before is not believed", "10.0.0.1:1", []string{"203.0.113.1, 198.51.100.9"}, "198.51.100.9"},
		{"two lines are one list", "10.0.0.1:1", []string{"203.0.113.1", "198.51.100.9, 10.9.9.9"}, "198.51.100.9"},
		{"only proxies of ours", "10.0.0.1:1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"with a port", "10.0.0.1:1", []string{"198.51.100.9:4711"}, "198.51.100.9"},
		{"with a port by IPv6", "10.0.0.1:1", []string{"[2001:db8::9]:4711"}, "2001:db8::9"},
		{"in brackets", "10.0.0.1:1", []string{"[2001:db8::9]"}, "2001:db8::9"},
		{"rubbish", "10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"rubbish before a proxy of ours", "10.0.0.1:1", []string{"rubbish, 10.9.9.9"}, "10.9.9.9"},
		{"empty elements", "10.0.0.1:1", []string{"198.51.100.9,,"}, "10.0.0.1"},
		{"no peer", "", []string{"198.51.100.9"}, "invalid IP"},
		{"a zone", "[fe80::1%eth0]:1", nil, "fe80::1"},
	} {
		got, _ := s.kernel.ClientOf(&http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}})
		assert.Equal(t, c.want, got.String(), c.line)
	}
	for _, c := range []struct {
		peer  string
		tls   *tls.ConnectionState
		proto string
		want  bool
	}{
		{"192.0.2.7:1", nil, "", false},
		{"192.0.2.7:1", new(tls.ConnectionState), "", true},
		{"192.0.2.7:1", nil, "https", false},
		{"10.1.2.3:1", nil, "https", true},
		{"[fd00::1]:1", nil, "HTTPS", true},
		{"10.1.2.3:1", nil, "http", false},
		{"10.1.2.3:1", nil, "https, http", true},
		{"10.1.2.3:1", nil, "httpsx", false},
	} {
		_, got := s.kernel.ClientOf(&http.Request{RemoteAddr: c.peer, TLS: c.tls, Header: http.Header{"X-Forwarded-Proto": {c.proto}}})
		assert.Equal(t, c.want, got)
	}
	_, err = New(Options{TrustedProxies: []netip.Prefix{{}}})
	assert.Error(t, err, "a range that is none: got no error")
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

// TestLoginPage holds gateway/INTERFACE.md, "Signing in", for the page: its headers,
// and where it leads. Package login tests where it must not lead.
func TestLoginPage(t *testing.T) {
	s := startServer(t, Options{BasePath: "/platform"}, nil)
	for asked, next := range map[string]string{"": "/platform/", "?next=/platform/%22%3E%3Cb": "/platform/&#34;&gt;&lt;b", "?next=%2F%2Fevil.example": "/platform/"} {
		a := s.do(t, request{Method: "GET", Path: "/login" + asked})
		if a.Status != 200 || !strings.Contains(a.Body, `data-next="`+next+`"`) || !strings.Contains(a.Body, `data-session="/platform/session"`) || strings.Contains(a.Body, "evil") {
			t.Errorf("%s: got %d and a page that does not lead to %s: %s", asked, a.Status, next, a.Body)
		}
		checkHeaders(t, asked, a.Header, map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": login.Policy, "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Set-Cookie": "",
		})
	}
	for _, path := range []string{"/login?next=/&next=/", "/login?other=1", "/login?next=%zz", "/login/style.css?x"} {
		a := s.do(t, request{Method: "GET", Path: path})
		assert.True(t, a.Status == 400 && a.Label() == "InvalidContent" && a.Header.Get("Content-Type") == "application/json",
			"%s: got %d %s %v", path, a.Status, a.Body, a.Header)
	}
	// A server that starts has no page yet.
	s = startClosed(t, Options{})
	a := s.do(t, request{Method: "GET", Path: "/login"})
	assert.True(t, a.Status == 503 && a.Label() == "Unavailable", "while starting: got %d %s, want 503", a.Status, a.Body)
}
