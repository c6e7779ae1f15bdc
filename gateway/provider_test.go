package gateway

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/provider"
)

// TestBeginProvider holds gateway/INTERFACE.md, "Sign-in through a provider":
// where a person is sent, and the cookie of the way.
func TestBeginProvider(t *testing.T) {
	for _, c := range []struct {
		query, proto, next, redirect, flags string
	}{
		{"", "http", "/platform/", "http://x/platform/login/oidc/callback", "HttpOnly; SameSite=Lax"},
		{"?next=/platform/x%3Fa=b", "http", "/platform/x?a=b", "http://x/platform/login/oidc/callback", "HttpOnly; SameSite=Lax"},
		{"?next=//login.example/", "https", "/platform/", "https://x/platform/login/oidc/callback", "HttpOnly; Secure; SameSite=Lax"},
	} {
		s := startServer(t, Options{BasePath: "/platform", SessionCookie: "desk", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, nil)
		r := newTestRequest("GET", "/platform/login/oidc"+c.query, "", "X-Forwarded-Proto: "+c.proto)
		r.RemoteAddr = "192.0.2.7:1"
		w := newRecorder()
		s.ServeHTTP(w, r)
		require.True(t, w.status == 303 && w.header.Get("Location") == "https://login.example/auth?x=y" && !strings.Contains(w.body.String(), "//"),
			"%s: got %d %v %s", c.query, w.status, w.header, w.body.String())
		assert.True(t, s.provider.next == c.next && s.provider.redirect == c.redirect, "%v %v %v %v", s.provider.next, s.provider.redirect, c.next, c.redirect)
		got, want := w.header["Set-Cookie"], "desk-oidc="+flowCookie+"; Path=/platform/login/oidc; Max-Age=600; "+c.flags
		assert.Equal(t, []string{want}, got, "cookie, %q", want)
		checkCommonHeaders(t, w.header, "text/html; charset=utf-8")
	}
}

// TestFinishProvider holds that a person gets a new session, that the old one
// and the cookie of the way end, and where the browser goes.
func TestFinishProvider(t *testing.T) {
	s := startServer(t, Options{}, nil)
	s.provider.next = "/x?a=b"
	a := s.comeBack(t, "/login/oidc/callback?user=ann&code=c&state=s&session_state=more", "session-oidc="+flowCookie+"; session="+sessionAnn)
	require.True(t, a.status == 303 && a.header.Get("Location") == "/x?a=b", "got %d %v %s", a.status, a.header, a.body.String())
	assert.Equal(t, []string{
		"session=" + sessionNew + "; Path=/; HttpOnly; SameSite=Lax", "session-oidc=; Path=/login/oidc; Max-Age=0; HttpOnly; SameSite=Lax",
	}, a.header["Set-Cookie"])
	assert.Equal(t, []string{sessionAnn}, s.sessions.ended, "ended")
	v := s.sessions.vouched
	assert.True(t, len(v) == 1 && v[0].User == "ann" && slices.Equal(v[0].Roles, []identity.RoleID{"clerk"}), "vouched for: got %+v", v)
	// A cookie in which next leads elsewhere cannot be made, but would not help.
	s.provider.next = "//evil.example"
	assert.Equal(t, "/", s.comeBack(t, "/login/oidc/callback?user=ann", "session-oidc="+flowCookie).header.Get("Location"))
}

// TestFinishProviderElsewhere: the provider's code can be spent once, so nobody is asked where the
// session could not be made.
func TestFinishProviderElsewhere(t *testing.T) {
	s := startServer(t, Options{}, nil)
	s.sessions.elsewhere = failure.Elsewhere(7)
	if a := s.comeBack(t, "/login/oidc/callback?user=ann", "session-oidc="+flowCookie); a.status != 503 || s.provider.calls() != 0 {
		t.Errorf("got %d after %d calls of the provider, want 503 and none", a.status, s.provider.calls())
	}
}

// TestTheOldSessionMustEnd: nobody gets a session while the one from before may go on, and nobody
// repeats the sign-in, which has happened.
func TestTheOldSessionMustEnd(t *testing.T) {
	for _, c := range []struct {
		err    error
		starts bool
	}{{failure.ErrUnauthorized, true}, {failure.Elsewhere(7), false}, {failure.ErrOutcomeUnknown, false}, {failure.ErrUnavailable, false}} {
		s := startServer(t, Options{}, nil)
		s.provider.next = "/x"
		s.sessions.endFails = c.err
		old := "Cookie: session=" + sessionAnn
		for way, w := range map[string]*recorder{
			"password": askHandler(t.Context(), s.Server, request{Method: "POST", Path: "/session", Body: signInBody, Headers: []string{jsonLine, old}}),
			"provider": s.comeBack(t, "/login/oidc/callback?user=ann", "session-oidc="+flowCookie+"; session="+sessionAnn),
		} {
			started := strings.Contains(strings.Join(w.header["Set-Cookie"], "\n"), sessionNew)
			assert.True(t, started == c.starts && (c.starts || w.status == 503), "%v %v %v %v", way, c.err, w.status, started)
		}
	}
}

// comeBack is what a browser sends that the provider has sent back.
func (s *testServer) comeBack(t *testing.T, target, cookies string) *recorder {
	t.Helper()
	w := newRecorder()
	s.ServeHTTP(w, newTestRequest("GET", target, "", "Cookie: "+cookies, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"))
	return w
}

// TestProviderProblems holds that what goes wrong is a page with a status, and
// never a session.
func TestProviderProblems(t *testing.T) {
	const good, none = "session-oidc=" + flowCookie, ""
	for _, c := range []struct {
		line, query, cookies string
		fail, sessions       error
		status               int
		says                 string
		ends                 bool // the cookie of the way
	}{
		{"no cookie", "?user=ann", none, nil, nil, 400, "Please try again", false},
		{"another cookie", "?user=ann", "session-oidc=" + sessionAnn, nil, nil, 400, "Please try again", false},
		{"two cookies", "?user=ann", good + "; " + good, nil, nil, 400, "Please try again", false},
		{"two sessions", "?user=ann", good + "; session=x; session=y", nil, nil, 400, "Please try again", false},
		{"a parameter twice", "?user=ann&user=bob", good, nil, nil, 400, "Please try again", false},
		{"an unknown user", "?user=nobody", good, nil, nil, 401, "do not have access", true},
		{"refused", "?user=ann", good, provider.ErrRefused, nil, 401, "did not confirm", true},
		{"busy", "?user=ann", good, provider.ErrBusy, nil, 503, "in a moment", true},
		{"unavailable", "?user=ann", good, provider.ErrUnavailable, nil, 503, "in a moment", true},
		{"full", "?user=ann", good, nil, failure.ErrBusy, 503, "in a moment", true},
		{"something new", "?user=ann", good, errors.New("a secret oak"), nil, 500, "Sign-in failed", true},
	} {
		t.Run(c.line, func(t *testing.T) {
			s := startServer(t, Options{}, nil)
			s.provider.next = "/x"
			s.provider.setFail(c.fail)
			s.sessions.setFail(c.sessions)
			a := s.comeBack(t, "/login/oidc/callback"+c.query, c.cookies)
			text := a.body.String()
			assert.True(t, a.status == c.status && strings.Contains(text, c.says) && strings.HasPrefix(text, "<!DOCTYPE html>") && !strings.Contains(text, "oak"),
				"got %d %s, want %d and %q", a.status, text, c.status, c.says)
			vary := a.header.Get("Vary")
			assert.True(t, strings.HasSuffix(vary, ", Accept-Language"), "the page is in the reader's language: got Vary %s", vary)
			a.header.Set("Vary", strings.TrimSuffix(a.header.Get("Vary"), ", Accept-Language"))
			checkCommonHeaders(t, a.header, "text/html; charset=utf-8")
			assert.True(t, a.header.Get("Content-Security-Policy") != "" && a.header.Get("Location") == "", "headers: got %v", a.header)
			cookies := strings.Join(a.header["Set-Cookie"], "\n")
			if strings.Contains(cookies, "session=") || c.ends != strings.HasPrefix(cookies, "session-oidc=; Path=/login/oidc; Max-Age=0;") || !c.ends && cookies != "" {
				t.Errorf("cookies: got %q", cookies)
			}
			assert.False(t, c.ends && !strings.Contains(text, `data-next="/x"`), "the page has forgotten where the person wants to go")
			assert.True(t, (a.status == 503) == (a.header.Get("Retry-After") != "") && (a.status == 500) == strings.Contains(s.log.String(), "a secret oak"),
				"got %v and the log %s", a.header, s.log.String())
		})
	}
	s := startServer(t, Options{}, nil)
	s.provider.setFail(provider.ErrUnavailable)
	a := s.do(t, request{Method: "GET", Path: "/login/oidc?next=/x"})
	assert.True(t, a.Status == 503 && strings.Contains(a.Body, "in a moment") && strings.Contains(a.Body, `data-next="/x"`) && a.Header.Get("Set-Cookie") == "",
		"begin: got %d %v %s", a.Status, a.Header, a.Body)
	for _, headers := range [][]string{{"Sec-Fetch-Site: cross-site"}, {"Origin: https://evil.example"}} {
		a := s.do(t, request{Method: "GET", Path: "/login/oidc", Headers: headers})
		assert.True(t, a.Status == 403 && a.Header.Get("Set-Cookie") == "", "begin on another site: got %d", a.Status)
	}
	// While the server starts, a person sees a page as well.
	closed := startClosed(t, Options{})
	a = closed.do(t, request{Method: "GET", Path: "/login/oidc"})
	assert.True(t, a.Status == 503 && strings.Contains(a.Body, "<!DOCTYPE html>"), "while starting: got %d %s", a.Status, a.Body)
}
