package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/session"
	"troupe/gateway/login"
)

type visitor struct {
	headers        []string
	token, session bool // a good one
	twofold        bool // two credentials of one kind
	elsewhere      bool // on a page of another site
	privileges     int  // a set, see portalPrivileges
}

func visitors() []visitor {
	const here, there = "Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"
	all := []visitor{
		{},
		{headers: []string{"Authorization: Basic YTpi"}},
		{headers: []string{"Authorization: svc.token " + tokenNobody}},
		{headers: []string{"Authorization: svc.token " + sessionAnn}},
		{headers: []string{"Cookie: session=" + tokenAnn}},
		{headers: []string{"X-Token: " + tokenAnn}},
		{headers: []string{there}, elsewhere: true},
		{headers: []string{"Origin: https://evil.example"}, elsewhere: true},
		{headers: []string{withToken, "Authentication: svc.token " + tokenBob}, twofold: true},
		{headers: []string{here + "; session=" + sessionAnn}, twofold: true},
		{headers: []string{withToken}, token: true},
		{headers: []string{"Authentication: bearer " + tokenAnn}, token: true},
		{headers: []string{withToken, here, there}, token: true, session: true, elsewhere: true, privileges: privilegesAnn},
		{headers: []string{here}, session: true, privileges: privilegesAnn},
		{headers: []string{here, there}, session: true, elsewhere: true, privileges: privilegesAnn},
	}
	for _, set := range []int{0, 1, 2, 3, 4, 5, 6, 7, privilegeAdmin, privilegeWorkflows} {
		cookie := "Cookie: session=" + sessionOf(set)
		all = append(all, visitor{headers: []string{cookie}, session: true, privileges: set},
			visitor{headers: []string{cookie, withToken}, session: true, token: true, privileges: set},
			visitor{headers: []string{cookie, there}, session: true, elsewhere: true, privileges: set})
	}
	return all
}

const privilegesAnn = 2

// admits is the status that a route owes a visitor, written down once more from
// gateway/INTERFACE.md: the table of routes says which credentials and privileges a
// route demands, and openapi.yaml says the same.
func admits(rt *kernel.Route, v visitor, method, contentType string) int {
	rightType := strings.HasPrefix(contentType, "application/json") && !strings.Contains(contentType, "latin1") && rt.Content == "" || contentType == rt.Content && contentType != "" || rt.TakesYAML && contentType == "application/yaml"
	unsafe := method != http.MethodGet && method != http.MethodHead
	needed := 0
	for i, p := range portalPrivileges {
		if rt.Privilege == p || rt.Name == "template" && p == identity.Form { // of a form
			needed |= 1 << i
		}
	}
	if rt.Privilege == identity.APITokens { // which nobody here has, or the other one
		needed = privilegeAdmin
	}
	byToken := v.token && rt.Access.Kinds&identity.Token != 0
	if byToken {
		v.privileges = privilegesAnn
	}
	if slices.Contains([]string{"health", "load", "backups", "exports"}, rt.Name) && v.privileges&privilegeAdmin != 0 { // one of two is enough
		needed = 0
	}
	switch {
	case method != rt.Method && (method != http.MethodHead || rt.Method != http.MethodGet):
		return 405
	case rt.Name == "login-callback":
		return 400 // nothing is known of a browser without its cookie
	case rt.Access.SignIn && v.elsewhere:
		return 403
	case (rt.Access.SignIn || rt.Access.Kinds != 0) && v.twofold:
		return 400
	case rt.Name == "login-provider":
		return 303
	case rt.Access.SignIn && !rightType:
		return 415
	case rt.Access.Kinds == 0:
		return 200
	case !byToken && !v.session:
		return 401
	case !byToken && v.elsewhere && (unsafe || rt.Strict):
		return 403
	case v.privileges&needed != needed:
		return 403
	case unsafe && !rightType && (contentType != "" || !byToken && method != http.MethodDelete):
		return 415 // a DELETE has no body, so its type may be missing
	}
	return 200
}

// TestAccessMatrix sends every credential × route × method × content type. It holds
// gateway/INTERFACE.md, "Groups", gateway/INTERFACE.md, "Which group accepts which credential",
// gateway/INTERFACE.md, "Privileges", and persistence/PROMISES.md, "P18".
func TestAccessMatrix(t *testing.T) {
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	contentTypes := []string{"", "application/json", "application/json; charset=utf-8", "application/json; charset=latin1", "application/yaml", "text/plain", "multipart/form-data; boundary=x"}
	s := startServer(t, Options{}, nil)
	cells := 0
	for _, rt := range s.kernel.Table {
		r := requestOf(t, &rt)
		for n, v := range visitors() {
			for _, method := range methods {
				takes := admits(&rt, v, method, "") != 405
				if slices.ContainsFunc(s.kernel.Table, func(other kernel.Route) bool {
					return other.Name != rt.Name && takesPath(&other, rt.Path) && admits(&other, v, method, "") != 405
				}) {
					continue // that is a cell of the other route
				}
				types := contentTypes
				switch {
				case !takes && n > 20:
					continue // who asks makes no difference
				case !takes:
					types = contentTypes[:1]
				case method == "GET", method == "HEAD":
					types = []string{"", "text/plain"} // neither is looked at
				case rt.Content != "":
					types = append(slices.Clone(types), rt.Content)
				}
				for _, contentType := range types {
					cells++
					headers := v.headers
					if contentType != "" {
						headers = append(slices.Clone(headers), "Content-Type: "+contentType)
					}
					s.checkCell(t, &rt, newTestRequest(method, r.Path, r.Body, headers...), admits(&rt, v, method, contentType))
				}
			}
		}
	}
	assert.GreaterOrEqual(t, cells, 12_000, "tried")
}

