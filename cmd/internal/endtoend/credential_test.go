package endtoend

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestInterfaceCredential(t *testing.T) { runLines(t, credentialLines()) }

func credentialLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Two headers, one parser"`, "the forms of a credential", credentialForms},
		{`gateway/INTERFACE.md, "Which group takes which"`, "B takes token or session", tokenAndSession},
		{`gateway/INTERFACE.md, "401 is one answer"`, "missing, malformed, unknown, expired, revoked: the same 401", refusedAlike},
		{`gateway/INTERFACE.md, "401 is one answer"`, "a disabled user at once", disabledAtOnce},
		{`gateway/INTERFACE.md, "Ambiguous credentials"`, "two different tokens or two session cookies are 400", twoCredentials},
		{`gateway/INTERFACE.md, "What a token may do"`, "its owner's present roles", presentRoles},
		{`gateway/INTERFACE.md, "What a token may do"`, "it can expire", expiresInTime},
		{`gateway/INTERFACE.md, "What a token may do"`, "it can be revoked", revokedAtOnce},
		{`gateway/INTERFACE.md, "How a session ends"`, "it can be revoked", sessionRevoked},
		{`gateway/INTERFACE.md, "How a session ends"`, "an idle and an absolute limit, both configurable", sessionEnds},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "cross-origin requests by cookie are 403", crossOriginRefused},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "a body by cookie needs a JSON content type", cookieNeedsContentType},
	}
}

// choicesWith asks for the choices with the given headers.
func (s *scene) choicesWith(t testing.TB, headers ...string) answer {
	t.Helper()
	return s.send(t, ask{method: http.MethodGet, path: s.base + root + "/choices", headers: headers})
}

// secretOf is the token of a user.
func secretOf(u user) string {
	return strings.TrimPrefix(u.credential[0], "Authorization: svc.token ")
}

func tokenAndSession(t *testing.T, s *scene) {
	session := s.home.session("ann")
	for _, u := range []user{s.ann, {s.program, []string{"Cookie: session=" + session}}} {
		r := u.create(t, "plain", "").record(t)
		u.event(t, "plain", r.ID, "go", "").record(t)
		if got := u.load(t, "plain", r.ID).record(t); got.History[1].User != "ann" {
			t.Errorf("user: got %q, want ann", got.History[1].User)
		}
		u.query(t, "codes", "").items(t)
		wantStatus(t, u.get(t, root+"/choices"), 200)
	}
}

func credentialForms(t *testing.T, s *scene) {
	token, session := secretOf(s.ann), s.home.session("ann")
	for _, headers := range [][]string{
		{"Authorization: svc.token " + token},
		{"Authorization: Bearer " + token},
		{"Authentication: svc.token " + token},
		{"Authentication: Bearer " + token},
		{"Authorization: SVC.TOKEN " + token},
		{"authorization: bEARER " + token},
		{"Authorization: svc.token " + token, "Authentication: Bearer " + token},
		{"Cookie: session=" + session},
		{"Cookie: a=b; session=" + session + "; c=d"},
		{"Cookie: a=b", "Cookie: session=" + session},
		{"Authorization: svc.token " + token, "Cookie: session=" + session},
	} {
		if a := s.choicesWith(t, headers...); a.status != 200 {
			t.Errorf("%q: got %d %s, want 200", headers, a.status, a.body)
		}
	}
}

func twoCredentials(t *testing.T, s *scene) {
	ann, bob, session := secretOf(s.ann), secretOf(s.bob), s.home.session("ann")
	other := s.home.session("bob")
	for _, headers := range [][]string{
		{"Authorization: svc.token " + ann, "Authentication: svc.token " + bob},
		{"Authorization: svc.token " + ann, "Authorization: svc.token " + bob},
		{"Authorization: svc.token " + ann + ", svc.token " + bob},
		{"Cookie: session=" + session + "; session=" + other},
		{"Cookie: session=" + session, "Cookie: session=" + other},
		{"Cookie: session=" + session + "; session=" + session},
		{"Authorization: svc.token " + ann, "Cookie: session=" + session + "; session=" + other},
	} {
		if reason := faultReason(s.choicesWith(t, headers...), 400, "InvalidContent"); reason != "" {
			t.Errorf("%d headers: %s", len(headers), reason)
		}
	}
}

// bRoutes are a request to each route of group B, without credentials.
func (s *scene) bRoutes(instance string) []ask {
	return []ask{
		{method: "POST", path: s.base + root + "/create", headers: []string{jsonType}, body: createBody("plain", "")},
		{method: "POST", path: s.base + root + "/event", headers: []string{jsonType}, body: eventBody("plain", instance, "go", "")},
		{method: "GET", path: s.base + root + "/instance/plain/" + instance},
		{method: "GET", path: s.base + root + "/instance/plain/" + instance + "/events"},
		{method: "GET", path: s.base + root + "/instance/plain/" + instance + "/history"},
		{method: "GET", path: s.base + root + "/watch/plain"},
		{method: "GET", path: s.base + root + "/watch/plain/" + instance},
		{method: "GET", path: s.base + root + "/instances/plain"},
		{method: "GET", path: s.base + root + "/choices"},
	}
}

