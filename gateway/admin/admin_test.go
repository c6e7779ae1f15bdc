package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"troupe/actors/actorstest"
	"troupe/actors/failure"
	"troupe/actors/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openIdentities starts a real service whose users are john.doe and jane.
func openIdentities(t *testing.T) identity.Identities {
	t.Helper()
	return actorstest.Start(t, actorstest.Options{Files: map[string]string{
		"identity.yaml": "roles: []\nusers: [{id: john.doe}, {id: jane}]\n",
	}}).Identities
}

// failing is a service that refuses all that would change it, and finds nothing.
type failing struct {
	identity.Identities
	err error
}

func (f *failing) Create(_ context.Context, kind identity.Kind, _ identity.CreateCredential) (string, identity.Credential, error) {
	return "", identity.Credential{}, fmt.Errorf("create a %s: %w", kind, f.err)
}

func (f *failing) Revoke(_ context.Context, kind identity.Kind, id string) error {
	return fmt.Errorf("revoke %s %q: %w", kind, id, failure.ErrNotFound)
}

func (f *failing) SetPassword(context.Context, identity.UserID, string) error {
	return fmt.Errorf("set a password: %w", f.err)
}

// stop stops a server.
func stop(tb testing.TB, s interface{ Stop(context.Context) error }) {
	tb.Helper()
	if err := s.Stop(context.Background()); err != nil {
		tb.Errorf("Stop: %v", err)
	}
}

// startServer starts a server that the end of the test stops.
func startServer(t *testing.T, path string, identities Identities) *Client {
	t.Helper()
	s, err := Start(Options{Path: path, Identities: identities})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { stop(t, s) })
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	return c
}

// TestCommands goes through what the command line does (cmd/troupe/HOME.md,
// "Commands"). A password travels as it is.
func TestCommands(t *testing.T) {
	identities := openIdentities(t)
	c, ctx := startServer(t, filepath.Join(t.TempDir(), "admin.sock"), identities), t.Context()
	secret, made, err := c.Create(ctx, identity.Token, identity.CreateCredential{User: "john.doe", Expires: 30 * 24 * time.Hour, Note: "für \"CI\""})
	if caller, bad := identities.Authenticate(identity.Token, secret); err != nil || bad != nil || caller.ID != "john.doe" || made.Expires.Sub(made.Created) != 30*24*time.Hour {
		t.Errorf("a token: got %+v, %v, of %+v, %v", made, err, caller, bad)
	}
	if _, _, err := c.Create(ctx, identity.Session, identity.CreateCredential{User: "jane"}); err != nil {
		t.Errorf("a session: %v", err)
	}
	if err := c.Revoke(ctx, identity.Token, made.ID); err != nil {
		t.Errorf("Revoke: %v", err)
	}
	for _, kind := range []identity.Kind{identity.Token, identity.Session} {
		got, err := c.Credentials(ctx, kind)
		if want, _ := identities.Credentials(ctx, kind); err != nil || len(got) != 1 || !reflect.DeepEqual(got, want) {
			t.Errorf("Credentials(%v): got %+v, %v; want %+v", kind, got, err, want)
		}
	}
	for _, password := range []string{"an old oak", `quoted " and \ and <&>`, "Café\u2028 crème 🐎", strings.Repeat("ein Öhr ", 32)} {
		set := c.SetPassword(ctx, "john.doe", password)
		if _, _, err := identities.SignIn(ctx, "john.doe", password, netip.Addr{}); set != nil || err != nil {
			t.Errorf("%q: set %v, signed in %v", password, set, err)
		}
	}
}

