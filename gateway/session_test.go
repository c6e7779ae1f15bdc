package gateway

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/login"
	"troupe/persistence"
)

const jsonLine = "Content-Type: application/json"

// signInWith is POST /session with a body.
func signInWith(body string, headers ...string) request {
	return request{method: "POST", path: "/session", body: body, headers: append([]string{jsonLine}, headers...)}
}

const annAsJSON = `{"user":"ann","name":"Ann","roles":["clerk"],"privileges":["mod-form"]}`

// TestSession goes through the three methods (gateway/INTERFACE.md, "Signing in").
func TestSession(t *testing.T) {
	cookie := "Cookie: session=" + sessionAnn
	cases := []struct {
		line    string
		request request
		status  int
		body    string // of a success; otherwise the word
		cookie  string
	}{
		{"the right password makes a session", signInWith(signInBody), 200, annAsJSON, "session=" + sessionNew + "; Path=/; HttpOnly; SameSite=Lax"},
		{"a token beside it is not looked at", signInWith(signInBody, "Authorization: svc.token "+tokenBob), 200, annAsJSON, "session=" + sessionNew + "; Path=/; HttpOnly; SameSite=Lax"},
		{"a session that is none beside it is not looked at", signInWith(signInBody, "Cookie: session=x"), 200, annAsJSON, "session=" + sessionNew + "; Path=/; HttpOnly; SameSite=Lax"},
		{"two session cookies", signInWith(signInBody, cookie+"; session=x"), 400, "InvalidContent", ""},
		{"two session cookies that are equal", signInWith(signInBody, cookie, cookie), 400, "InvalidContent", ""},
		{"two session cookies and a wrong password", signInWith(`{"user":"ann","password":"x"}`, cookie+"; session=x"), 400, "InvalidContent", ""},
		{"two different tokens", signInWith(signInBody, "Authorization: svc.token "+tokenAnn, "Authentication: svc.token "+tokenBob), 400, "InvalidContent", ""},
		{"a wrong password", signInWith(`{"user":"ann","password":"x"}`), 401, "Unauthorized", ""},
		{"an unknown user", signInWith(`{"user":"nobody","password":"x"}`), 401, "Unauthorized", ""},
		{"a user who cannot be", signInWith(`{"user":"no body\n","password":"x"}`), 401, "Unauthorized", ""},
		{"no user", signInWith(`{"password":"x"}`), 400, "InvalidContent", ""},
		{"no password", signInWith(`{"user":"ann"}`), 400, "InvalidContent", ""},
		{"a member too many", signInWith(`{"user":"ann","password":"x","next":"/"}`), 400, "InvalidContent", ""},
		{"a member in another case", signInWith(`{"User":"ann","password":"x"}`), 400, "InvalidContent", ""},
		{"a member twice", signInWith(`{"user":"ann","user":"bob","password":"x"}`), 400, "InvalidContent", ""},
		{"a user that is no string", signInWith(`{"user":1,"password":"x"}`), 400, "InvalidContent", ""},
		{"a password that is no string", signInWith(`{"user":"ann","password":null}`), 400, "InvalidContent", ""},
		{"a list", signInWith(`["ann","x"]`), 400, "InvalidContent", ""},
		{"no JSON", signInWith(`user=ann&password=x`), 400, "InvalidContent", ""},
		{"no UTF-8", signInWith("{\"user\":\"ann\",\"password\":\"\xff\"}"), 400, "InvalidContent", ""},
		{"no body", signInWith(""), 400, "InvalidContent", ""},
		{"a large body", signInWith(strings.Repeat(" ", 2<<20)), 413, "TooLarge", ""},
		{"a parameter", request{method: "POST", path: "/session?user=ann", body: signInBody, headers: []string{jsonLine}}, 400, "InvalidContent", ""},
		{"no content type", request{method: "POST", path: "/session", body: signInBody}, 415, "UnsupportedMediaType", ""},
		{"no content type, with a token", request{method: "POST", path: "/session", body: signInBody, headers: []string{withToken}}, 415, "UnsupportedMediaType", ""},
		{"the content type of a form", request{method: "POST", path: "/session", body: signInBody, headers: []string{"Content-Type: text/plain"}}, 415, "UnsupportedMediaType", ""},
		{"a packed body", signInWith(signInBody, "Content-Encoding: gzip"), 415, "UnsupportedMediaType", ""},
		{"a page of another site", signInWith(signInBody, "Sec-Fetch-Site: cross-site"), 403, "AccessDenied", ""},
		{"a page of a sibling", signInWith(signInBody, "Sec-Fetch-Site: same-site"), 403, "AccessDenied", ""},
		{"another origin", signInWith(signInBody, "Origin: https://evil.example"), 403, "AccessDenied", ""},
		{"no origin", signInWith(signInBody, "Origin: null"), 403, "AccessDenied", ""},
		{"a page of ours", signInWith(signInBody, "Sec-Fetch-Site: same-origin"), 200, annAsJSON, "session=" + sessionNew + "; Path=/; HttpOnly; SameSite=Lax"},

		{"who am I", request{method: "GET", path: "/session", headers: []string{cookie}}, 200, annAsJSON, ""},
		{"who am I, without a session", request{method: "GET", path: "/session"}, 401, "Unauthorized", ""},
		{"who am I, with a token", request{method: "GET", path: "/session", headers: []string{withToken}}, 401, "Unauthorized", ""},
		{"who am I, with a session that is none", request{method: "GET", path: "/session", headers: []string{"Cookie: session=" + sessionNew}}, 401, "Unauthorized", ""},
		{"who am I, with two sessions", request{method: "GET", path: "/session", headers: []string{cookie, cookie}}, 400, "InvalidContent", ""},

		{"signing out", request{method: "DELETE", path: "/session", headers: []string{cookie}}, 200, "{}", "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"},
		{"signing out without a session", request{method: "DELETE", path: "/session"}, 401, "Unauthorized", ""},
		{"signing out with a token", request{method: "DELETE", path: "/session", headers: []string{withToken}}, 401, "Unauthorized", ""},
		{"signing out on a page of another site", request{method: "DELETE", path: "/session", headers: []string{cookie, "Sec-Fetch-Site: cross-site"}}, 403, "AccessDenied", ""},
		{"signing out with a body that is no JSON", request{method: "DELETE", path: "/session", body: "x", headers: []string{cookie}}, 415, "UnsupportedMediaType", ""},
	}
	s := startServer(t, Options{}, nil)
	unauthorized := s.do(t, request{method: "GET", path: "/workflow/api/v1/choices"}).body
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			a := s.do(t, c.request)
			checkCommonHeaders(t, a.header)
			if a.status != c.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if c.status == 200 && a.body != c.body || c.status != 200 && a.label() != c.body {
				t.Errorf("got %s, want %s", a.body, c.body)
			}
			if got := a.header["Set-Cookie"]; len(got) > 1 || strings.Join(got, "") != c.cookie {
				t.Errorf("cookie: got %q, want %q", got, c.cookie)
			}
			if c.status == 401 && (a.body != unauthorized || a.header.Get("WWW-Authenticate") == "") {
				t.Errorf("got %s and %v, want %s and a WWW-Authenticate", a.body, a.header, unauthorized)
			}
			if strings.Contains(s.log.String()+a.body, "oak") && c.status != 200 {
				t.Errorf("the password is in the answer or in the log")
			}
		})
	}
}

