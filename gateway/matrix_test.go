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
	// strict routes refuse pages of other sites with every method.
	const open, signed, strict = "open", "signed", "strict"
	unsafe, safe := []string{"POST"}, []string{"GET", "HEAD"}
	routes := []struct {
		name, target, body string
		methods            []string
		policy             string
	}{
		{"create", "/workflow/api/v1/create", createBody, unsafe, signed},
		{"event", "/workflow/api/v1/event", eventBody, unsafe, signed},
		{"instance", "/workflow/api/v1/instance/leave/i1", "", safe, signed},
		{"instances", "/workflow/api/v1/instances/leave", "", safe, signed},
		{"choices", "/workflow/api/v1/choices", "", safe, signed},
		{"events", "/workflow/api/v1/instance/leave/i1/events", "", safe, signed},
		{"history", "/workflow/api/v1/instance/leave/i1/history", "", safe, signed},
		{"watch", "/workflow/api/v1/watch/leave", "", safe, strict},
		{"watch-instance", "/workflow/api/v1/watch/leave/i1", "", safe, strict},
		{"livez", "/livez", "", safe, open},
		{"readyz", "/readyz", "", safe, open},
	}
	const (
		byToken, bySession, byOtherSite = "token", "session", "other site"
		nobody, twofold                 = "nobody", "twofold"
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
		{[]string{"Authorization: svc.token " + tokenAnn, "Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, byToken},
		{[]string{"Cookie: session=" + sessionAnn}, bySession},
		{[]string{"Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, byOtherSite},
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	contentTypes := []string{"", "application/json", "application/json; charset=utf-8", "application/json; charset=latin1", "text/plain", "multipart/form-data; boundary=x"}

	want := func(policy string, allowed []string, method, who, contentType string) int {
		unsafe := method == "POST"
		rightType := strings.HasPrefix(contentType, "application/json") && !strings.Contains(contentType, "latin1")
		switch {
		case !slices.Contains(allowed, method):
			return 405
		case policy == open:
			return 200
		case who == twofold:
			return 400
		case who == nobody:
			return 401
		case who == byOtherSite && (unsafe || policy == strict):
			return 403
		case unsafe && !rightType && (contentType != "" || who != byToken):
			return 415
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
				for _, contentType := range contentTypes {
					cells++
					headers := slices.Clone(credential.headers)
					if contentType != "" {
						headers = append(headers, "Content-Type: "+contentType)
					}
					before := s.workflows.calls()
					w := newRecorder()
					s.ServeHTTP(w, newTestRequest(method, rt.target, rt.body, headers...))
					status := want(rt.policy, rt.methods, method, credential.who, contentType)
					if w.status != status {
						t.Errorf("%s %s as %s %q with %q: got %d, want %d", method, rt.name, credential.who, credential.headers, contentType, w.status, status)
					}
					if asked := s.workflows.calls() != before; asked != (status == 200 && rt.policy != open) {
						t.Errorf("%s %s as %s: the workflows were asked: %v", method, rt.name, credential.who, asked)
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
	if cells != 11*13*8*6 {
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
