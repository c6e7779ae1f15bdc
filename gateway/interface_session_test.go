package gateway_test

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/actors/identity/password"
	"troupe/gateway"
	"troupe/gateway/wiretest"
	"troupe/persistence/storetest"
)

const annsPassword = `an "old" oak, 1843`

// clock is the time of a service: a millisecond later at each look.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.wait(time.Millisecond) }

func (c *clock) wait(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return c.at
}

// newDoor starts a service in which ann has annsPassword.
func newDoor(t *testing.T, o gateway.Options) (*service, *clock) {
	t.Helper()
	c := newClock()
	s := startService(t, serviceOptions{Gateway: o, Options: actorstest.Options{
		Files: map[string]string{"workflows/plain.yaml": flows()["workflows/plain.yaml"], "workflows/vault.yaml": flows()["workflows/vault.yaml"]}, Clock: c.now,
		Identity: identity.Options{PasswordCost: password.Cost{MemoryKiB: 8, Passes: 1, Lanes: 1}, FlushEvery: time.Hour},
	}})
	s.setPassword(t)
	return s, c
}

// setPassword gives ann annsPassword.
func (s *service) setPassword(t *testing.T) {
	t.Helper()
	s.ChangeIdentities(func(i identity.Identities) error { return i.SetPassword(t.Context(), "ann", annsPassword) })
}

// TestInterfaceSession asks for sessions and with them.
func TestInterfaceSession(t *testing.T) {
	s, _ := newDoor(t, gateway.Options{})
	scene := sceneOf(s)
	for _, l := range []line{
		{`gateway/INTERFACE.md, "Signing in"`, "the three methods", sessionMethods},
		{`gateway/INTERFACE.md, "The session cookie"`, "a new id at every sign-in, which ends the one before", newSessionAtSignIn},
		{`gateway/INTERFACE.md, "The session cookie"`, "its name, path and flags", cookieFlags},
		{`gateway/INTERFACE.md, "How a session ends"`, "in time, by its user, and with the user", sessionsEnd},
		{`gateway/INTERFACE.md, "How a session ends"`, "at once, and for good when the disk has room", signOutOnAFullDisk},
		{`gateway/INTERFACE.md, "Rights of a token"`, "its owner's present roles, until it ends", tokensEnd},
		{`gateway/INTERFACE.md, "Failed sign-ins"`, "too many wait", failuresWait},
	} {
		t.Run(nameOf(l.rule, l.says), func(t *testing.T) {
			skipOnCluster(t, l.says)
			l.check(t, scene)
		})
	}
}

func signInBody(password string) string {
	return `{"user":"ann","password":"` + strings.ReplaceAll(password, `"`, `\"`) + `"}`
}

// signIn asks for a session of ann.
func (s *service) signIn(t testing.TB, password string, headers ...string) answer {
	t.Helper()
	return s.Send(t, request{Method: "POST", Path: s.Base + "/session", Headers: append(headers, wiretest.JSONType), Body: signInBody(password)})
}

var sessionCookie = regexp.MustCompile(`^([a-z]+)=([A-Za-z0-9._-]{43,255})(; .*)$`)

// session signs ann in and returns her session.
func (s *service) session(t testing.TB, headers ...string) string {
	t.Helper()
	a := s.signIn(t, annsPassword, headers...)
	a.WantStatus(t, 200)
	found := sessionCookie.FindStringSubmatch(strings.Join(a.Header["Set-Cookie"], "\n"))
	require.NotNil(t, found, "got the cookies %q, want a session", a.Header["Set-Cookie"])
	return found[2]
}

func (u user) signOut(t testing.TB) answer {
	t.Helper()
	return u.Send(t, request{Method: "DELETE", Path: u.Base + "/session", Headers: u.Credential})
}