// TestListsAreNeverNull holds the shape of the socket.
// TestTheOperatorsRequests go to the handler as they are.
func TestTheOperatorsRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	s, err := Start(Options{Path: path, Identities: &failing{}, Operator: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, body)
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	c := http.Client{Transport: Transport(path)}
	answer, err := c.Post("http://home.invalid/workflow/api/v1/outbox/x?y=z", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || string(text) != "POST /workflow/api/v1/outbox/x?y=z {}" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestListsAreNeverNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	c := startServer(t, path, openIdentities(t))
	if got := raw(t, path, "GET /v1/token HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\n{\"credentials\":[]}\n") {
		t.Errorf("got %q", got)
	}
	if got, err := c.Credentials(t.Context(), identity.Token); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestErrorsKeepTheirCause holds that a command sees the same errors through
// the socket as without a server.
func TestErrorsKeepTheirCause(t *testing.T) {
	f := &failing{Identities: openIdentities(t)}
	c, ctx := startServer(t, filepath.Join(t.TempDir(), "admin.sock"), f), t.Context()
	create := func() error {
		_, _, err := c.Create(ctx, identity.Token, identity.CreateCredential{User: "x"})
		return err
	}
	for _, want := range []error{failure.ErrNotFound, failure.ErrInvalid, failure.ErrBusy, failure.ErrUnavailable, failure.ErrOutcomeUnknown} {
		f.err = want
		if err := create(); !errors.Is(err, want) || err.Error() != "create a token: "+want.Error() {
			t.Errorf("create: got %v, want %v", err, want)
		}
		if err := c.SetPassword(ctx, "jane", "x"); !errors.Is(err, want) || err.Error() != "set a password: "+want.Error() {
			t.Errorf("set a password: got %v, want %v", err, want)
		}
	}
	f.err = errors.New("disk on fire")
	if err := create(); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("an unknown error: got %v, want ErrFailed with its text", err)
	}
	for _, id := range []string{"nothing", "a/b", "a b", "ü", "?", "%2F"} {
		err := c.Revoke(ctx, identity.Session, id)
		if !errors.Is(err, failure.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) {
			t.Errorf("Revoke %q: got %v, want ErrNotFound", id, err)
		}
	}
	if err := c.SetPassword(ctx, "jane", "no UTF-8\xff"); !errors.Is(err, failure.ErrInvalid) {
		t.Errorf("no UTF-8: got %v, want ErrInvalid", err)
	}
	_, _, nobody := c.Create(ctx, identity.Token, identity.CreateCredential{})
	for name, err := range map[string]error{
		"nobody": nobody, "a password of nobody": c.SetPassword(ctx, "", "an old oak"),
		"a long password": c.SetPassword(ctx, "jane", strings.Repeat("x", bodyBytesMax)),
		"no id":           c.Revoke(ctx, identity.Session, ""), "dots": c.Revoke(ctx, identity.Session, ".."), "a dot": c.Revoke(ctx, identity.Session, "."),
	} {
		if !errors.Is(err, ErrUnknownRequest) {
			t.Errorf("%s: got %v, want ErrUnknownRequest", name, err)
		}
	}
}

// TestBrokenRequests holds what the server does with what is not from a Client.
func TestBrokenRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	startServer(t, path, openIdentities(t))
	post := func(body string) string {
		return fmt.Sprintf("POST /v1/token HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for line, text := range map[string]string{
		"no JSON":              post("x"),
		"an unknown member":    post(`{"user":"x","admin":true}`),
		"a wrong duration":     post(`{"user":"x","expires":"soon"}`),
		"too much":             post(`{"user":"` + strings.Repeat("x", bodyBytesMax) + `"}`),
		"another path":         "GET /v2/token HTTP/1.0\r\n\r\n",
		"another method":       "PUT /v1/token HTTP/1.0\r\n\r\n",
		"another kind":         "GET /v1/key HTTP/1.0\r\n\r\n",
		"a password list":      "GET /v1/password HTTP/1.0\r\n\r\n",
		"a password of nobody": "PUT /v1/password HTTP/1.0\r\nContent-Length: 25\r\n\r\n" + `{"password":"an old oak"}`,
	} {
		if got := raw(t, path, text); !strings.HasPrefix(got, "HTTP/1.0 400 ") || !strings.Contains(got, `"error":"Request"`) {
			t.Errorf("%s: got %q, want 400", line, got)
		}
	}
}

// raw sends bytes to the socket and returns the answer.
func raw(t *testing.T, path, text string) string {
	t.Helper()
	c, err := connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c) // a reset comes behind the answer to what was too long
	return string(answer)
}

