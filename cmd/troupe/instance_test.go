package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"troupe/gateway/servertest"
)

// isolated makes sure that no test sees the contexts or the environment of
// whoever runs it.
func isolated(t *testing.T) {
	t.Helper()
	t.Setenv("TROUPE_CONTEXTS", filepath.Join(t.TempDir(), "contexts.yaml"))
	for _, name := range []string{"TROUPE_CONTEXT", "TROUPE_ADDRESS", "TROUPE_TOKEN", "TROUPE_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
}

// startService starts a service that the commands of the test ask.
func startService(t *testing.T) *servertest.Server {
	t.Helper()
	isolated(t)
	s := servertest.Start(t)
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	return s
}

func TestInstanceList(t *testing.T) {
	s := startService(t)
	firstID := s.Create(`{"days":5,"who":"Ana\n\u001b[2J","big":12345678901234567890.10}`, "submit")
	secondID := s.Create(`{"who":["a",{"b":1}]}`)
	thirdID := s.Create(`{}`, "submit")
	const states = `"states":[{"stateMachineId":"main","nodeId":`
	first := `{"_id":"` + firstID + `","workflowId":"leave","svcPublic":{"days":5,"who":"Ana\n\u001b[2J","big":12345678901234567890.10},` + states + `"review"}]}`
	second := `{"_id":"` + secondID + `","workflowId":"leave","svcPublic":{"who":["a",{"b":1}]},` + states + `"draft"}]}`
	third := `{"_id":"` + thirdID + `","workflowId":"leave","svcPublic":{},` + states + `"review"}]}`
	list := func(args ...string) []string { return append([]string{"instance", "list", "leave"}, args...) }
	tests := []invocation{
		{name: "a table", args: list(), stdout: "ID                          STATES\n" +
			firstID + "  main: review\n" + secondID + "  main: draft\n" + thirdID + "  main: review\n"},
		{name: "columns", args: list("--columns", "svcPublic.days,svcPublic.who", "--columns", "svcPublic.who.1.b"), stdout: "" +
			"ID                          STATES        svcPublic.days  svcPublic.who  svcPublic.who.1.b\n" +
			firstID + "  main: review  5               Ana\\n\\x1b[2J   \n" +
			secondID + "  main: draft                   [\"a\",{\"b\":1}]  1\n" +
			thirdID + "  main: review                                 \n"},
		{name: "JSON is what the service sent", args: list("-o", "json", "--limit", "50"), stdout: `{"instances":[` + first + "," + second + "," + third + "],\"next\":null}\n"},
		{name: "all in one answer", args: list("-o", "json", "--limit", "0"), stdout: `{"instances":[` + first + "," + second + "," + third + "]}\n"},
		{name: "JSON lines", args: list("-o", "jsonl"), stdout: first + "\n" + second + "\n" + third + "\n"},
		{name: "a filter", args: list("-o", "jsonl", "--filter", `{"states.nodeId": "draft"}`), stdout: second + "\n"},
		{name: "a filter on standard input", stdin: " {\"states.nodeId\": \"draft\"}\n", args: list("-o", "jsonl", "--filter", "-"), stdout: second + "\n"},
		{name: "order", args: list("-o", "jsonl", "--sort", "-_id", "--limit", "1"), stdout: third + "\n", stderr: "there is more: --all shows everything, --cursor "},
		{name: "all pages as JSON", args: list("-o", "json", "--all", "--limit", "1", "--count"), stdout: `{"instances":[` + first + "," + second + "," + third + `],"count":3}` + "\n"},
		{name: "all pages as lines", args: list("-o", "jsonl", "--all", "--limit", "2"), stdout: first + "\n" + second + "\n" + third + "\n"},
		{name: "all pages as a table", args: list("--all", "--limit", "2", "--count"), stdout: "ID                          STATES\n" +
			firstID + "  main: review\n" + secondID + "  main: draft\n" + thirdID + "  main: review\ncount: 3\n"},
		{name: "nothing as JSON", args: list("-o", "json", "--all", "--filter", `{"states.nodeId":"x"}`), stdout: `{"instances":[]}` + "\n"},
		{name: "nothing as YAML", args: list("-o", "yaml", "--all", "--count", "--filter", `{"states.nodeId":"x"}`), stdout: "instances: []\ncount: 0\n"},
		{name: "nothing as a table", args: list("--filter", `{"states.nodeId":"x"}`), stdout: "ID  STATES\n"},
		{name: "a count beside lines", args: list("-o", "jsonl", "--count", "--filter", `{"states.nodeId":"draft"}`), stdout: second + "\n", stderr: "count: 1\n"},
		{
			name: "YAML", args: list("-o", "yaml", "--all", "--limit", "2", "--filter", `{"states.nodeId":"review"}`),
			stdout: "instances:\n" +
				"- _id: \"" + firstID + "\"\n  workflowId: leave\n  svcPublic:\n    days: 5\n    who: \"Ana\\n\\x1b[2J\"\n    big: 12345678901234567890.10\n" +
				"  states:\n  - stateMachineId: main\n    nodeId: review\n" +
				"- _id: \"" + thirdID + "\"\n  workflowId: leave\n  svcPublic: {}\n  states:\n  - stateMachineId: main\n    nodeId: review\n",
		},
		{name: "a page as YAML", args: list("-o", "yaml", "--filter", `{"states.nodeId":"x"}`), stdout: "instances: []\nnext: null\n"},
		{name: "fields", args: list("-o", "jsonl", "--fields", "svcHistory,svcPrivate", "--filter", `{"states.nodeId":"draft"}`), stdout: strings.Replace(second, `,"states"`, `,"svcPrivate":{},"svcHistory":[{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:02.000Z"}],"states"`, 1) + "\n"},

		{name: "no workflow", args: []string{"instance", "list"}, code: exitUsage, stderr: "troupe: WORKFLOW is missing: troupe instance list WORKFLOW\n"},
		{name: "a workflow that cannot be", args: []string{"instance", "list", "../x"}, code: exitUsage, stderr: "cannot be the id of a workflow"},
		{name: "an unknown workflow", args: []string{"instance", "list", "lave"}, code: exitFailed, stderr: "list lave: 404 NotFound: "},
		{name: "a filter that is no JSON", args: list("--filter", "{"), code: exitUsage, stderr: "--filter: must be JSON"},
		{name: "a filter that is nowhere", args: list("--filter", "@no-such-file"), code: exitFailed, stderr: "no-such-file"},
		{name: "a limit too large", args: list("--limit", "1001"), code: exitUsage, stderr: "a limit must be"},
		{name: "an unknown form", args: list("-o", "xml"), code: exitUsage, stderr: "must be one of table, json, jsonl, yaml"},
		{name: "columns of JSON", args: list("-o", "json", "--columns", "a"), code: exitUsage, stderr: "for tables"},
		{name: "a column that no instance has", args: list("--columns", "id"), code: exitUsage, stderr: `--columns "id": a path begins with _id, `},
		{name: "a column that is no path", args: list("--columns", "a..b"), code: exitUsage, stderr: "--columns"},
		{name: "a field that is none", args: list("--fields", "secret"), code: exitFailed, stderr: "400 InvalidContent"},
		{name: "a cursor that is none", args: list("--cursor", "x"), code: exitFailed, stderr: "400 InvalidContent"},
		{name: "a token on the command line", args: list("--token", "x"), code: exitUsage, stderr: "unknown flag: --token"},
	}
	runAll(t, tests)
}

// TestInstanceListCursor follows the advice on standard error.
func TestInstanceListCursor(t *testing.T) {
	s := startService(t)
	s.Create(`{}`, "submit")
	secondID, thirdID := s.Create(`{}`, "submit"), s.Create(`{}`, "submit")
	_, stdout, stderr := invoke("instance", "list", "leave", "--limit", "2")
	advice := regexp.MustCompile(`--cursor (\S+)`).FindStringSubmatch(stderr)
	if advice == nil || !strings.Contains(stdout, secondID) || strings.Contains(stdout, thirdID) {
		t.Fatalf("got %q and %q, want two instances and a cursor", stdout, stderr)
	}
	(&invocation{args: []string{"instance", "list", "leave", "--limit", "2", "--cursor", advice[1]}, stdout: "ID                          STATES\n" + thirdID + "  main: review\n"}).run(t)
}

// TestInstanceListExplain holds that the first page's explanation is shown with all.
func TestInstanceListExplain(t *testing.T) {
	s := startService(t)
	s.Create(`{}`)
	s.Create(`{}`)
	code, stdout, stderr := invoke("instance", "list", "leave", "-o", "json", "--all", "--limit", "1", "--explain")
	if code != exitDone || !strings.Contains(stdout, `],"explain":{"index":null,"plan":"scan",`) || strings.Count(stdout, "explain") != 1 {
		t.Errorf("got code %d, %q and %q, want one explanation behind the instances", code, stdout, stderr)
	}
}

// TestInstanceListBreaks holds that a list which is broken off does not look
// whole.
func TestInstanceListBreaks(t *testing.T) {
	s := startService(t)
	s.Create(`{}`, "submit")
	s.Create(`{}`, "submit")
	for _, form := range []string{"json", "jsonl", "yaml", "table"} {
		s.Fail("instances", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "0"}, servertest.Fault{Status: 403, Code: "AccessDenied"})
		code, stdout, stderr := invoke("instance", "list", "leave", "--all", "--limit", "1", "-o", form)
		if code != exitFailed || !strings.Contains(stderr, "403 AccessDenied") || strings.HasSuffix(stdout, "}\n") && form == "json" {
			t.Errorf("%s: got code %d, %q and %q", form, code, stdout, stderr)
		}
	}
}

