package main

import (
	"os"
	"path/filepath"
	"testing"

	"troupe/gateway/servertest"
)

func TestInstanceMigrate(t *testing.T) {
	isolated(t)
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
		if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	migrate := func(more ...string) []string {
		return append([]string{"instance", "migrate", servertest.Workflow, "--plan", plan}, more...)
	}
	write("from: 1\nto: 2\nnodes: {main: {draft: chekc}}\n")
	runAll(t, []invocation{{
		name: "a fault has the name of the file", args: migrate(), code: exitFailed,
		stderr: plan + `:3:23: version 2 has no node "chekc" in machine "main" (did you mean "check"?)`,
	}})
	write("from: 1\nto: 2\nassign: {svcPublic.days: '${1 / (svcPublic.days - 3)}'}\nnodes: {main: {review: check}}\n")
	runAll(t, []invocation{
		{name: "tried", args: migrate("--dry-run", "--filter", `{"states.nodeId": "draft"}`), code: exitFailed, stderr: "1 instance refused", stdout: "" +
			"MATCHED                     1\nWOULD BE MIGRATED           0\nREFUSED                     1\n" + odd + "  assign: expression failed: division by zero\n"},
		{name: "a filter", args: migrate("--filter", `{"svcPublic.days":4}`, "-o", "json"), stdout: `{"matched":1,"migrated":1,"refused":[],"next":null}` + "\n"},
	})
	write("from: 1\nto: 2\nnodes: {main: {review: check}}\n")
	runAll(t, []invocation{
		{name: "the rest, tried", args: migrate("--dry-run", "--limit", "1"), stdout: "MATCHED            2\nWOULD BE MIGRATED  2\nREFUSED            0\n"},
		{name: "the rest", args: migrate("--limit", "1"), stdout: "MATCHED   2\nMIGRATED  2\nREFUSED   0\n"},
		{name: "version 2 it is", args: []string{"instance", "history", servertest.Workflow, odd, "-o", "jsonl"}, stdout: "" +
			`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"}` + "\n" +
			`{"user":"john.doe","startState":["draft"],"transitionEvent":"migrate","endState":["draft"],"ts":"2026-11-21T10:00:10.000Z"}` + "\n"},
		{name: "no plan", args: []string{"instance", "migrate", servertest.Workflow}, code: exitUsage, stderr: "--plan is missing"},
		{name: "no such file", args: []string{"instance", "migrate", servertest.Workflow, "--plan", plan + "x"}, code: exitFailed, stderr: "no such file"},
		{name: "no JSON", args: migrate("--filter", "{"), code: exitUsage, stderr: "--filter is not JSON"},
		{name: "no limit", args: migrate("--limit", "0"), code: exitUsage, stderr: "--limit must be 1 to 1000"},
		{name: "no workflow", args: []string{"instance", "migrate", "--plan", plan}, code: exitUsage, stderr: "WORKFLOW"},
	})
}
