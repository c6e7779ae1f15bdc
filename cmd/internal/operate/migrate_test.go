package operate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/servertest"
)

func TestInstanceMigrate(t *testing.T) {
	clitest.Isolated(t)
	s := servertest.Start(t)
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	odd := s.Create(`{"days":3}`)
	s.Create(`{"days":3}`, "submit")
	s.Create(`{"days":4}`, "submit")
	s.Revise("review", "check")
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	write := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(plan, []byte(text), 0o600))
	}
	migrate := func(more ...string) []string {
		return append([]string{"instance", "migrate", servertest.Workflow, "--plan", plan}, more...)
	}
	write("from: 1\nto: 2\nnodes: {main: {draft: chekc}}\n")
	clitest.RunAll(t, []clitest.Invocation{{
		Name: "a fault has the name of the file", Args: migrate(), Code: cli.ExitFailed,
		Stderr: plan + `:3:23: version 2 has no node "chekc" in machine "main" (did you mean "check"?)`,
	}})
	write("from: 1\nto: 2\nassign: {svcPublic.days: '${1 / (svcPublic.days - 3)}'}\nnodes: {main: {review: check}}\n")
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "tried", Args: migrate("--dry-run", "--filter", `{"states.nodeId": "draft"}`), Code: cli.ExitFailed, Stderr: "1 instance refused", Stdout: "" +
			"MATCHED                     1\nWOULD BE MIGRATED           0\nREFUSED                     1\n" + odd + "  assign: expression failed: division by zero\n"},
		{Name: "a filter", Args: migrate("--filter", `{"svcPublic.days":4}`, "-o", "json"), Stdout: `{"matched":1,"migrated":1,"refused":[],"next":null}` + "\n"},
	})
	write("from: 1\nto: 2\nnodes: {main: {review: check}}\n")
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "the rest, tried", Args: migrate("--dry-run", "--limit", "1"), Stdout: "MATCHED            2\nWOULD BE MIGRATED  2\nREFUSED            0\n"},
		{Name: "the rest", Args: migrate("--limit", "1"), Stdout: "MATCHED   2\nMIGRATED  2\nREFUSED   0\n"},
		{Name: "version 2 it is", Args: []string{"instance", "history", servertest.Workflow, odd, "-o", "jsonl"}, Stdout: "" +
			`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"}` + "\n" +
			`{"user":"john.doe","startState":["draft"],"transitionEvent":"migrate","endState":["draft"],"ts":"2026-11-21T10:00:10.000Z"}` + "\n"},
		{Name: "no plan", Args: []string{"instance", "migrate", servertest.Workflow}, Code: cli.ExitUsage, Stderr: "--plan is required"},
		{Name: "no such file", Args: []string{"instance", "migrate", servertest.Workflow, "--plan", plan + "x"}, Code: cli.ExitFailed, Stderr: "no such file"},
		{Name: "no JSON", Args: migrate("--filter", "{"), Code: cli.ExitUsage, Stderr: "--filter is not JSON"},
		{Name: "no limit", Args: migrate("--limit", "0"), Code: cli.ExitUsage, Stderr: "--limit must be 1 to 1000"},
		{Name: "no workflow", Args: []string{"instance", "migrate", "--plan", plan}, Code: cli.ExitUsage, Stderr: "WORKFLOW"},
	})
}