func refusedAlike(t *testing.T, s *scene) {
	token, session := secretOf(s.ann), s.home.session("ann")
	id, secret, _ := strings.Cut(token, ".")
	revoked := s.home.token("ann")
	wantCommand(t, "token", "revoke", "--home", s.home.dir, strings.SplitN(revoked, ".", 2)[0])
	r := s.ann.create(t, "plain", "").record(t)
	before := s.instances(t, s.ann, "plain")
	causes := map[string][]string{
		"missing":               nil,
		"empty":                 {"Authorization: "},
		"no scheme":             {"Authorization: " + token},
		"another scheme":        {"Authorization: Basic YW5uOmFubg=="},
		"two blanks":            {"Authorization: svc.token  " + token},
		"a tab":                 {"Authorization: svc.token\t" + token},
		"too short":             {"Authorization: svc.token " + token[:40]},
		"cut":                   {"Authorization: svc.token " + token[:len(token)-1]},
		"longer":                {"Authorization: svc.token " + token + "x"},
		"wrong alphabet":        {"Authorization: svc.token " + token[:50] + "+" + token[51:]},
		"unknown id":            {"Authorization: svc.token " + strings.Repeat("x", len(id)) + "." + secret},
		"wrong secret":          {"Authorization: svc.token " + id + "." + strings.Repeat("A", len(secret))},
		"revoked":               {"Authorization: svc.token " + revoked},
		"session as token":      {"Authorization: svc.token " + session},
		"token as session":      {"Cookie: session=" + token},
		"unknown session":       {"Cookie: session=" + strings.Repeat("x", len(session))},
		"empty session":         {"Cookie: session="},
		"another cookie":        {"Cookie: sessions=" + session},
		"another header":        {"X-Token: " + token, "Proxy-Authorization: svc.token " + token},
		"in the query":          nil, // below
		"garbled beside cookie": {"Authorization: Basic x", "Cookie: session=" + session},
	}
	var first answer
	for cause, headers := range causes {
		for _, route := range s.bRoutes(r.ID) {
			route.headers = append(route.headers, headers...)
			if cause == "in the query" {
				route.path += "?token=" + token
			}
			a := s.send(t, route)
			if reason := faultReason(a, 401, "Unauthorized"); reason != "" {
				t.Errorf("%s, %s %s: %s", cause, route.method, route.path, reason)
				continue
			}
			if a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", cause)
			}
			if first.status == 0 {
				first = a
			}
			wantSameAnswer(t, a, first)
		}
	}
	s.unchanged(t, r)
	if got := s.instances(t, s.ann, "plain"); len(got) != len(before) {
		t.Errorf("instances: got %d, want %d as before", len(got), len(before))
	}
}

// reloadMax bounds the time from the change of a file to its effect.
const reloadMax = 10 * time.Second

// awaitStatus asks until the answer has the status.
func (s *scene) awaitStatus(t testing.TB, what string, status int, send func() answer) answer {
	t.Helper()
	var a answer
	s.await(what, reloadMax, func() bool {
		a = send()
		return a.status == status
	})
	return a
}

func disabledAtOnce(t *testing.T, s *scene) {
	session := s.home.session("eve")
	cookie := user{s.program, []string{"Cookie: session=" + session}}
	wantStatus(t, s.eve.get(t, root+"/choices"), 200)
	s.home.write("identity.yaml", strings.Replace(people, "{id: eve, name: Eve,", "{id: eve, name: Eve, disabled: true,", 1))
	a := s.awaitStatus(t, "the disabled user to be refused", 401, func() answer { return s.eve.get(t, root+"/choices") })
	wantSameAnswer(t, a, s.choicesWith(t))
	wantSameAnswer(t, cookie.get(t, root+"/choices"), a)
	s.home.write("identity.yaml", strings.Replace(people, "  - {id: eve, name: Eve, roles: []}\n", "", 1))
	wantSameAnswer(t, s.eve.get(t, root+"/choices"), a)
	s.home.write("identity.yaml", people)
	s.awaitStatus(t, "the user to be back", 200, func() answer { return s.eve.get(t, root+"/choices") })
}

func presentRoles(t *testing.T, s *scene) {
	wantFault(t, s.bob.create(t, "vault", ""), 403, "AccessDenied")
	s.home.write("identity.yaml", strings.Replace(people, "roles: [approver]}\n", "roles: [approver, clerk]}\n", 1))
	s.awaitStatus(t, "the new role", 200, func() answer { return s.bob.create(t, "vault", "") })
	s.home.write("identity.yaml", people)
	s.awaitStatus(t, "the role to go", 403, func() answer { return s.bob.create(t, "vault", "") })
}

