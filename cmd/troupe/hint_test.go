package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"troupe/gateway/servertest"
	"troupe/statemachine"
)

// TestHints: a mistyped name is answered with what was meant, and invalid JSON with its place.
func TestHints(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`)
	runAll(t, []invocation{
		{name: "a command", args: []string{"servr"}, code: exitUsage, stderr: `unknown command "servr" for "troupe"; did you mean serve?`},
		{name: "a command of a group", args: []string{"instance", "lst"}, code: exitUsage, stderr: `; did you mean list?`},
		{name: "a workflow", args: []string{"instance", "list", "laeve"}, code: exitFailed, stderr: "did you mean leave?"},
		{name: "a workflow to retire", args: []string{"definition", "retire", "laeve@1"}, code: exitFailed, stderr: "did you mean leave?"},
		{name: "a version to retire", args: []string{"definition", "retire", "leave@9"}, code: exitFailed, stderr: "404 NotFound: there is nothing here, or nothing that you may see\n"},
		{name: "an event", args: []string{"instance", "send", "leave", id, "sumbit"}, code: exitFailed, stderr: "did you mean submit?"},
		{name: "JSON", args: []string{"instance", "send", "leave", id, "submit", "--data", "{\n  \"days\": 5,\n  why: 1}"}, code: exitUsage, stderr: "--data: must be JSON, @file or -: line 3, column 3: invalid character 'w'"},
		{name: "JSON that ends early", args: []string{"instance", "send", "leave", id, "submit", "--data", `{"days"`}, code: exitUsage, stderr: "line 1, column 8: unexpected end of JSON input"},
		{name: "workflows are completed", args: []string{"__complete", "instance", "list", ""}, stdout: "leave\n:4\n", stderr: "ShellCompDirectiveNoFileComp"},
		{name: "events are completed", args: []string{"__complete", "instance", "send", "leave", id, ""}, stdout: "submit\n:4\n", stderr: "ShellCompDirectiveNoFileComp"},
		{name: "nobody listens", args: []string{"instance", "list", "leave", "--address", "http://" + servertest.Nobody(t)}, code: exitFailed, stderr: "connection refused; no service listens there: troupe serve starts one"},
	})
}

// TestCompletion: the shell completes arguments with what the service has, and flags with what they take.
func TestCompletion(t *testing.T) {
	id := startNotice(t)
	_, shown, _ := invoke("incident", "list", "-o", "jsonl")
	incident := shown[len(`{"id":"`):strings.Index(shown, `","workflowId"`)]
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	if code, _, stderr := invoke("context", "set", "far", "--address", "http://far"); code != exitDone {
		t.Fatal(stderr)
	}
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
		_, stdout, stderr := invoke(append(append([]string{"__complete"}, strings.Fields(words)...), "")...)
		got := strings.Fields(stdout)
		if len(got) == 0 || strings.Join(got[:len(got)-1], " ") != want {
			t.Errorf("%s: got %s%s, want %s", words, stdout, stderr, want)
		}
	}
}

// TestNoHintIsTheWordItself: a refusal of something else than a name, which is typed correctly, has no suggestion.
func TestNoHintIsTheWordItself(t *testing.T) {
	s := startService(t)
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
		code, _, stderr := invoke(append([]string{"instance"}, args...)...)
		if code != exitFailed || !strings.Contains(stderr, ": 4") || strings.Contains(stderr, "did you mean") {
			t.Errorf("%v: got code %d, %s", args, code, stderr)
		}
	}
}

// absentID is the id of an instance that is nowhere.
const absentID = "01M7YZAB2GNTJFQE62690KHSQT"

// TestWhatAuthorsBeginWithRuns serves a home of troupe init with a workflow of troupe new, and plays that.
func TestWhatAuthorsBeginWithRuns(t *testing.T) {
	isolated(t)
	dir := filepath.Join(t.TempDir(), "office")
	code, stdout, stderr := invoke("init", dir)
	if code != exitDone || !strings.Contains(stdout, filepath.Join(dir, "workflows", "request.yaml")) || !strings.Contains(stderr, "troupe serve --home "+dir) ||
		!strings.Contains(stderr, "troupe password set --home "+dir+" --user alice\n") {
		t.Fatalf("init: got code %d\n%s%s", code, stdout, stderr)
	}
	runAll(t, []invocation{
		{name: "a workflow", args: []string{"new", "workflow", "travel-request", "--home", dir}, stdout: filepath.Join(dir, "workflows", "travel-request.yaml") + "\n"},
		{name: "one that is there", args: []string{"new", "workflow", "travel-request", "--home", dir}, code: exitFailed, stderr: "file exists"},
		{name: "a name that cannot be", args: []string{"new", "workflow", "../x", "--home", dir}, code: exitFailed, stderr: "cannot be the id of a workflow"},
		{name: "no home", args: []string{"new", "workflow", "x", "--home", t.TempDir()}, code: exitFailed, stderr: "there is no home in "},
		{name: "a folder with files", args: []string{"init", dir}, code: exitFailed, stderr: "is not empty"},
	})
	if code, stdout, stderr = invoke("check", "--home", dir); code != exitDone || stdout != "" {
		t.Errorf("check: got code %d\n%s%s", code, stdout, stderr)
	}
	o := mustOpenService(t, dir)
	defer o.close()
	o.wants("after init and new", 2, 0)
	d, err := definitionInFile(filepath.Join(dir, "workflows", "travel-request.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	alice, bob := &statemachine.Caller{ID: "alice", Roles: []string{"employee"}}, &statemachine.Caller{ID: "bob", Roles: []string{"employee"}}
	for want, events := range map[string][]sent{
		"approved":                        {{name: "submit", data: `{}`}, {name: "approve", data: `{}`, by: bob}},
		"rejected":                        {{name: "submit", data: `{}`}, {name: "reject", data: `{}`, by: bob}},
		statemachine.ErrForbidden.Error(): {{name: "submit", data: `{}`}, {name: "approve", data: `{}`}},
	} {
		if _, got := (&attempt{by: alice, created: `{"svcPublic":{"subject":"Bregenz"}}`, events: events}).run(d); got != want {
			t.Errorf("%v: got %s, want %s", events, got, want)
		}
	}
	in, _ := (&attempt{by: alice, created: `{}`, events: []sent{{name: "submit", data: `{}`}}}).run(d)
	seen := statemachine.View{Instance: &in, Of: d}
	for _, task := range in.Tasks() {
		if seen.IsCandidate(&task, alice, time.Unix(0, 0)) || !seen.IsCandidate(&task, bob, time.Unix(0, 0)) {
			t.Error("the task is not for everybody but the requester, who would hold all others back with it")
		}
	}
	if len(in.Tasks()) != 1 {
		t.Errorf("got %d tasks of a submitted request, want 1", len(in.Tasks()))
	}
}
