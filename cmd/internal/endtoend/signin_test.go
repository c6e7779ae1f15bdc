package endtoend

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestInterfaceSignIn(t *testing.T) { runLines(t, signInLines()) }

func signInLines() []line {
	return []line{
		{`gateway/INTERFACE.md, "Signing in"`, "made by POST /session, shown by GET, ended by DELETE", sessionLife},
		{`gateway/INTERFACE.md, "Signing in"`, "the answer says who is signed in", signInAnswer},
		{`gateway/INTERFACE.md, "The session cookie"`, "a new id at every login, never one that was there before", newSessionAtLogin},
		{`gateway/INTERFACE.md, "The session cookie"`, "HttpOnly, SameSite=Lax, Path, Secure when a trusted proxy says so", cookieFlags},
		{`gateway/INTERFACE.md, "How a session ends"`, "idle and absolute limit hold for logins", loginEnds},
		{`gateway/INTERFACE.md, "How a session ends"`, "a new password ends them", passwordEndsSessions},
		{`gateway/INTERFACE.md, "The session cookie"`, "stored as a hash, like the passwords", hashedAtRest},
		{`gateway/INTERFACE.md, "Signing in"`, "the login page", loginPage},
		{`gateway/INTERFACE.md, "Signing in"`, "a wrong user, a wrong password and a disabled user alike", signInRefusedAlike},
		{`gateway/INTERFACE.md, "Failed sign-ins"`, "too many failures of an account wait, and those of others do not matter", failuresWait},
		{`gateway/INTERFACE.md, "Cross-site requests"`, "signing in needs a JSON content type and no page of another site", signInCSRF},
		{`gateway/INTERFACE.md, "Which group takes which"`, "/session takes no token", noTokenAtSession},
	}
}

const (
	annsPassword = "an old oak, 1843"
	proxied      = "trustedProxies: 127.0.0.1\n"
)

// setPassword runs the command that must set a password.
func (h *home) setPassword(user, password string) {
	h.t.Helper()
	out := commandReading(h.t, password+"\n", "password", "set", "--home", h.dir, "--user", user)
	if out.code != 0 || out.stdout != "" || out.stderr != "" {
		h.t.Fatalf("troupe password set: got exit code %d, %q and %q, want 0 and silence", out.code, out.stdout, out.stderr)
	}
}

// newDoor starts a program of its own, behind a proxy, so that the failures of
// one row do not make another wait. ann has annsPassword.
func newDoor(t *testing.T, settings string) *program {
	t.Helper()
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow, "troupe.yaml": settings})
	if _, path, found := strings.Cut(settings, "basePath: "); found {
		h.basePath = strings.TrimSpace(path)
	}
	h.setPassword("ann", annsPassword)
	return start(t, h)
}

func credentialsBody(user, password string) string {
	return `{"user":` + quoted(user) + `,"password":` + quoted(password) + `}`
}

// signIn asks for a session.
func (p *program) signIn(t testing.TB, user, password string, headers ...string) answer {
	t.Helper()
	return p.send(t, ask{method: "POST", path: p.base + "/session", headers: append(headers, jsonType), body: credentialsBody(user, password)})
}

// cookieOf is the value of the session cookie that an answer sets.
func cookieOf(t testing.TB, a answer) string {
	t.Helper()
	wantStatus(t, a, 200)
	lines := a.header["Set-Cookie"]
	found := regexp.MustCompile(`^session=([A-Za-z0-9._-]{43,});`).FindStringSubmatch(strings.Join(lines, "\n"))
	if len(lines) != 1 || found == nil {
		t.Fatalf("got the cookies %q, want a session", lines)
	}
	return found[1]
}

func (p *program) withCookie(session string) user {
	return user{p, []string{"Cookie: session=" + session}}
}

func (u user) signOut(t testing.TB) answer {
	t.Helper()
	return u.send(t, ask{method: "DELETE", path: u.base + "/session", headers: u.credential})
}