// TestASessionIsNeeded: a 401 of group A, and of the form runtime, says what is taken
// there, in the same bytes for every cause.
func TestASessionIsNeeded(t *testing.T) {
	s := startServer(t, Options{SessionCookie: "desk"}, nil)
	causes := map[string][]string{
		"nothing": nil, "a token": {withToken}, "a token that is none": {"Authentication: Basic x"},
		"an unknown session": {"Cookie: desk=" + tokenNobody}, "no session": {"Cookie: desk=x"}, "another cookie": {"Cookie: session=" + sessionAnn},
	}
	sessionOnly := 0
	for _, rt := range s.table {
		if rt.group != groupPortal {
			continue
		}
		if rt.access.kinds != identity.Session {
			t.Errorf("%s does not take sessions only", rt.name)
		}
		sessionOnly++
		for cause, headers := range causes {
			w := newRecorder()
			s.ServeHTTP(w, newTestRequest(rt.method, strings.ReplaceAll(rt.path, ":", ""), "", headers...))
			const want = `{"error":"Unauthorized","message":"a session is needed"}`
			if w.status != 401 || w.body.String() != want {
				t.Errorf("%s with %s: got %d %s, want %s", rt.name, cause, w.status, w.body.String(), want)
			}
			if got, want := w.header.Get("WWW-Authenticate"), `Cookie realm="troupe", cookie-name="desk"`; got != want {
				t.Errorf("%s with %s: WWW-Authenticate: got %q, want %q", rt.name, cause, got, want)
			}
		}
	}
	if sessionOnly < 12 {
		t.Errorf("group A has %d routes", sessionOnly)
	}
}

