package admin

import (
	"context"
	"encoding/json"
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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func stop(tb testing.TB, s interface{ Stop(context.Context) error }) {
	tb.Helper()
	assert.NoError(tb, s.Stop(context.Background()), "Stop")
}

func startServer(t *testing.T, path string, identities Identities) *Client {
	t.Helper()
	s, err := Start(Options{Path: path, Identities: identities})
	require.NoError(t, err, "Start")
	t.Cleanup(func() { stop(t, s) })
	c, err := Dial(t.Context(), path)
	require.NoError(t, err, "Dial")
	return c
}

// TestCommands goes through what the command line does (cmd/troupe/HOME.md,
// "Commands"). A password travels as it is.
func TestCommands(t *testing.T) {
	identities := openIdentities(t)
	c, ctx := startServer(t, filepath.Join(t.TempDir(), "admin.sock"), identities), t.Context()
	secret, made, err := c.Create(ctx, identity.Token, identity.CreateCredential{User: "john.doe", Expires: 30 * 24 * time.Hour, Note: "für \"CI\""})
	caller, bad := identities.Authenticate(identity.Token, secret)
	assert.True(t, err == nil && bad == nil && caller.ID == "john.doe" && made.Expires.Sub(made.Created) == 30*24*time.Hour, "%v %v %v %v", made, err, caller, bad)
	_, _, err = c.Create(ctx, identity.Session, identity.CreateCredential{User: "jane"})
	assert.NoError(t, err, "a session")
	assert.NoError(t, c.Revoke(ctx, identity.Token, made.ID), "Revoke")
	for _, kind := range []identity.Kind{identity.Token, identity.Session} {
		got, err := c.Credentials(ctx, kind)
		want, _ := identities.Credentials(ctx, kind)
		assert.True(t, err == nil && len(got) == 1 && reflect.DeepEqual(got, want), "Credentials(%v): got %+v, %v; want %+v", kind, got, err, want)
	}
	for _, password := range []string{"an old oak", `quoted " and \ and <&>`, "Café\u2028 crème 🐎", strings.Repeat("ein Öhr ", 32)} {
		set := c.SetPassword(ctx, "john.doe", password)
		_, _, err := identities.SignIn(ctx, "john.doe", password, netip.Addr{})
		assert.True(t, set == nil && err == nil, "%q: set %v, signed in %v", password, set, err)
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
	require.NoError(t, err)
	defer stop(t, s)
	c := http.Client{Transport: Transport(path)}
	answer, err := c.Post("http://home.invalid/workflow/api/v1/outbox/x?y=z", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	assert.True(t, err == nil && string(text) == "POST /workflow/api/v1/outbox/x?y=z {}", "got %q, %v", text, err)
}

func TestListsAreNeverNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	c := startServer(t, path, openIdentities(t))
	got := raw(t, path, "GET /v1/token HTTP/1.0\r\n\r\n")
	assert.True(t, strings.HasSuffix(got, "\r\n\r\n{\"credentials\":[]}\n"), "got %q", got)
	credentials, err := c.Credentials(t.Context(), identity.Token)
	assert.True(t, err == nil && len(credentials) == 0, "got %v, %v", credentials, err)
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
		err := create()
		assert.True(t, errors.Is(err, want) && err.Error() == "create a token: "+want.Error(), "create: got %v, want %v", err, want)
		err = c.SetPassword(ctx, "jane", "x")
		assert.True(t, errors.Is(err, want) && err.Error() == "set a password: "+want.Error(), "set a password: got %v, want %v", err, want)
	}
	f.err = errors.New("disk on fire")
	err := create()
	assert.True(t, errors.Is(err, ErrFailed) && strings.Contains(err.Error(), "disk on fire"), "an unknown error: got %v, want ErrFailed with its text", err)
	for _, id := range []string{"nothing", "a/b", "a b", "ü", "?", "%2F"} {
		err := c.Revoke(ctx, identity.Session, id)
		assert.True(t, errors.Is(err, failure.ErrNotFound) && strings.Contains(err.Error(), fmt.Sprintf("%q", id)), "Revoke %q: got %v, want ErrNotFound", id, err)
	}
	assert.ErrorIs(t, c.SetPassword(ctx, "jane", "no UTF-8\xff"), failure.ErrInvalid, "no UTF-8")
	_, _, nobody := c.Create(ctx, identity.Token, identity.CreateCredential{})
	for name, err := range map[string]error{
		"nobody": nobody, "a password of nobody": c.SetPassword(ctx, "", "an old oak"),
		"a long password": c.SetPassword(ctx, "jane", strings.Repeat("x", bodyBytesMax)),
		"no id":           c.Revoke(ctx, identity.Session, ""), "dots": c.Revoke(ctx, identity.Session, ".."), "a dot": c.Revoke(ctx, identity.Session, "."),
	} {
		assert.ErrorIs(t, err, ErrUnknownRequest, name)
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
		got := raw(t, path, text)
		assert.True(t, strings.HasPrefix(got, "HTTP/1.0 400 ") && strings.Contains(got, `"error":"Request"`), "%s: got %q, want 400", line, got)
	}
}

func raw(t *testing.T, path, text string) string {
	t.Helper()
	c, err := connect(t.Context(), path)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	answer, _ := io.ReadAll(c) // a reset comes behind the answer to what was too long
	return string(answer)
}

// TestSocketFile holds cmd/troupe/HOME.md, "The folder": mode 0600; and what
// happens to what stands at its place.
func TestSocketFile(t *testing.T) {
	path, identities := filepath.Join(t.TempDir(), "admin.sock"), openIdentities(t)
	t.Run("nobody listens", func(t *testing.T) {
		_, err := Dial(t.Context(), path)
		assert.ErrorIs(t, err, ErrNoServer)
	})
	t.Run("a stale file is replaced", func(t *testing.T) {
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
		_, err = Dial(t.Context(), path)
		assert.ErrorIs(t, err, ErrNoServer, "Dial")
		s, err := Start(Options{Path: path, Identities: identities})
		require.NoError(t, err, "Start")
		info, err := os.Stat(path)
		assert.False(t, err != nil || info.Mode() != fs.ModeSocket|0o600, "got the mode %v, %v; want a socket with 0600", info.Mode(), err)
		_, err = Start(Options{Path: path, Identities: identities})
		assert.ErrorIs(t, err, ErrInUse, "a second server")
		c, err := Dial(t.Context(), path)
		require.NoError(t, err, "after the second server")
		stop(t, s)
		stop(t, s)
		_, err = os.Lstat(path)
		assert.ErrorIs(t, err, fs.ErrNotExist, "after Stop")
		_, err = c.Credentials(t.Context(), identity.Token)
		assert.ErrorIs(t, err, ErrNoServer, "an old client")
	})
	t.Run("what is no socket stays", func(t *testing.T) {
		require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
		_, err := Start(Options{Path: path, Identities: identities})
		assert.ErrorIs(t, err, ErrNotSocket)
		got, err := os.ReadFile(path)
		assert.True(t, err == nil && string(got) == "mine", "the file: got %q, %v", got, err)
	})
	t.Run("no folder", func(t *testing.T) {
		_, err := Start(Options{Path: filepath.Join(path, "x", "admin.sock"), Identities: identities})
		assert.Error(t, err, "got no error")
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
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(root) })
			dir := root
			for missing := length - len(dir+"/admin.sock"); missing > 0; missing = length - len(dir+"/admin.sock") {
				step := min(missing-1, 200)
				if missing-1-step == 1 { // a rest of one byte would be a slash without a name
					step--
				}
				dir = filepath.Join(dir, strings.Repeat("x", step))
			}
			require.NoError(t, os.MkdirAll(dir, 0o700))
			path := dir + "/admin.sock"
			require.Len(t, path, length, "the test made a path")
			c := startServer(t, path, identities)
			_, _, err = c.Create(t.Context(), identity.Token, identity.CreateCredential{User: "jane"})
			assert.NoError(t, err)
			info, err := os.Stat(path)
			assert.False(t, err != nil || info.Mode() != fs.ModeSocket|0o600, "got the mode %v, %v", info.Mode(), err)
			_, err = Start(Options{Path: path, Identities: identities})
			assert.ErrorIs(t, err, ErrInUse, "a second server")
		})
	}
}