func sessionMethods(t *testing.T, s *scene) {
	session := "Cookie: session=" + s.Session("ann")
	body := signInBody(annsPassword)
	unauthorized := map[string]answer{
		"GET":  s.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices"}),
		"POST": s.signIn(t, "a wrong guess"),
	}
	assert.Equal(t, "wrong user or password", unauthorized["POST"].Message(), "a wrong password")
	for _, c := range []struct {
		request, body string
		headers       []string // of a POST, beside the content type
		status        int
	}{
		{"POST", body, nil, 200},
		{"POST", body, []string{"Cookie: session=x"}, 200},
		{"POST", signInBody("x"), nil, 401},
		{"POST", signInBody(strings.Repeat("x", 300)), nil, 401},
		{"POST", `{"user":"bob","password":"x"}`, nil, 401}, // has none
		{"POST", `{"user":"nobody","password":"x"}`, nil, 401},
		{"POST", `{"user":"no body\n","password":"x"}`, nil, 401},
		{"POST", `{"user":"","password":""}`, nil, 401},
		{"POST", `{"password":"x"}`, nil, 400},
		{"POST", `{"user":"ann"}`, nil, 400},
		{"POST", `{"user":"ann","password":"x","next":"/"}`, nil, 400},
		{"POST", `{"user":"ann","password":null}`, nil, 400},
		{"POST", `user=ann&password=x`, nil, 400},
		{"POST", "", nil, 400},
		{"POST", strings.Repeat(" ", 2<<20), nil, 413},
		{"POST ?user=ann", body, nil, 400},
		{"POST", body, []string{"Content-Encoding: gzip"}, 415},
		{"POST", body, []string{"Origin: null"}, 403},
		{"GET", "", []string{session}, 200},
		{"HEAD", "", []string{session}, 200},
		{"GET", "no JSON", []string{session}, 200},
		{"GET", strings.Repeat(" ", 2<<20), []string{session}, 413},
		{"GET", "", nil, 401},
		{"DELETE", "x", []string{session}, 415},
	} {
		method, query, _ := strings.Cut(c.request, " ")
		if method == http.MethodPost && !strings.Contains(strings.Join(c.headers, " "), "Content-Type") {
			c.headers = append([]string{wiretest.JSONType}, c.headers...)
		}
		a := s.Send(t, request{Method: method, Path: "/session" + query, Headers: c.headers, Body: c.body})
		word := map[int]string{400: "InvalidContent", 401: "Unauthorized", 403: "AccessDenied", 413: "TooLarge", 415: "UnsupportedMediaType"}[c.status]
		what := c.request + " " + c.body + " " + strings.Join(c.headers, ", ")
		switch {
		case c.status == 401:
			wantSameAnswer(t, a, unauthorized[method])
		case c.status != 200 && a.FaultReason(c.status, word) != "":
			t.Errorf("%s: %s", what, a.FaultReason(c.status, word))
		case c.status == 200 && method != http.MethodHead && a.Body != `{"user":"ann","name":"Ann","roles":["clerk"],"privileges":["mod-form"]}`:
			t.Errorf("%s: got %d %s", what, a.Status, a.Body)
		}
		begins := method == http.MethodPost && c.status == 200
		assert.Equal(t, begins, len(a.Header["Set-Cookie"]) > 0, "%s: got the cookies %q", what, a.Header["Set-Cookie"])
	}
	assert.NotContains(t, s.log(), "oak", "the log holds a password")
}

func newSessionAtSignIn(t *testing.T, s *scene) {
	first, foreign := s.session(t), strings.Repeat("x", 60)
	s.signIn(t, "a wrong guess", "Cookie: session="+first)
	s.withCookie(first).Get(t, "/session").WantStatus(t, 200)
	second := s.session(t, "Cookie: session="+first)
	third := s.session(t, "Cookie: session="+foreign)
	s.AwaitCurrent()
	assert.True(t, first != second && second != third && third != foreign, "got the sessions %q, %q and %q", first, second, third)
	for session, status := range map[string]int{first: 401, foreign: 401, second: 200, third: 200} {
		s.withCookie(session).Get(t, "/session").WantStatus(t, status)
	}
	ann := s.withCookie(second)
	assert.Equal(t, "ann", ann.Create(t, "plain", "").Record(t).History[0].User, "user")
	a := ann.signOut(t)
	assert.True(t, a.Status == 200 && a.Body == "{}" && a.Header.Get("Set-Cookie") == "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax",
		"signing out: got %d %s and %q", a.Status, a.Body, a.Header.Get("Set-Cookie"))
	s.AwaitCurrent()
	for _, a := range []answer{ann.Get(t, "/session"), ann.signOut(t), ann.Get(t, wiretest.Root+"/choices")} {
		a.WantStatus(t, 401)
	}
}

