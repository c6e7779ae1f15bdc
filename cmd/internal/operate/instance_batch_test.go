package operate

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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// TestInstanceSendFile holds that a file is sent whole, in both forms, and that a key makes
// it safe to send again.
func TestInstanceSendFile(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit")
	note := `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}`
	many := strings.Repeat(note+"\n", batchItems+1)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	require.NoError(t, os.WriteFile(file, []byte(many), 0o600))
	send := func(args ...string) []string { return append([]string{"instance", "send", "--file"}, args...) }
	done := fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems+1)
	mixed := note + "\n\n" + `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"sbumit"}}` + "\n"
	failures := "ITEM  LINE  STATUS  ERROR           MESSAGE\n2     3     400     InvalidContent  event is not declared by the workflow: \"sbumit\"\n"
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "lines", Args: send(file, "--key", "k"), Stdout: done},
		{Name: "again", Args: send(file, "--key", "k"), Stdout: done},
		{Name: "an array", Args: send("-"), Stdin: " [" + note + ", " + note + "]\n", Stdout: "2 sent, 2 done, 0 failed\n"},
		{Name: "JSON without a failure", Args: send("-", "-o", "json"), Stdin: note, Stdout: `{"sent":1,"done":1,"failed":0,"created":[],"failures":[]}` + "\n"},
		{Name: "nothing", Args: send("-"), Stdin: " \n", Stdout: "0 sent, 0 done, 0 failed\n"},
		{Name: "an item fails", Args: send("-"), Stdin: mixed, Code: cli.ExitFailed, Stdout: failures + "2 sent, 1 done, 1 failed\n", Stderr: "1 of 2 items failed; put the corrected lines into a new file and send it without --key\n"},
		{
			Name: "JSON", Args: send("-", "-o", "json", "--key", "m"), Stdin: mixed, Code: cli.ExitFailed, Stderr: "1 of 2 items failed; put the corrected lines into a new file and send it without --key\n",
			Stdout: `{"sent":2,"done":1,"failed":1,"created":[],"failures":[{"item":2,"line":3,"status":400,"error":"InvalidContent","message":"event is not declared by the workflow: \"sbumit\""}]}` + "\n",
		},
		{Name: "the end of an item is missing", Args: send("-"), Stdin: note + "\n\n{", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 3: the file ends in the middle of an item; nothing was sent"},
		{Name: "an array without an end", Args: send("-"), Stdin: "\n[" + note, Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 2: the file ends before its array does: a ] is missing"},
		{Name: "an item that is no JSON", Args: send("-"), Stdin: "[\n" + note + ",\n\nx]", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 4: invalid character 'x'"},
		{Name: "a comma behind a line", Args: send("-"), Stdin: note + ",\n\n" + note, Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 1: invalid character ','"},
		{Name: "two commas in an array", Args: send("-"), Stdin: "[" + note + ",\n,\n" + note + "]", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 2: invalid character ','"},
		{Name: "no comma in an array", Args: send("-"), Stdin: "[" + note + "\n" + note + "]", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 2: expected comma after array element"},
		{Name: "an item without its end", Args: send("-"), Stdin: note + "\n{\"workflowId\":\n\n" + note + "\n{", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "line 5: invalid character '{'"},
		{Name: "more than an array", Args: send("-"), Stdin: "[\n" + note + "]\n{}", Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "there is text after the array"},
		{Name: "a byte order mark", Args: send("-"), Stdin: "\ufeff" + note, Code: cli.ExitUsage, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "the file has a byte order mark"},
		{
			Name: "a fault behind the first batch", Args: send("-", "--key", "k"), Stdin: many[:batchItems*(len(note)+1)] + note + "\nx", Code: cli.ExitFailed,
			Stdout: fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems),
			Stderr: fmt.Sprintf("line %d: invalid character 'x' looking for beginning of value; the first %d items were sent: fix the rest of the file; nothing is done twice when you repeat the same command with --key k\n", batchItems+2, batchItems),
		},
		{Name: "the key of another file", Args: send("-", "--key", "k"), Stdin: note, Code: cli.ExitFailed, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "the file was changed since it was sent with this --key: send the original file, or send the missing items without --key\n"},
		{Name: "no file", Args: send("no-such-file"), Code: cli.ExitFailed, Stderr: "no-such-file"},
		{Name: "a file and an instance", Args: send(file, "leave"), Code: cli.ExitUsage, Stderr: "--file cannot be combined with arguments"},
	})
	s.Fail("events", servertest.Fault{Status: 504, Code: "OutcomeUnknown", RetryAfter: "31"}, servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "31"})
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "in doubt", Args: send("-", "--key", "d"), Stdin: note, Code: cli.ExitFailed, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "items 1 to 1: outcome unknown: 504 OutcomeUnknown: as the test wants it; nothing is done twice when you repeat the same command with --key d\n"},
		{Name: "refused", Args: send("-", "--key", "d"), Stdin: note, Code: cli.ExitFailed, Stdout: "0 sent, 0 done, 0 failed\n", Stderr: "items 1 to 1 were not done: send a batch: 503 Busy: as the test wants it; nothing is done twice when you repeat the same command with --key d\n"},
	})
	code, stdout, stderr := clitest.InvokeWith(`{"workflowId":"leave"}`+"\n"+note+"\n"+`{"workflowId":"leave"}`, send("-", "-o", "json")...)
	var reply struct{ Created []createdItem }
	err := json.Unmarshal([]byte(stdout), &reply)
	assert.True(t, code == cli.ExitDone && err == nil && len(reply.Created) == 2 && reply.Created[1].Line == 3 && reply.Created[1].InstanceID != "",
		"got %d %s %s, want two instances created", code, stdout, stderr)
	_, stdout, _ = clitest.Invoke("instance", "show", "leave", id, "-o", "json")
	assert.Equal(t, batchItems+1+2+1+2+1, strings.Count(stdout, `"transitionEvent":"note"`), "notes are there")
}

