package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestMatrix sends every credential × route × method × content type and
// compares with the policy as it is written down here a second time
// (reliability H10). A route that is not listed here fails it.
func TestMatrix(t *testing.T) {
	// strict routes refuse pages of other sites with every method. On person
	// only sessions count, entrance takes no credential but no other site's page
	// either, and page is for everybody.
	const open, signed, strict = "open", "signed", "strict"
	const person, entrance, page = "person", "entrance", "page"
	unsafe, safe := []string{"POST"}, []string{"GET", "HEAD"}
	type row struct {
		name, target, body string
		methods            []string
		policy             string
	}
	routes := []row{
		{"create", "/workflow/api/v1/create", createBody, unsafe, signed},
		{"event", "/workflow/api/v1/event", eventBody, unsafe, signed},
		{"instance", "/workflow/api/v1/instance/leave/i1", "", safe, signed},
		{"instances", "/workflow/api/v1/instances/leave", "", safe, signed},
		{"choices", "/workflow/api/v1/choices", "", safe, signed},
		{"events", "/workflow/api/v1/instance/leave/i1/events", "", safe, signed},
		{"history", "/workflow/api/v1/instance/leave/i1/history", "", safe, signed},
		{"watch", "/workflow/api/v1/watch/leave", "", safe, strict},
		{"watch-instance", "/workflow/api/v1/watch/leave/i1", "", safe, strict},
		{"sign-in", "/session", signInBody, []string{"POST"}, entrance},
		{"session", "/session", "", safe, person},
		{"sign-out", "/session", "", []string{"DELETE"}, person},
		{"login", "/login", "", safe, page},
		{"login-style", "/login/style.css", "", safe, page},
		{"login-script", "/login/script.js", "", safe, page},
		{"livez", "/livez", "", safe, open},
		{"readyz", "/readyz", "", safe, open},
	}
	const (
		byToken, bySession, byOtherSite = "token", "session", "other site"
		nobody, twofold                 = "nobody", "twofold"
		nobodyElsewhere                 = "nobody on another site"
		bothElsewhere                   = "both on another site"
	)
	credentials := []struct {
		headers []string
		who     string
	}{
		{nil, nobody},
		{[]string{"Authorization: Basic YTpi"}, nobody},
		{[]string{"Authorization: svc.token " + tokenNobody}, nobody},
		{[]string{"Authorization: svc.token " + sessionAnn}, nobody},
		{[]string{"Cookie: session=" + tokenAnn}, nobody},
		{[]string{"X-Token: " + tokenAnn}, nobody},
		{[]string{"Authorization: svc.token " + tokenAnn, "Authentication: svc.token " + tokenBob}, twofold},
		{[]string{"Cookie: session=" + sessionAnn + "; session=" + sessionAnn}, twofold},
		{[]string{"Authorization: svc.token " + tokenAnn}, byToken},
		{[]string{"Authentication: bearer " + tokenAnn}, byToken},
		{[]string{"Authorization: svc.token " + tokenAnn, "Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, bothElsewhere},
		{[]string{"Cookie: session=" + sessionAnn}, bySession},
		{[]string{"Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, byOtherSite},
		{[]string{"Sec-Fetch-Site: cross-site"}, nobodyElsewhere},
		{[]string{"Origin: https://evil.example"}, nobodyElsewhere},
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	contentTypes := []string{"", "application/json", "application/json; charset=utf-8", "application/json; charset=latin1", "text/plain", "multipart/form-data; boundary=x"}

	want := func(policy string, allowed []string, method, who, contentType string) int {
		unsafe := method == "POST" || method == "DELETE"
		rightType := strings.HasPrefix(contentType, "application/json") && !strings.Contains(contentType, "latin1")
		elsewhere := who == byOtherSite || who == nobodyElsewhere || who == bothElsewhere
		switch policy {
		case person: // does not look at tokens
			switch who {
			case byToken:
				who = nobody
			case bothElsewhere:
				who = byOtherSite
			}
		case signed, strict:
			switch who {
			case nobodyElsewhere:
				who = nobody
			case bothElsewhere:
				who = byToken
			}
		}
		switch {
		case !slices.Contains(allowed, method):
			return 405
		case policy == open, policy == page:
			return 200
		case policy == entrance && elsewhere:
			return 403
		case policy == entrance && !rightType:
			return 415
		case policy == entrance:
			return 200
		case who == nobodyElsewhere:
			return 401
		case who == twofold:
			return 400
		case who == nobody:
			return 401
		case who == byOtherSite && (unsafe || policy == strict):
			return 403
		case unsafe && !rightType && (contentType != "" || who != byToken && method != "DELETE"):
			return 415 // a DELETE has no body, so its type may be missing
		}
		return 200
	}

	s := startServer(t, Options{}, nil)
	cells := 0
	for i, rt := range routes {
		if i >= len(s.table) || s.table[i].name != rt.name {
			t.Fatalf("route %d is not %s", i, rt.name)
		}
		for _, credential := range credentials {
			for _, method := range methods {
				if taken := slices.ContainsFunc(routes, func(other row) bool {
					return other.name != rt.name && other.target == rt.target && slices.Contains(other.methods, method)
				}); taken {
					continue // that is a cell of the other route
				}
				for _, contentType := range contentTypes {
					cells++
					headers := slices.Clone(credential.headers)
					if contentType != "" {
						headers = append(headers, "Content-Type: "+contentType)
					}
					before, beforeSessions := s.workflows.calls(), s.sessions.asked()
					w := newRecorder()
					s.ServeHTTP(w, newTestRequest(method, rt.target, rt.body, headers...))
					status := want(rt.policy, rt.methods, method, credential.who, contentType)
					if w.status != status {
						t.Errorf("%s %s as %s %q with %q: got %d, want %d", method, rt.name, credential.who, credential.headers, contentType, w.status, status)
					}
					if asked := s.workflows.calls() != before; asked != (status == 200 && (rt.policy == signed || rt.policy == strict)) {
						t.Errorf("%s %s as %s: the workflows were asked: %v", method, rt.name, credential.who, asked)
					}
					if asked := s.sessions.asked() != beforeSessions; asked != (status == 200 && (method == "DELETE" || rt.policy == entrance)) {
						t.Errorf("%s %s as %s: the sessions were asked: %v", method, rt.name, credential.who, asked)
					}
					if cookie := w.header.Get("Set-Cookie"); (cookie != "") != (status == 200 && (method == "DELETE" || rt.policy == entrance)) {
						t.Errorf("%s %s as %s: got the cookie %q with %d", method, rt.name, credential.who, cookie, status)
					}
					if (status == 401) != (w.header.Get("WWW-Authenticate") != "") || (status == 405) != (w.header.Get("Allow") != "") {
						t.Errorf("%s %s as %s: got the headers %v with %d", method, rt.name, credential.who, w.header, status)
					}
				}
			}
		}
	}
	if len(routes) != len(s.table) {
		t.Errorf("the matrix knows %d routes, the table has %d", len(routes), len(s.table))
	}
	if cells != (17*8-8)*15*6 {
		t.Errorf("tried %d cells", cells)
	}
}

// TestMethodOverrideIsIgnored holds reliability 3.0.
func TestMethodOverrideIsIgnored(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, name := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"} {
		a := s.do(t, request{method: "POST", path: "/workflow/api/v1/choices", headers: []string{withToken, http.CanonicalHeaderKey(name) + ": GET"}})
		if a.status != 405 {
			t.Errorf("%s: got %d, want 405", name, a.status)
		}
	}
}