// takesPath reports whether a route takes the paths of another one, as definitions/:workflowId does those of definitions/simulate.
func takesPath(rt *kernel.Route, other string) bool {
	mine, others := strings.Split(rt.Path, "/"), strings.Split(other, "/")
	return slices.EqualFunc(mine, others, func(a, b string) bool { return a == b || strings.HasPrefix(a, ":") })
}

func (s *testServer) checkCell(t *testing.T, rt *kernel.Route, r *http.Request, status int) {
	t.Helper()
	type effects struct {
		status                                                int
		workflows, portal, sessions, cookie, challenge, allow bool
	}
	workflows, portal, sessions := s.workflows.calls(), s.portal.calls(), s.sessions.calls()
	w := newRecorder()
	s.ServeHTTP(w, r)
	makesOrEnds := status == 200 && (rt.Name == "sign-in" || rt.Name == "sign-out")
	got := effects{
		w.status, s.workflows.calls() != workflows, s.portal.calls() != portal, s.sessions.calls() != sessions,
		w.header.Get("Set-Cookie") != "", w.header.Get("WWW-Authenticate") != "", w.header.Get("Allow") != "",
	}
	ofIdentities := isOfIdentities(rt)
	asksWorkflows := rt.Group == kernel.GroupWorkflow && rt.Access.Kinds&identity.Token != 0 && !asksNobody(rt) && !ofIdentities || rt.Name == "forms" || rt.Name == "choices" // how people see them
	want := effects{status, status == 200 && asksWorkflows, status == 200 && (rt.Group == kernel.GroupPortal || rt.Name == "requests"), makesOrEnds || status == 200 && ofIdentities, makesOrEnds || status == 303, status == 401, status == 405}
	assert.Equal(t, want, got, "%s %s with %q, %.200s", r.Method, rt.Name, r.Header, w.body.String())
	if rt.Group == kernel.GroupPortal && status == 401 && (!strings.Contains(w.body.String(), kernel.TextSessionNeeded) || w.header.Get("WWW-Authenticate") != `Cookie realm="troupe", cookie-name="session"`) {
		t.Errorf("%s: got %v %s, want what is needed", rt.Name, w.header, w.body.String())
	}
}

// TestSecretsHaveALength: what is longer or shorter is not looked up.
func TestSecretsHaveALength(t *testing.T) {
	for n, want := range map[int]bool{parse.SecretCharsMin - 1: false, parse.SecretCharsMin: true, parse.SecretCharsMax: true, parse.SecretCharsMax + 1: false} {
		assert.Equal(t, want, parse.IsSecret(strings.Repeat("a", n), parse.SecretCharsMax), "%d characters", n)
	}
}

// checkHeaders demands one line for each name, or none for "".
func checkHeaders(t *testing.T, what string, h http.Header, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got := h.Values(name)
		assert.Equal(t, value, strings.Join(got, "\n"), "%s: %s: got %q", what, name, got)
	}
}

// TestHeadWorksWhereverGetDoes holds gateway/INTERFACE.md, "HEAD".
func TestHeadWorksWhereverGetDoes(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, rt := range s.kernel.Table {
		if rt.Method != http.MethodGet {
			continue
		}
		get := requestOf(t, &rt)
		fine := []int{200}
		if rt.ErrorPage != nil { // on the way to the provider, and back from nowhere
			fine = []int{303, 400}
		}
		full := s.do(t, get)
		head := s.do(t, request{Method: "HEAD", Path: get.Path, Headers: get.Headers})
		assert.True(t, slices.Contains(fine, full.Status) && head.Status == full.Status && head.Body == "", "%v %v %v %v", rt.Path, head.Status, head.Body, full.Status)
		checkHeaders(t, rt.Path, head.Header, map[string]string{
			"Content-Length": full.Header.Get("Content-Length"), "Etag": full.Header.Get("Etag"), "Content-Type": full.Header.Get("Content-Type"),
		})
	}
}

const jsonLine = "Content-Type: application/json"

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
	assert.Contains(t, w.body.String(), "the link does not work", "not that a password is wrong")
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
		got, secure := s.kernel.ClientOf(r)
		assert.False(t, got.String() != "192.0.2.7" || secure, "%q: got %v, %v from somebody who is not trusted", lines, got, secure)
		r.RemoteAddr = "10.0.0.1:1"
		got, _ = s.kernel.ClientOf(r)
		elements := strings.Split(first+","+second, ",")
		element := strings.Trim(elements[len(elements)-1], " \t")
		last, err := netip.ParseAddr(element)
		plain := err == nil && !strings.ContainsAny(element, "[]") // brackets belong to an address with a port; here they would be in the zone
		assert.False(t, plain && !s.kernel.IsTrusted(last.Unmap().WithZone("")) && got != last.Unmap().WithZone(""), "%q: got %v, want the last one", lines, got)
		assert.True(t, got.IsValid() && !got.Is4In6() && got.Zone() == "", "%q: got %v", lines, got)
	})
}