// TestSessionBeforeSignIn holds gateway/INTERFACE.md, "The session cookie", against
// session fixation: an id that was there before is never kept, and ends.
func TestSessionBeforeSignIn(t *testing.T) {
	for _, old := range []string{sessionAnn, tokenNobody, strings.Repeat("x", 64)} {
		s := startServer(t, Options{}, nil)
		a := s.do(t, signInWith(signInBody, "Cookie: session="+old))
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Set-Cookie"), "session="+sessionNew+";") {
			t.Errorf("got %d and the cookie %q", a.status, a.header.Get("Set-Cookie"))
		}
		if !slices.Equal(s.sessions.ended, []string{old}) {
			t.Errorf("ended: got %q, want %q", s.sessions.ended, old)
		}
		s.do(t, signInWith(`{"user":"ann","password":"x"}`, "Cookie: session="+old))
		if len(s.sessions.ended) != 1 {
			t.Errorf("a wrong password has ended a session")
		}
	}
	s := startServer(t, Options{}, nil)
	s.do(t, request{method: "DELETE", path: "/session", headers: []string{"Cookie: session=" + sessionAnn}})
	if !slices.Equal(s.sessions.ended, []string{sessionAnn}) {
		t.Errorf("signing out has ended %q", s.sessions.ended)
	}
}

// TestSessionFaults holds what is answered when identity cannot.
func TestSessionFaults(t *testing.T) {
	cookie := "Cookie: session=" + sessionAnn
	for _, c := range []struct {
		err    error
		status int
		word   string
		retry  string // "" for none, "*" for any
	}{
		{&failure.Error{Kind: failure.ErrQuota, Wait: time.Millisecond}, 429, "Busy", "1"},
		{&failure.Error{Kind: failure.ErrQuota, Wait: time.Second}, 429, "Busy", "1"},
		{&failure.Error{Kind: failure.ErrQuota, Wait: time.Second + 1}, 429, "Busy", "2"},
		{&failure.Error{Kind: failure.ErrQuota, Wait: 5 * time.Minute}, 429, "Busy", "300"},
		{failure.ErrBusy, 503, "Busy", "*"},
		{failure.ErrBusy, 503, "Busy", "*"},
		{failure.ErrUnavailable, 503, "Unavailable", "*"},
		{persistence.ErrDiskFull, 503, "Unavailable", "*"},
		{persistence.ErrStalled, 503, "Unavailable", "*"},
		{persistence.ErrOutcomeUnknown, 504, "OutcomeUnknown", ""},
		{errors.New("something new about a secret oak"), 500, "Internal", ""},
	} {
		s := startServer(t, Options{}, nil)
		s.sessions.setFail(fmt.Errorf("sign in %q: %w", "ann", c.err))
		for _, r := range []request{signInWith(signInBody), {method: "DELETE", path: "/session", headers: []string{cookie}}} {
			a := s.do(t, r)
			got := a.header.Get("Retry-After")
			if a.status != c.status || a.label() != c.word || got != c.retry && (c.retry != "*" || got == "") {
				t.Errorf("%s, %v: got %d %s and Retry-After %q, want %d %s and %q", r.method, c.err, a.status, a.body, got, c.status, c.word, c.retry)
			}
			if a.header.Get("Set-Cookie") != "" || strings.Contains(a.body, "ann") || strings.Contains(a.body, "oak") {
				t.Errorf("%s, %v: got %s and the cookie %q", r.method, c.err, a.body, a.header.Get("Set-Cookie"))
			}
		}
	}
	// Without anybody who signs in, there is no such thing.
	s := startServer(t, Options{}, nil)
	s.Open(Services{Workflows: s.workflows, Credentials: fakeCredentials{}})
	if a := s.do(t, signInWith(signInBody)); a.status != 404 {
		t.Errorf("no service: got %d, want 404", a.status)
	}
	if a := s.do(t, request{method: "DELETE", path: "/session", headers: []string{cookie}}); a.status != 404 {
		t.Errorf("no service: got %d, want 404", a.status)
	}
}