func sessionLife(t *testing.T, s *scene) {
	s.home.setPassword("ann", annsPassword)
	ann := s.withCookie(cookieOf(t, s.signIn(t, "ann", annsPassword)))
	r := ann.create(t, "plain", "").record(t)
	if r.History[0].User != "ann" {
		t.Errorf("user: got %q, want ann", r.History[0].User)
	}
	wantStatus(t, ann.get(t, "/session"), 200)
	a := ann.signOut(t)
	if a.status != 200 || a.body != "{}" || !strings.HasPrefix(a.header.Get("Set-Cookie"), "session=; Path=/; Max-Age=0;") {
		t.Errorf("signing out: got %d %s and %q", a.status, a.body, a.header.Get("Set-Cookie"))
	}
	for _, a := range []answer{ann.get(t, "/session"), ann.signOut(t), ann.get(t, root+"/choices")} {
		wantSameAnswer(t, a, s.choicesWith(t))
	}
}

func signInAnswer(t *testing.T, s *scene) {
	s.home.setPassword("adm", "Café crème, twice")
	const want = `{"user":"adm","name":"Adam","roles":["approver","clerk"],"privileges":["mod-form","mod-workflows"]}`
	a := s.signIn(t, "adm", "Cafe\u0301 cre\u0300me, twice")
	adm := s.withCookie(cookieOf(t, a))
	for _, a := range []answer{a, adm.get(t, "/session")} {
		if a.body != want || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("got %s and %v, want %s", a.body, a.header, want)
		}
	}
	if head := adm.send(t, ask{method: "HEAD", path: adm.base + "/session", headers: adm.credential}); head.status != 200 || head.body != "" {
		t.Errorf("HEAD: got %d %q", head.status, head.body)
	}
}

func newSessionAtLogin(t *testing.T, s *scene) {
	s.home.setPassword("ann", annsPassword)
	first := cookieOf(t, s.signIn(t, "ann", annsPassword))
	second := cookieOf(t, s.signIn(t, "ann", annsPassword))
	if first == second {
		t.Errorf("two logins have the session %q", first)
	}
	wantStatus(t, s.withCookie(first).get(t, "/session"), 200)
	// An id that the browser has already is not kept, whether it is ours or not.
	foreign := strings.Repeat("x", len(first))
	for _, before := range []string{first, foreign} {
		after := cookieOf(t, s.signIn(t, "ann", annsPassword, "Cookie: session="+before))
		if strings.Contains(before, after) {
			t.Errorf("the login has kept the id %q", after)
		}
	}
	two := s.signIn(t, "ann", annsPassword, "Cookie: session="+second+"; session="+foreign)
	wantFault(t, two, 400, "InvalidContent")
	wantStatus(t, s.withCookie(first).get(t, "/session"), 401)
	wantStatus(t, s.withCookie(foreign).get(t, "/session"), 401)
	wantStatus(t, s.withCookie(second).get(t, "/session"), 200)
}

func cookieFlags(t *testing.T, s *scene) {
	s.home.setPassword("ann", annsPassword)
	flags := func(a answer) string {
		t.Helper()
		return strings.Replace(a.header.Get("Set-Cookie"), cookieOf(t, a), "S", 1)
	}
	const plain = "session=S; Path=/; HttpOnly; SameSite=Lax"
	for _, headers := range [][]string{nil, {"X-Forwarded-Proto: https"}} {
		if got := flags(s.signIn(t, "ann", annsPassword, headers...)); got != plain {
			t.Errorf("%q without a trusted proxy: got %q, want %q", headers, got, plain)
		}
	}
	p := newDoor(t, proxied+"basePath: /platform\n")
	const secure = "session=S; Path=/platform; HttpOnly; Secure; SameSite=Lax"
	if got := flags(p.signIn(t, "ann", annsPassword, "X-Forwarded-Proto: https")); got != secure {
		t.Errorf("by a trusted proxy: got %q, want %q", got, secure)
	}
	p.stop()
}

