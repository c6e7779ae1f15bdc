package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAccessMatrix sends every credential × route × method × content type and compares
// with the policy as it is written down here a second time. A route that is not
// listed here fails it. It holds gateway/INTERFACE.md, "Groups",
// gateway/INTERFACE.md, "Which group takes which", gateway/INTERFACE.md,
// "Privileges", and persistence/PROMISES.md, "P18".
func TestAccessMatrix(t *testing.T) {
	// strict routes refuse pages of other sites with every method. On person and
	// portal only sessions count, entrance takes no credential but no other site's
	// page either, and page is for everybody.
	const open, signed, strict = "open", "signed", "strict"
	const person, entrance, page, portal = "person", "entrance", "page", "portal"
	// The privileges of group A, as bits.
	const fills, forms, checklists = 1, 2, 4
	// door leads to the provider, and nobody of another site in; back is where the
	// provider sends people, whom nothing is known of without a cookie.
	const door, back = "door", "back"
	// signedFiles is signed for what does not ask the workflows.
	const signedFiles = "signed files"
	unsafe, safe := []string{"POST"}, []string{"GET", "HEAD"}
	type row struct {
		name, target, body string
		methods            []string
		policy             string
		privileges         int // all of them are needed
	}
	routes := []row{
		{"create", "/workflow/api/v1/create", createBody, unsafe, signed, 0},
		{"event", "/workflow/api/v1/event", eventBody, unsafe, signed, 0},
		{"instance", "/workflow/api/v1/instance/leave/i1", "", safe, signed, 0},
		{"instances", "/workflow/api/v1/instances/leave", "", safe, signed, 0},
		{"choices", "/workflow/api/v1/choices", "", safe, signed, 0},
		{"events", "/workflow/api/v1/instance/leave/i1/events", "", safe, signed, 0},
		{"history", "/workflow/api/v1/instance/leave/i1/history", "", safe, signed, 0},
		{"watch", "/workflow/api/v1/watch/leave", "", safe, strict, 0},
		{"watch-instance", "/workflow/api/v1/watch/leave/i1", "", safe, strict, 0},
		{"role-info", "/form-portal/role-info", "", safe, portal, fills},
		{"portal-workflows", "/form-portal/workflows", "", safe, portal, fills},
		{"forms-current", "/form-portal/forms/mycurrent", "", safe, portal, fills},
		{"forms-submitted", "/form-portal/forms/mysubmitted", "", safe, portal, fills},
		{"forms-archived", "/form-portal/forms/myarchived", "", safe, portal, fills},
		{"checklists-current", "/form-portal/checklists/mycurrent", "", safe, portal, fills},
		{"checklists-submitted", "/form-portal/checklists/mysubmitted", "", safe, portal, fills},
		{"checklists-archived", "/form-portal/checklists/myarchived", "", safe, portal, fills},
		{"form-templates", "/form-portal/forms/role/clerk", "", safe, portal, forms},
		{"checklist-templates", "/form-portal/checklists/role/clerk", "", safe, portal, checklists},
		{"create-form", "/form-portal/forms/create", formBody, unsafe, portal, forms},
		{"create-checklist", "/form-portal/checklists/create", checklistBody, unsafe, portal, checklists},
		{"form", "/form-runtime/api/v1/form/leave/i1", "", safe, portal, fills},
		{"template", "/form-runtime/api/v1/template/form/leave-form", "", safe, portal, fills | forms},
		{"save-draft", "/form-runtime/api/v1/draft/-/i1", draftBody, []string{"PUT"}, portal, fills},
		{"drop-draft", "/form-runtime/api/v1/draft/-/i1", "", []string{"DELETE"}, portal, fills},
		{"submit-form", "/form-runtime/api/v1/submit", submitBody, unsafe, portal, fills},
		{"sign-in", "/session", signInBody, []string{"POST"}, entrance, 0},
		{"session", "/session", "", safe, person, 0},
		{"sign-out", "/session", "", []string{"DELETE"}, person, 0},
		{"login", "/login", "", safe, page, 0},
		{"login-provider", "/login/oidc", "", safe, door, 0},
		{"login-callback", "/login/oidc/callback", "", safe, back, 0},
		{"favicon", "/favicon.ico", "", safe, page, 0},
		{"login-style", "/login/style.css", "", safe, page, 0},
		{"login-script", "/login/script.js", "", safe, page, 0},
		{"portal", "/?kind=checklists", "", safe, page, 0},
		{"form-page", "/form-runtime/leave-form/leave/i1/index.html", "", safe, page, 0},
		{"asset", "/assets/" + assetName(t), "", safe, page, 0},
		{"openapi-yaml", "/openapi.yaml", "", safe, page, 0},
		{"openapi-json", "/openapi.json", "", safe, page, 0},
		{"docs", "/docs", "", safe, page, 0},
		{"livez", "/livez", "", safe, open, 0},
		{"readyz", "/readyz", "", safe, open, 0},
		{"report-parameters", "/rml-engine/api/v1/parameters?rml=/a.rml", "", safe, signedFiles, 0},
		{"document-parameters", "/docx-engine/api/v1/parameters?docx=/a.docx", "", safe, signedFiles, 0},
		{"list-files", "/repository/api/v1/list-files?extension=rml", "", safe, signedFiles, 0},
	}
	const (
		byToken, bySession, byOtherSite = "token", "session", "other site"
		nobody, twofold                 = "nobody", "twofold"
		nobodyElsewhere                 = "nobody on another site"
		bothElsewhere                   = "both on another site"
		bothHere                        = "both"
	)
	type credential struct {
		headers    []string
		who        string
		privileges int
	}
	credentials := []credential{
		{nil, nobody, 0},
		{[]string{"Authorization: Basic YTpi"}, nobody, 0},
		{[]string{"Authorization: svc.token " + tokenNobody}, nobody, 0},
		{[]string{"Authorization: svc.token " + sessionAnn}, nobody, 0},
		{[]string{"Cookie: session=" + tokenAnn}, nobody, 0},
		{[]string{"X-Token: " + tokenAnn}, nobody, 0},
		{[]string{"Authorization: svc.token " + tokenAnn, "Authentication: svc.token " + tokenBob}, twofold, 0},
		{[]string{"Cookie: session=" + sessionAnn + "; session=" + sessionAnn}, twofold, 0},
		{[]string{"Authorization: svc.token " + tokenAnn}, byToken, 0},
		{[]string{"Authentication: bearer " + tokenAnn}, byToken, 0},
		{[]string{"Authorization: svc.token " + tokenAnn, "Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, bothElsewhere, forms},
		{[]string{"Cookie: session=" + sessionAnn}, bySession, forms},
		{[]string{"Cookie: session=" + sessionAnn, "Sec-Fetch-Site: cross-site"}, byOtherSite, forms},
		{[]string{"Sec-Fetch-Site: cross-site"}, nobodyElsewhere, 0},
		{[]string{"Origin: https://evil.example"}, nobodyElsewhere, 0},
	}
	withoutSets := len(credentials)
	for set := range allPrivileges + 1 {
		cookie := "Cookie: session=" + sessionOf(set)
		credentials = append(credentials, credential{[]string{cookie}, bySession, set},
			credential{[]string{cookie, withToken}, bothHere, set}, credential{[]string{cookie, "Sec-Fetch-Site: cross-site"}, byOtherSite, set})
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	contentTypes := []string{"", "application/json", "application/json; charset=utf-8", "application/json; charset=latin1", "text/plain", "multipart/form-data; boundary=x"}

	want := func(rt row, method, who string, privileges int, contentType string) int {
		unsafe := method == "POST" || method == "DELETE" || method == "PUT"
		rightType := strings.HasPrefix(contentType, "application/json") && !strings.Contains(contentType, "latin1")
		elsewhere := who == byOtherSite || who == nobodyElsewhere || who == bothElsewhere
		switch rt.policy {
		case person, portal: // do not look at tokens
			switch who {
			case byToken:
				who = nobody
			case bothElsewhere:
				who = byOtherSite
			case bothHere:
				who = bySession
			}
		case signed, strict, signedFiles:
			switch who {
			case nobodyElsewhere:
				who = nobody
			case bothElsewhere, bothHere:
				who = byToken
			}
		}
		switch {
		case !slices.Contains(rt.methods, method):
			return 405
		case rt.policy == open, rt.policy == page:
			return 200
		case (rt.policy == entrance || rt.policy == door) && elsewhere:
			return 403
		case (rt.policy == entrance || rt.policy == door) && who == twofold:
			return 400
		case rt.policy == door:
			return 303
		case rt.policy == back:
			return 400
		case rt.policy == entrance && !rightType:
			return 415
		case rt.policy == entrance:
			return 200
		case who == nobodyElsewhere:
			return 401
		case who == twofold:
			return 400
		case who == nobody:
			return 401
		case who == byOtherSite && (unsafe || rt.policy == strict):
			return 403
		case privileges&rt.privileges != rt.privileges:
			return 403
		case unsafe && !rightType && (contentType != "" || who != byToken && method != "DELETE"):
			return 415 // a DELETE has no body, so its type may be missing
		}
		return 200
	}
	words := map[int]string{
		400: "Bad request", 401: "Unauthorized", 403: "Access denied", 405: "Method not allowed", 415: "Unsupported media type",
	}

	s := startServer(t, Options{}, nil)
	cells := 0
	for i, rt := range routes {
		if i >= len(s.table) || s.table[i].name != rt.name {
			t.Fatalf("route %d is not %s", i, rt.name)
		}
		for n, credential := range credentials {
			for _, method := range methods {
				if taken := slices.ContainsFunc(routes, func(other row) bool {
					return other.name != rt.name && other.target == rt.target && slices.Contains(other.methods, method)
				}); taken {
					continue // that is a cell of the other route
				}
				types := contentTypes
				switch {
				case !slices.Contains(rt.methods, method):
					if n >= withoutSets {
						continue
					}
					types = contentTypes[:1]
				case slices.Contains(safe, method):
					types = []string{"", "text/plain"} // neither is looked at
				}
				for _, contentType := range types {
					cells++
					headers := slices.Clone(credential.headers)
					if contentType != "" {
						headers = append(headers, "Content-Type: "+contentType)
					}
					before, beforeSessions, beforePortal := s.workflows.calls(), s.sessions.asked(), s.portal.calls()
					w := newRecorder()
					s.ServeHTTP(w, newTestRequest(method, rt.target, rt.body, headers...))
					status := want(rt, method, credential.who, credential.privileges, contentType)
					if w.status != status {
						t.Errorf("%s %s as %s %q with %q: got %d, want %d", method, rt.name, credential.who, credential.headers, contentType, w.status, status)
					}
					if asked := s.workflows.calls() != before; asked != (status == 200 && (rt.policy == signed || rt.policy == strict)) {
						t.Errorf("%s %s as %s: the workflows were asked: %v", method, rt.name, credential.who, asked)
					}
					if asked := s.portal.calls() != beforePortal; asked != (status == 200 && rt.policy == portal) {
						t.Errorf("%s %s as %s: the portal was asked: %v", method, rt.name, credential.who, asked)
					}
					if word := (&answer{body: w.body.String()}).label(); rt.policy == portal && word != words[status] && !(status == 200 && word == "") {
						t.Errorf("%s %s as %s: got the word %q with %d", method, rt.name, credential.who, word, status)
					}
					makesOrEnds := rt.policy == entrance || rt.name == "sign-out"
					if asked := s.sessions.asked() != beforeSessions; asked != (status == 200 && makesOrEnds) {
						t.Errorf("%s %s as %s: the sessions were asked: %v", method, rt.name, credential.who, asked)
					}
					if cookie := w.header.Get("Set-Cookie"); (cookie != "") != (status == 303 || status == 200 && makesOrEnds) {
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
	if cells < 12_000 {
		t.Errorf("tried %d cells", cells)
	}
}

// TestMethodOverrideIsIgnored holds gateway/INTERFACE.md, "Paths".
func TestMethodOverrideIsIgnored(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, name := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"} {
		a := s.do(t, request{method: "POST", path: "/workflow/api/v1/choices", headers: []string{withToken, http.CanonicalHeaderKey(name) + ": GET"}})
		if a.status != 405 {
			t.Errorf("%s: got %d, want 405", name, a.status)
		}
	}
}