// TestCookieFlags holds gateway/INTERFACE.md, "The session cookie": Secure
// whenever TLS or a trusted proxy says so, and the path and the name that are
// configured.
func TestCookieFlags(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	cases := []struct {
		line    string
		options Options
		peer    string
		tls     bool
		headers []string
		want    string
	}{
		{"plain HTTP", Options{}, "192.0.2.7:1234", false, nil, "session=S; Path=/; HttpOnly; SameSite=Lax"},
		{"TLS", Options{}, "192.0.2.7:1234", true, nil, "session=S; Path=/; HttpOnly; Secure; SameSite=Lax"},
		{"anybody who says so", Options{}, "192.0.2.7:1234", false, []string{"X-Forwarded-Proto: https"}, "session=S; Path=/; HttpOnly; SameSite=Lax"},
		{"anybody beside a trusted proxy", Options{TrustedProxies: proxies}, "192.0.2.7:1234", false, []string{"X-Forwarded-Proto: https"}, "session=S; Path=/; HttpOnly; SameSite=Lax"},
		{"a trusted proxy", Options{TrustedProxies: proxies}, "10.1.2.3:1234", false, []string{"X-Forwarded-Proto: https"}, "session=S; Path=/; HttpOnly; Secure; SameSite=Lax"},
		{"a trusted proxy in capitals", Options{TrustedProxies: proxies}, "[fd00::1]:1234", false, []string{"X-Forwarded-Proto: HTTPS"}, "session=S; Path=/; HttpOnly; Secure; SameSite=Lax"},
		{"a trusted proxy as a mapped address", Options{TrustedProxies: proxies}, "[::ffff:10.1.2.3]:1234", false, []string{"X-Forwarded-Proto: https"}, "session=S; Path=/; HttpOnly; Secure; SameSite=Lax"},
		{"a trusted proxy without TLS", Options{TrustedProxies: proxies}, "10.1.2.3:1234", false, []string{"X-Forwarded-Proto: http"}, "session=S; Path=/; HttpOnly; SameSite=Lax"},
		{"two proxies", Options{TrustedProxies: proxies}, "10.1.2.3:1234", false, []string{"X-Forwarded-Proto: https, http"}, "session=S; Path=/; HttpOnly; Secure; SameSite=Lax"},
		{"something like https", Options{TrustedProxies: proxies}, "10.1.2.3:1234", false, []string{"X-Forwarded-Proto: httpsx"}, "session=S; Path=/; HttpOnly; SameSite=Lax"},
		{"a base path", Options{BasePath: "/platform/v2/"}, "192.0.2.7:1234", false, nil, "session=S; Path=/platform/v2; HttpOnly; SameSite=Lax"},
		{"another name", Options{SessionCookie: "desk"}, "192.0.2.7:1234", false, nil, "desk=S; Path=/; HttpOnly; SameSite=Lax"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			s, err := New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			s.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Sessions: new(fakeSessions)})
			send := func(method, body string, headers ...string) string {
				r := newTestRequest(method, s.options.BasePath+"/session", body, append(slices.Clone(c.headers), headers...)...)
				r.RemoteAddr = c.peer
				if c.tls {
					r.TLS = new(tls.ConnectionState)
				}
				w := newRecorder()
				s.ServeHTTP(w, r)
				if w.status != 200 {
					t.Fatalf("%s: got %d %s", method, w.status, w.body.String())
				}
				return w.header.Get("Set-Cookie")
			}
			if got := strings.Replace(send("POST", signInBody, jsonLine), sessionNew, "S", 1); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			want := strings.Replace(strings.Replace(c.want, "=S;", "=;", 1), "; HttpOnly", "; Max-Age=0; HttpOnly", 1)
			if got := send("DELETE", "", "Cookie: "+s.options.SessionCookie+"="+sessionAnn); got != want {
				t.Errorf("removed: got %q, want %q", got, want)
			}
		})
	}
}

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
		log := new(lockedBuffer)
		s, err := New(Options{TrustedProxies: c.proxies, Log: zerolog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		s.Open(Services{})
		for range 3 {
			r := newTestRequest("GET", "/workflow/api/v1/choices", "", c.headers...)
			r.RemoteAddr = "192.0.2.7:1"
			s.ServeHTTP(newRecorder(), r)
		}
		if got := strings.Count(log.String(), "trustedProxies"); got != c.want || got > 0 && !strings.Contains(log.String(), `"level":"warn"`) {
			t.Errorf("%s: got %d warnings, want %d: %s", c.line, got, c.want, log.String())
		}
	}
}

