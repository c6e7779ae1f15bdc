package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"troupe/actors/identity"
)

// checkErrorBody holds gateway/INTERFACE.md, "Errors": the body is {error,
// message}.
func checkErrorBody(t *testing.T, a *answer) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	var body struct {
		Error   *string `json:"error"`
		Message *string `json:"message"`
	}
	if err := decoder.Decode(&body); err != nil || body.Error == nil || body.Message == nil || decoder.More() {
		t.Errorf("the body is no {error, message}: %s (%v)", a.body, err)
	}
	if !utf8.ValidString(a.body) {
		t.Errorf("the body is not UTF-8: %q", a.body)
	}
}

// checkCommonHeaders holds gateway/INTERFACE.md, "Common headers".
func checkCommonHeaders(t *testing.T, h http.Header) {
	t.Helper()
	checkCommonHeadersBut(t, h, "application/json")
}

// checkCommonHeadersBut is checkCommonHeaders for another content type.
func checkCommonHeadersBut(t *testing.T, h http.Header, contentType string) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control":          "no-store",
		"Vary":                   "Cookie, Authorization, Authentication",
		"X-Content-Type-Options": "nosniff",
		"Content-Type":           contentType,
	} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestAuthentication holds gateway/INTERFACE.md, "Two headers, one parser",