// TestSocketFile holds cmd/troupe/HOME.md, "The folder": mode 0600; and what
// happens to what stands at its place.
func TestSocketFile(t *testing.T) {
	path, identities := filepath.Join(t.TempDir(), "admin.sock"), openIdentities(t)
	t.Run("nobody listens", func(t *testing.T) {
		if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNoServer) {
			t.Errorf("got %v, want ErrNoServer", err)
		}
	})
	t.Run("a stale file is replaced", func(t *testing.T) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
		if _, err := Dial(t.Context(), path); !errors.Is(err, ErrNoServer) {
			t.Errorf("Dial: got %v, want ErrNoServer", err)
		}
		s, err := Start(Options{Path: path, Identities: identities})
		if err != nil {
			t.Fatalf("Start: %v", err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("got the mode %v, %v; want a socket with 0600", info.Mode(), err)
		}
		if _, err := Start(Options{Path: path, Identities: identities}); !errors.Is(err, ErrInUse) {
			t.Errorf("a second server: got %v, want ErrInUse", err)
		}
		c, err := Dial(t.Context(), path)
		if err != nil {
			t.Fatalf("after the second server: %v", err)
		}
		stop(t, s)
		stop(t, s)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Stop: got %v, want no file", err)
		}
		if _, err := c.Credentials(t.Context(), identity.Token); !errors.Is(err, ErrNoServer) {
			t.Errorf("an old client: got %v, want ErrNoServer", err)
		}
	})
	t.Run("what is no socket stays", func(t *testing.T) {
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Start(Options{Path: path, Identities: identities}); !errors.Is(err, ErrNotSocket) {
			t.Errorf("got %v, want ErrNotSocket", err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
			t.Errorf("the file: got %q, %v", got, err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		_, err := Start(Options{Path: filepath.Join(path, "x", "admin.sock"), Identities: identities})
		if err == nil {
			t.Error("got no error")
		}
	})
}

// TestLongPath holds that a home may lie deeper than sun_path is long.
func TestLongPath(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("this system has no /proc/self/fd")
	}
	identities := openIdentities(t)
	for _, length := range []int{socketPathMax, socketPathMax + 1, 107, 108, 109, 500, 2000} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			root, err := os.MkdirTemp("", "s") //nolint:usetesting // t.TempDir is too long for the shortest case
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(root) })
			dir := root
			for missing := length - len(dir+"/admin.sock"); missing > 0; missing = length - len(dir+"/admin.sock") {
				step := min(missing-1, 200)
				if missing-1-step == 1 { // a rest of one byte would be a slash without a name
					step--
				}
				dir = filepath.Join(dir, strings.Repeat("x", step))
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := dir + "/admin.sock"
			if len(path) != length {
				t.Fatalf("the test made a path of %d bytes", len(path))
			}
			c := startServer(t, path, identities)
			if _, _, err := c.Create(t.Context(), identity.Token, identity.CreateCredential{User: "jane"}); err != nil {
				t.Error(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != fs.ModeSocket|0o600 {
				t.Errorf("got the mode %v, %v", info.Mode(), err)
			}
			if _, err := Start(Options{Path: path, Identities: identities}); !errors.Is(err, ErrInUse) {
				t.Errorf("a second server: got %v, want ErrInUse", err)
			}
		})
	}
}

// TestStopAnswersWhatWasAccepted holds the order of Stop.
func TestStopAnswersWhatWasAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	slow := &slowIdentities{entered: make(chan struct{}), leave: make(chan struct{})}
	s, err := Start(Options{Path: path, Identities: slow})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	revoked := make(chan error, 1)
	go func() { revoked <- c.Revoke(t.Context(), identity.Token, "id") }()
	<-slow.entered
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, s)
	}()
	select {
	case <-stopped:
		t.Error("Stop returned before the answer")
	case <-fileGone(path):
	}
	close(slow.leave)
	if err := <-revoked; err != nil {
		t.Errorf("Revoke: %v", err)
	}
	<-stopped
}

type slowIdentities struct {
	*identity.Service
	entered, leave chan struct{}
}

func (s *slowIdentities) Revoke(context.Context, identity.Kind, string) error {
	s.entered <- struct{}{}
	<-s.leave
	return nil
}

// fileGone is closed when there is no such file any more.
func fileGone(path string) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				return
			}
		}
	}()
	return gone
}

// TestErrorsTravel holds that each cause is read from the label that it is sent with.
func TestErrorsTravel(t *testing.T) {
	for _, f := range errorMappings {
		if http.StatusText(f.status) == "" || !errors.Is(causeOf(f.label), f.cause) {
			t.Errorf("the row %q is not good", f.label)
		}
	}
}