// TestClientAddress holds gateway/INTERFACE.md, "The caller's address":
// X-Forwarded-For only from configured proxies.
func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	cases := []struct {
		line    string
		peer    string
		headers []string
		want    string
	}{
		{"no proxy", "192.0.2.7:1", nil, "192.0.2.7"},
		{"anybody who says to be another", "192.0.2.7:1", []string{"X-Forwarded-For: 198.51.100.9"}, "192.0.2.7"},
		{"a proxy", "10.0.0.1:1", []string{"X-Forwarded-For: 198.51.100.9"}, "198.51.100.9"},
		{"a proxy that says nothing", "10.0.0.1:1", nil, "10.0.0.1"},
		{"a proxy by IPv6", "[fd00::1]:1", []string{"X-Forwarded-For: 2001:db8::9"}, "2001:db8::9"},
		{"a mapped proxy", "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For: ::ffff:198.51.100.9"}, "198.51.100.9"},
		{"two proxies of ours", "10.0.0.1:1", []string{"X-Forwarded-For: 198.51.100.9, 10.9.9.9"}, "198.51.100.9"},
		{"what the caller wrote before is not believed", "10.0.0.1:1", []string{"X-Forwarded-For: 203.0.113.1, 198.51.100.9"}, "198.51.100.9"},
		{"two lines are one list", "10.0.0.1:1", []string{"X-Forwarded-For: 203.0.113.1", "X-Forwarded-For: 198.51.100.9, 10.9.9.9"}, "198.51.100.9"},
		{"only proxies of ours", "10.0.0.1:1", []string{"X-Forwarded-For: 10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"with a port", "10.0.0.1:1", []string{"X-Forwarded-For: 198.51.100.9:4711"}, "198.51.100.9"},
		{"with a port by IPv6", "10.0.0.1:1", []string{"X-Forwarded-For: [2001:db8::9]:4711"}, "2001:db8::9"},
		{"in brackets", "10.0.0.1:1", []string{"X-Forwarded-For: [2001:db8::9]"}, "2001:db8::9"},
		{"rubbish", "10.0.0.1:1", []string{"X-Forwarded-For: unknown"}, "10.0.0.1"},
		{"rubbish before a proxy of ours", "10.0.0.1:1", []string{"X-Forwarded-For: rubbish, 10.9.9.9"}, "10.9.9.9"},
		{"empty elements", "10.0.0.1:1", []string{"X-Forwarded-For: 198.51.100.9,,"}, "10.0.0.1"},
		{"no peer", "", []string{"X-Forwarded-For: 198.51.100.9"}, "invalid IP"},
		{"a zone", "[fe80::1%eth0]:1", nil, "fe80::1"},
	}
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			s, err := New(Options{TrustedProxies: proxies})
			if err != nil {
				t.Fatal(err)
			}
			sessions := new(fakeSessions)
			s.Open(Services{Workflows: new(fakeWorkflows), Credentials: fakeCredentials{}, Sessions: sessions})
			r := newTestRequest("POST", "/session", signInBody, append(slices.Clone(c.headers), jsonLine)...)
			r.RemoteAddr = c.peer
			s.ServeHTTP(newRecorder(), r)
			if len(sessions.addresses) != 1 || sessions.addresses[0].String() != c.want {
				t.Errorf("got %v, want %s", sessions.addresses, c.want)
			}
		})
	}
	if _, err := New(Options{TrustedProxies: []netip.Prefix{{}}}); err == nil {
		t.Error("a range that is none: got no error")
	}
}

// FuzzForwarded holds that nobody but a trusted proxy can choose an address, and
// that an untrusted last element is always the answer.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.9", "a, 10.0.0.9", ",,", "[::1]:1, ::ffff:1.2.3.4", "fe80::1%x"} {
		f.Add(seed, seed)
	}
	s, err := New(Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		lines := []string{first, second}
		r := &http.Request{RemoteAddr: "192.0.2.7:1", Header: http.Header{"X-Forwarded-For": lines, "X-Forwarded-Proto": lines}}
		if got, secure := s.clientOf(r); got.String() != "192.0.2.7" || secure {
			t.Errorf("%q: got %v, %v from somebody who is not trusted", lines, got, secure)
		}
		r.RemoteAddr = "10.0.0.1:1"
		got, _ := s.clientOf(r)
		elements := strings.Split(first+","+second, ",")
		last, err := netip.ParseAddr(strings.Trim(elements[len(elements)-1], " \t"))
		if err == nil && !s.isTrusted(last.Unmap().WithZone("")) && got != last.Unmap().WithZone("") {
			t.Errorf("%q: got %v, want the last one", lines, got)
		}
		if !got.IsValid() || got.Is4In6() || got.Zone() != "" {
			t.Errorf("%q: got %v", lines, got)
		}
	})
}

