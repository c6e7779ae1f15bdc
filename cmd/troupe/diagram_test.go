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

// TestDiagram holds cmd/troupe/HOME.md, "Commands": the version in use, and with an instance its own.
func TestDiagram(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit")
	s.Revise("draft", "sketch")
	dir := t.TempDir()
	clitest.PutFile(t, dir, "leave.yaml", "id: leave\nversion: 7\nstateMachines: {main: {states: {alone: {type: final}}}}\n")
	clitest.PutFile(t, dir, "wrong.yaml", "id: leave\nstateMachines: {main: {initial: darft, states: {draft: {type: final}}}}\n")
	file := filepath.Join(dir, "leave.yaml")
	mermaid := func(args ...string) []string { return append([]string{"diagram", "--to", "mermaid"}, args...) }
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "a file", Args: mermaid(file), Stdout: "---\ntitle: \"leave\"\n---\nstateDiagram-v2\n  state \"main\" as n0 {\n    state \"alone\" as n1\n    n1 --> [*]\n    [*] --> n1\n  }\n"},
		{
			Name: "a file with a fault", Args: mermaid(filepath.Join(dir, "wrong.yaml")), Code: cli.ExitFailed, Stderr: `did you mean "draft"?`,
			Stdout: "---\ntitle: \"leave\"\n---\nstateDiagram-v2\n  state \"main\" as n0 {\n    state \"draft\" as n1\n    n1 --> [*]\n    [*] --> n1\n  }\n",
		},
		{Name: "no file", Args: mermaid(filepath.Join(dir, "none.yaml")), Code: cli.ExitFailed, Stderr: "no such file"},
		{Name: "no file that could be an id", Args: mermaid("none.yaml"), Code: cli.ExitFailed, Stderr: "404 NotFound: not found, or you don't have access; and there is no file none.yaml"},
		{Name: "a file of another version", Args: mermaid(file, "--instance", id), Code: cli.ExitFailed, Stderr: "has version 1 of leave, but " + file + " is version 7"},
		{Name: "no workflow", Args: mermaid("laeve"), Code: cli.ExitFailed, Stderr: "404 NotFound: not found, or you don't have access; did you mean leave?"},
		{Name: "no instance", Args: mermaid("leave", "--instance", strings.Repeat("0", 26)), Code: cli.ExitFailed, Stderr: "404 NotFound"},
		{Name: "an instance of no workflow", Args: mermaid("laeve", "--instance", id), Code: cli.ExitFailed, Stderr: "did you mean leave?"},
		{Name: "no form", Args: []string{"diagram", "leave", "--to", "sgv"}, Code: cli.ExitUsage, Stderr: `--to "sgv": must be one of svg, mermaid, dot; did you mean svg?`},
		{Name: "nothing", Args: []string{"diagram"}, Code: cli.ExitUsage, Stderr: "ID is missing"},
		{Name: "an id that cannot be one", Args: mermaid("a b"), Code: cli.ExitUsage, Stderr: "cannot be the id of a workflow"},
	})
	_, current, _ := clitest.Invoke(mermaid("leave")...)
	_, own, _ := clitest.Invoke(mermaid("leave", "--instance", id)...)
	assert.True(t, strings.Contains(current, `state "sketch" as n1`) && !strings.Contains(current, "classDef"), "the version in use: got\n%s", current)
	for _, line := range []string{`state "draft" as n1`, "class n1 visited", "class n2 now", id} {
		assert.Contains(t, own, line, "an instance of version 1")
	}
	for to, begin := range map[string]string{"svg": "<svg ", "dot": `digraph "leave" {`} {
		code, stdout, stderr := clitest.Invoke("diagram", "leave", "--instance", id, "--to", to)
		assert.True(t, code == cli.ExitDone && strings.HasPrefix(stdout, begin), "%s: got code %d, %.80s, %s", to, code, stdout, stderr)
	}
	s.Fail("definitions", servertest.Fault{Status: 403, Code: "AccessDenied"})
	code, _, stderr := clitest.Invoke(mermaid("leave")...)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "mod-workflows"), "without the right: got code %d, %s", code, stderr)
}

// TestDiagramOfAHome draws what stands in the files of a home on which no service runs.
func TestDiagramOfAHome(t *testing.T) {
	clitest.Isolated(t)
	dir := clitest.ExampleHome(t)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "no workflow", Args: []string{"diagram", "leave-requst", "--home", dir}, Code: cli.ExitFailed, Stderr: "there is no workflow leave-requst in " + dir + "; did you mean leave-request?"},
		{Name: "no home", Args: []string{"diagram", "leave-request", "--home", t.TempDir()}, Code: cli.ExitFailed, Stderr: "there is no home in "},
		{Name: "no token for the instance", Args: []string{"diagram", "leave-request", "--home", dir, "--instance", "1"}, Code: cli.ExitFailed, Stderr: "there is no token"},
	})
	code, stdout, stderr := clitest.Invoke("diagram", "leave-request", "--home", dir)
	require.True(t, code == cli.ExitDone && strings.HasPrefix(stdout, "<svg "), "got code %d, %s", code, stderr)
	clitest.Edit(t, filepath.Join(dir, "workflows"), "purchase-order.yaml", "target: review", "target: reveiw")
	_, beside, _ := clitest.Invoke("diagram", "leave-request", "--home", dir)
	assert.Equal(t, stdout, beside, "a fault in another file")
	code, drawn, stderr := clitest.Invoke("diagram", "purchase-order", "--home", dir)
	assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, `did you mean "review"?`) && strings.HasPrefix(drawn, "<svg "), "%v %v %v", code, drawn, stderr)
}