func TestInstanceShow(t *testing.T) {
	s := startService(t)
	id := s.Create(`{"n":1.50}`, "submit")
	record := `{"_id":"` + id + `","workflowId":"leave","svcPublic":{"n":1.50},"svcPrivate":{},"svcHistory":[` +
		`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"},` +
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"}],` +
		`"states":[{"stateMachineId":"main","nodeId":"review"}]}`
	tests := []invocation{
		{name: "a table", args: []string{"instance", "show", "leave", id}, stdout: "ID        " + id + "\nWORKFLOW  leave\nSTATES    main: review\nSEQUENCE  2\nPUBLIC    {\"n\":1.50}\nPRIVATE   {}\n\n" +
			"TIME                      USER      EVENT      FROM   TO\n" +
			"2026-11-21T10:00:00.000Z  john.doe  (created)  Start  draft\n" +
			"2026-11-21T10:00:01.000Z  john.doe  submit     draft  review\n"},
		{name: "JSON", args: []string{"instance", "show", "leave", id, "-o", "json"}, stdout: record + "\n"},
		{name: "an unknown instance", args: []string{"instance", "show", "leave", "x"}, code: exitFailed, stderr: "load leave/x: 404 NotFound"},
		{name: "no instance", args: []string{"instance", "show", "leave"}, code: exitUsage, stderr: "troupe: INSTANCE is missing: troupe instance show WORKFLOW INSTANCE\n"},
		{name: "an empty instance", args: []string{"instance", "show", "leave", ""}, code: exitUsage, stderr: "cannot be the id"},
	}
	runAll(t, tests)
}

