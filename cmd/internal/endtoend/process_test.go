package endtoend

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestOtherProcessOnTheSameHome starts a second server. It must refuse with a
// text that says why, and the first must not notice.
func TestOtherProcessOnTheSameHome(t *testing.T) {
	s := newScene(t)
	r := s.ann.create(t, "plain", "").record(t)
	out := command(t, "serve", "--home", s.home.dir, "--listen", "127.0.0.1:0")
	if out.code != 1 || !strings.Contains(out.stderr, filepath.Join(s.home.dir, "admin.sock")) || !strings.Contains(out.stderr, "in use by another process") {
		t.Errorf("got exit code %d and %s, want 1 and a text that says why", out.code, out.stderr)
	}
	if out.stdout != "" {
		t.Errorf("standard output: got %q, want nothing", out.stdout)
	}
	// Nor does it get in where somebody removed what shows that a server is there.
	for _, name := range []string{"data/LOCK", "admin.sock"} {
		socket := filepath.Join(s.home.dir, "admin.sock")
		if err := os.Rename(filepath.Join(s.home.dir, name), filepath.Join(s.home.dir, "away")); err != nil {
			t.Fatal(err)
		}
		out := command(t, "serve", "--home", s.home.dir, "--listen", "127.0.0.1:0")
		if out.code != 1 || !strings.Contains(out.stderr, "in use by another process") {
			t.Errorf("without %s: got exit code %d and %s, want 1 and a text that says why", name, out.code, out.stderr)
		}
		if name != "data/LOCK" {
			if err := os.Rename(filepath.Join(s.home.dir, "away"), socket); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.unchanged(t, r)
	s.as(s.home.token("bob")).event(t, "plain", r.ID, "go", "").record(t) // admin.sock is still the first one's
	// The port of another process is no accident either.
	address, err := s.log.listening()
	if err != nil {
		t.Fatal(err)
	}
	out = command(t, "serve", "--home", newHome(t, nil).dir, "--listen", address)
	if out.code != 1 || !strings.Contains(out.stderr, address) {
		t.Errorf("on a taken port: got exit code %d and %s, want 1 and the address", out.code, out.stderr)
	}
	s.stop()
}

// TestOtherProcessInterrupt ends the program as a terminal does.
func TestOtherProcessInterrupt(t *testing.T) {
	p := start(t, newHome(t, flows()))
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code after SIGINT: got %d, want 0", code)
	}
}

// TestOtherProcessCredentials makes, lists and revokes credentials beside a running
// server, and without one; what was made lasts over a stop and a kill.
func TestOtherProcessCredentials(t *testing.T) {
	h := newHome(t, flows())
	kept := h.token("ann", "--note", "kept over all")
	p := start(t, h)
	for kind, header := range map[string]string{"token": "Authorization: svc.token ", "session": "Cookie: session="} {
		secret := h.secret(kind, "ann", "--note", "on a laptop")
		u := user{p, []string{header + secret}}
		wantStatus(t, u.get(t, root+"/choices"), 200)
		id, hidden, _ := strings.Cut(secret, ".")
		row := regexp.MustCompile(`(?m)^` + id + ` +ann +\d{4}-\d\d-\d\dT\S+Z +\S+ +\S+ +(\S+) +on a laptop *$`)
		if got := row.FindStringSubmatch(wantCommand(t, kind, "list", "--home", h.dir)); len(got) != 2 || got[1] != "-" {
			t.Errorf("%s list: got %q, want a row that is not revoked", kind, got)
		}
		wantCommand(t, kind, "revoke", "--home", h.dir, id)
		list := wantCommand(t, kind, "list", "--home", h.dir)
		if got := row.FindStringSubmatch(list); len(got) != 2 || got[1] == "-" || strings.Contains(list, hidden) {
			t.Errorf("%s list: got %q, want a row that is revoked, and no secret", kind, got)
		}
		wantFault(t, u.get(t, root+"/choices"), 401, "Unauthorized")
	}
	p.stop()
	p = start(t, h)
	wantStatus(t, p.as(kept).get(t, root+"/choices"), 200)
	p.kill()
	id, _, _ := strings.Cut(kept, ".")
	wantCommand(t, "token", "revoke", "--home", h.dir, id) // without a server
	p = start(t, h)
	wantFault(t, p.as(kept).get(t, root+"/choices"), 401, "Unauthorized")
	p.stop()
}

// TestOtherProcessLastUse holds gateway/INTERFACE.md, "What a token may do": a list
// shows when it was used last.
func TestOtherProcessLastUse(t *testing.T) {
	p := start(t, newHome(t, flows()))
	token := p.home.token("ann")
	id, _, _ := strings.Cut(token, ".")
	used := regexp.MustCompile(`(?m)^` + id + ` +ann +\S+ +\S+ +(\S+) `)
	lastUse := func() string {
		t.Helper()
		got := used.FindStringSubmatch(wantCommand(t, "token", "list", "--home", p.home.dir))
		if len(got) != 2 {
			t.Fatalf("token list has no row of %s", id)
		}
		return got[1]
	}
	if got := lastUse(); got != "-" {
		t.Errorf("last use of a new token: got %s, want none", got)
	}
	wantStatus(t, p.as(token).get(t, root+"/choices"), 200)
	if got := lastUse(); got == "-" {
		t.Error("last use of a used token: got none")
	}
	p.stop()
	if got := lastUse(); got == "-" {
		t.Error("last use after a stop: got none")
	}
}

// TestOtherProcessSecrets looks for secrets in everything that the program
// writes: its store and its log (persistence/PROMISES.md, "P21").
func TestOtherProcessSecrets(t *testing.T) {
	p := start(t, newHome(t, flows()), "--log-level", "debug")
	token, session := p.home.token("ann"), p.home.session("ann")
	const planted = "planted-private-text"
	cookie := user{p, []string{"Cookie: session=" + session}}
	cookie.create(t, "plain", "").record(t)
	r := p.as(token).create(t, "plain", `{"svcPrivate":{"x":"`+planted+`"}}`).record(t)
	p.as(token).event(t, "plain", r.ID, "note", `{"svcPrivate":{"y":"`+planted+`"}}`).record(t)
	wantStatus(t, p.as(token[:len(token)-1]+"~").get(t, root+"/choices"), 401)
	wantStatus(t, p.as(token).get(t, root+"/instances/plain?filter="+url.QueryEscape(`{"svcPublic.x":"`+planted+`"}`)), 200)
	p.stop()
	for _, secret := range []string{secretPart(token), secretPart(session), planted} {
		if strings.Contains(p.log.all(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
	found := false
	err := fs.WalkDir(os.DirFS(p.home.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(p.home.dir, name))
		for _, secret := range []string{secretPart(token), secretPart(session)} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds a secret", name)
			}
		}
		found = found || bytes.Contains(text, []byte(planted))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found { // the control: the scan sees what is stored as it is
		t.Error("the scan does not even see what the instance holds")
	}
}

func secretPart(credential string) string {
	_, secret, _ := strings.Cut(credential, ".")
	return secret
}