func loginEnds(t *testing.T, _ *scene) {
	for _, setting := range []string{"sessionMax: 2s", "sessionIdle: 2s"} {
		p := newDoor(t, setting+"\n")
		ann := inItsLife(t, 2*time.Second, "/session", func() user { return p.withCookie(cookieOf(t, p.signIn(t, "ann", annsPassword))) })
		if setting == "sessionIdle: 2s" {
			pause(2100 * time.Millisecond) // NB: asking again and again would be a use
		}
		p.await(setting+" to end the session", reloadMax, func() bool { return ann.get(t, "/session").status == 401 })
		p.stop()
	}
}

func passwordEndsSessions(t *testing.T, s *scene) {
	s.home.setPassword("bob", annsPassword)
	token := s.home.token("bob")
	made, login := s.home.session("bob"), cookieOf(t, s.signIn(t, "bob", annsPassword))
	wantStatus(t, s.withCookie(login).get(t, "/session"), 200)
	s.home.setPassword("bob", "another oak, 1843")
	wantStatus(t, s.withCookie(login).get(t, "/session"), 401)
	wantStatus(t, s.withCookie(made).get(t, "/session"), 401)
	wantStatus(t, s.as(token).get(t, root+"/choices"), 200)
	wantFault(t, s.signIn(t, "bob", annsPassword), 401, "Unauthorized")
	cookieOf(t, s.signIn(t, "bob", "another oak, 1843"))
}

func hashedAtRest(t *testing.T, _ *scene) {
	p := newDoor(t, "")
	p.home.setPassword("ann", annsPassword)
	session := cookieOf(t, p.signIn(t, "ann", annsPassword))
	id, secret, _ := strings.Cut(session, ".")
	wantFault(t, p.signIn(t, "ann", "a wrong guess"), 401, "Unauthorized")
	p.kill() // NB: what a store writes when it is closed is packed
	// The control: this is where the rows are, as they are.
	rows := map[string]bool{id: false, "$argon2id$v=19$m=19456,t=2,p=1$": false}
	err := filepath.WalkDir(p.home.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		for row := range rows {
			rows[row] = rows[row] || bytes.Contains(text, []byte(row))
		}
		for _, hidden := range []string{secret, annsPassword} {
			if bytes.Contains(text, []byte(hidden)) {
				t.Errorf("%s holds a secret", name)
			}
		}
		return err
	})
	for row, found := range rows {
		if err != nil || !found {
			t.Errorf("%q was not found: %v", row, err)
		}
	}
	for _, hidden := range []string{secret, annsPassword, "a wrong guess"} {
		if strings.Contains(p.log.all(), hidden) {
			t.Error("the log holds a secret")
		}
	}
	p.wantLine("signed in", "ann")
	p.wantLine("sign-in failed", "ann")
}

func loginPage(t *testing.T, s *scene) {
	a := s.send(t, ask{method: "GET", path: s.base + "/login?next=/workflow/api/v1/choices"})
	wantStatus(t, a, 200)
	for name, want := range map[string]string{
		"Content-Type": "text/html", "Content-Security-Policy": "frame-ancestors 'none'", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
	} {
		if got := a.header.Get(name); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}
	if !strings.Contains(a.body, `data-next="/workflow/api/v1/choices"`) || strings.Contains(a.body, "http://") || strings.Contains(a.body, "https://") {
		t.Errorf("the page does not lead on, or leads elsewhere: %s", clip(a.body))
	}
	files := regexp.MustCompile(`(?:href|src)="(/[^"]*)"`).FindAllStringSubmatch(a.body, -1)
	for _, file := range files {
		b := s.send(t, ask{method: "GET", path: file[1]})
		kind := "text/"
		if file[1] == "/favicon.ico" {
			kind = "image/"
		}
		if b.status != 200 || len(b.body) < 100 || !strings.HasPrefix(b.header.Get("Content-Type"), kind) {
			t.Errorf("%s: got %d %s", file[1], b.status, clip(b.body))
		}
	}
	if len(files) != 3 || strings.Contains(a.body, "<style") || strings.Contains(a.body, "<script>") {
		t.Errorf("got the files %q, want an icon, a style and a script, and none in the page: %s", files, clip(a.body))
	}
	for _, next := range []string{"//evil.example", "https:%2F%2Fevil.example", "/%5Cevil.example", "%2F%09%2Fevil.example"} {
		a := s.send(t, ask{method: "GET", path: s.base + "/login?next=" + next})
		if a.status != 200 || !strings.Contains(a.body, `data-next="/"`) || strings.Contains(a.body, "evil") {
			t.Errorf("next=%s: got %d and a page that leads there", next, a.status)
		}
	}
}

