package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// TestTasks works through a task on the command line.
func TestTasks(t *testing.T) {
	clitest.Isolated(t)
	s := servertest.Start(t)
	c, err := client.New(client.Options{Address: s.URL, Token: s.Token})
	require.NoError(t, err)
	i, err := c.Create(t.Context(), client.CreateRequest{WorkflowID: servertest.Workflow})
	require.NoError(t, err)
	_, err = c.Send(t.Context(), client.SendRequest{WorkflowID: servertest.Workflow, InstanceID: i.ID, Event: "submit"})
	require.NoError(t, err)
	id := i.ID + "-2-0"
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	for _, step := range []struct {
		args           []string
		stdout, stderr string
		code           int
	}{
		{[]string{"task", "list"}, "ID                              TITLE       WORKFLOW  REQUESTER  STATUS  ASSIGNEE  DUE\n" + id + "  Look at it  leave     John Doe   open", "", 0},
		{[]string{"task", "list", "--scope", "mine", "-o", "json", "--count"}, `{"tasks":[],"next":null,"count":0}`, "", 0},
		{[]string{"task", "list", "--scope", "hers"}, "", `"scope" must be`, cli.ExitFailed},
		{[]string{"task", "list", "--scope", "every"}, "ID                              STATE", "", 0},
		{[]string{"task", "show", id}, "EVENTS", "", 0},
		{[]string{"__complete", "task", "claim", ""}, id + "\n:4\n", "ShellCompDirectiveNoFileComp", 0},
		{[]string{"task", "claim", id}, "", "", 0},
		{[]string{"task", "list", "--scope", "mine", "-o", "jsonl"}, `"assignee":"john.doe"`, "", 0},
		{[]string{"task", "release", id}, "", "", 0},
		{[]string{"task", "assign", id, "john.doe"}, "", "", 0},
		{[]string{"task", "assign", id, "nobody"}, "", "a task can be assigned only to users who can claim it", cli.ExitFailed},
		{[]string{"task", "do", id, "wave"}, "", `does not accept "wave" from you; it accepts: approve extend note`, cli.ExitFailed},
		{[]string{"__complete", "task", "do", id, ""}, "approve\nextend\nnote\n:4\n", "ShellCompDirectiveNoFileComp", 0},
		{[]string{"__complete", "task", "do", "nothing", ""}, ":4\n", "ShellCompDirectiveNoFileComp", 0},
		{[]string{"task", "do", id, "approve", "--comment", "Enjoy it."}, "approved", "", 0},
		{[]string{"task", "do", id, "approve"}, "", "was done by John Doe", cli.ExitFailed},
		{[]string{"task", "show", id}, "ASSIGNEE   john.doe\nREQUESTER  John Doe\n", "", 0}, // and nobody whom it is for
		{[]string{"instance", "comment", "leave", i.ID, "Thank you."}, "", "", 0},
		{[]string{"instance", "activity", "leave", i.ID}, "comment         Thank you.", "", 0},
		{[]string{"instance", "send", "leave", i.ID, "idle", "--data", `{"a":1}`}, "", "idle changed no state", 0},
		{[]string{"instance", "activity", "leave", i.ID}, "attempt         idle (nothing changed)", "", 0},
		{[]string{"instance", "history", "leave", i.ID}, "idle (tried; nothing changed)  approved  approved\n", "", 0},
		{[]string{"instance", "history", "leave", i.ID, "--data"}, `idle (tried; nothing changed)  approved  approved  {"a":1}`, "", 0},
		{[]string{"instance", "show", "leave", i.ID}, "idle (tried; nothing changed)  approved  approved\n", "", 0},
		{[]string{"instance", "activity", "leave", i.ID, "--oldest-first", "--all", "-o", "jsonl"}, `"text":"Enjoy it."`, "", 0},
		{[]string{"task", "claim", id, i.ID}, "", "404 NotFound", cli.ExitFailed},
		{[]string{"task", "do", id}, "", "EVENT is missing", cli.ExitUsage},
	} {
		code, stdout, stderr := clitest.Invoke(step.args...)
		assert.True(t, code == step.code && strings.Contains(stdout, step.stdout) && strings.Contains(stderr, step.stderr) && (step.stderr != "" || stderr == ""),
			"%v: got %d\n%s%s", step.args, code, stdout, stderr)
	}
}
