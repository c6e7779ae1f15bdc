package endtoend

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// TestOtherProcessOnTheSameHome starts a second server. It must refuse with a
// text that says why, and the first must not notice.
func TestOtherProcessOnTheSameHome(t *testing.T) {
	s := newScene(t)
	r := s.ann.Create(t, "plain", "").Record(t)
	out := command(t, "serve", "--home", s.home.dir, "--listen", "127.0.0.1:0")
	assert.True(t, out.code == 1 && strings.Contains(out.stderr, filepath.Join(s.home.dir, "admin.sock")) && strings.Contains(out.stderr, "in use by another process"),
		"got exit code %d and %s, want 1 and a text that says why", out.code, out.stderr)
	assert.Empty(t, out.stdout, "standard output")
	// Nor does it get in where somebody removed what shows that a server is there.
	for _, name := range []string{"data/LOCK", "admin.sock"} {
		socket := filepath.Join(s.home.dir, "admin.sock")
		require.NoError(t, os.Rename(filepath.Join(s.home.dir, name), filepath.Join(s.home.dir, "away")))
		out := command(t, "serve", "--home", s.home.dir, "--listen", "127.0.0.1:0")
		assert.True(t, out.code == 1 && strings.Contains(out.stderr, "in use by another process"), "%v %v %v", name, out.code, out.stderr)
		if name != "data/LOCK" {
			require.NoError(t, os.Rename(filepath.Join(s.home.dir, "away"), socket))
		}
	}
	s.unchanged(t, r)
	s.as(s.home.token("bob")).Event(t, "plain", r.ID, "go", "").Record(t) // admin.sock is still the first one's
	// The port of another process is no accident either.
	address, err := s.log.listening()
	require.NoError(t, err)
	out = command(t, "serve", "--home", newHome(t, nil).dir, "--listen", address)
	assert.True(t, out.code == 1 && strings.Contains(out.stderr, address), "on a taken port: got exit code %d and %s, want 1 and the address", out.code, out.stderr)
	s.stop()
}

// TestOtherProcessCredentials makes, lists and revokes credentials beside a running
// server, and without one; what was made lasts over a stop and a kill, and a list shows
// when it was used last (gateway/INTERFACE.md, "Rights of a token").
func TestOtherProcessCredentials(t *testing.T) {
	h := newHome(t, flows())
	kept := h.token("ann", "--note", "kept over all")
	p := start(t, h)
	// wantRow demands the row of a credential, and whether it was used and revoked.
	wantRow := func(kind, secret string, used, revoked bool) {
		t.Helper()
		id, hidden, _ := strings.Cut(secret, ".")
		list := wantCommand(t, kind, "list", "--home", h.dir)
		row := regexp.MustCompile(`(?m)^` + id + ` +ann +\d{4}-\d\d-\d\dT\S+Z +\S+ +(\S+) +(\S+) +(on a laptop|kept over all) *$`).FindStringSubmatch(list)
		assert.True(t, row != nil && (row[1] != "-") == used && (row[2] != "-") == revoked && !strings.Contains(list, hidden), "%v %v %v %v", kind, row, used, revoked)
	}
	for kind, header := range map[string]string{"token": "Authorization: svc.token ", "session": "Cookie: session="} {
		secret := h.secret(kind, "ann", "--note", "on a laptop")
		u := p.user(header + secret)
		wantRow(kind, secret, false, false)
		u.Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
		wantRow(kind, secret, true, false)
		id, _, _ := strings.Cut(secret, ".")
		wantCommand(t, kind, "revoke", "--home", h.dir, id)
		wantRow(kind, secret, true, true)
		u.Get(t, wiretest.Root+"/choices").WantFault(t, 401, "Unauthorized")
	}
	p.as(kept).Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
	p.stop()
	wantRow("token", kept, true, false)
	p = start(t, h)
	p.as(kept).Get(t, wiretest.Root+"/choices").WantStatus(t, 200)
	p.kill()
	id, _, _ := strings.Cut(kept, ".")
	wantCommand(t, "token", "revoke", "--home", h.dir, id) // without a server
	p = start(t, h)
	p.as(kept).Get(t, wiretest.Root+"/choices").WantFault(t, 401, "Unauthorized")
	p.stop()
}

// TestOtherProcessSecrets looks for secrets in everything that the program
// writes: its store and its log (persistence/PROMISES.md, "P21").
func TestOtherProcessSecrets(t *testing.T) {
	p := start(t, newHome(t, flows()), "--log-level", "debug")
	token, session := p.home.token("ann"), p.home.session("ann")
	const planted = "planted-private-text"
	cookie := p.user("Cookie: session=" + session)
	cookie.Create(t, "plain", "").Record(t)
	r := p.as(token).Create(t, "plain", `{"svcPrivate":{"x":"`+planted+`"}}`).Record(t)
	p.as(token).Event(t, "plain", r.ID, "note", `{"svcPrivate":{"y":"`+planted+`"}}`).Record(t)
	p.as(token[:len(token)-1]+"~").Get(t, wiretest.Root+"/choices").WantStatus(t, 401)
	p.as(token).Get(t, wiretest.Root+"/instances/plain?filter="+url.QueryEscape(`{"svcPublic.x":"`+planted+`"}`)).WantStatus(t, 200)
	p.stop()
	for _, secret := range []string{secretPart(token), secretPart(session), planted} {
		assert.NotContains(t, p.log.all(), secret, "the log holds")
	}
	found := false
	err := fs.WalkDir(os.DirFS(p.home.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(p.home.dir, name))
		for _, secret := range []string{secretPart(token), secretPart(session)} {
			assert.False(t, bytes.Contains(text, []byte(secret)), "%s holds a secret", name)
		}
		found = found || bytes.Contains(text, []byte(planted))
		return err
	})
	require.NoError(t, err)
	if !found { // the control: the scan sees what is stored as it is
		t.Error("the scan does not even see what the instance holds")
	}
}

func secretPart(credential string) string {
	_, secret, _ := strings.Cut(credential, ".")
	return secret
}