// gateway/INTERFACE.md, "Which group takes which", gateway/INTERFACE.md,
// "401 is one answer", and gateway/INTERFACE.md, "Ambiguous credentials".
func TestAuthentication(t *testing.T) {
	const (
		ok           = 200
		ambiguous    = 400
		unauthorized = 401
	)
	cookie := "Cookie: session=" + sessionAnn
	cases := []struct {
		line    string
		headers []string
		status  int
	}{
		{"a token comes in Authorization as svc.token T", []string{"Authorization: svc.token " + tokenAnn}, ok},
		{"a token comes in Authorization as Bearer T", []string{"Authorization: Bearer " + tokenAnn}, ok},
		{"a token comes in Authentication as svc.token T", []string{"Authentication: svc.token " + tokenAnn}, ok},
		{"a token comes in Authentication as Bearer T", []string{"Authentication: Bearer " + tokenAnn}, ok},
		{"the scheme is case-insensitive", []string{"Authorization: SVC.ToKeN " + tokenAnn}, ok},
		{"a session comes in the cookie session", []string{cookie}, ok},
		{"the session may stand among other cookies", []string{"Cookie: a=b; session=" + sessionAnn + ";c=d; sessions=x; Session=y"}, ok},
		{"the session may stand in the second cookie line", []string{"Cookie: a=b", cookie}, ok},
		{"the same token in both headers is one token", []string{"Authorization: svc.token " + tokenAnn, "Authentication: Bearer " + tokenAnn}, ok},
		{"a token wins over a session", []string{"Authorization: svc.token " + tokenAnn, "Cookie: session=" + strings.Repeat("x", 50)}, ok},

		{"missing", nil, unauthorized},
		{"malformed: empty header", []string{"Authorization: "}, unauthorized},
		{"malformed: no scheme", []string{"Authorization: " + tokenAnn}, unauthorized},
		{"malformed: scheme alone", []string{"Authorization: svc.token"}, unauthorized},
		{"malformed: another scheme", []string{"Authorization: Basic " + tokenAnn}, unauthorized},
		{"malformed: two blanks", []string{"Authorization: svc.token  " + tokenAnn}, unauthorized},
		{"malformed: a tab", []string{"Authorization: svc.token\t" + tokenAnn}, unauthorized},
		{"malformed: something behind the token", []string{"Authorization: svc.token " + tokenAnn + " x"}, unauthorized},
		{"malformed: a letter that only folds to s", []string{"Authorization: ſvc.token " + tokenAnn}, unauthorized},
		{"malformed: too short", []string{"Authorization: svc.token " + tokenAnn[:42]}, unauthorized},
		{"malformed: a letter outside the alphabet", []string{"Authorization: svc.token " + tokenAnn[:50] + "+" + tokenAnn[51:]}, unauthorized},
		{"unknown", []string{"Authorization: svc.token " + tokenNobody}, unauthorized},
		{"unknown session", []string{"Cookie: session=" + tokenNobody}, unauthorized},
		{"a token is no session", []string{"Cookie: session=" + tokenAnn}, unauthorized},
		{"a session is no token", []string{"Authorization: svc.token " + sessionAnn}, unauthorized},
		{"an empty cookie", []string{"Cookie: session="}, unauthorized},
		{"a quoted cookie", []string{`Cookie: session="` + sessionAnn + `"`}, unauthorized},
		{"another case of the cookie's name", []string{"Cookie: SESSION=" + sessionAnn}, unauthorized},
		{"a token that is malformed does not fall back to the session", []string{"Authorization: Basic x", cookie}, unauthorized},
		{"a token that is unknown does not fall back to the session", []string{"Authorization: svc.token " + tokenNobody, cookie}, unauthorized},
		{"one header well-formed, the other not", []string{"Authorization: svc.token " + tokenAnn, "Authentication: Basic x"}, unauthorized},

		{"two different tokens", []string{"Authorization: svc.token " + tokenAnn, "Authentication: svc.token " + tokenBob}, ambiguous},
		{"the same header twice", []string{"Authorization: svc.token " + tokenAnn, "Authorization: svc.token " + tokenAnn}, ambiguous},
		{"the other header twice", []string{"Authentication: svc.token " + tokenAnn, "Authentication: svc.token " + tokenAnn}, ambiguous},
		{"a list in one header", []string{"Authorization: svc.token " + tokenAnn + ", svc.token " + tokenBob}, ambiguous},
		{"two session cookies", []string{cookie + "; session=" + tokenNobody}, ambiguous},
		{"two equal session cookies", []string{cookie + "; session=" + sessionAnn}, ambiguous},
		{"two session cookies in two lines", []string{cookie, cookie}, ambiguous},
		{"two session cookies, one name with a blank", []string{cookie + "; session =" + tokenNobody}, ambiguous},
		{"two session cookies beside a token", []string{withToken, cookie, cookie}, ambiguous},
	}
	s := startServer(t, Options{}, nil)
	var unauthorizedBody string
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			before := s.workflows.calls()
			a := s.do(t, request{method: "GET", path: "/workflow/api/v1/choices", headers: c.headers})
			if a.status != c.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if c.status != ok {
				checkErrorBody(t, a)
				if s.workflows.calls() != before {
					t.Error("the workflows were asked")
				}
			}
			if c.status != unauthorized {
				return
			}
			if got, want := a.header.Get("WWW-Authenticate"), `svc.token realm="troupe", Bearer realm="troupe"`; got != want {
				t.Errorf("WWW-Authenticate: got %q, want %q", got, want)
			}
			if unauthorizedBody == "" {
				unauthorizedBody = a.body
			}
			if a.body != unauthorizedBody || a.label() != "Unauthorized" {
				t.Errorf("the body tells one cause from another: got %s, want %s", a.body, unauthorizedBody)
			}
		})
	}
}

// TestSessionCookieHasTheConfiguredName holds gateway/INTERFACE.md,
// "Two headers, one parser".
func TestSessionCookieHasTheConfiguredName(t *testing.T) {
	s := startServer(t, Options{SessionCookie: "desk"}, nil)
	for cookie, want := range map[string]int{
		"desk=" + sessionAnn: 200, "session=" + sessionAnn: 401,
		"desk=" + sessionAnn + "; session=" + sessionAnn: 200,
	} {
		a := s.do(t, request{method: "GET", path: "/workflow/api/v1/choices", headers: []string{"Cookie: " + cookie}})
		if a.status != want {
			t.Errorf("%s: got %d, want %d", cookie, a.status, want)
		}
	}
}