// TestInstanceSendFileSaysHowToGoOn: what may pass is tried again with the same key, and what
// is wrong is sent anew.
func TestInstanceSendFileSaysHowToGoOn(t *testing.T) {
	for want, statuses := range map[string][]int{
		"1 of 9 items failed; put the corrected lines into a new file and send it without --key":                                                                                                            {400},
		"3 of 9 items failed; they are retried when you repeat the same command with --key k":                                                                                                               {429, 503, 504},
		"3 of 9 items failed; put the corrected lines of the other items into a new file and send it without --key; the 2 with status 429 or 5xx are retried when you repeat the same command with --key k": {429, 403, 503},
	} {
		s := sendFile{key: "k", Sent: 9, Failed: len(statuses)}
		for _, status := range statuses {
			s.Failures = append(s.Failures, failedItem{BatchResult: client.BatchResult{Status: status}})
		}
		assert.Equal(t, want, s.refused().Error(), statuses)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	cmd := newInstanceSend()
	cmd.SetContext(ctx)
	s := sendFile{cmd: cmd, key: "k"}
	want := "items 1 to 2 were not done: interrupted; nothing is done twice when you repeat the same command with --key k"
	assert.Equal(t, want, s.unsent(context.Cause(ctx), 2).Error())
	s.Sent = 3
	want = "interrupted after 3 items were sent; nothing is done twice when you repeat the same command with --key k"
	err := s.read(strings.NewReader("a line that is broken"))
	assert.True(t, err != nil && err.Error() == want, "a broken line after the interruption: got %v, want %q", err, want)
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
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit")
	// NB: what stands behind the first batch is more than anybody reads ahead.
	note := `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}` + "\n"
	many := strings.Repeat(note, 2*batchItems)
	send := []string{"instance", "send", "--file", "-"}
	var stdout, stderr bytes.Buffer
	code := cli.Run(clitest.Program(), send, io.MultiReader(strings.NewReader(many), quietStdin{t.Context()}), &stdout, &stderr)
	said := fmt.Sprintf("troupe: interrupted after %d items were sent; nothing is done twice when you repeat the same command with --key ", batchItems)
	key, found := strings.CutPrefix(stderr.String(), said)
	require.True(t, code == cli.ExitFailed && stdout.String() == fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems) && found,
		"got %d, %s, %s", code, stdout.String(), stderr.String())
	invocation := clitest.Invocation{Args: append(send, "--key", strings.TrimSuffix(key, "\n")), Stdin: many, Stdout: fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", 2*batchItems)}
	invocation.Run(t)
	_, shown, _ := clitest.Invoke("instance", "show", "leave", id, "-o", "json")
	assert.Equal(t, 2*batchItems, strings.Count(shown, `"transitionEvent":"note"`), "notes are there")
}

// TestInstanceSendFileIsPatient: its requests are repeated until --timeout.
func TestInstanceSendFileIsPatient(t *testing.T) {
	for file, want := range map[string]int{"": 0, "-": math.MaxInt32} {
		cmd := newInstanceSend()
		if file != "" {
			require.NoError(t, cmd.ParseFlags([]string{"--file", file}))
		}
		assert.Equal(t, want, repetitions(cmd), "--file %q", file)
	}
}