func TestInstanceHistoryAndEvents(t *testing.T) {
	s := startService(t)
	id := s.Create(`{}`, "submit")
	entries := []string{
		`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"}`,
		`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:01.000Z"}`,
	}
	table := "TIME                      USER      EVENT      FROM   TO\n2026-11-21T10:00:00.000Z  john.doe  (created)  Start  draft\n"
	tests := []invocation{
		{name: "a page", args: []string{"instance", "history", "leave", id, "--limit", "1"}, stdout: table, stderr: "--cursor "},
		{name: "all", args: []string{"instance", "history", "leave", id, "--limit", "1", "--all", "-o", "jsonl"}, stdout: entries[0] + "\n" + entries[1] + "\n"},
		{name: "all as JSON", args: []string{"instance", "history", "leave", id, "--all", "-o", "json"}, stdout: `{"history":[` + entries[0] + "," + entries[1] + "]}\n"},
		{name: "JSON", args: []string{"instance", "history", "leave", id, "-o", "json"}, stdout: `{"history":[` + entries[0] + "," + entries[1] + "],\"next\":null}\n"},
		{name: "newest first", args: []string{"instance", "history", "leave", id, "--newest-first", "--limit", "1", "--all", "-o", "jsonl"}, stdout: entries[1] + "\n" + entries[0] + "\n"},
		{name: "history of nothing", args: []string{"instance", "history", "leave", "x"}, code: exitFailed, stderr: "404"},
		{name: "events", args: []string{"instance", "events", "leave", id}, stdout: "EVENT    GUARD    MACHINE  FROM    TO\n" +
			"approve  true     main     review  approved\nextend   unknown  main     review  approved\n" +
			"extend   true     main     review  review\nnote     true     main     review  \n"},
		{name: "events as YAML", args: []string{"instance", "events", "leave", id, "-o", "yaml"}, stdout: `events:
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
		{name: "events of nothing", args: []string{"instance", "events", "leave", "x"}, code: exitFailed, stderr: "404"},
	}
	runAll(t, tests)
}

func TestInstanceCreateAndSend(t *testing.T) {
	startService(t)
	file := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(file, []byte("{\"days\": 1e400}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := func(id, state, sequence, public, private string) string {
		return "ID        " + id + "\nWORKFLOW  leave\nSTATES    main: " + state + "\nSEQUENCE  " + sequence + "\nPUBLIC    " + public + "\nPRIVATE   " + private + "\n"
	}
	// create makes an instance that stands in draft, and returns its id.
	create := func(stdin, public, private string, args ...string) string {
		t.Helper()
		code, stdout, stderr := invokeWith(stdin, append([]string{"instance", "create", "leave"}, args...)...)
		id := strings.Fields(stdout + " - -")[1]
		if want := shown(id, "draft", "1", public, private); code != exitDone || stdout != want || stderr != "" {
			t.Fatalf("%v: got code %d, %q and\n%s\nwant\n%s", args, code, stderr, stdout, want)
		}
		return id
	}
	firstID := create("", "{}", "{}")
	secondID := create(`{"b": 2, "a": "<"}`, `{"days":1e400}`, `{"b":2,"a":"<"}`, "--public", "@"+file, "--private", "-", "--key", "k1")
	tests := []invocation{
		{name: "again with the same key", stdin: `{"b": 2, "a": "<"}`, args: []string{"instance", "create", "leave", "--public", "@" + file, "--private", "-", "--key", "k1"}, stdout: shown(secondID, "draft", "1", `{"days":1e400}`, `{"b":2,"a":"<"}`)},
		{name: "the key for something else", args: []string{"instance", "create", "leave", "--key", "k1"}, code: exitFailed, stderr: "422 KeyReused"},
		{name: "send", args: []string{"instance", "send", "leave", firstID, "submit", "--data", `{"days":5}`, "--if-match", "1"}, stdout: shown(firstID, "review", "2", `{"days":5}`, "{}")},
		{name: "moved on", args: []string{"instance", "send", "leave", firstID, "approve", "--if-match", `"1"`}, code: exitFailed, stderr: "412 PreconditionFailed"},
		{name: "not now", args: []string{"instance", "send", "leave", firstID, "submit"}, code: exitFailed, stderr: "409 EventNotAllowed"},
		{name: "an unknown event", args: []string{"instance", "send", "leave", firstID, "sbumit"}, code: exitFailed, stderr: "send sbumit to leave/" + firstID + ": 400 InvalidContent: event is not declared by the workflow: \"sbumit\""},
		{name: "an event that moves nothing", args: []string{"instance", "send", "leave", firstID, "note"}, stdout: shown(firstID, "review", "3", `{"days":5}`, "{}"), stderr: "note moved no state: the states are as before; troupe instance events leave " + firstID + " lists what moves it now\n"},
		{name: "JSON has the history", args: []string{"instance", "send", "leave", firstID, "approve", "-o", "json"}, stdout: `{"_id":"` + firstID + `","workflowId":"leave","svcPublic":{"days":5},"svcPrivate":{},"svcHistory":[` +
			`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2026-11-21T10:00:00.000Z"},` +
			`{"user":"john.doe","startState":["draft"],"transitionEvent":"submit","endState":["review"],"ts":"2026-11-21T10:00:04.000Z"},` +
			`{"user":"john.doe","startState":["review"],"transitionEvent":"note","endState":["review"],"ts":"2026-11-21T10:00:08.000Z"},` +
			`{"user":"john.doe","startState":["review"],"transitionEvent":"approve","endState":["approved"],"ts":"2026-11-21T10:00:09.000Z"}],` +
			`"states":[{"stateMachineId":"main","nodeId":"approved"}]}` + "\n"},

		{name: "data that is no JSON", args: []string{"instance", "create", "leave", "--public", "{a: 1}"}, code: exitUsage, stderr: "--public: must be JSON"},
		{name: "standard input twice", args: []string{"instance", "create", "leave", "--public", "-", "--private", "-"}, code: exitUsage, stderr: "once"},
		{name: "an impossible key", args: []string{"instance", "create", "leave", "--key", "a b"}, code: exitUsage, stderr: "idempotency key"},
		{name: "a sequence of zero", args: []string{"instance", "send", "leave", firstID, "approve", "--if-match", "0"}, code: exitUsage, stderr: "begin with 1"},
		{name: "no event", args: []string{"instance", "send", "leave", firstID}, code: exitUsage, stderr: "troupe: EVENT is missing: troupe instance send WORKFLOW INSTANCE EVENT\n"},
	}
	runAll(t, tests)
}

// TestInstanceSendLooks holds that a table says when an event moved nothing, without a
// history, and that the look which tells it fails no event.
func TestInstanceSendLooks(t *testing.T) {
	s := startService(t)
	send := func(remark bool, event string, args ...string) {
		t.Helper()
		id := s.Create(`{}`, "submit", "note")
		code, stdout, stderr := invoke(append([]string{"instance", "send", "leave", id, event}, args...)...)
		if code != exitDone || !strings.Contains(stdout, id) || (stderr != "") != remark || remark && !strings.HasPrefix(stderr, event+" moved no state: ") {
			t.Errorf("%s %v: got code %d, %q and %q, want a remark: %v", event, args, code, stdout, stderr, remark)
		}
	}
	send(true, "note")
	send(true, "wave")
	send(false, "approve")
	for _, r := range s.Requests() {
		isLabelled := strings.HasSuffix(r.Path, "/summary") || strings.Contains(r.Path, "/presentation/") // which have none
		if !isLabelled && r.Header.Get("Prefer") != "return=minimal" {
			t.Errorf("%s %s asks for a history that is not shown", r.Method, r.Path)
		}
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
	for _, want := range []string{"note moved no state", ""} {
		code, _, stderr := invoke("instance", "send", "leave", id, "note", "--key", "k")
		if code != exitDone || !strings.HasPrefix(stderr, want) || want == "" && stderr != "" {
			t.Errorf("a repetition: got code %d and %q, want %q", code, stderr, want)
		}
	}
}

// TestInstanceCreateUnknown holds that the key to ask again with is named.
func TestInstanceCreateUnknown(t *testing.T) {
	s := startService(t)
	// It is told to wait longer than it does, so it gives up at once.
	s.Fail("create", servertest.Fault{Status: 504, Code: "OutcomeUnknown", Done: true, RetryAfter: "31"})
	(&invocation{args: []string{"instance", "create", "leave", "--key", "my-key"}, code: exitFailed, stderr: "it is not known whether this was done: ask again with the key my-key"}).run(t)
	code, made, stderr := invoke("instance", "create", "leave", "--key", "my-key", "-o", "jsonl")
	_, all, _ := invoke("instance", "list", "leave", "-o", "jsonl", "--fields", "svcPrivate,svcHistory")
	if code != exitDone || made != all || strings.Count(all, "\n") != 1 {
		t.Errorf("got code %d, %q, and of all instances %q: %s; want it made once", code, made, all, stderr)
	}
}