// TestStopAnswersWhatWasAccepted holds the order of Stop.
func TestStopAnswersWhatWasAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	slow := &slowIdentities{entered: make(chan struct{}), leave: make(chan struct{})}
	s, err := Start(Options{Path: path, Identities: slow})
	require.NoError(t, err)
	c, err := Dial(t.Context(), path)
	require.NoError(t, err)
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
	assert.NoError(t, <-revoked, "Revoke")
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
		assert.True(t, http.StatusText(f.status) != "" && errors.Is(causeOf(f.label), f.cause), "the row %q is not good", f.label)
	}
}

func TestOperations(t *testing.T) {
	counted := 0
	o, err := StartOperations(OperationsOptions{
		Addr: "127.0.0.1:0",
		Sources: []MetricsSource{{Name: "part", Metrics: func() any {
			counted++
			return struct{ Calls int }{counted}
		}}},
		Log: zerolog.Nop(),
	})
	require.NoError(t, err)
	defer stop(t, o)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path, host string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.Addr().String()+path, http.NoBody)
		require.NoError(t, err)
		req.Host = host
		a, err := client.Do(req)
		require.NoError(t, err)
		defer func() { _ = a.Body.Close() }()
		body, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(body)
	}
	for want := 1; want <= 2; want++ { // each request reads the counters anew
		status, body := ask("GET", "/metrics", "")
		var got map[string]struct{ Calls int }
		assert.True(t, json.Unmarshal([]byte(body), &got) == nil && status == 200 && got["part"].Calls == want, "%v %v %v", status, body, want)
	}
	for _, row := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/debug/pprof/", "localhost", 200},
		{"GET", "/debug/pprof/goroutine?debug=1", "", 200},
		{"GET", "/debug/pprof/heap", "", 200},
		{"GET", "/debug/pprof/symbol", "", 200},
		{"POST", "/metrics", "", 405},
		{"GET", "/", "", 404},
		{"GET", "/metrics", "attacker.example", 421},
		{"GET", "/debug/pprof/", "attacker.example", 421},
	} {
		status, body := ask(row.method, row.path, row.host)
		assert.Equal(t, row.status, status, "%s %s of %q, %.80s", row.method, row.path, row.host, body)
	}
	_, err = StartOperations(OperationsOptions{Addr: o.Addr().String(), Log: zerolog.Nop()})
	assert.Error(t, err, "a second listener on the same address: got no error")
	stop(t, o) // twice does no harm
}