func FuzzSignInBody(f *testing.F) {
	for _, seed := range append(slices.Clone(bodySeeds), signInBody, `{"user":"ann","password":"\ud83d\udc0e"}`, `{"user":"ann","password":"\ud800"}`, `{"user":"","password":""}`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body, err := parseBody(text)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		user, password, err := parseSignIn(body)
		if err != nil {
			checkRefusal(t, err)
			if user != "" || password != "" {
				t.Errorf("%q: got %q and %q beside an error", text, user, password)
			}
			return
		}
		var std struct{ User, Password *string }
		if err := json.Unmarshal(text, &std); err != nil || std.User == nil || std.Password == nil || *std.User != user || *std.Password != password {
			t.Errorf("%q: got %q and %q, encoding/json reads %v, %v, %v", text, user, password, std.User, std.Password, err)
		}
	})
}

// TestLoginPage holds the headers of the page, and that what it is told is
// checked.
func TestLoginPage(t *testing.T) {
	for _, base := range []string{"", "/platform"} {
		s := startServer(t, Options{BasePath: base}, nil)
		for asked, next := range map[string]string{
			"":                              base + "/",
			"?next=" + base + "/x":          base + "/x",
			"?next=%2F%2Fevil.example":      base + "/",
			"?next=https%3A%2F%2Fevil":      base + "/",
			"?next=%22%3E%3Cscript%3E":      base + "/",
			"?next=" + base + "/%22%3E%3Cb": base + "/&#34;&gt;&lt;b",
		} {
			a := s.do(t, request{method: "GET", path: "/login" + asked})
			if a.status != 200 || a.body != string(login.Page(login.Options{Base: base, Next: mustQuery(t, asked), Provider: s.provider.Name()})) {
				t.Errorf("%s: got %d %.60q", asked, a.status, a.body)
			}
			if !strings.Contains(a.body, `data-next="`+next+`"`) || !strings.Contains(a.body, `data-session="`+base+`/session"`) {
				t.Errorf("%s: the page does not lead to %s", asked, next)
			}
			for name, want := range map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": login.Policy, "X-Frame-Options": "DENY",
				"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Set-Cookie": "",
			} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s: %s: got %q, want %q", asked, name, got, want)
				}
			}
		}
		for _, query := range []string{"?next=/&next=/", "?other=1", "?next=%zz"} {
			a := s.do(t, request{method: "GET", path: "/login" + query})
			if a.status != 400 || a.label() != "InvalidContent" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: got %d %s %v", query, a.status, a.body, a.header)
			}
		}
		if a := s.do(t, request{method: "POST", path: "/login", body: "user=ann", headers: []string{"Content-Type: application/x-www-form-urlencoded"}}); a.status != 405 {
			t.Errorf("a form: got %d, want 405", a.status)
		}
	}
	s := startServer(t, Options{BasePath: "/platform"}, nil)
	for path, want := range map[string][2]string{
		"/login/style.css": {"text/css; charset=utf-8", string(login.Style())},
		"/login/script.js": {"text/javascript; charset=utf-8", string(login.Script())},
	} {
		a := s.do(t, request{method: "GET", path: path})
		a.header.Set("Vary", strings.TrimSuffix(a.header.Get("Vary"), ", Accept-Encoding"))
		checkCommonHeadersBut(t, a.header, want[0])
		if a.status != 200 || a.body != want[1] {
			t.Errorf("%s: got %d %.60q", path, a.status, a.body)
		}
		if a := s.do(t, request{method: "GET", path: path + "?x"}); a.status != 400 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s with a parameter: got %d %v", path, a.status, a.header)
		}
	}
	// A server that starts has no page yet.
	s = startClosed(t, Options{})
	if a := s.do(t, request{method: "GET", path: "/login"}); a.status != 503 || a.label() != "Unavailable" {
		t.Errorf("while starting: got %d %s, want 503", a.status, a.body)
	}
}

func mustQuery(t *testing.T, text string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "/"+text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.URL.Query().Get("next")
}