// TestCrossSiteRequests holds gateway/INTERFACE.md, "Cross-site requests", and
// persistence/PROMISES.md, "F18".
func TestCrossSiteRequests(t *testing.T) {
	cookie := "Cookie: session=" + sessionAnn
	jsonType := "Content-Type: application/json"
	cases := []struct {
		line    string
		method  string
		headers []string
		status  int
	}{
		{"a cookie without browser headers passes", "POST", []string{cookie, jsonType}, 200},
		{"same-origin passes", "POST", []string{cookie, jsonType, "Sec-Fetch-Site: same-origin"}, 200},
		{"cross-site is refused", "POST", []string{cookie, jsonType, "Sec-Fetch-Site: cross-site"}, 403},
		{"same-site is refused", "POST", []string{cookie, jsonType, "Sec-Fetch-Site: same-site"}, 403},
		{"Origin null is refused", "POST", []string{cookie, jsonType, "Origin: null"}, 403},
		{"another Origin is refused", "POST", []string{cookie, jsonType, "Origin: https://evil.example"}, 403},
		{"cross-site is refused whether the session is valid or not", "POST", []string{"Cookie: session=" + tokenNobody, jsonType, "Sec-Fetch-Site: cross-site"}, 403},
		{"a token cannot be sent by another site's form", "POST", []string{withToken, jsonType, "Sec-Fetch-Site: cross-site"}, 200},
		{"safe methods pass", "GET", []string{cookie, "Sec-Fetch-Site: cross-site"}, 200},
		{"a body by cookie needs the content type", "POST", []string{cookie}, 415},
		{"a body by cookie needs the right content type", "POST", []string{cookie, "Content-Type: text/plain"}, 415},
		{"a body by token does not need the content type", "POST", []string{withToken}, 200},
	}
	s := startServer(t, Options{}, nil)
	for _, c := range cases {
		t.Run(c.line, func(t *testing.T) {
			r := request{method: c.method, path: "/workflow/api/v1/event", headers: c.headers, body: eventBody}
			if c.method == "GET" {
				r.path, r.body = "/workflow/api/v1/choices", ""
			}
			a := s.do(t, r)
			if a.status != c.status {
				t.Errorf("got %d %s, want %d", a.status, a.body, c.status)
			}
			if c.status == 403 && a.label() != "AccessDenied" {
				t.Errorf("got the word %q, want AccessDenied", a.label())
			}
		})
	}
}

// TestHeadWorksWhereverGetDoes holds gateway/INTERFACE.md, "HEAD".
func TestHeadWorksWhereverGetDoes(t *testing.T) {
	s := startServer(t, Options{}, nil)
	for _, rt := range s.table {
		if rt.method != http.MethodGet {
			continue
		}
		path := strings.NewReplacer(":workflowId", "leave", ":instanceId", "i1", ":roleId", "clerk", ":kind", "form", ":formId", "leave-form", ":name", assetName(t)).Replace(rt.path)
		switch rt.name {
		case "report-parameters":
			path += "?rml=/a.rml"
		case "document-parameters":
			path += "?docx=/a.docx"
		case "list-files":
			path += "?extension=rml"
		}
		credential := withToken
		if rt.access.kinds == identity.Session {
			credential = withPortal
		}
		fine := []int{200}
		if rt.page { // on the way to the provider, and back from nowhere
			fine = []int{303, 400}
		}
		full := s.do(t, request{method: "GET", path: path, headers: []string{credential}})
		head := s.do(t, request{method: "HEAD", path: path, headers: []string{credential}})
		if !slices.Contains(fine, full.status) || head.status != full.status || head.body != "" {
			t.Errorf("%s: got %d %q, want %d without a body", path, head.status, head.body, full.status)
		}
		for _, name := range []string{"Content-Length", "Etag", "Content-Type"} {
			if got, want := head.header.Get(name), full.header.Get(name); got != want {
				t.Errorf("%s: %s: got %q, want %q as GET has it", path, name, got, want)
			}
		}
	}
}

// TestQuote holds the 64 characters themselves.
func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                               `""`,
		"plain":                          `"plain"`,
		"a\"b\n":                         `"a\"b\n"`,
		"ü\xff":                          `"\u00fc\xff"`,
		strings.Repeat("x", 64):          `"` + strings.Repeat("x", 64) + `"`,
		strings.Repeat("x", 65):          `"` + strings.Repeat("x", 64) + `"…`,
		strings.Repeat("x", 60) + "\x00": `"` + strings.Repeat("x", 60) + `\x00"`,
		strings.Repeat("x", 61) + "\x00": `"` + strings.Repeat("x", 61) + `"…`,
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q): got %s, want %s", in, got, want)
		}
	}
}
