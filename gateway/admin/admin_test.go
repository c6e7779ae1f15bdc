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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
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

// failing is a service that refuses all that would change it while it has an error.
type failing struct {
	identity.Identities
	err error
}

func (f *failing) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error) {
	if f.err != nil {
		return "", identity.Credential{}, fmt.Errorf("create a %s: %w", kind, f.err)
	}
	return f.Identities.Create(ctx, kind, c)
}

func (f *failing) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	if f.err != nil {
		return fmt.Errorf("set a password: %w", f.err)
	}
	return f.Identities.SetPassword(ctx, user, password)
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

// TestSocket plays testdata/socket.txt: what the command line does (cmd/troupe/HOME.md, "Commands"), and what the server makes of others.
//
//	refuse        the service refuses changes: the kind of failure, or a text, or nothing
//	create KIND   credentials for USER DURATION NOTE: whom they let in, how long, and their notes
//	list KIND     the credentials: those of the service itself, and whose they are
//	revoke KIND   ids in Go's quotes, or the last one that was made
//	password USER passwords in Go's quotes, and whether they are good for a sign-in as john.doe
//	raw           METHOD PATH BODY, by nobody's client
//	host CONFIGURED LOCAL   whether a listener for operations answers requests for these hosts
//	operations    METHOD PATH HOST, sent to such a listener: the status, and the body if it is short
//
// {long} is as long as a body may be.
func TestSocket(t *testing.T) {
	f, path := &failing{Identities: openIdentities(t)}, filepath.Join(t.TempDir(), "admin.sock")
	server, err := Start(Options{Path: path, Identities: f, Operator: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "the operator: %s %s %s", r.Method, r.URL, body)
	})})
	require.NoError(t, err)
	defer stop(t, server)
	client, err := Dial(t.Context(), path)
	require.NoError(t, err)
	s := &socket{Client: client, service: f}
	datadriven.RunTest(t, "testdata/socket.txt", s.play)
}

type socket struct {
	*Client
	service *failing
	last    string // id of a credential
}

func (s *socket) play(t *testing.T, d *datadriven.TestData) (out string) {
	kind := identity.Token
	if d.HasArg("session") {
		kind = identity.Session
	}
	switch d.Cmd {
	case "refuse":
		kinds := slices.DeleteFunc(slices.Clone(causes), func(k error) bool { return k.Error() != d.Input })
		s.service.err = map[bool]error{false: errors.New(d.Input)}[d.Input == "nothing"]
		if len(kinds) > 0 {
			s.service.err = kinds[0]
		}
		return ""
	case "list":
		got, err := s.Credentials(t.Context(), kind)
		want, _ := s.service.Credentials(t.Context(), kind)
		assert.ElementsMatch(t, want, got)
		for _, c := range got {
			out += fmt.Sprintf("%s, revoked %t\n", c.User, !c.Revoked.IsZero())
		}
		return out + told(err)
	case "operations":
		return operations(t, strings.Split(d.Input, "\n"))
	}
	for line := range strings.SplitSeq(d.Input, "\n") {
		out += line + " => " + s.ask(t, d, kind, strings.Replace(line, "{long}", strings.Repeat("x", bodyBytesMax), 1))
	}
	return out
}

func (s *socket) ask(t *testing.T, d *datadriven.TestData, kind identity.Kind, line string) string {
	ctx, fields := t.Context(), strings.SplitN(line, " ", 3)
	switch d.Cmd {
	case "create":
		expires, err := time.ParseDuration(fields[1])
		require.NoError(t, err)
		secret, made, err := s.Create(ctx, kind, identity.CreateCredential{User: identity.UserID(strings.Trim(fields[0], "-")), Expires: expires, Note: fields[2]})
		if err != nil {
			return told(err)
		}
		caller, err := s.service.Authenticate(kind, secret)
		require.NoError(t, err)
		s.last = made.ID
		return fmt.Sprintf("%s for %v, %s\n", caller.ID, made.Expires.Sub(made.Created), made.Note)
	case "revoke":
		id, err := strconv.Unquote(line)
		if line == "the last one" {
			id, err = s.last, nil
		}
		require.NoError(t, err)
		return told(s.Revoke(ctx, kind, id))
	case "password":
		password, err := strconv.Unquote(line)
		require.NoError(t, err)
		set := s.SetPassword(ctx, identity.UserID(strings.Trim(d.CmdArgs[0].Key, "-")), password)
		_, _, err = s.service.SignIn(ctx, "john.doe", password, netip.Addr{})
		return fmt.Sprintf("good %t, %s", err == nil, told(set))
	case "raw":
		body := strings.Join(fields[2:], "")
		answer := raw(t, s.path, fmt.Sprintf("%s %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", fields[0], fields[1], len(body), body))
		head, text, _ := strings.Cut(answer, "\r\n\r\n")
		status, _, _ := strings.Cut(head, "\r\n")
		return status + " " + strings.TrimSpace(text) + "\n"
	}
	local, err := net.ResolveTCPAddr("tcp", d.CmdArgs[1].Key)
	require.NoError(t, err)
	return fmt.Sprintln(servesHost(d.CmdArgs[0].Key, local, line))
}

// causes are what an error can wrap.
var causes = []error{
	failure.ErrNotFound, failure.ErrInvalid, failure.ErrBusy, failure.ErrUnavailable, failure.ErrOutcomeUnknown, ErrFailed, ErrUnknownRequest,
}

// told is an error with what it wraps.
func told(err error) string {
	if err == nil {
		return "done\n"
	}
	text := err.Error()
	for _, cause := range causes {
		if errors.Is(err, cause) {
			text += fmt.Sprintf(" (%v)", cause)
		}
	}
	return text + "\n"
}

func operations(t *testing.T, lines []string) (out string) {
	counted := 0
	o, err := StartOperations(OperationsOptions{Addr: "127.0.0.1:0", Log: zerolog.Nop(), Profiles: true, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		counted++
		_, _ = fmt.Fprintf(w, "calls %d", counted)
	})})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, line := range lines {
		fields := append(strings.Fields(line), "")
		req, err := http.NewRequestWithContext(t.Context(), fields[0], "http://"+o.Addr().String()+fields[1], http.NoBody)
		require.NoError(t, err)
		req.Host = fields[2]
		a, err := client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(a.Body)
		require.NoError(t, errors.Join(err, a.Body.Close()))
		if len(body) > 200 {
			body = []byte("a long body")
		}
		out += fmt.Sprintf("%s => %d %s\n", line, a.StatusCode, strings.Join(strings.Fields(string(body)), " "))
	}
	_, err = StartOperations(OperationsOptions{Addr: o.Addr().String(), Log: zerolog.Nop(), Metrics: http.NotFoundHandler()})
	assert.Error(t, err, "a second listener on the same address: got no error")
	stop(t, o)
	stop(t, o) // twice does no harm
	return out
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
