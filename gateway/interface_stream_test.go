package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
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

// listen opens the stream of a path below watch, or that of the tasks, and demands its beginning.
func (u user) listen(t testing.TB, path string, headers ...string) *listener {
	t.Helper()
	path, vary, second := "/watch/"+path, "Cookie, Authorization, Authentication", "id: "
	if path == "/watch/tasks" {
		path, vary, second = "/tasks/watch", vary+", Accept-Language", ": open"
	}
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
	require.Equal(t, http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"},
		"Vary": {vary},
	}, res.Header, path)
	l := &listener{conn: conn, body: bufio.NewReader(res.Body)}
	lines, err := l.block()
	require.True(t, res.StatusCode == 200 && err == nil && len(lines) == 2 && lines[0] == "retry: 2000" && strings.HasPrefix(lines[1], second),
		"%s begins with %d %q (%v)", path, res.StatusCode, lines, err)
	return l
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
	if cmd.Cmd == "gather" {
		return strings.Join(slices.Sorted(strings.Lines(heard.String())), "")
	}
	return heard.String()
}

// over demands that streams end by themselves, after they have said that something may be lost.
func (s *transcript) over(t *testing.T, streams []datadriven.CmdArg) string {
	for _, arg := range streams {
		l := s.listeners[arg.Key]
		lines, err := l.block()
		if *nodes == 1 { // NB: elsewhere the node between may be the first to know
			require.True(t, err == nil && len(lines) > 1 && lines[0] == "event: lost", "%s: got %q and %v, want to read again", arg.Key, lines, err)
		}
		for err == nil {
			_, err = l.block()
		}
		require.ErrorIs(t, err, io.EOF, arg.Key)
	}
	return "ok\n"
}

// bytes are those of the input of raw, connect and send.
func (s *transcript) bytes(t *testing.T, input string) string {
	return strings.NewReplacer("\n", "\r\n", `\r`, "\r", `\n`, "\n").Replace(s.expand(t, input))
}

// raw writes the input and prints all answers, for each of the rows behind "each". With cut it writes all
// beginnings of the input instead, each on a connection of its own. With either it does not say whether the
// connection ends.
func (s *transcript) raw(t *testing.T, cmd *datadriven.TestData) string {
	input, table, many := strings.Cut(cmd.Input, "\neach\n")
	var out strings.Builder
	for row := range strings.SplitSeq(table, "\n") {
		s.values["x"] = s.expand(t, row)
		text := s.bytes(t, input)
		if cmd.HasArg("cut") {
			for end := range text {
				s.Raw(t, text[:end])
			}
			return "ok\n"
		}
		var answers []string
		for _, a := range s.Raw(t, text) {
			line := s.masked(shown(a, showOf(cmd)))
			if a.Closes && !cmd.HasArg("either") {
				line += ", and the end"
			}
			answers = append(answers, line)
		}
		if many {
			out.WriteString(row + " => ")
		}
		out.WriteString(strings.Join(answers, "; ") + "\n")
	}
	return out.String()
}

// wire is a connection that a transcript writes to and reads from.
type wire struct {
	net.Conn
	body *bufio.Reader // of the answer, once something was read
}

func (s *transcript) onWire(t *testing.T, cmd *datadriven.TestData) (out string) {
	name := cmd.CmdArgs[0].Key
	switch cmd.Cmd {
	case "connect":
		c, err := s.Dial()
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		s.wires[name] = &wire{Conn: c}
	case "close":
		require.NoError(t, s.wires[name].Close())
	case "read":
		return s.masked(s.wires[name].read(t, cmd.CmdArgs[1:]))
	}
	_, err := io.WriteString(s.wires[name], s.bytes(t, cmd.Input))
	require.True(t, err == nil || cmd.Cmd == "close", err)
	return "ok\n"
}

// read reads so many lines of the answer, or all.
func (w *wire) read(t *testing.T, number []datadriven.CmdArg) (out string) {
	if w.body == nil {
		res, err := http.ReadResponse(bufio.NewReader(w), nil)
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = w.Close() // first: closing the body would read on
			_ = res.Body.Close()
		})
		w.body = bufio.NewReader(res.Body)
		out = fmt.Sprintln(res.StatusCode, res.Header.Get("Content-Type"))
	}
	if len(number) == 0 {
		rest, err := io.ReadAll(w.body)
		require.NoError(t, err)
		return out + string(rest) + "the end\n"
	}
	n, err := strconv.Atoi(number[0].Key)
	require.NoError(t, err)
	for range n {
		line, err := w.body.ReadString('\n')
		require.NoError(t, err)
		out += line
	}
	return out
}
