package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// TestInstanceSendFile holds that a file is sent whole, in both forms, and that a key makes
// it safe to send again.
func TestInstanceSendFile(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`, "submit")
	note := `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}`
	many := strings.Repeat(note+"\n", batchItems+1)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(many), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(args ...string) []string { return append([]string{"instance", "send", "--file"}, args...) }
	done := fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems+1)
	mixed := note + "\n\n" + `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"sbumit"}}` + "\n"
	failures := "ITEM  LINE  STATUS  ERROR           MESSAGE\n2     3     400     InvalidContent  event is not declared by the workflow: \"sbumit\"\n"
	runAll(t, []invocation{
		{name: "lines", args: send(file, "--key", "k"), stdout: done},
		{name: "again", args: send(file, "--key", "k"), stdout: done},
		{name: "an array", args: send("-"), stdin: " [" + note + ", " + note + "]\n", stdout: "2 sent, 2 done, 0 failed\n"},
		{name: "JSON without a failure", args: send("-", "-o", "json"), stdin: note, stdout: `{"sent":1,"done":1,"failed":0,"created":[],"failures":[]}` + "\n"},
		{name: "nothing", args: send("-"), stdin: " \n", stdout: "0 sent, 0 done, 0 failed\n"},
		{name: "an item fails", args: send("-"), stdin: mixed, code: exitFailed, stdout: failures + "2 sent, 1 done, 1 failed\n", stderr: "1 of 2 items have failed; put the mended lines into a new file and send it without --key\n"},
		{
			name: "JSON", args: send("-", "-o", "json", "--key", "m"), stdin: mixed, code: exitFailed, stderr: "1 of 2 items have failed; put the mended lines into a new file and send it without --key\n",
			stdout: `{"sent":2,"done":1,"failed":1,"created":[],"failures":[{"item":2,"line":3,"status":400,"error":"InvalidContent","message":"event is not declared by the workflow: \"sbumit\""}]}` + "\n",
		},
		{name: "the end of an item is missing", args: send("-"), stdin: note + "\n\n{", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 3: the file ends in the middle of an item; nothing was sent"},
		{name: "an array without an end", args: send("-"), stdin: "\n[" + note, code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 2: the file ends before its array does: a ] is missing"},
		{name: "an item that is no JSON", args: send("-"), stdin: "[\n" + note + ",\n\nx]", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 4: invalid character 'x'"},
		{name: "a comma behind a line", args: send("-"), stdin: note + ",\n\n" + note, code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 1: invalid character ','"},
		{name: "two commas in an array", args: send("-"), stdin: "[" + note + ",\n,\n" + note + "]", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 2: invalid character ','"},
		{name: "no comma in an array", args: send("-"), stdin: "[" + note + "\n" + note + "]", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 2: expected comma after array element"},
		{name: "an item without its end", args: send("-"), stdin: note + "\n{\"workflowId\":\n\n" + note + "\n{", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "line 5: invalid character '{'"},
		{name: "more than an array", args: send("-"), stdin: "[\n" + note + "]\n{}", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "something stands behind the array"},
		{name: "a byte order mark", args: send("-"), stdin: "\ufeff" + note, code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "the file begins with a byte order mark"},
		{
			name: "a fault behind the first batch", args: send("-", "--key", "k"), stdin: many[:batchItems*(len(note)+1)] + note + "\nx", code: exitFailed,
			stdout: fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems),
			stderr: fmt.Sprintf("line %d: invalid character 'x' looking for beginning of value; the first %d items were sent: mend the rest of the file; what was done is not done again when you repeat the same command with --key k\n", batchItems+2, batchItems),
		},
		{name: "the key of another file", args: send("-", "--key", "k"), stdin: note, code: exitFailed, stdout: "0 sent, 0 done, 0 failed\n", stderr: "this file was changed since it was sent with this --key: send the file as it was, or send without --key what is missing\n"},
		{name: "no file", args: send("no-such-file"), code: exitFailed, stderr: "no-such-file"},
		{name: "a file and an instance", args: send(file, "leave"), code: exitUsage, stderr: "--file says everything"},
	})
	s.Fail("events", servertest.Fault{Status: 504, Code: "OutcomeUnknown", RetryAfter: "31"}, servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "31"})
	runAll(t, []invocation{
		{name: "in doubt", args: send("-", "--key", "d"), stdin: note, code: exitFailed, stdout: "0 sent, 0 done, 0 failed\n", stderr: "items 1 to 1: it is not known whether they were done: 504 OutcomeUnknown: as the test wants it; what was done is not done again when you repeat the same command with --key d\n"},
		{name: "refused", args: send("-", "--key", "d"), stdin: note, code: exitFailed, stdout: "0 sent, 0 done, 0 failed\n", stderr: "items 1 to 1 were not done: send a batch: 503 Busy: as the test wants it; what was done is not done again when you repeat the same command with --key d\n"},
	})
	code, stdout, stderr := invokeWith(`{"workflowId":"leave"}`+"\n"+note+"\n"+`{"workflowId":"leave"}`, send("-", "-o", "json")...)
	var reply struct{ Created []createdItem }
	if err := json.Unmarshal([]byte(stdout), &reply); code != exitDone || err != nil || len(reply.Created) != 2 || reply.Created[1].Line != 3 || reply.Created[1].InstanceID == "" {
		t.Errorf("got %d %s %s, want two instances created", code, stdout, stderr)
	}
	_, stdout, _ = invoke("instance", "show", "leave", id, "-o", "json")
	if n := strings.Count(stdout, `"transitionEvent":"note"`); n != batchItems+1+2+1+2+1 {
		t.Errorf("%d notes are there, want %d", n, batchItems+1+2+1+2+1)
	}
}

// TestInstanceSendFileSaysHowToGoOn: what may pass is tried again with the same key, and what
// is wrong is sent anew.
func TestInstanceSendFileSaysHowToGoOn(t *testing.T) {
	for want, statuses := range map[string][]int{
		"1 of 9 items have failed; put the mended lines into a new file and send it without --key":                                                                                                           {400},
		"3 of 9 items have failed; only they are tried again when you repeat the same command with --key k":                                                                                                  {429, 503, 504},
		"3 of 9 items have failed; put the mended lines of the others into a new file and send it without --key; the 2 with status 429 or 5xx are tried again when you repeat the same command with --key k": {429, 403, 503},
	} {
		s := sendFile{key: "k", Sent: 9, Failed: len(statuses)}
		for _, status := range statuses {
			s.Failures = append(s.Failures, failedItem{BatchResult: client.BatchResult{Status: status}})
		}
		if got := s.refused().Error(); got != want {
			t.Errorf("%v: got %q, want %q", statuses, got, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	cmd := newInstanceSend()
	cmd.SetContext(ctx)
	s := sendFile{cmd: cmd, key: "k"}
	want := "items 1 to 2 were not done: interrupted; what was done is not done again when you repeat the same command with --key k"
	if got := s.unsent(context.Cause(ctx), 2).Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Sent = 3
	want = "interrupted when 3 items were sent; what was done is not done again when you repeat the same command with --key k"
	if err := s.read(strings.NewReader("a line that is broken")); err == nil || err.Error() != want {
		t.Errorf("a broken line after the interruption: got %v, want %q", err, want)
	}
}

// quietStdin interrupts this process when it is read, and then brings nothing until the test
// ends.
type quietStdin struct{ ctx context.Context }

func (q quietStdin) Read([]byte) (int, error) {
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
		return 0, err
	}
	<-q.ctx.Done()
	return 0, io.EOF
}

// TestInstanceSendFileIsInterruptedWhileItWaits: it ends although standard input brings nothing
// and does not end, and the key that it names goes on with the same items.
func TestInstanceSendFileIsInterruptedWhileItWaits(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`, "submit")
	// NB: what stands behind the first batch is more than anybody reads ahead.
	note := `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}` + "\n"
	many := strings.Repeat(note, 2*batchItems)
	send := []string{"instance", "send", "--file", "-"}
	var stdout, stderr bytes.Buffer
	code := run(send, io.MultiReader(strings.NewReader(many), quietStdin{t.Context()}), &stdout, &stderr)
	said := fmt.Sprintf("troupe: interrupted when %d items were sent; what was done is not done again when you repeat the same command with --key ", batchItems)
	key, found := strings.CutPrefix(stderr.String(), said)
	if code != exitFailed || stdout.String() != fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems) || !found {
		t.Fatalf("got %d, %s, %s", code, stdout.String(), stderr.String())
	}
	invocation := invocation{args: append(send, "--key", strings.TrimSuffix(key, "\n")), stdin: many, stdout: fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", 2*batchItems)}
	invocation.run(t)
	_, shown, _ := invoke("instance", "show", "leave", id, "-o", "json")
	if n := strings.Count(shown, `"transitionEvent":"note"`); n != 2*batchItems {
		t.Errorf("%d notes are there, want %d", n, 2*batchItems)
	}
}

// TestInstanceSendFileIsPatient: its requests are repeated until --timeout.
func TestInstanceSendFileIsPatient(t *testing.T) {
	for file, want := range map[string]int{"": 0, "-": math.MaxInt32} {
		cmd := newInstanceSend()
		if file != "" {
			if err := cmd.ParseFlags([]string{"--file", file}); err != nil {
				t.Fatal(err)
			}
		}
		if got := repetitions(cmd); got != want {
			t.Errorf("--file %q: got %d, want %d", file, got, want)
		}
	}
}
