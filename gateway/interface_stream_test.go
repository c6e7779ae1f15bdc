package gateway_test

import (
	"bufio"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	if want := (http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"},
		"Vary": {"Cookie, Authorization, Authentication"},
	}); status != 200 || !reflect.DeepEqual(header, want) {
		t.Fatalf("watch %s: got %d %v, want 200 %v", path, status, header, want)
	}
	if lines, err := l.block(); err != nil || len(lines) != 2 || lines[0] != "retry: 2000" || l.id == "" {
		t.Fatalf("watch %s begins with %q (%v), want retry and id", path, lines, err)
	}
	return l
}

// listenToTasks opens the stream of tasks.
func (u user) listenToTasks(t testing.TB) *listener {
	t.Helper()
	status, _, l := u.openStream(t, "/tasks/watch")
	if lines, err := l.block(); status != 200 || err != nil || len(lines) != 2 || lines[1] != ": open" {
		t.Fatalf("tasks: got %d, and it begins with %q (%v)", status, lines, err)
	}
	return l
}

// openStream asks for a stream.
func (u user) openStream(t testing.TB, path string, headers ...string) (status int, header http.Header, l *listener) {
	t.Helper()
	conn, err := u.Dial()
	if err != nil {
		t.Fatal(err)
	}
	request := request{Method: http.MethodGet, Path: u.Base + wiretest.Root + path, Headers: append(headers, u.Credential...)}
	if _, err := conn.Write(request.Text(conn.RemoteAddr().String())); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("watch %s: %v", path, err)
	}
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

// wantEntry demands the next event to be the newest entry of a record.
func (l *listener) wantEntry(t testing.TB, r record) {
	t.Helper()
	l.wantEntryAt(t, r, len(r.History))
}

// wantEntryAt demands the next event to be the nth entry of a record.
func (l *listener) wantEntryAt(t testing.TB, r record, n int) {
	t.Helper()
	lines, err := l.block()
	if err != nil || len(lines) != 3 || lines[0] != "id: "+l.id || lines[1] != "event: entry" {
		t.Fatalf("got %q and %v, want an entry", lines, err)
	}
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
	if err != nil || len(lines) != 3 || lines[0] != "event: lost" || !strings.HasPrefix(lines[1], `data: {"message":"`) {
		t.Fatalf("got %q and %v, want lost", lines, err)
	}
}
