package endtoend

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// setPassword runs the command that must set a password. It says nothing, but that a disk has
// little room, which is the machine's matter.
func (h *home) setPassword(user, password string) {
	h.t.Helper()
	out := commandReading(h.t, password+"\n", "password", "set", "--home", h.dir, "--user", user)
	require.True(h.t, out.code == 0 && out.stdout == "" && (out.stderr == "" || strings.Contains(out.stderr, "disk space is running low")),
		"troupe password set: got exit code %d, %q and %q, want 0 and silence", out.code, out.stdout, out.stderr)
}

func (p *program) signIn(t testing.TB, user, password string, headers ...string) answer {
	t.Helper()
	return p.Send(t, request{Method: "POST", Path: p.Base + "/session", Headers: append(headers, wiretest.JSONType), Body: `{"user":"` + user + `","password":"` + password + `"}`})
}

func cookieOf(t testing.TB, a answer) string {
	t.Helper()
	a.WantStatus(t, 200)
	lines := a.Header["Set-Cookie"]
	found := regexp.MustCompile(`^session=([A-Za-z0-9._-]{43,});`).FindStringSubmatch(strings.Join(lines, "\n"))
	require.True(t, len(lines) == 1 && found != nil, "got the cookies %q, want a session", lines)
	return found[1]
}

func (p *program) withCookie(session string) user {
	return p.user("Cookie: session=" + session)
}

// TestOtherProcessPassword sets passwords while the server runs, while it does
// not, and after it was killed. The settings reach the cookie.
func TestOtherProcessPassword(t *testing.T) {
	h := newHome(t, map[string]string{"workflows/plain.yaml": plainFlow, "troupe.yaml": "trustedProxies: 127.0.0.1\nbasePath: /platform\n"})
	h.basePath = "/platform"
	h.setPassword("ann", "before the start")
	p := start(t, h)
	a := p.signIn(t, "ann", "before the start", "X-Forwarded-Proto: https")
	session := cookieOf(t, a)
	assert.Equal(t, "session="+session+"; Path=/platform; HttpOnly; Secure; SameSite=Lax", a.Header.Get("Set-Cookie"))
	h.setPassword("bob", "beside a server")
	cookieOf(t, p.signIn(t, "bob", "beside a server"))
	for _, c := range []struct{ user, password string }{{"nobody", "an old oak"}, {"ann", "acorn"}, {"ann", "Password1"}, {"ann", "\n"}, {"ann", "two\nlines"}} {
		out := commandReading(t, c.password, "password", "set", "--home", h.dir, "--user", c.user)
		assert.True(t, out.code == 1 && out.stdout == "" && out.stderr != "" && (len(c.password) <= 1 || !strings.Contains(out.stderr, c.password)),
			"%s, %q: got exit code %d, %q and %q, want 1 and a reason", c.user, c.password, out.code, out.stdout, out.stderr)
	}
	assert.Equal(t, 2, commandReading(t, "an old oak", "password", "set", "--home", h.dir).code, "without a user: got exit code")
	p.wantLine("signed in", "ann")
	p.kill()
	assert.NotContains(t, p.log.all(), "before the start", "the log holds a secret")
	p = start(t, h)
	p.withCookie(session).Get(t, "/session").WantStatus(t, 200)
	cookieOf(t, p.signIn(t, "bob", "beside a server"))
	p.stop()
	h.setPassword("ann", "after the stop")
	p = start(t, h)
	p.withCookie(session).Get(t, "/session").WantFault(t, 401, "Unauthorized")
	p.signIn(t, "ann", "before the start").WantFault(t, 401, "Unauthorized")
	cookieOf(t, p.signIn(t, "ann", "after the stop"))
	p.stop()
}
