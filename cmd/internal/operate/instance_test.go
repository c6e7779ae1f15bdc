package operate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/gateway/servertest"
)

func TestInstanceList(t *testing.T) {
	s := clitest.StartService(t)
	firstID := s.Create(`{"days":5,"who":"Ana\n\u001b[2J","big":12345678901234567890.10}`, "submit")
	secondID := s.Create(`{"who":["a",{"b":1}]}`)
	thirdID := s.Create(`{}`, "submit")
	const states = `"states":[{"stateMachineId":"main","nodeId":`
	first := `{"_id":"` + firstID + `","workflowId":"leave","svcPublic":{"days":5,"who":"Ana\n\u001b[2J","big":12345678901234567890.10},` + states + `"review"}]}`
	second := `{"_id":"` + secondID + `","workflowId":"leave","svcPublic":{"who":["a",{"b":1}]},` + states + `"draft"}]}`
	third := `{"_id":"` + thirdID + `","workflowId":"leave","svcPublic":{},` + states + `"review"}]}`
	list := func(args ...string) []string { return append([]string{"instance", "list", "leave"}, args...) }
	tests := []clitest.Invocation{
		{Name: "a table", Args: list(), Stdout: "ID                          STATES\n" +
			firstID + "  main: review\n" + secondID + "  main: draft\n" + thirdID + "  main: review\n"},
		{Name: "columns", Args: list("--columns", "svcPublic.days,svcPublic.who", "--columns", "svcPublic.who.1.b"), Stdout: "" +
			"ID                          STATES        svcPublic.days  svcPublic.who  svcPublic.who.1.b\n" +
			firstID + "  main: review  5               Ana\\n\\x1b[2J   \n" +
			secondID + "  main: draft                   [\"a\",{\"b\":1}]  1\n" +
			thirdID + "  main: review                                 \n"},
		{Name: "JSON is what the service sent", Args: list("-o", "json", "--limit", "50"), Stdout: `{"instances":[` + first + "," + second + "," + third + "],\"next\":null}\n"},
		{Name: "all in one answer", Args: list("-o", "json", "--limit", "0"), Stdout: `{"instances":[` + first + "," + second + "," + third + "]}\n"},
		{Name: "JSON lines", Args: list("-o", "jsonl"), Stdout: first + "\n" + second + "\n" + third + "\n"},
		{Name: "a filter", Args: list("-o", "jsonl", "--filter", `{"states.nodeId": "draft"}`), Stdout: second + "\n"},
		{Name: "a filter on standard input", Stdin: " {\"states.nodeId\": \"draft\"}\n", Args: list("-o", "jsonl", "--filter", "-"), Stdout: second + "\n"},
		{Name: "order", Args: list("-o", "jsonl", "--sort", "-_id", "--limit", "1"), Stdout: third + "\n", Stderr: "more: --all shows everything, --cursor "},
		{Name: "all pages as JSON", Args: list("-o", "json", "--all", "--limit", "1", "--count"), Stdout: `{"instances":[` + first + "," + second + "," + third + `],"count":3}` + "\n"},
		{Name: "all pages as lines", Args: list("-o", "jsonl", "--all", "--limit", "2"), Stdout: first + "\n" + second + "\n" + third + "\n"},
		{Name: "all pages as a table", Args: list("--all", "--limit", "2", "--count"), Stdout: "ID                          STATES\n" +
			firstID + "  main: review\n" + secondID + "  main: draft\n" + thirdID + "  main: review\ncount: 3\n"},
		{Name: "nothing as JSON", Args: list("-o", "json", "--all", "--filter", `{"states.nodeId":"x"}`), Stdout: `{"instances":[]}` + "\n"},
		{Name: "nothing as YAML", Args: list("-o", "yaml", "--all", "--count", "--filter", `{"states.nodeId":"x"}`), Stdout: "instances: []\ncount: 0\n"},
		{Name: "nothing as a table", Args: list("--filter", `{"states.nodeId":"x"}`), Stdout: "ID  STATES\n"},
		{Name: "a count beside lines", Args: list("-o", "jsonl", "--count", "--filter", `{"states.nodeId":"draft"}`), Stdout: second + "\n", Stderr: "count: 1\n"},
		{
			Name: "YAML", Args: list("-o", "yaml", "--all", "--limit", "2", "--filter", `{"states.nodeId":"review"}`),
			Stdout: "instances:\n" +
				"- _id: \"" + firstID + "\"\n  workflowId: leave\n  svcPublic:\n    days: 5\n    who: \"Ana\\n\\x1b[2J\"\n    big: 12345678901234567890.10\n" +
				"  states:\n  - stateMachineId: main\n    nodeId: review\n" +
				"- _id: \"" + thirdID + "\"\n  workflowId: leave\n  svcPublic: {}\n  states:\n  - stateMachineId: main\n    nodeId: review\n",
		},
		{Name: "a page as YAML", Args: list("-o", "yaml", "--filter", `{"states.nodeId":"x"}`), Stdout: "instances: []\nnext: null\n"},
		{Name: "fields", Args: list("-o", "jsonl", "--fields", "svcHistory,svcPrivate", "--filter", `{"states.nodeId":"draft"}`), Stdout: strings.Replace(second, `,"states"`, `,"svcPrivate":{},"svcHistory":[{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:02.000Z"}],"states"`, 1) + "\n"},

		{Name: "no workflow", Args: []string{"instance", "list"}, Code: cli.ExitUsage, Stderr: "troupe: WORKFLOW is missing: troupe instance list WORKFLOW\n"},
		{Name: "a workflow that cannot be", Args: []string{"instance", "list", "../x"}, Code: cli.ExitUsage, Stderr: "cannot be the id of a workflow"},
		{Name: "an unknown workflow", Args: []string{"instance", "list", "lave"}, Code: cli.ExitFailed, Stderr: "list lave: 404 NotFound: "},
		{Name: "a filter that is no JSON", Args: list("--filter", "{"), Code: cli.ExitUsage, Stderr: "--filter: must be JSON"},
		{Name: "a filter that is nowhere", Args: list("--filter", "@no-such-file"), Code: cli.ExitFailed, Stderr: "no-such-file"},
		{Name: "a limit too large", Args: list("--limit", "1001"), Code: cli.ExitUsage, Stderr: "a limit must be"},
		{Name: "an unknown form", Args: list("-o", "xml"), Code: cli.ExitUsage, Stderr: "must be one of table, json, jsonl, yaml"},
		{Name: "columns of JSON", Args: list("-o", "json", "--columns", "a"), Code: cli.ExitUsage, Stderr: "for tables"},
		{Name: "a column that no instance has", Args: list("--columns", "id"), Code: cli.ExitUsage, Stderr: `--columns "id": a path begins with _id, `},
		{Name: "a column that is no path", Args: list("--columns", "a..b"), Code: cli.ExitUsage, Stderr: "--columns"},
		{Name: "a field that is none", Args: list("--fields", "secret"), Code: cli.ExitFailed, Stderr: "400 InvalidContent"},
		{Name: "a cursor that is none", Args: list("--cursor", "x"), Code: cli.ExitFailed, Stderr: "400 InvalidContent"},
		{Name: "a token on the command line", Args: list("--token", "x"), Code: cli.ExitUsage, Stderr: "unknown flag: --token"},
	}
	clitest.RunAll(t, tests)
}

