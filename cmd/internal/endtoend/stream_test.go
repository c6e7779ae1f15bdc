package endtoend

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// listener is an open stream of events, read as a browser reads it. One
// goroutine of the test uses it.
type listener struct {
	conn   *net.TCPConn
	header http.Header
	body   *bufio.Reader
	place  string // of the last event that had one
}

// heard is one event of a stream.
type heard struct{ name, id, data string }

// told is what an event "entry" says.
type told struct {
	workflow, instance string
	sequence           int
	entry              entry
	states             []position
	place              string
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
	if res.StatusCode != 200 {
		body, _ := io.ReadAll(res.Body) // for the message
		t.Fatalf("watch %s: got %d %s, want 200", path, res.StatusCode, clip(string(body)))
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff",
		"Vary": "Cookie, Authorization, Authentication",
	} {
		if got := res.Header.Values(name); !slices.Equal(got, []string{want}) {
			t.Errorf("watch %s: header %s: got %q, want %q", path, name, got, want)
		}
	}
	l := &listener{conn: conn, header: res.Header, body: bufio.NewReader(res.Body)}
	block, err := l.block()
	if err != nil || len(block) != 2 || block[0] != "retry: 2000" || !strings.HasPrefix(block[1], "id: ") || block[1] == "id: " {
		t.Fatalf("watch %s begins with %q (%v), want retry and id", path, block, err)
	}
	l.place = strings.TrimPrefix(block[1], "id: ")
	return l
}

// block reads the lines up to an empty one.
func (l *listener) block() ([]string, error) {
	if err := l.conn.SetDeadline(time.Now().Add(answerMax)); err != nil {
		return nil, err
	}
	var lines []string
	for {
		line, err := l.body.ReadString('\n')
		if err != nil {
			return lines, err
		}
		if line == "\n" {
			return lines, nil
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

// next reads the next event; beats are passed over.
func (l *listener) next(t testing.TB) heard {
	t.Helper()
	for {
		lines, err := l.block()
		if err != nil {
			t.Fatalf("read the next event: %v behind %q", err, lines)
		}
		if len(lines) == 1 && strings.HasPrefix(lines[0], ":") {
			continue
		}
		var h heard
		for _, line := range lines {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "event":
				h.name = value
			case "id":
				h.id, l.place = value, value
			case "data":
				h.data += value
			default:
				t.Errorf("a line that nobody knows: %q", line)
			}
		}
		if h.id == "" {
			t.Errorf("an event without a place: %q", lines)
		}
		return h
	}
}

// entry reads the next event, which must be an entry.
func (l *listener) entry(t testing.TB) told {
	t.Helper()
	h := l.next(t)
	if h.name != "entry" {
		t.Fatalf("got the event %+v, want an entry", h)
	}
	m := objectOf(t, h.data, "workflowId", "instanceId", "sequence", "entry", "states")
	out := told{
		workflow: decode[string](t, m["workflowId"]), instance: decode[string](t, m["instanceId"]), sequence: decode[int](t, m["sequence"]),
		entry: entryOf(t, string(m["entry"])), place: h.id,
	}
	for _, text := range decodeList(t, string(m["states"])) {
		p := objectOf(t, text, "stateMachineId", "nodeId")
		out.states = append(out.states, position{decode[string](t, p["stateMachineId"]), decode[string](t, p["nodeId"])})
	}
	return out
}

// wantEntry demands the next entry to be the newest of a record.
func (l *listener) wantEntry(t testing.TB, r record) {
	t.Helper()
	l.wantEntryAt(t, r, len(r.History))
}

// wantEntryAt demands the next entry to be the nth of a record; only for the
// newest it is known where it led to.
func (l *listener) wantEntryAt(t testing.TB, r record, n int) {
	t.Helper()
	got := l.entry(t)
	if got.workflow != r.WorkflowID || got.instance != r.ID || got.sequence != n || !sameEntry(got.entry, r.History[n-1]) {
		t.Errorf("got the entry %+v, want number %d of %s", got, n, r.text)
	}
	var nodes []string
	for _, p := range got.states {
		nodes = append(nodes, p.NodeID)
	}
	if !slices.Equal(nodes, got.entry.EndState) || n == len(r.History) && !slices.Equal(got.states, r.States) {
		t.Errorf("states: got %v with the entry %+v, want where it led to", got.states, got.entry)
	}
}

func sameEntry(a, b entry) bool {
	return a.User == b.User && a.TransitionEvent == b.TransitionEvent && a.TS == b.TS &&
		slices.Equal(a.StartState, b.StartState) && slices.Equal(a.EndState, b.EndState)
}

// wantLost demands the next event to say that entries are missing.
func (l *listener) wantLost(t testing.TB) {
	t.Helper()
	h := l.next(t)
	if h.name != "lost" {
		t.Fatalf("got the event %+v, want lost", h)
	}
	if message := decode[string](t, objectOf(t, h.data, "message")["message"]); message == "" {
		t.Error("lost says nothing")
	}
}

// wantEnd demands an orderly end of the stream, and nothing before.
func (l *listener) wantEnd(t testing.TB) {
	t.Helper()
	if lines, err := l.block(); !errors.Is(err, io.EOF) || len(lines) > 0 {
		t.Errorf("got %q and %v, want the end of the stream", lines, err)
	}
}