func signInRefusedAlike(t *testing.T, _ *scene) {
	p := newDoor(t, proxied)
	p.home.setPassword("eve", annsPassword)
	cookieOf(t, p.signIn(t, "eve", annsPassword, "X-Forwarded-For: 192.0.2.1"))
	p.home.write("identity.yaml", strings.Replace(people, "{id: eve, name: Eve,", "{id: eve, name: Eve, disabled: true,", 1))
	p.await("the user to be disabled", reloadMax, func() bool {
		return commandReading(t, "", "token", "create", "--home", p.home.dir, "--user", "eve").code == 1
	})
	first := p.send(t, ask{method: "GET", path: p.base + "/session"})
	wantFault(t, first, 401, "Unauthorized")
	i := 0
	for cause, c := range map[string][2]string{
		"wrong password":        {"ann", "an old oak, 1844"},
		"empty password":        {"ann", ""},
		"another case":          {"ann", strings.ToUpper(annsPassword)},
		"a line end":            {"ann", annsPassword + "\n"},
		"too long":              {"ann", strings.Repeat("x", 300)},
		"disabled user":         {"eve", annsPassword},
		"user without password": {"bob", annsPassword},
		"unknown user":          {"nobody", annsPassword},
		"another case of user":  {"Ann", annsPassword},
		"empty user":            {"", annsPassword},
		"user that cannot be":   {"no body\n", annsPassword},
		"very long user":        {strings.Repeat("x", 10_000), annsPassword},
	} {
		i++
		a := p.signIn(t, c[0], c[1], fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", 10+i))
		t.Log(cause)
		wantSameAnswer(t, a, first)
	}
	p.stop()
}

func failuresWait(t *testing.T, _ *scene) {
	p := newDoor(t, proxied)
	// waits demands that the next attempt is too early. The first wait is a second
	// from the begin of the attempt before, which a slow machine may need for it
	// alone: then it is counted, and the next wait is twice as long.
	waits := func(user string, headers ...string) {
		t.Helper()
		a, most := p.signIn(t, user, "a wrong guess", headers...), 1
		for ; a.status == 401 && most < 16; most *= 2 {
			a = p.signIn(t, user, "a wrong guess", headers...)
		}
		wantFault(t, a, 429, "Busy")
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > most {
			t.Errorf("Retry-After: got %q, want 1 to %d", a.header.Get("Retry-After"), most)
		}
	}
	for i := range 5 {
		wantFault(t, p.signIn(t, "ann", "a wrong guess", fmt.Sprintf("X-Forwarded-For: 192.0.2.%d", i)), 401, "Unauthorized")
	}
	waits("ann", "X-Forwarded-For: 192.0.2.77")
	// It is no lock: the wait ends, and the right password opens.
	p.await("the account to be looked at again", reloadMax, func() bool {
		return p.signIn(t, "ann", annsPassword, "X-Forwarded-For: 192.0.2.77").status == 200
	})
	// Wrong names from one address do not keep out who is right there.
	for i := range 40 {
		wantFault(t, p.signIn(t, fmt.Sprintf("user%d", i), "a wrong guess", "X-Forwarded-For: 203.0.113.5, 198.51.100.1"), 401, "Unauthorized")
	}
	cookieOf(t, p.signIn(t, "ann", annsPassword, "X-Forwarded-For: 198.51.100.1"))
	cookieOf(t, p.signIn(t, "ann", annsPassword, "X-Forwarded-For: 198.51.100.2"))
	p.stop()
}

func signInCSRF(t *testing.T, s *scene) {
	s.home.setPassword("ann", annsPassword)
	body := credentialsBody("ann", annsPassword)
	for _, headers := range [][]string{nil, {"Content-Type: text/plain"}, {"Content-Type: application/x-www-form-urlencoded"}, {"Content-Type: multipart/form-data; boundary=x"}} {
		a := s.send(t, ask{method: "POST", path: s.base + "/session", headers: headers, body: body})
		if reason := faultReason(a, 415, "UnsupportedMediaType"); reason != "" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: %s", headers, reason)
		}
	}
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
		a := s.signIn(t, "ann", annsPassword, header)
		if reason := faultReason(a, 403, "AccessDenied"); reason != "" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: %s", header, reason)
		}
	}
	session := cookieOf(t, s.signIn(t, "ann", annsPassword, "Sec-Fetch-Site: same-origin"))
	a := s.withCookie(session).with("Sec-Fetch-Site: cross-site").signOut(t)
	wantFault(t, a, 403, "AccessDenied")
	wantStatus(t, s.withCookie(session).get(t, "/session"), 200)
	for _, wrong := range []string{"", "{}", `{"user":"ann"}`, `{"user":"ann","password":1}`, `{"user":"ann","password":"x","x":1}`, body + "x"} {
		a := s.send(t, ask{method: "POST", path: s.base + "/session", headers: []string{jsonType}, body: wrong})
		if reason := faultReason(a, 400, "InvalidContent"); reason != "" {
			t.Errorf("%s: %s", wrong, reason)
		}
	}
}

