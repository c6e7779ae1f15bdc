package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/gateway"
	"troupe/gateway/wiretest"
)

// listener is an open stream of events, read as a browser reads it. One goroutine
// uses it.
type listener struct {
	conn *net.TCPConn
	body *bufio.Reader
	id   string // of the last event that had one
}

// listen opens the stream of a path below watch, and demands its beginning.
func (u user) listen(t testing.TB, path string, headers ...string) *listener {
	t.Helper()
	status, header, l := u.openStream(t, "/watch/"+path, headers...)
	want := (http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"},
		"Vary": {"Cookie, Authorization, Authentication"},
	})
	require.True(t, status == 200 && reflect.DeepEqual(header, want), "watch %s: got %d %v, want 200 %v", path, status, header, want)
	lines, err := l.block()
	require.True(t, err == nil && len(lines) == 2 && lines[0] == "retry: 2000" && l.id != "", "watch %s begins with %q (%v), want retry and id", path, lines, err)
	return l
}

// listenToTasks opens the stream of tasks.
func (u user) listenToTasks(t testing.TB) *listener {
	t.Helper()
	status, _, l := u.openStream(t, "/tasks/watch")
	lines, err := l.block()
	require.True(t, status == 200 && err == nil && len(lines) == 2 && lines[1] == ": open", "tasks: got %d, and it begins with %q (%v)", status, lines, err)
	return l
}

// openStream asks for a stream.
func (u user) openStream(t testing.TB, path string, headers ...string) (status int, header http.Header, l *listener) {
	t.Helper()
	conn, err := u.Dial()
	require.NoError(t, err)
	request := request{Method: http.MethodGet, Path: u.Base + wiretest.Root + path, Headers: append(headers, u.Credential...)}
	_, err = conn.Write(request.Text(conn.RemoteAddr().String()))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, "watch %s", path)
	t.Cleanup(func() {
		_ = conn.Close() // first: closing the body would read on
		_ = res.Body.Close()
	})
	res.Header.Del("Date")
	return res.StatusCode, res.Header, &listener{conn: conn, body: bufio.NewReader(res.Body)}
}

// block reads the lines up to an empty one; heartbeats are ignored.
func (l *listener) block() (lines []string, err error) {
	if err := l.conn.SetDeadline(time.Now().Add(wiretest.AnswerMax)); err != nil {
		return nil, err
	}
	for {
		line, err := l.body.ReadString('\n')
		switch line = strings.TrimSuffix(line, "\n"); {
		case err != nil:
			return lines, err
		case line == "" && !slices.Equal(lines, []string{": beat"}):
			return lines, nil
		case line == "":
			lines = nil
		default:
			lines = append(lines, line)
			if id, is := strings.CutPrefix(line, "id: "); is {
				l.id = id
			}
		}
	}
}

// listening opens streams and hears what comes.
func (s *transcript) listening(t *testing.T, cmd *datadriven.TestData) string {
	if cmd.Cmd == "listen" {
		name, lines := cmd.CmdArgs[0].Key, strings.Split(s.expand(t, cmd.Input), "\n")
		u := s.user(s.credential(t, cmd.CmdArgs[1].Key, cmd.HasArg("desk"))...)
		l := u.listen(t, lines[0], lines[1:]...)
		s.listeners[name], s.values[name] = l, l.id
		if arg, ok := cmd.Arg("show"); ok {
			s.shows[name] = arg.Vals
		}
		return "ok\n"
	}
	var heard strings.Builder
	for _, arg := range cmd.CmdArgs {
		l := s.listeners[arg.Key]
		lines, err := l.block()
		heard.WriteString(arg.Key + ":")
		if errors.Is(err, io.EOF) {
			heard.WriteString(" the end\n")
			continue
		}
		require.NoError(t, err)
		for _, line := range lines {
			switch field, value, _ := strings.Cut(line, ": "); {
			case field == "id":
			case field == "data" && s.shows[arg.Key] != nil:
				for _, where := range s.shows[arg.Key] {
					if where == "id" {
						heard.WriteString(" " + s.named(strconv.Quote(l.id)))
						continue
					}
					heard.WriteString(" " + s.masked(pick(value, where)))
				}
			default:
				heard.WriteString(" " + s.masked(value))
			}
		}
		s.values[arg.Key] = l.id
		heard.WriteByte('\n')
	}
	return heard.String()
}

// TestInterfaceWatchEndsWithCredential holds gateway/INTERFACE.md, "Rights of a watcher": a stream ends by itself, while nothing happens that it could tell.
func TestInterfaceWatchEndsWithCredential(t *testing.T) {
	s := newScene(t)
	r := s.adm.Create(t, "plain", "").Record(t)
	var open []*listener
	listen := func() {
		t.Helper()
		open = []*listener{s.ann.listen(t, "plain/"+r.ID), s.ann.listen(t, "plain"), s.ann.listenToTasks(t)}
	}
	over := func(what string) {
		t.Helper()
		for n, l := range open {
			lines, err := l.block()
			if *nodes == 1 && (err != nil || len(lines) < 2 || lines[0] != "event: lost") { // NB: elsewhere the node between may be the first to know
				t.Errorf("%s, stream %d: got %q and %v, want to read again", what, n, lines, err)
			}
			for err == nil {
				_, err = l.block()
			}
			assert.ErrorIs(t, err, io.EOF, "%s, stream %d", what, n)
		}
	}
	change := func(from, to string) {
		t.Helper()
		s.Write("identity.yaml", strings.Replace(wiretest.People, from, to, 1))
	}
	for _, ann := range []string{"roles: [clerk], privileges: [mod-workflows]", "roles: [clerk, approver]", "roles: []"} {
		listen()
		change("name: Ann, roles: [clerk]", "name: Ann, "+ann)
		over(ann)
	}
	change("", "")
	listen()
	change("name: Bob", "name: Bobby") // whom the pages of others name
	over("a name")
	listen()
	change("name: Ann,", "name: Ann, disabled: true,")
	over("disabled")
	s.ann.Get(t, wiretest.Root+"/watch/plain/"+r.ID).WantFault(t, 401, "Unauthorized")
	change("", "")
	listen()
	id, _, _ := strings.Cut(strings.TrimPrefix(s.ann.Credential[0], "Authorization: svc.token "), ".")
	s.ChangeIdentities(func(i identity.Identities) error { return i.Revoke(t.Context(), identity.Token, id) })
	over("revoked")
	s.ann.Get(t, wiretest.Root+"/watch/plain/"+r.ID).WantFault(t, 401, "Unauthorized")
	assert.Zero(t, s.metrics(func(m gateway.Metrics) uint64 { return m.Cut }), "metrics")
}

// TestInterfaceChangesAwaited holds gateway/INTERFACE.md, "The feed of changes": an empty page comes when the wait is over, or there is
// something.
func TestInterfaceChangesAwaited(t *testing.T) {
	s := newScene(t)
	type page struct {
		Changes []struct{ InstanceID string }
		Next    string
	}
	ask := func(parameters string) page {
		return wiretest.Decode[page](t, s.bob.Get(t, wiretest.Root+"/changes?workflowId=codes&"+parameters).Body)
	}
	got := ask("wait=1&since=" + ask("").Next)
	assert.Empty(t, got.Changes)
	done := make(chan page, 1)
	go func() { done <- ask("wait=30&since=" + got.Next) }()
	r := s.ann.Create(t, "codes", "").Record(t)
	assert.Equal(t, []struct{ InstanceID string }{{r.ID}}, (<-done).Changes)
}
