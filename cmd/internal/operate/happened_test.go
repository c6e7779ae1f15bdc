package operate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// TestLabelsOfWhatHappened: what has happened to an instance, and a task, is in the words of the definition.
func TestLabelsOfWhatHappened(t *testing.T) {
	id := clitest.StartNotice(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instance", "activity", "notice", id}, "timer    changes to Taken down"},
		{[]string{"instance", "activity", "notice", id}, "event    (Start → In the hall)"},
		{[]string{"instance", "activity", "notice", id, "-o", "jsonl"}, `"endState":["open"]`},
		{[]string{"instance", "history", "notice", id}, "In the hall"},
		{[]string{"incident", "list"}, "  Comes late  "},
		{[]string{"incident", "list", "-o", "jsonl"}, `"event":"late"`},
	} {
		code, stdout, stderr := clitest.Invoke(c.args...)
		assert.True(t, code == cli.ExitDone && strings.Contains(stdout, c.want), "%q: got %d %q %q, want %q", c.args, code, stdout, stderr, c.want)
	}
	var text strings.Builder
	task := &client.Task{Task: api.Task{
		WorkflowID: "leave", StateMachineID: "main", NodeID: "review", Done: &api.TaskEnd{UserName: "Ann", Event: "approve"},
		Events: []api.TaskEvent{{Name: "approve", Label: "Go ahead"}, {Name: "note", Label: "note"}},
	}}
	seen := newLabels(&api.Presentation{
		Nodes: []api.Status{{StateMachineID: "main", NodeID: "review", Label: "To be decided"}}, Events: []api.PresentedEvent{{Name: "approve", Label: "Go ahead"}},
	})
	require.NoError(t, showTask(&cli.Output{Form: cli.FormTable, To: &text}, task, seen))
	for _, want := range []string{"main: To be decided\n", "Go ahead (approve), note\n", "Ann: Go ahead, "} {
		assert.Contains(t, text.String(), want, "got %q", &text)
	}
}
