package operate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/client"
)

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
	_, sent, _ := clitest.InvokeWith(many, append(send, "--key", strings.TrimSuffix(key, "\n"))...)
	assert.Equal(t, fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", 2*batchItems), sent)
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
