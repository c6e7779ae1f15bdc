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
	conn, err := u.dial()
	if err != nil {
		t.Fatal(err)
	}
	request := ask{method: http.MethodGet, path: u.base + root + "/watch/" + path, headers: append(headers, u.credential...)}
	if _, err := conn.Write(request.text(conn.RemoteAddr().String())); err != nil {
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
	if want := (http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"},
		"Vary": {"Cookie, Authorization, Authentication"},
	}); res.StatusCode != 200 || !reflect.DeepEqual(res.Header, want) {
		t.Fatalf("watch %s: got %d %v, want 200 %v", path, res.StatusCode, res.Header, want)
	}
	l := &listener{conn: conn, body: bufio.NewReader(res.Body)}
	if lines, err := l.block(); err != nil || len(lines) != 2 || lines[0] != "retry: 2000" || l.id == "" {
		t.Fatalf("watch %s begins with %q (%v), want retry and id", path, lines, err)
	}
	return l
}

// block reads the lines up to an empty one; heartbeats are passed over.
func (l *listener) block() (lines []string, err error) {
	if err := l.conn.SetDeadline(time.Now().Add(answerMax)); err != nil {
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
	m := objectOf(t, strings.TrimPrefix(lines[2], "data: "), "workflowId", "instanceId", "sequence", "entry", "states")
	e := entryOf(t, string(m["entry"]))
	if decode[string](t, m["workflowId"]) != r.WorkflowID || decode[string](t, m["instanceId"]) != r.ID || decode[int](t, m["sequence"]) != n || !reflect.DeepEqual(e, r.History[n-1]) {
		t.Errorf("got %s, want number %d of %s", lines[2], n, r.text)
	}
	states := positionsOf(t, m["states"])
	if !slices.Equal(nodes(states), e.EndState) || n == len(r.History) && !slices.Equal(states, r.States) {
		t.Errorf("states: got %v with the entry %+v, want where it led to", states, e)
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

// wantEnd demands an orderly end of the stream, and nothing before.
func (l *listener) wantEnd(t testing.TB) {
	t.Helper()
	if lines, err := l.block(); !errors.Is(err, io.EOF) || len(lines) > 0 {
		t.Errorf("got %q and %v, want the end of the stream", lines, err)
	}
}