// inItsLife makes a credential and demands that it is good before its life ends.
// On a slow machine its life may end before it is tried: then it says nothing, and
// another one is made.
func inItsLife(t *testing.T, life time.Duration, path string, made func() user) user {
	t.Helper()
	for range 10 {
		begun := time.Now()
		u := made()
		a := u.get(t, path)
		if a.status != 401 || time.Since(begun) < life {
			wantStatus(t, a, 200)
			return u
		}
	}
	t.Fatalf("no credential of %v could be tried before its end", life)
	return user{}
}

func expiresInTime(t *testing.T, s *scene) {
	short := inItsLife(t, 2*time.Second, root+"/choices", func() user { return s.as(s.home.token("ann", "--expires", "2s")) })
	a := s.awaitStatus(t, "the token to expire", 401, func() answer { return short.get(t, root+"/choices") })
	wantSameAnswer(t, a, s.choicesWith(t))
}

func revokedAtOnce(t *testing.T, s *scene) {
	token := s.home.token("ann", "--note", "to be revoked")
	wantStatus(t, s.as(token).get(t, root+"/choices"), 200)
	id, _, _ := strings.Cut(token, ".")
	wantCommand(t, "token", "revoke", "--home", s.home.dir, id)
	wantFault(t, s.as(token).get(t, root+"/choices"), 401, "Unauthorized")
}

func sessionRevoked(t *testing.T, s *scene) {
	session := s.home.session("ann")
	u := user{s.program, []string{"Cookie: session=" + session}}
	wantStatus(t, u.get(t, root+"/choices"), 200)
	id, _, _ := strings.Cut(session, ".")
	wantCommand(t, "session", "revoke", "--home", s.home.dir, id)
	wantFault(t, u.get(t, root+"/choices"), 401, "Unauthorized")
}

func sessionEnds(t *testing.T, _ *scene) {
	for _, setting := range []string{"sessionMax: 2s", "sessionIdle: 2s"} {
		h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow, "troupe.yaml": "sessionCookie: desk\n" + setting + "\n"})
		p := start(t, h)
		var session string
		u := inItsLife(t, 2*time.Second, root+"/choices", func() user {
			session = h.session("ann")
			return user{p, []string{"Cookie: desk=" + session + "; session=other"}}
		})
		wantFault(t, user{p, []string{"Cookie: session=" + session}}.get(t, root+"/choices"), 401, "Unauthorized")
		if setting == "sessionIdle: 2s" {
			pause(2100 * time.Millisecond) // NB: asking again and again would be a use
		}
		p.await(setting+" to end the session", reloadMax, func() bool { return u.get(t, root+"/choices").status == 401 })
		p.stop()
	}
}

func crossOriginRefused(t *testing.T, s *scene) {
	cookie := user{s.program, []string{"Cookie: session=" + s.home.session("ann")}}
	r := cookie.create(t, "plain", "").record(t)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site: cross-site"},
		{"Sec-Fetch-Site: same-site"},
		{"Origin: https://evil.example"},
		{"Origin: null"},
		{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"},
	} {
		u := cookie.with(headers...)
		for name, a := range map[string]answer{
			"create": u.create(t, "plain", ""), "event": u.event(t, "plain", r.ID, "go", ""),
		} {
			if reason := faultReason(a, 403, "AccessDenied"); reason != "" {
				t.Errorf("%s with %q: %s", name, headers, reason)
			}
		}
		if a := u.get(t, root+"/choices"); a.status != 200 {
			t.Errorf("a safe method with %q: got %d, want 200", headers, a.status)
		}
		// A token is not sent by a browser on its own.
		s.ann.with(headers...).load(t, "plain", r.ID).record(t)
	}
	s.unchanged(t, r)
	address, _ := s.log.listening()
	for _, headers := range [][]string{{"Sec-Fetch-Site: same-origin"}, {"Sec-Fetch-Site: none"}, {"Origin: http://" + address}} {
		cookie.with(headers...).event(t, "plain", r.ID, "go", "").record(t)
	}
	s.ann.with("Sec-Fetch-Site: cross-site").event(t, "plain", r.ID, "go", "").record(t)
}

func cookieNeedsContentType(t *testing.T, s *scene) {
	cookie := "Cookie: session=" + s.home.session("ann")
	body := createBody("plain", "")
	for _, headers := range [][]string{
		{}, {"Content-Type: text/plain"}, {"Content-Type: application/x-www-form-urlencoded"}, {"Content-Type: multipart/form-data; boundary=x"},
	} {
		a := s.send(t, ask{method: "POST", path: s.base + root + "/create", headers: append(headers, cookie), body: body})
		if reason := faultReason(a, 415, "UnsupportedMediaType"); reason != "" {
			t.Errorf("%q: %s", headers, reason)
		}
	}
	s.send(t, ask{method: "POST", path: s.base + root + "/create", headers: []string{cookie, jsonType}, body: body}).record(t)
}
