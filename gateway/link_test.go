package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/internal/session"
	"troupe/gateway/login"
)

// linkOf makes a link for a user, and returns the body of the request that spends it.
func linkOf(t *testing.T, links *login.Links, user identity.UserID) string {
	t.Helper()
	_, secret, found := strings.Cut(links.Add(user, "/"), "#link=")
	require.True(t, found, "the link has no secret in its fragment")
	return `{"link":"` + secret + `"}`
}

// openWithLinks gives a server links.
func (s *testServer) openWithLinks() *login.Links {
	links := login.NewLinks(nil)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}, Sessions: s.sessions, Portal: s.portal, Links: links})
	return links
}

// wantsStatus sends a request and compares the status of its answer.
func (s *testServer) wantsStatus(t *testing.T, what string, ask request, want int) answer {
	t.Helper()
	got := s.do(t, ask)
	assert.Equal(t, want, got.Status, "%v %v", what, got.Body)
	return got
}

// spend is the answer to a request that spends a link, from a peer and under a name.
func (s *testServer) spend(body, peer, host string, headers ...string) *recorder {
	r := newTestRequest("POST", "/session", body, headers...)
	r.RemoteAddr, r.Host = peer, host
	w := newRecorder()
	s.ServeHTTP(w, r)
	return w
}

// TestSignInByLink: a link is good for one session, and the session from before ends.
func TestSignInByLink(t *testing.T) {
	s := startServer(t, Options{}, nil)
	ask := request{Method: "POST", Path: "/session", Headers: []string{jsonLine, "Cookie: session=" + sessionAnn}}
	ask.Body = `{"link":"nobody made it"}`
	s.wantsStatus(t, "no links at all", ask, 401)
	links := s.openWithLinks()
	s.wantsStatus(t, "a link that nobody made", ask, 401)
	ask.Body = linkOf(t, links, userAnn)
	got := s.wantsStatus(t, "a link", ask, 200)
	cookie := got.Header.Get("Set-Cookie")
	assert.True(t, strings.HasPrefix(cookie, "session="+sessionNew+";") && strings.Contains(cookie, "HttpOnly"), "got the cookie %q", cookie)
	assert.True(t, got.Header.Get("Cache-Control") == "no-store" && strings.Contains(got.Body, `"user":"ann"`), "got %v %s", got.Header, got.Body)
	want := []identity.Vouched{{User: userAnn, Address: netip.MustParseAddr("127.0.0.1"), How: "signed in by a link"}}
	assert.True(t, reflect.DeepEqual(s.sessions.vouched, want) && reflect.DeepEqual(s.sessions.ended, []string{sessionAnn}),
		"got %+v, and %v ended", s.sessions.vouched, s.sessions.ended)
	s.wantsStatus(t, "the link again", ask, 401)
	for body, what := range map[string]string{
		`{"link":""}`:               "an empty link",
		`{"link":1}`:                "a number",
		`{"link":"x","user":"ann"}`: "a link and a user",
		`{"link":"x","user":"ann","password":"x"}`: "a link and a password",
		`{"link":"x","next":"/"}`:                  "a member that is none",
	} {
		ask.Body = body
		s.wantsStatus(t, what, ask, 400)
	}
}

// TestALinkIsForThisMachine: whatever does not come from this machine under a name of it is
// refused, and does not spend the link.
func TestALinkIsForThisMachine(t *testing.T) {
	s := startServer(t, Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}, nil)
	links := s.openWithLinks()
	body := linkOf(t, links, userAnn)
	for _, c := range []struct {
		what    string
		peer    string
		host    string
		headers []string
		want    int
	}{
		{"another machine", "192.0.2.7:1", "127.0.0.1:8080", nil, 401},
		{"a caller of unknown address", "", "127.0.0.1:8080", nil, 401},
		{"a name that leads here (DNS rebinding)", "127.0.0.1:1", "evil.example:8080", nil, 401},
		{"a name that begins like ours", "127.0.0.1:1", "127.0.0.1.evil.example", nil, 401},
		{"another machine's address", "127.0.0.1:1", "192.0.2.1:8080", nil, 401},
		{"no name", "127.0.0.1:1", "", nil, 401},
		{"a proxy", "127.0.0.1:1", "127.0.0.1:8080", []string{"X-Forwarded-For: 127.0.0.1"}, 401},
		{"a trusted proxy", "127.0.0.9:1", "localhost", []string{"X-Forwarded-For: 198.51.100.9"}, 401},
		{"a proxy of the standard", "127.0.0.1:1", "127.0.0.1:8080", []string{"Forwarded: for=198.51.100.9"}, 401},
		{"a page of another site", "127.0.0.1:1", "127.0.0.1:8080", []string{"Sec-Fetch-Site: cross-site", "Origin: http://evil.example"}, 403},
		{"a page of another port", "127.0.0.1:1", "127.0.0.1:8080", []string{"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:9"}, 403},
		{"an old browser on another site", "127.0.0.1:1", "127.0.0.1:8080", []string{"Origin: http://evil.example"}, 403},
		{"an HTML form", "127.0.0.1:1", "127.0.0.1:8080", []string{"Content-Type: text/plain"}, 415},
		{"ours", "127.0.0.1:1", "127.0.0.1:8080", []string{"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8080"}, 200},
		{"by another name", "[::1]:1", "LocalHost:8080", nil, 200},
		{"by IPv6", "[::1]:1", "[::1]:8080", nil, 200},
		{"without a port", "[::ffff:127.0.0.1]:1", "[::1]", nil, 200},
	} {
		if len(c.headers) == 0 || !strings.HasPrefix(c.headers[0], "Content-Type") {
			c.headers = append(c.headers, jsonLine)
		}
		w := s.spend(body, c.peer, c.host, c.headers...)
		assert.Equal(t, c.want, w.status, "%v %v", c.what, &w.body)
		if c.want == http.StatusOK { // which also says that nothing before has spent it
			body = linkOf(t, links, userAnn)
		}
	}
	s.sessions.elsewhere = failure.ErrUnavailable
	assert.Equal(t, http.StatusServiceUnavailable, s.spend(body, "127.0.0.1:1", "localhost", jsonLine).status)
	s.sessions.elsewhere = nil
	assert.Equal(t, http.StatusOK, s.spend(body, "127.0.0.1:1", "localhost", jsonLine).status, "afterwards")
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
	r := newTestRequest("POST", "/session", linkOf(t, links, userAnn), jsonLine)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
	w := newRecorder()
	if s.ServeHTTP(w, r); w.status != http.StatusUnauthorized {
		t.Errorf("without a listener on loopback: got %d", w.status)
	}
}
