package main

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"

	"troupe/gateway/client/clienttest"
)

// watching runs a watch and returns its lines, and how it ended when it was
// interrupted. Before that a line must have come.
func watching(t *testing.T, args ...string) (line func() string, interrupt func() (code int, stderr string)) {
	t.Helper()
	in, out := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- invokeWith(t.Context(), "", out, &stderr, append([]string{"instance", "watch"}, args...)...)
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
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		code := <-ended
		return code, stderr.String()
	}
}

func TestInstanceWatch(t *testing.T) {
	s := startService(t)
	id := s.Add(`{}`, "draft")
	s.Move(id, "submit", "review")
	line, interrupt := watching(t, "leave", "--last-event-id", "1")
	if got, want := line(), "2026-11-21T10:00:01.000Z "+id+" #2 submit by john.doe: draft -> review"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Drain() // it connects again
	s.Move(id, "approve\x1b[2J", "approved")
	if got, want := line(), "2026-11-21T10:00:02.000Z "+id+` #3 approve\x1b[2J by john.doe: review -> approved`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	code, stderr := interrupt()
	if code != exitDone || !strings.Contains(stderr, "the stream has ended; again in ") || !strings.HasSuffix(stderr, "to resume from here: --last-event-id 3\n") {
		t.Errorf("got code %d and %q", code, stderr)
	}
}

func TestInstanceWatchLines(t *testing.T) {
	s := startService(t)
	id := s.Add(`{}`, "draft")
	s.Forget()
	line, interrupt := watching(t, "leave", id, "-o", "jsonl", "--last-event-id", "0", "--filter", `{"states.nodeId": "review"}`)
	if got, want := line(), `{"id":"1","event":"lost","data":{"message":"entries are missing"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Move(id, "submit", "review")
	want := `{"id":"2","event":"entry","data":{"workflowId":"leave","instanceId":"` + id + `","sequence":2,"entry":` +
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"},` +
		`"states":[{"stateMachineId":"main","nodeId":"review"}]}}`
	if got := line(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if code, stderr := interrupt(); code != exitDone || stderr != "to resume from here: --last-event-id 2\n" {
		t.Errorf("got code %d and %q", code, stderr)
	}
	if got := s.Requests()[0].Query.Get("filter"); got != `{"states.nodeId": "review"}` {
		t.Errorf("got the filter %q", got)
	}
}

func TestInstanceWatchRefused(t *testing.T) {
	s := startService(t)
	s.Fail("watch", clienttest.Fault{Status: 403, Code: "AccessDenied"})
	for _, test := range []invocation{
		{args: []string{"instance", "watch", "leave"}, code: exitFailed, stderr: "watch leave: 403 AccessDenied"},
		{args: []string{"instance", "watch", "leave", "x"}, code: exitFailed, stderr: "watch leave/x: 404 NotFound"},
		{args: []string{"instance", "watch", "leave", ""}, code: exitUsage, stderr: "empty"},
		{args: []string{"instance", "watch"}, code: exitUsage, stderr: "accepts between 1 and 2"},
		{args: []string{"instance", "watch", "leave", "-o", "json"}, code: exitUsage, stderr: "must be one of line, jsonl"},
		{args: []string{"instance", "watch", "leave", "--filter", "{"}, code: exitUsage, stderr: "must be JSON"},
	} {
		test.run(t)
	}
}
