package gateway

import (
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
	type row struct {
		name, way, body string // the way: method and target; a GET is a HEAD as well
		policy          string
		privileges      int // all of them are needed
	}
	routes := []row{
		{"create", "POST /workflow/api/v1/create", createBody, signed, 0},
		{"event", "POST /workflow/api/v1/event", eventBody, signed, 0},
		{"instance", "GET /workflow/api/v1/instance/leave/i1", "", signed, 0},
		{"instances", "GET /workflow/api/v1/instances/leave", "", signed, 0},
		{"choices", "GET /workflow/api/v1/choices", "", signed, 0},
		{"events", "GET /workflow/api/v1/instance/leave/i1/events", "", signed, 0},
		{"history", "GET /workflow/api/v1/instance/leave/i1/history", "", signed, 0},
		{"watch", "GET /workflow/api/v1/watch/leave", "", strict, 0},
		{"watch-instance", "GET /workflow/api/v1/watch/leave/i1", "", strict, 0},
		{"role-info", "GET /form-portal/role-info", "", portal, fills},
		{"portal-workflows", "GET /form-portal/workflows", "", portal, fills},
		{"forms-current", "GET /form-portal/forms/mycurrent", "", portal, fills},
		{"forms-submitted", "GET /form-portal/forms/mysubmitted", "", portal, fills},
		{"forms-archived", "GET /form-portal/forms/myarchived", "", portal, fills},
		{"checklists-current", "GET /form-portal/checklists/mycurrent", "", portal, fills},
		{"checklists-submitted", "GET /form-portal/checklists/mysubmitted", "", portal, fills},
		{"checklists-archived", "GET /form-portal/checklists/myarchived", "", portal, fills},
		{"form-templates", "GET /form-portal/forms/role/clerk", "", portal, forms},
		{"checklist-templates", "GET /form-portal/checklists/role/clerk", "", portal, checklists},
		{"create-form", "POST /form-portal/forms/create", formBody, portal, forms},
		{"create-checklist", "POST /form-portal/checklists/create", checklistBody, portal, checklists},
		{"form", "GET /form-runtime/api/v1/form/leave/i1", "", portal, fills},
		{"template", "GET /form-runtime/api/v1/template/form/leave-form", "", portal, fills | forms},
		{"save-draft", "PUT /form-runtime/api/v1/draft/-/i1", draftBody, portal, fills},
		{"drop-draft", "DELETE /form-runtime/api/v1/draft/-/i1", "", portal, fills},
		{"submit-form", "POST /form-runtime/api/v1/submit", submitBody, portal, fills},
		{"sign-in", "POST /session", signInBody, entrance, 0},
		{"session", "GET /session", "", person, 0},
		{"sign-out", "DELETE /session", "", person, 0},
		{"login", "GET /login", "", page, 0},
		{"login-provider", "GET /login/oidc", "", door, 0},
		{"login-callback", "GET /login/oidc/callback", "", back, 0},
		{"favicon", "GET /favicon.ico", "", page, 0},
		{"login-style", "GET /login/style.css", "", page, 0},
		{"login-script", "GET /login/script.js", "", page, 0},
		{"portal", "GET /?kind=checklists", "", page, 0},
		{"form-page", "GET /form-runtime/leave-form/leave/i1/index.html", "", page, 0},
		{"asset", "GET /assets/" + assetName(t), "", page, 0},
		{"openapi-yaml", "GET /openapi.yaml", "", page, 0},
		{"openapi-json", "GET /openapi.json", "", page, 0},
		{"docs", "GET /docs", "", page, 0},
		{"livez", "GET /livez", "", open, 0},
		{"readyz", "GET /readyz", "", open, 0},
		{"report-parameters", "GET /rml-engine/api/v1/parameters?rml=/a.rml", "", signedFiles, 0},
		{"document-parameters", "GET /docx-engine/api/v1/parameters?docx=/a.docx", "", signedFiles, 0},
		{"list-files", "GET /repository/api/v1/list-files?extension=rml", "", signedFiles, 0},
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

	takes := func(rt row, method string) bool {
		own, _, _ := strings.Cut(rt.way, " ")
		return method == own || method == "HEAD" && own == "GET"
	}
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
		case !takes(rt, method):
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
		_, target, _ := strings.Cut(rt.way, " ")
		for n, credential := range credentials {
			for _, method := range methods {
				if taken := slices.ContainsFunc(routes, func(other row) bool {
					return other.name != rt.name && strings.HasSuffix(other.way, " "+target) && takes(other, method)
				}); taken {
					continue // that is a cell of the other route
				}
				types := contentTypes
				switch {
				case !takes(rt, method):
					if n >= withoutSets {
						continue
					}
					types = contentTypes[:1]
				case method == "GET", method == "HEAD":
					types = []string{"", "text/plain"} // neither is looked at
				}
				for _, contentType := range types {
					cells++
					headers := slices.Clone(credential.headers)
					if contentType != "" {
						headers = append(headers, "Content-Type: "+contentType)
					}
					before, beforeSessions, beforePortal := s.workflows.calls(), s.sessions.calls(), s.portal.calls()
					w := newRecorder()
					s.ServeHTTP(w, newTestRequest(method, target, rt.body, headers...))
					status := want(rt, method, credential.who, credential.privileges, contentType)
					says := func(wrong string) {
						t.Errorf("%s %s as %s %q with %q: got %d %v %.200s, want %d: %s", method, rt.name, credential.who, credential.headers, contentType,
							w.status, w.header, w.body.String(), status, wrong)
					}
					makesOrEnds := rt.policy == entrance || rt.name == "sign-out"
					challenge := w.header.Get("WWW-Authenticate")
					switch word := (&answer{body: w.body.String()}).label(); {
					case w.status != status:
						says("the status")
					case (s.workflows.calls() != before) != (status == 200 && (rt.policy == signed || rt.policy == strict)):
						says("whether the workflows were asked")
					case (s.portal.calls() != beforePortal) != (status == 200 && rt.policy == portal):
						says("whether the portal was asked")
					case (s.sessions.calls() != beforeSessions) != (status == 200 && makesOrEnds):
						says("whether the sessions were asked")
					case rt.policy == portal && word != words[status]:
						says("the word")
					case rt.policy == portal && status == 401 && (!strings.Contains(w.body.String(), textSessionNeeded) || challenge != `Cookie realm="troupe", cookie-name="session"`):
						says("what is needed")
					case (w.header.Get("Set-Cookie") != "") != (status == 303 || status == 200 && makesOrEnds):
						says("the cookie")
					case (status == 401) != (challenge != ""), (status == 405) != (w.header.Get("Allow") != ""):
						says("the headers")
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