func noTokenAtSession(t *testing.T, s *scene) {
	wantSameAnswer(t, s.ann.get(t, "/session"), s.choicesWith(t))
	wantSameAnswer(t, s.ann.signOut(t), s.choicesWith(t))
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions} {
		a := s.send(t, ask{method: method, path: s.base + "/session", headers: s.ann.credential})
		if reason := faultReason(a, 405, "MethodNotAllowed"); reason != "" || a.header.Get("Allow") != "DELETE, GET, HEAD, POST" {
			t.Errorf("%s: %s, Allow %q", method, reason, a.header.Get("Allow"))
		}
	}
}

// TestOtherProcessPassword sets passwords while the server runs, while it does
// not, and after it was killed.
func TestOtherProcessPassword(t *testing.T) {
	h := newHome(t, flows())
	h.setPassword("ann", "before the start")
	p := start(t, h)
	session := cookieOf(t, p.signIn(t, "ann", "before the start"))
	h.setPassword("bob", "beside a server")
	cookieOf(t, p.signIn(t, "bob", "beside a server"))
	for _, c := range []struct{ user, password string }{{"nobody", "an old oak"}, {"ann", "acorn"}, {"ann", "Password1"}, {"ann", "\n"}, {"ann", "two\nlines"}} {
		out := commandReading(t, c.password, "password", "set", "--home", h.dir, "--user", c.user)
		if out.code != 1 || out.stdout != "" || out.stderr == "" || len(c.password) > 1 && strings.Contains(out.stderr, c.password) {
			t.Errorf("%s, %q: got exit code %d, %q and %q, want 1 and a reason", c.user, c.password, out.code, out.stdout, out.stderr)
		}
	}
	if out := commandReading(t, "an old oak", "password", "set", "--home", h.dir); out.code != 2 {
		t.Errorf("without a user: got exit code %d, want 2", out.code)
	}
	p.kill()
	p = start(t, h)
	wantStatus(t, p.withCookie(session).get(t, "/session"), 200)
	cookieOf(t, p.signIn(t, "bob", "beside a server"))
	p.stop()
	h.setPassword("ann", "after the stop")
	p = start(t, h)
	wantFault(t, p.withCookie(session).get(t, "/session"), 401, "Unauthorized")
	wantFault(t, p.signIn(t, "ann", "before the start"), 401, "Unauthorized")
	cookieOf(t, p.signIn(t, "ann", "after the stop"))
	p.stop()
}