// TestInstanceListCursor follows the advice on standard error.
func TestInstanceListCursor(t *testing.T) {
	s := clitest.StartService(t)
	s.Create(`{}`, "submit")
	secondID, thirdID := s.Create(`{}`, "submit"), s.Create(`{}`, "submit")
	_, stdout, stderr := clitest.Invoke("instance", "list", "leave", "--limit", "2")
	advice := regexp.MustCompile(`--cursor (\S+)`).FindStringSubmatch(stderr)
	require.True(t, advice != nil && strings.Contains(stdout, secondID) && !strings.Contains(stdout, thirdID), "%v %v", stdout, stderr)
	(&clitest.Invocation{Args: []string{"instance", "list", "leave", "--limit", "2", "--cursor", advice[1]}, Stdout: "ID                          STATES\n" + thirdID + "  main: review\n"}).Run(t)
}

// TestInstanceListExplain holds that the first page's explanation is shown with all.
func TestInstanceListExplain(t *testing.T) {
	s := clitest.StartService(t)
	s.Create(`{}`)
	s.Create(`{}`)
	code, stdout, stderr := clitest.Invoke("instance", "list", "leave", "-o", "json", "--all", "--limit", "1", "--explain")
	assert.True(t, code == cli.ExitDone && strings.Contains(stdout, `],"explain":{"index":null,"plan":"scan",`) && strings.Count(stdout, "explain") == 1,
		"got code %d, %q and %q, want one explanation behind the instances", code, stdout, stderr)
}

