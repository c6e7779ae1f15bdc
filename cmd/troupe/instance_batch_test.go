package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstanceSendFile holds that a file is sent whole, in both forms, and that a key makes
// it safe to send again.
func TestInstanceSendFile(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`, "submit")
	note := `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"note"}}`
	many := strings.Repeat(note+"\n", batchItems+1)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(many), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(args ...string) []string { return append([]string{"instance", "send", "--file"}, args...) }
	done := fmt.Sprintf("%d sent, %[1]d done, 0 failed\n", batchItems+1)
	mixed := note + "\n\n" + `{"workflowId":"leave","instanceId":"` + id + `","event":{"name":"sbumit"}}` + "\n"
	failures := "ITEM  STATUS  ERROR           MESSAGE\n2     400     InvalidContent  event is not declared by the workflow: \"sbumit\"\n"
	runAll(t, []invocation{
		{name: "lines", args: send(file, "--key", "k"), stdout: done},
		{name: "again", args: send(file, "--key", "k"), stdout: done},
		{name: "an array", args: send("-"), stdin: " [" + note + ", " + note + "]\n", stdout: "2 sent, 2 done, 0 failed\n"},
		{name: "JSON without a failure", args: send("-", "-o", "json"), stdin: note, stdout: `{"sent":1,"failed":0,"failures":[]}` + "\n"},
		{name: "nothing", args: send("-"), stdin: " \n", stdout: "0 sent, 0 done, 0 failed\n"},
		{name: "an item fails", args: send("-"), stdin: mixed, code: exitFailed, stdout: failures + "2 sent, 1 done, 1 failed\n", stderr: "1 of 2 items have failed"},
		{
			name: "JSON", args: send("-", "-o", "json"), stdin: mixed, code: exitFailed, stderr: "1 of 2 items have failed",
			stdout: `{"sent":2,"failed":1,"failures":[{"item":2,"status":400,"error":"InvalidContent","message":"event is not declared by the workflow: \"sbumit\""}]}` + "\n",
		},
		{name: "no JSON behind an item", args: send("-"), stdin: note + "\n{", code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "item 2: "},
		{name: "an array without an end", args: send("-"), stdin: "[" + note, code: exitUsage, stdout: "0 sent, 0 done, 0 failed\n", stderr: "behind item 1: "},
		{name: "the key of another file", args: send("-", "--key", "k"), stdin: note, code: exitFailed, stdout: "0 sent, 0 done, 0 failed\n", stderr: "items 1 to 1: send a batch: 422 KeyReused"},
		{name: "no file", args: send("no-such-file"), code: exitFailed, stderr: "no-such-file"},
		{name: "a file and an instance", args: send(file, "leave"), code: exitUsage, stderr: "--file says everything"},
	})
	_, stdout, _ := invoke("instance", "show", "leave", id, "-o", "json")
	if n := strings.Count(stdout, `"transitionEvent":"note"`); n != batchItems+1+2+1+2 {
		t.Errorf("%d notes are there, want %d", n, batchItems+1+2+1+2)
	}
}