// TestServesHost holds gateway/DESIGN.md, "The operations listener": a page in the
// operator's browser whose name was made to resolve to loopback (DNS rebinding) is not
// answered.
func TestServesHost(t *testing.T) {
	for _, c := range []struct {
		configured, local string
		hosts, foreign    []string
	}{
		{
			"127.0.0.1:8081", "127.0.0.1:8081",
			[]string{"127.0.0.1:8081", "127.0.0.1", "127.0.0.1:9000", "127.1.2.3:8081", "[::1]:8081", "[::1]", "localhost:8081", "LocalHost"},
			[]string{
				"attacker.example", "attacker.example:8081", "localhost.attacker.example", "127.0.0.1.attacker.example", "192.0.2.1:8081", "[::1", "::1",
			},
		},
		{"0.0.0.0:8081", "192.0.2.7:8081", []string{"metrics.example:8081"}, nil}, // not on loopback
		{"0.0.0.0:8081", "127.0.0.1:8081", []string{"0.0.0.0:8081"}, []string{"attacker.example:8081"}},
		{":8081", "[::1]:8081", nil, []string{"attacker.example", ""}},
		{"workstation:8081", "127.0.1.1:8081", []string{"Workstation:8081"}, nil},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		require.NoError(t, err)
		for _, host := range append(c.hosts, c.foreign...) {
			assert.Equal(t, slices.Contains(c.hosts, host), servesHost(c.configured, local, host), "%s at %s, Host %q", c.configured, c.local, host)
		}
	}
}

// elsewhere are the identities of a node that has not come to lead yet.
type elsewhere struct {
	identity.Identities
	led bool
}

func (e *elsewhere) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error) {
	if !e.led {
		return "", identity.Credential{}, failure.Elsewhere(0)
	}
	return e.Identities.Create(ctx, kind, c)
}

// TestALeaderThatIsGone: nothing was sent to it, so the command waits for the next one.
func TestALeaderThatIsGone(t *testing.T) {
	path, identities := filepath.Join(t.TempDir(), "admin.sock"), &elsewhere{Identities: openIdentities(t)}
	tries := 0
	s, err := Start(Options{Path: path, Identities: identities, Leader: func(*http.Request) (*http.Response, error) {
		tries++
		if tries == 1 {
			return nil, failure.Elsewhere(0)
		}
		identities.led = true
		return nil, nil
	}})
	require.NoError(t, err)
	defer stop(t, s)
	c, err := Dial(t.Context(), path)
	require.NoError(t, err)
	secret, _, err := c.Create(t.Context(), identity.Token, identity.CreateCredential{User: "john.doe"})
	assert.True(t, err == nil && secret != "" && tries == 2, "got %v after %d tries, want a token after two", err, tries)
}