// TestInstanceListBreaks holds that a list which is broken off does not look
// whole.
func TestInstanceListBreaks(t *testing.T) {
	s := clitest.StartService(t)
	s.Create(`{}`, "submit")
	s.Create(`{}`, "submit")
	for _, form := range []string{"json", "jsonl", "yaml", "table"} {
		s.Fail("instances", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "0"}, servertest.Fault{Status: 403, Code: "AccessDenied"})
		code, stdout, stderr := clitest.Invoke("instance", "list", "leave", "--all", "--limit", "1", "-o", form)
		assert.True(t, code == cli.ExitFailed && strings.Contains(stderr, "403 AccessDenied") && (!strings.HasSuffix(stdout, "}\n") || form != "json"),
			"%s: got code %d, %q and %q", form, code, stdout, stderr)
	}
}

func TestInstanceShow(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{"n":1.50}`, "submit")
	record := `{"_id":"` + id + `","workflowId":"leave","svcPublic":{"n":1.50},"svcPrivate":{},"svcHistory":[` +
		`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"},` +
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"}],` +
		`"states":[{"stateMachineId":"main","nodeId":"review"}]}`
	tests := []clitest.Invocation{
		{Name: "a table", Args: []string{"instance", "show", "leave", id}, Stdout: "ID        " + id + "\nWORKFLOW  leave\nSTATES    main: review\nSEQUENCE  2\nPUBLIC    {\"n\":1.50}\nPRIVATE   {}\n\n" +
			"TIME                      USER      EVENT      FROM   TO\n" +
			"2026-11-21T10:00:00.000Z  john.doe  (created)  Start  draft\n" +
			"2026-11-21T10:00:01.000Z  john.doe  submit     draft  review\n"},
		{Name: "JSON", Args: []string{"instance", "show", "leave", id, "-o", "json"}, Stdout: record + "\n"},
		{Name: "an unknown instance", Args: []string{"instance", "show", "leave", "x"}, Code: cli.ExitFailed, Stderr: "load leave/x: 404 NotFound"},
		{Name: "no instance", Args: []string{"instance", "show", "leave"}, Code: cli.ExitUsage, Stderr: "troupe: INSTANCE is missing: troupe instance show WORKFLOW INSTANCE\n"},
		{Name: "an empty instance", Args: []string{"instance", "show", "leave", ""}, Code: cli.ExitUsage, Stderr: "cannot be the id"},
	}
	clitest.RunAll(t, tests)
}

func TestInstanceHistoryAndEvents(t *testing.T) {
	s := clitest.StartService(t)
	id := s.Create(`{}`, "submit")
	entries := []string{
		`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"}`,
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"}`,
	}
	table := "TIME                      USER      EVENT      FROM   TO\n2026-11-21T10:00:00.000Z  john.doe  (created)  Start  draft\n"
	tests := []clitest.Invocation{
		{Name: "a page", Args: []string{"instance", "history", "leave", id, "--limit", "1"}, Stdout: table, Stderr: "--cursor "},
		{Name: "all", Args: []string{"instance", "history", "leave", id, "--limit", "1", "--all", "-o", "jsonl"}, Stdout: entries[0] + "\n" + entries[1] + "\n"},
		{Name: "all as JSON", Args: []string{"instance", "history", "leave", id, "--all", "-o", "json"}, Stdout: `{"history":[` + entries[0] + "," + entries[1] + "]}\n"},
		{Name: "JSON", Args: []string{"instance", "history", "leave", id, "-o", "json"}, Stdout: `{"history":[` + entries[0] + "," + entries[1] + "],\"next\":null}\n"},
		{Name: "newest first", Args: []string{"instance", "history", "leave", id, "--newest-first", "--limit", "1", "--all", "-o", "jsonl"}, Stdout: entries[1] + "\n" + entries[0] + "\n"},
		{Name: "history of nothing", Args: []string{"instance", "history", "leave", "x"}, Code: cli.ExitFailed, Stderr: "404"},
		{Name: "events", Args: []string{"instance", "events", "leave", id}, Stdout: "EVENT    GUARD    MACHINE  FROM    TO\n" +
			"approve  true     main     review  approved\nextend   unknown  main     review  approved\n" +
			"extend   true     main     review  review\nnote     true     main     review  \n"},
		{Name: "events as YAML", Args: []string{"instance", "events", "leave", id, "-o", "yaml"}, Stdout: `events:
- name: approve
  label: approve
  done: null
  style: default
  guard: "true"
  transitions:
  - stateMachineId: main
    nodeId: review
    targets:
    - approved
    targetLabels:
    - approved
    guard: "true"
  schema: null
- name: extend
  label: extend
  done: null
  style: default
  guard: "true"
  transitions:
  - stateMachineId: main
    nodeId: review
    targets:
    - approved
    targetLabels:
    - approved
    guard: unknown
  - stateMachineId: main
    nodeId: review
    targets:
    - review
    targetLabels:
    - review
    guard: "true"
  schema:
    type: object
    required:
    - days
- name: note
  label: note
  done: null
  style: default
  guard: "true"
  transitions:
  - stateMachineId: main
    nodeId: review
    targets: []
    targetLabels: []
    guard: "true"
  schema: null
`},
		{Name: "events of nothing", Args: []string{"instance", "events", "leave", "x"}, Code: cli.ExitFailed, Stderr: "404"},
	}
	clitest.RunAll(t, tests)
}

func TestInstanceCreateAndSend(t *testing.T) {
	clitest.StartService(t)
	file := filepath.Join(t.TempDir(), "data.json")
	require.NoError(t, os.WriteFile(file, []byte("{\"days\": 1e400}\n"), 0o600))
	shown := func(id, state, sequence, public, private string) string {
		return "ID        " + id + "\nWORKFLOW  leave\nSTATES    main: " + state + "\nSEQUENCE  " + sequence + "\nPUBLIC    " + public + "\nPRIVATE   " + private + "\n"
	}
	// create makes an instance that stands in draft, and returns its id.
	create := func(stdin, public, private string, args ...string) string {
		t.Helper()
		code, stdout, stderr := clitest.InvokeWith(stdin, append([]string{"instance", "create", "leave"}, args...)...)
		id := strings.Fields(stdout + " - -")[1]
		want := shown(id, "draft", "1", public, private)
		require.True(t, code == cli.ExitDone && stdout == want && stderr == "", "%v: got code %d, %q and\n%s\nwant\n%s", args, code, stderr, stdout, want)
		return id
	}
	firstID := create("", "{}", "{}")
	secondID := create(`{"b": 2, "a": "<"}`, `{"days":1e400}`, `{"b":2,"a":"<"}`, "--public", "@"+file, "--private", "-", "--key", "k1")
	tests := []clitest.Invocation{
		{Name: "again with the same key", Stdin: `{"b": 2, "a": "<"}`, Args: []string{"instance", "create", "leave", "--public", "@" + file, "--private", "-", "--key", "k1"}, Stdout: shown(secondID, "draft", "1", `{"days":1e400}`, `{"b":2,"a":"<"}`)},
		{Name: "the key for something else", Args: []string{"instance", "create", "leave", "--key", "k1"}, Code: cli.ExitFailed, Stderr: "422 KeyReused"},
		{Name: "send", Args: []string{"instance", "send", "leave", firstID, "submit", "--data", `{"days":5}`, "--if-match", "1"}, Stdout: shown(firstID, "review", "2", `{"days":5}`, "{}")},
		{Name: "moved on", Args: []string{"instance", "send", "leave", firstID, "approve", "--if-match", `"1"`}, Code: cli.ExitFailed, Stderr: "412 PreconditionFailed"},
		{Name: "not now", Args: []string{"instance", "send", "leave", firstID, "submit"}, Code: cli.ExitFailed, Stderr: "409 EventNotAllowed"},
		{Name: "an unknown event", Args: []string{"instance", "send", "leave", firstID, "sbumit"}, Code: cli.ExitFailed, Stderr: "send sbumit to leave/" + firstID + ": 400 InvalidContent: event is not declared by the workflow: \"sbumit\""},
		{Name: "an event that moves nothing", Args: []string{"instance", "send", "leave", firstID, "note"}, Stdout: shown(firstID, "review", "3", `{"days":5}`, "{}"), Stderr: "note changed no state; troupe instance events leave " + firstID + " lists the events that would\n"},
		{Name: "JSON has the history", Args: []string{"instance", "send", "leave", firstID, "approve", "-o", "json"}, Stdout: `{"_id":"` + firstID + `","workflowId":"leave","svcPublic":{"days":5},"svcPrivate":{},"svcHistory":[` +
			`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"},` +
			`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:04.000Z"},` +
			`{"user":"john.doe","startState":["review"],"transitionEvent":"note","endState":["review"],"ts":"2026-11-21T10:00:08.000Z"},` +
			`{"user":"john.doe","startState":["review"],"transitionEvent":"approve","endState":["approved"],"ts":"2026-11-21T10:00:09.000Z"}],` +
			`"states":[{"stateMachineId":"main","nodeId":"approved"}]}` + "\n"},

		{Name: "data that is no JSON", Args: []string{"instance", "create", "leave", "--public", "{a: 1}"}, Code: cli.ExitUsage, Stderr: "--public: must be JSON"},
		{Name: "standard input twice", Args: []string{"instance", "create", "leave", "--public", "-", "--private", "-"}, Code: cli.ExitUsage, Stderr: "once"},
		{Name: "an impossible key", Args: []string{"instance", "create", "leave", "--key", "a b"}, Code: cli.ExitUsage, Stderr: "idempotency key"},
		{Name: "a sequence of zero", Args: []string{"instance", "send", "leave", firstID, "approve", "--if-match", "0"}, Code: cli.ExitUsage, Stderr: "of at least 1"},
		{Name: "no event", Args: []string{"instance", "send", "leave", firstID}, Code: cli.ExitUsage, Stderr: "troupe: EVENT is missing: troupe instance send WORKFLOW INSTANCE EVENT\n"},
	}
	clitest.RunAll(t, tests)
}

// TestInstanceSendLooks holds that a table says when an event moved nothing, without a
// history, and that the look which tells it fails no event.
func TestInstanceSendLooks(t *testing.T) {
	s := clitest.StartService(t)
	send := func(remark bool, event string, args ...string) {
		t.Helper()
		id := s.Create(`{}`, "submit", "note")
		code, stdout, stderr := clitest.Invoke(append([]string{"instance", "send", "leave", id, event}, args...)...)
		if code != cli.ExitDone || !strings.Contains(stdout, id) || (stderr != "") != remark || remark && !strings.HasPrefix(stderr, event+" changed no state; ") {
			t.Errorf("%s %v: got code %d, %q and %q, want a remark: %v", event, args, code, stdout, stderr, remark)
		}
	}
	send(true, "note")
	send(true, "wave")
	send(false, "approve")
	for _, r := range s.Requests() {
		isLabelled := strings.HasSuffix(r.Path, "/summary") || strings.Contains(r.Path, "/presentation/") // which have none
		assert.False(t, !isLabelled && r.Header.Get("Prefer") != "return=minimal", "%s %s asks for a history that is not shown", r.Method, r.Path)
	}
	for _, fault := range []servertest.Fault{{Status: 503, Code: "Busy", RetryAfter: "31"}, {Status: 503, Code: "Busy", RetryAfter: "5"}, {Status: 403, Code: "AccessDenied"}, {}} {
		s.Fail("instance", fault)
		send(false, "note")
	}
	send(true, "note", "--key", "k")
	send(false, "wave", "--key", "k") // it could be a repetition
	send(true, "wave", "-o", "json")

	id := s.Create(`{}`, "submit")
	s.Fail("event", servertest.Fault{Status: 504, Code: "OutcomeUnknown", Done: true, RetryAfter: "0"})
	for _, want := range []string{"note changed no state", ""} {
		code, _, stderr := clitest.Invoke("instance", "send", "leave", id, "note", "--key", "k")
		assert.True(t, code == cli.ExitDone && strings.HasPrefix(stderr, want) && (want != "" || stderr == ""), "%v %v %v", code, stderr, want)
	}
}

// TestInstanceCreateUnknown holds that the key to ask again with is named.
func TestInstanceCreateUnknown(t *testing.T) {
	s := clitest.StartService(t)
	// It is told to wait longer than it does, so it gives up at once.
	s.Fail("create", servertest.Fault{Status: 504, Code: "OutcomeUnknown", Done: true, RetryAfter: "31"})
	(&clitest.Invocation{Args: []string{"instance", "create", "leave", "--key", "my-key"}, Code: cli.ExitFailed, Stderr: "it is not known whether this was done: ask again with the key my-key"}).Run(t)
	code, made, stderr := clitest.Invoke("instance", "create", "leave", "--key", "my-key", "-o", "jsonl")
	_, all, _ := clitest.Invoke("instance", "list", "leave", "-o", "jsonl", "--fields", "svcPrivate,svcHistory")
	assert.True(t, code == cli.ExitDone && made == all && strings.Count(all, "\n") == 1, "%v %v %v %v", code, made, all, stderr)
}
