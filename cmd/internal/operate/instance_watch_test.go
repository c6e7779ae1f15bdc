package operate

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// watching runs a watch and returns its lines, and how it ended when it was
// interrupted. Before that a line must have come.
func watching(t *testing.T, args ...string) (line func() string, interrupt func() (code int, stderr string)) {
	t.Helper()
	in, out := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(clitest.Program(), append([]string{"instance", "watch"}, args...), strings.NewReader(""), out, &stderr)
		_ = out.Close()
	}()
	lines := bufio.NewScanner(in)
	line = func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the watch has ended: code %d, %s", <-ended, stderr.String())
		}
		return lines.Text()
	}
	return line, func() (int, string) {
		// The watch has asked for the signal, so it does not end this process.
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
		code := <-ended
		return code, stderr.String()
	}
}

func TestInstanceWatch(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit")
	s.Fail("watch", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "0"}) // it connects again
	line, interrupt := watching(t, "leave", id, "--last-event-id", "1")
	assert.Equal(t, "2026-11-21T10:00:01.000Z "+id+" #2 submit by john.doe: draft -> review", line())
	s.Send(id, "approve")
	assert.Equal(t, "2026-11-21T10:00:02.000Z "+id+" #3 approve by john.doe: review -> approved", line())
	code, stderr := interrupt()
	if code != cli.ExitDone || !strings.Contains(stderr, "503 Busy") || !strings.Contains(stderr, "; retrying in ") || !strings.HasSuffix(stderr, "to resume from here: --last-event-id 3\n") {
		t.Errorf("got code %d and %q", code, stderr)
	}
}

// TestWatchTellsAttempts: an event that nothing took is no deed, and one that a node took without leaving it is one. Also where both are
// behind others in the history when they are told.
func TestWatchTellsAttempts(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit", "idle", "note", "approve", "idle")
	line, interrupt := watching(t, "leave", id, "--last-event-id", "2")
	for _, want := range []string{
		"#3 idle (tried; nothing changed) by john.doe: review -> review", "#4 note by john.doe: review -> review",
		"#5 approve by john.doe: review -> approved", "#6 idle (tried; nothing changed) by john.doe: approved -> approved",
	} {
		got := line()
		assert.True(t, strings.HasSuffix(got, id+" "+want), "got %q, want %q", got, want)
	}
	s.Send(id, "idle")
	got, want := line(), "#7 idle (tried; nothing changed) by john.doe: approved -> approved"
	assert.True(t, strings.HasSuffix(got, want), "got %q, want %q", got, want)
	code, stderr := interrupt()
	assert.Zero(t, code, "got code, %q", stderr)
}

// TestNoticesForTheTerminal holds that what a service sends cannot steer a
// terminal.
func TestNoticesForTheTerminal(t *testing.T) {
	for _, n := range []*client.Notice{
		{Entry: &api.Watched{InstanceID: "i\x1b[2J", Entry: api.HistoryEntry{
			User: "u\x1b[2J", TransitionEvent: "e\x1b[2J", StartState: []string{"a\x1b[2J"}, EndState: []string{"b\x1b[2J"},
		}}},
		{Lost: "m\x1b[2J"},
	} {
		var stdout, stderr bytes.Buffer
		require.NoError(t, showNotice(&cli.Output{To: &stdout}, &stderr, n, nil))
		got := stdout.String() + stderr.String()
		assert.True(t, !strings.Contains(got, "\x1b") && strings.Contains(got, `\x1b[2J`) && (n.Entry != nil || got == `m\x1b[2J`+"\n"), got)
	}
}

func TestInstanceWatchLines(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`)
	line, interrupt := watching(t, "leave", id, "-o", "jsonl", "--last-event-id", "0", "--filter", `{"states.nodeId": "review"}`)
	assert.Equal(t, `{"id":"1","event":"lost","data":{"message":"entries are missing here; read the present state again"}}`, line())
	s.Send(id, "submit")
	want := `{"id":"2","event":"entry","data":{"workflowId":"leave","instanceId":"` + id + `","sequence":2,"entry":` +
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"},` +
		`"states":[{"stateMachineId":"main","nodeId":"review"}]}}`
	assert.Equal(t, want, line())
	code, stderr := interrupt()
	assert.True(t, code == cli.ExitDone && stderr == "to resume from here: --last-event-id 2\n", "got code %d and %q", code, stderr)
	assert.Equal(t, `{"states.nodeId": "review"}`, s.Requests()[0].Query.Get("filter"), "got the filter")
}
