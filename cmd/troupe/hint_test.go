package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/servertest"
)

// TestHints: a mistyped name is answered with what was meant, and invalid JSON with its place.
func TestHints(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "a command", Args: []string{"servr"}, Code: cli.ExitUsage, Stderr: `unknown command "servr" for "troupe"; did you mean serve?`},
		{Name: "a command of a group", Args: []string{"instance", "lst"}, Code: cli.ExitUsage, Stderr: `; did you mean list?`},
		{Name: "a workflow", Args: []string{"instance", "list", "laeve"}, Code: cli.ExitFailed, Stderr: "did you mean leave?"},
		{Name: "a workflow to retire", Args: []string{"definition", "retire", "laeve@1"}, Code: cli.ExitFailed, Stderr: "did you mean leave?"},
		{Name: "a version to retire", Args: []string{"definition", "retire", "leave@9"}, Code: cli.ExitFailed, Stderr: "404 NotFound: not found, or you don't have access\n"},
		{Name: "an event", Args: []string{"instance", "send", "leave", id, "sumbit"}, Code: cli.ExitFailed, Stderr: "did you mean submit?"},
		{Name: "JSON", Args: []string{"instance", "send", "leave", id, "submit", "--data", "{\n  \"days\": 5,\n  why: 1}"}, Code: cli.ExitUsage, Stderr: "--data: must be JSON, @file or -: line 3, column 3: invalid character 'w'"},
		{Name: "JSON that ends early", Args: []string{"instance", "send", "leave", id, "submit", "--data", `{"days"`}, Code: cli.ExitUsage, Stderr: "line 1, column 8: unexpected end of JSON input"},
		{Name: "workflows are completed", Args: []string{"__complete", "instance", "list", ""}, Stdout: "leave\n:4\n", Stderr: "ShellCompDirectiveNoFileComp"},
		{Name: "events are completed", Args: []string{"__complete", "instance", "send", "leave", id, ""}, Stdout: "submit\n:4\n", Stderr: "ShellCompDirectiveNoFileComp"},
		{Name: "nobody listens", Args: []string{"instance", "list", "leave", "--address", "http://" + servertest.Nobody(t)}, Code: cli.ExitFailed, Stderr: "connection refused; no service listens there: start one with troupe serve"},
	})
}

// TestCompletion: the shell completes arguments with what the service has, and flags with what they take.
func TestCompletion(t *testing.T) {
	id := clitest.StartNotice(t)
	_, shown, _ := clitest.Invoke("incident", "list", "-o", "jsonl")
	incident := shown[len(`{"id":"`):strings.Index(shown, `","workflowId"`)]
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	code, _, stderr := clitest.Invoke("context", "set", "far", "--address", "http://far")
	require.Zero(t, code, stderr)
	for words, want := range map[string]string{
		"outbox drop":                          id + "-2-0",
		"outbox drop x":                        id + "-2-0", // another one
		"incident retry":                       incident,
		"timer list --workflow":                "notice",
		"diagram":                              "notice",
		"definition retire":                    "notice",
		"export":                               "notice",
		"instance events notice " + id:         "",
		"task do x":                            "", // there is no such task
		"context use":                          "far",
		"instance list --context":              "far",
		"instance list -o":                     "table json jsonl yaml",
		"diagram notice --to":                  "svg mermaid dot",
		"export notice --to":                   "scxml xstate",
		"outbox list --state":                  "pending dead",
		"task list --scope":                    "mine open all done every",
		"context remove far":                   "",
		"instance send notice " + id + " tell": "",
	} {
		_, stdout, stderr := clitest.Invoke(append(append([]string{"__complete"}, strings.Fields(words)...), "")...)
		got := strings.Fields(stdout)
		assert.True(t, len(got) != 0 && strings.Join(got[:len(got)-1], " ") == want, "%s: got %s%s, want %s", words, stdout, stderr, want)
	}
}

// TestNoHintIsTheWordItself: a refusal of something else than a name, which is typed correctly, has no suggestion.
func TestNoHintIsTheWordItself(t *testing.T) {
	s := clitest.StartService(t)
	s.Revise("note", "submits") // which draft does not take, and is near what it takes
	id, submitted := s.Create(`{}`), s.Create(`{}`, "submit")
	for _, args := range [][]string{
		{"send", "leave", id, "submits"},
		{"send", "leave", submitted, "extend", "--data", `{}`},
		{"send", "leave", id, "submit", "--if-match", "77"},
		{"send", "leave", absentID, "submit"},
		{"show", "leave", absentID},
		{"stop", "leave", absentID, "--tree"},
	} {
		code, _, stderr := clitest.Invoke(append([]string{"instance"}, args...)...)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, ": 4") && !strings.Contains(stderr, "did you mean"), "%v: got code %d, %s", args, code, stderr)
	}
}

// absentID is the id of an instance that is nowhere.
const absentID = "01M7YZAB2GNTJFQE62690KHSQT"
