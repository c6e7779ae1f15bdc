package main

import (
	"path/filepath"
	"strings"
	"testing"

	"troupe/gateway/servertest"
)

// TestDiagram holds cmd/troupe/HOME.md, "Commands": the version in use, and with an instance its own.
func TestDiagram(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`, "submit")
	s.Revise("draft", "sketch")
	dir := t.TempDir()
	putFile(t, dir, "leave.yaml", "id: leave\nversion: 7\nstateMachines: {main: {states: {alone: {type: final}}}}\n")
	putFile(t, dir, "wrong.yaml", "id: leave\nstateMachines: {main: {initial: darft, states: {draft: {type: final}}}}\n")
	file := filepath.Join(dir, "leave.yaml")
	mermaid := func(args ...string) []string { return append([]string{"diagram", "--to", "mermaid"}, args...) }
	runAll(t, []invocation{
		{name: "a file", args: mermaid(file), stdout: "---\ntitle: \"leave\"\n---\nstateDiagram-v2\n  state \"main\" as n0 {\n    state \"alone\" as n1\n    n1 --> [*]\n    [*] --> n1\n  }\n"},
		{
			name: "a file with a fault", args: mermaid(filepath.Join(dir, "wrong.yaml")), code: exitFailed, stderr: `did you mean "draft"?`,
			stdout: "---\ntitle: \"leave\"\n---\nstateDiagram-v2\n  state \"main\" as n0 {\n    state \"draft\" as n1\n    n1 --> [*]\n    [*] --> n1\n  }\n",
		},
		{name: "no file", args: mermaid(filepath.Join(dir, "none.yaml")), code: exitFailed, stderr: "no such file"},
		{name: "no file that could be an id", args: mermaid("none.yaml"), code: exitFailed, stderr: "404 NotFound: there is nothing here, or nothing that you may see; and there is no file none.yaml"},
		{name: "a file of another version", args: mermaid(file, "--instance", id), code: exitFailed, stderr: "runs under version 1 of leave, and " + file + " is version 7"},
		{name: "no workflow", args: mermaid("laeve"), code: exitFailed, stderr: "404 NotFound: there is nothing here, or nothing that you may see; did you mean leave?"},
		{name: "no instance", args: mermaid("leave", "--instance", strings.Repeat("0", 26)), code: exitFailed, stderr: "404 NotFound"},
		{name: "an instance of no workflow", args: mermaid("laeve", "--instance", id), code: exitFailed, stderr: "did you mean leave?"},
		{name: "no form", args: []string{"diagram", "leave", "--to", "sgv"}, code: exitUsage, stderr: `--to "sgv": must be one of svg, mermaid, dot; did you mean svg?`},
		{name: "nothing", args: []string{"diagram"}, code: exitUsage, stderr: "ID is missing"},
		{name: "an id that cannot be one", args: mermaid("a b"), code: exitUsage, stderr: "cannot be the id of a workflow"},
	})
	_, current, _ := invoke(mermaid("leave")...)
	_, own, _ := invoke(mermaid("leave", "--instance", id)...)
	if !strings.Contains(current, `state "sketch" as n1`) || strings.Contains(current, "classDef") {
		t.Errorf("the version in use: got\n%s", current)
	}
	for _, line := range []string{`state "draft" as n1`, "class n1 visited", "class n2 now", id} {
		if !strings.Contains(own, line) {
			t.Errorf("an instance of version 1: got\n%s\nwant a line with %s", own, line)
		}
	}
	for to, begin := range map[string]string{"svg": "<svg ", "dot": `digraph "leave" {`} {
		if code, stdout, stderr := invoke("diagram", "leave", "--instance", id, "--to", to); code != exitDone || !strings.HasPrefix(stdout, begin) {
			t.Errorf("%s: got code %d, %.80s, %s", to, code, stdout, stderr)
		}
	}
	s.Fail("definitions", servertest.Fault{Status: 403, Code: "AccessDenied"})
	if code, _, stderr := invoke(mermaid("leave")...); code != exitFailed || !strings.Contains(stderr, "mod-workflows") {
		t.Errorf("without the right: got code %d, %s", code, stderr)
	}
}

// TestDiagramOfAHome draws what stands in the files of a home on which no service runs.
func TestDiagramOfAHome(t *testing.T) {
	isolated(t)
	dir := exampleHome(t)
	runAll(t, []invocation{
		{name: "no workflow", args: []string{"diagram", "leave-requst", "--home", dir}, code: exitFailed, stderr: "there is no workflow leave-requst in " + dir + "; did you mean leave-request?"},
		{name: "no home", args: []string{"diagram", "leave-request", "--home", t.TempDir()}, code: exitFailed, stderr: "there is no home in "},
		{name: "no token for the instance", args: []string{"diagram", "leave-request", "--home", dir, "--instance", "1"}, code: exitFailed, stderr: "there is no token"},
	})
	code, stdout, stderr := invoke("diagram", "leave-request", "--home", dir)
	if code != exitDone || !strings.HasPrefix(stdout, "<svg ") {
		t.Fatalf("got code %d, %s", code, stderr)
	}
	edit(t, filepath.Join(dir, "workflows"), "purchase-order.yaml", "target: review", "target: reveiw")
	if _, beside, _ := invoke("diagram", "leave-request", "--home", dir); beside != stdout {
		t.Errorf("a fault in another file: got %.100s", beside)
	}
	if code, drawn, stderr := invoke("diagram", "purchase-order", "--home", dir); code != exitFailed || !strings.Contains(stderr, `did you mean "review"?`) || !strings.HasPrefix(drawn, "<svg ") {
		t.Errorf("a fault in the file: got code %d, %.100s, %s", code, drawn, stderr)
	}
}