// cookieFlags holds gateway/INTERFACE.md, "Base path", as well.
func cookieFlags(t *testing.T, s *scene) {
	proxied, _ := newDoor(t, gateway.Options{
		BasePath: "/platform", SessionCookie: "desk", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	for want, a := range map[string]answer{
		"session=S; Path=/; HttpOnly; SameSite=Lax":              s.signIn(t, annsPassword, "X-Forwarded-Proto: https"),
		"desk=S; Path=/platform; HttpOnly; SameSite=Lax":         proxied.signIn(t, annsPassword, "X-Forwarded-Proto: http"),
		"desk=S; Path=/platform; HttpOnly; Secure; SameSite=Lax": proxied.signIn(t, annsPassword, "X-Forwarded-Proto: https"),
	} {
		got := sessionCookie.ReplaceAllString(a.Header.Get("Set-Cookie"), "$1=S$3")
		assert.Equal(t, want, got)
	}
	proxied.Send(t, request{Method: "GET", Path: "/session"}).WantFault(t, 404, "NotFound")
}

// sessionsEnd holds that a session is good until something ends it.
func sessionsEnd(t *testing.T, _ *scene) {
	s, clock := newDoor(t, gateway.Options{})
	missing := s.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices"})
	ends := map[string]func(session string){
		"not used": func(string) { clock.wait(12*time.Hour + time.Second) },
		"too old": func(session string) {
			for range 7 * 3 {
				clock.wait(8 * time.Hour)
				_ = s.withCookie(session).Get(t, "/session")
			}
		},
		"revoked":        func(session string) { s.revoke(t, identity.Session, session) },
		"a new password": func(string) { s.setPassword(t) },
		"disabled": func(string) {
			s.Write("identity.yaml", strings.Replace(wiretest.People, "name: Ann,", "name: Ann, disabled: true,", 1))
		},
		"gone": func(string) { s.Write("identity.yaml", strings.Replace(wiretest.People, "id: ann", "id: ina", 1)) },
	}
	for name, end := range ends {
		s.Write("identity.yaml", wiretest.People)
		session := s.session(t)
		clock.wait(11 * time.Hour)
		u := s.withCookie(session)
		u.Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
		end(session)
		t.Log(name)
		wantSameAnswer(t, u.Get(t, wiretest.Root+"/choices"), missing)
	}
}

// signOutOnAFullDisk holds that a session is out at once, and that signing out again
// tells when that is durable.
func signOutOnAFullDisk(t *testing.T, _ *scene) {
	s, _ := newDoor(t, gateway.Options{})
	ann := s.withCookie(s.session(t))
	s.setFree(t, 0)
	for range 2 {
		ann.signOut(t).WantFault(t, 504, "OutcomeUnknown")
		ann.Get(t, "/session").WantStatus(t, 401)
	}
	s.setFree(t, 1<<40)
	for _, status := range []int{200, 401} {
		ann.Get(t, "/session").WantStatus(t, 401)
		ann.signOut(t).WantStatus(t, status)
	}
}

// setFree gives the disks of all nodes so many free bytes, and waits until their stores know.
func (s *service) setFree(t *testing.T, bytes uint64) {
	t.Helper()
	for _, n := range s.Nodes() {
		n.Disk.SetFree(bytes)
		storetest.AwaitAccepting(t, n.Store, bytes > 0)
	}
}

// tokensEnd holds gateway/INTERFACE.md, "401 is one answer", as well.
func tokensEnd(t *testing.T, _ *scene) {
	s, clock := newDoor(t, gateway.Options{})
	missing := s.Send(t, request{Method: "GET", Path: wiretest.Root + "/choices"})
	secret := ""
	s.ChangeIdentities(func(i identity.Identities) (err error) {
		secret, _, err = i.Create(t.Context(), identity.Token, identity.CreateCredential{User: "bob", Expires: time.Hour})
		return err
	})
	kept := s.Token("bob")
	short, bob := s.user("Authorization: Bearer "+secret), s.user("Authentication: svc.token "+kept)
	bob.Create(t, "vault", "").WantFault(t, 403, "AccessDenied")
	s.Write("identity.yaml", strings.Replace(wiretest.People, "roles: [approver]}\n", "roles: [approver, clerk]}\n", 1))
	bob.Create(t, "vault", "").WantStatus(t, 200)
	s.Write("identity.yaml", wiretest.People)
	bob.Create(t, "vault", "").WantFault(t, 403, "AccessDenied")
	short.Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
	clock.wait(time.Hour)
	wantSameAnswer(t, short.Get(t, wiretest.Root+"/choices"), missing)
	bob.Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
	s.revoke(t, identity.Token, kept)
	wantSameAnswer(t, bob.Get(t, wiretest.Root+"/choices"), missing)
}

func (s *service) revoke(t *testing.T, kind identity.Kind, secret string) {
	t.Helper()
	id, _, _ := strings.Cut(secret, ".")
	s.ChangeIdentities(func(i identity.Identities) error { return i.Revoke(t.Context(), kind, id) })
}

func failuresWait(t *testing.T, _ *scene) {
	s, clock := newDoor(t, gateway.Options{})
	for range 5 {
		s.signIn(t, "a wrong guess").WantFault(t, 401, "Unauthorized")
	}
	a := s.signIn(t, annsPassword)
	a.WantFault(t, 429, "Busy")
	assert.Equal(t, "1", a.Header.Get("Retry-After"), "Retry-After")
	clock.wait(time.Second)
	s.session(t)
}
