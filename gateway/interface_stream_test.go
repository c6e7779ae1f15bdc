package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

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
		s.values[arg.Key] = l.id
		for _, line := range lines {
			switch field, value, _ := strings.Cut(line, ": "); {
			case field == "id":
			case field == "data" && s.shows[arg.Key] != nil:
				for _, where := range s.shows[arg.Key] {
					heard.WriteString(" " + s.masked(pick(value, where)))
				}
			default:
				heard.WriteString(" " + s.masked(value))
			}
		}
		heard.WriteByte('\n')
	}
	return heard.String()
}

// wantEntry demands the next event to be the newest entry of a record.
func (l *listener) wantEntry(t testing.TB, r record) {
	t.Helper()
	l.wantEntryAt(t, r, len(r.History))
}

// wantEntryAt demands the next event to be the nth entry of a record.
func (l *listener) wantEntryAt(t testing.TB, r record, n int) {
	t.Helper()
	lines, err := l.block()
	require.True(t, err == nil && len(lines) == 3 && lines[0] == "id: "+l.id && lines[1] == "event: entry", "got %q and %v, want an entry", lines, err)
	got := wiretest.Decode[struct {
		WorkflowID, InstanceID string
		Sequence               int
		Entry                  wiretest.Entry
		States                 []position
	}](t, strings.TrimPrefix(lines[2], "data: "))
	shown := record{States: got.States}
	if got.WorkflowID != r.WorkflowID || got.InstanceID != r.ID || got.Sequence != n || !reflect.DeepEqual(got.Entry, r.History[n-1]) {
		t.Errorf("got %s, want number %d of %s", lines[2], n, r.Text)
	}
	if !slices.Equal(shown.Nodes(), got.Entry.EndState) || n == len(r.History) && !slices.Equal(got.States, r.States) {
		t.Errorf("got %s, want where the entry led to", lines[2])
	}
}

// wantLost demands the next event to say that entries are missing.
func (l *listener) wantLost(t testing.TB) {
	t.Helper()
	lines, err := l.block()
	require.True(t, err == nil && len(lines) == 3 && lines[0] == "event: lost" && strings.HasPrefix(lines[1], `data: {"message":"`), "%v %v", lines, err)
}
