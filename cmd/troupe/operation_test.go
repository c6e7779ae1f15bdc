package main

import (
	"strings"
	"testing"

	"troupe/gateway/api"
	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// startNotice starts a service that the commands of the test ask, with a dead letter and an incident.
func startNotice(t *testing.T) (id string) {
	t.Helper()
	isolated(t)
	s, id := servertest.StartNotice(t)
	t.Setenv("TROUPE_ADDRESS", s.URL)
	t.Setenv("TROUPE_TOKEN", s.Token)
	return id
}

func TestOperations(t *testing.T) {
	id := startNotice(t)
	delivery := `{"id":"` + id + `-2-0","kind":"webhook","workflowId":"notice","instanceId":"` + id + `","name":"hook","state":"dead","attempts":1,` +
		`"created":"2026-11-21T10:00:01.000Z","nextAttempt":null,"lastStatus":500,"lastError":"the answer was 500"}`
	_, shown, _ := invoke("incident", "list", "-o", "jsonl")
	incident := strings.TrimSuffix(shown, "\n") // its error is held by the tests of statemachine
	if !strings.HasPrefix(incident, `{"id":"`+id+`-2-`) || !strings.Contains(incident, `"event":"late"`) {
		t.Fatalf("got the incident %s", incident)
	}
	failed := incident[len(`{"id":"`):strings.Index(incident, `","workflowId"`)]
	runAll(t, []invocation{
		{name: "a table", args: []string{"outbox", "list"}, stdout: "" +
			"ID                              WORKFLOW  KIND     NAME  STATE  ATTEMPTS  NEXT  STATUS  ERROR\n" +
			id + "-2-0  notice    webhook  hook  dead   1               500     the answer was 500\n"},
		{name: "JSON", args: []string{"outbox", "list", "-o", "json", "--state", "dead"}, stdout: `{"outbox":[` + delivery + `],"next":null}` + "\n"},
		{name: "lines of all pages", args: []string{"outbox", "list", "-o", "jsonl", "--all", "--limit", "1"}, stdout: delivery + "\n"},
		{name: "none", args: []string{"outbox", "list", "-o", "jsonl", "--state", "pending"}},
		{name: "an unknown state", args: []string{"outbox", "list", "--state", "late"}, code: exitFailed, stderr: `"state" must be "pending" or "dead"`},
		{name: "incidents", args: []string{"instance", "list", "--incidents", "-o", "json"}, stdout: `{"incidents":[` + incident + `],"next":null}` + "\n"},
		{name: "incidents of all pages", args: []string{"incident", "list", "-o", "jsonl", "--all", "--limit", "1"}, stdout: incident + "\n"},
		{name: "incidents of a workflow", args: []string{"instance", "list", "notice", "--incidents"}, code: exitUsage, stderr: "those of all workflows"},
		{name: "pending", args: []string{"instance", "pending", "notice", id}, stdout: "" +
			"ID                              WHAT     NAME                   STATE     ATTEMPTS  WHEN\n" +
			id + "-1-0  timer    changes to Taken down  pending             2026-11-22T10:00:00.000Z\n" +
			failed + "  timer    Comes late             incident            2026-11-21T10:00:01.000Z\n" +
			id + "-2-0  webhook  hook                   dead      1         \n"},
		{name: "ids for programs", args: []string{"instance", "pending", "notice", id, "-o", "yaml"}, stdout: "" +
			"timers:\n" +
			"- id: \"" + id + "-1-0\"\n  event: after.P1D.open\n  stateMachineId: main\n  nodeId: open\n  due: \"2026-11-22T10:00:00.000Z\"\n  incident: false\n  targetId: closed\n" +
			"- id: \"" + failed + "\"\n  event: late\n  stateMachineId: null\n  nodeId: null\n  due: \"2026-11-21T10:00:01.000Z\"\n  incident: true\n" +
			"deliveries:\n" +
			"- id: \"" + id + "-2-0\"\n  kind: webhook\n  name: hook\n  state: dead\n  attempts: 1\n  nextAttempt: null\n" +
			"  url: \"https://example.org/hook\"\n  lastStatus: 500\n  lastError: the answer was 500\n" +
			"children: []\nended: null\nversion: 1\n"},
		{name: "events", args: []string{"instance", "events", "notice", id}, stdout: "" +
			"EVENT    GUARD  MACHINE  FROM         TO  LABEL\n" +
			"tell     true   main     In the hall      tell\n" +
			"late     true   main     In the hall      Comes late\n" +
			"correct  true   main     In the hall      correct\n"},
		{name: "running timers", args: []string{"timer", "list", "--all", "--limit", "1"}, stdout: "" +
			"ID                              WORKFLOW  INSTANCE                    TIMER                  DUE\n" +
			id + "-1-0  notice    " + id + "  changes to Taken down  2026-11-22T10:00:00.000Z\n"},
		{name: "timers of no workflow", args: []string{"timer", "list", "--workflow", "none", "-o", "json"}, stdout: `{"timers":[],"next":null}` + "\n"},
		{name: "retry fails again", args: []string{"incident", "retry", failed}, code: exitFailed, stderr: "500 MarshallingError: the event failed again: "},
		{name: "retry of a dead letter", args: []string{"outbox", "retry", id + "-2-0"}},
		{name: "one of two is there", args: []string{"incident", "drop", "nothing", failed}, code: exitFailed, stderr: "drop incident nothing: 404 NotFound"},
		{name: "no incidents", args: []string{"incident", "list"}, stdout: "ID  WORKFLOW  INSTANCE  EVENT  TIME  COUNT  ERROR\n"},
		{name: "drop", args: []string{"outbox", "drop", id + "-2-0"}},
		{name: "an empty outbox", args: []string{"outbox", "list"}, stdout: "ID  WORKFLOW  KIND  NAME  STATE  ATTEMPTS  NEXT  STATUS  ERROR\n"},
		{name: "no id", args: []string{"outbox", "drop"}, code: exitUsage, stderr: "ID is missing"},
		{name: "a home without a server", args: []string{"outbox", "list", "--home", t.TempDir()}, code: exitFailed, stderr: "no server is running on "},
		{name: "a home and an address", args: []string{"outbox", "list", "--home", ".", "--address", "http://localhost"}, code: exitUsage, stderr: "--home is a service of this machine"},
	})
}

// TestInstanceStop: an instance that is stopped says by whom, and takes nothing more.
func TestInstanceStop(t *testing.T) {
	id := startNotice(t)
	stopped := "notice/" + id + " has ended; what it had invoked ends with it\n"
	_, listed, _ := invoke("instance", "list", "notice", "-o", "jsonl")
	listed = strings.TrimSuffix(listed, "}\n")
	runAll(t, []invocation{
		{name: "without --tree", args: []string{"instance", "stop", "notice", id}, code: exitUsage, stderr: "say --tree: with the instance all that it has invoked ends"},
		{name: "no instance", args: []string{"instance", "stop", "notice", "--tree"}, code: exitUsage, stderr: "INSTANCE is missing"},
		{name: "nothing by that name", args: []string{"instance", "stop", "notice", "01M7YZAB2GNTJFQE62690KHSQT", "--tree"}, code: exitFailed, stderr: "stop notice/01M7YZAB2GNTJFQE62690KHSQT: 404 NotFound"},
		{name: "a tree", args: []string{"instance", "stop", "notice", id, "--tree"}, stdout: stopped},
		{name: "once more", args: []string{"instance", "stop", "notice", id, "--tree"}, stdout: stopped},
		{name: "what pending shows", args: []string{"instance", "pending", "notice", id}, stdout: "" +
			"ID                              WHAT      NAME    STATE      ATTEMPTS  WHEN\n" +
			id + "      instance  notice  cancelled            \n" +
			id + "-2-0  webhook   hook    dead       1         \n"},
		{name: "what it waits for", args: []string{"timer", "list", "-o", "json"}, stdout: `{"timers":[],"next":null}` + "\n"},
		{name: "an event", args: []string{"instance", "send", "notice", id, "tell"}, code: exitFailed, stderr: "409 Ended: the instance was stopped, or"},
		{name: "a list", args: []string{"instance", "list", "notice"}, stdout: "" +
			"ID                          STATES\n" + id + "  main: In the hall; cancelled\n"},
		{name: "lines of a list", args: []string{"instance", "list", "notice", "-o", "jsonl", "--all"}, stdout: listed + `,"cancelled":true}` + "\n"},
	})
	_, shown, _ := invoke("instance", "show", "notice", id)
	if !strings.Contains(shown, "\nENDED     cancelled\n") {
		t.Errorf("it is shown as\n%s", shown)
	}
	if _, shown, _ := invoke("instance", "show", "notice", id, "-o", "json"); !strings.HasSuffix(shown, `,"cancelled":true}`+"\n") || strings.Contains(listed, "cancelled") {
		t.Errorf("as JSON it is %s, and was listed as %s before", shown, listed)
	}
	_, shown, _ = invoke("instance", "history", "notice", id, "-o", "jsonl")
	lines := strings.Split(strings.TrimSpace(shown), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"transitionEvent":"parent.cancelled"`) || !strings.Contains(last, `"user":"john.doe"`) {
		t.Errorf("the last entry is %s", last)
	}
}

func TestScheduleCommands(t *testing.T) {
	startNotice(t)
	runAll(t, []invocation{
		{name: "a table", args: []string{"schedule", "list"}, stdout: "" +
			"SCHEDULE       CRON       ZONE           PAUSED  LAST  NEXT                      ERROR\n" +
			"notice/yearly  0 7 1 1 *  Europe/Berlin  false         2027-01-01T06:00:00.000Z  \n"},
		{name: "run", args: []string{"schedule", "run", "notice/yearly"}},
		{name: "pause", args: []string{"schedule", "pause", "notice/yearly"}},
		{name: "JSON", args: []string{"schedule", "list", "-o", "json"}, stdout: `{"schedules":[{"workflowId":"notice","name":"yearly","cron":"0 7 1 1 *","zone":"Europe/Berlin","paused":true,"last":"2026-11-21T10:00:02.000Z","next":null,"lastError":""}]}` + "\n"},
		{name: "resume all", args: []string{"schedule", "resume", "--all"}},
		{name: "nothing to resume", args: []string{"schedule", "resume", "--all"}},
		{name: "one of two is there", args: []string{"schedule", "pause", "notice/none", "notice/yearly"}, code: exitFailed, stderr: "pause schedule notice/none: 404 NotFound"},
		{name: "no schedule", args: []string{"schedule", "run"}, code: exitUsage, stderr: "WORKFLOW/NAME is missing"},
		{name: "no workflow", args: []string{"schedule", "run", "yearly"}, code: exitUsage, stderr: "WORKFLOW/NAME"},
		{name: "all and one", args: []string{"schedule", "resume", "--all", "notice/yearly"}, code: exitUsage, stderr: "WORKFLOW/NAME"},
	})
}

// TestCheckWarnsOfSending: of webhooks that lead nowhere, and of settings of what is not there.
func TestCheckWarnsOfSending(t *testing.T) {
	dir := exampleHome(t)
	check := func(want ...string) {
		t.Helper()
		_, stdout, stderr := invoke("check", "--home", dir)
		for _, text := range want {
			if !strings.Contains(stdout+stderr, text) {
				t.Errorf("got %s%s, want %s in it", stdout, stderr, text)
			}
		}
		if len(want) == 0 && strings.Contains(stdout+stderr, "warning") {
			t.Errorf("got %s%s", stdout, stderr)
		}
	}
	check()
	edit(t, dir, "troupe.yaml", "supplier:", "suplier:")
	check("purchase-order.yaml:73: webhook supplier has no url", "webhooks.endpoints of troupe.yaml has a webhook suplier, and the definition has none of that name (did you mean supplier?)")
	edit(t, dir, "troupe.yaml", "purchase-order:", "purchase-ordr:")
	check("webhooks.endpoints has the workflow purchase-ordr, which nobody defines (did you mean purchase-order?)")
}

// TestLabelsOfWhatHappened: what has happened to an instance, and a task, is in the words of the definition.
func TestLabelsOfWhatHappened(t *testing.T) {
	id := startNotice(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instance", "activity", "notice", id}, "timer    changes to Taken down"},
		{[]string{"instance", "activity", "notice", id}, "event    (Start → In the hall)"},
		{[]string{"instance", "activity", "notice", id, "-o", "jsonl"}, `"endState":["open"]`},
		{[]string{"instance", "history", "notice", id}, "In the hall"},
		{[]string{"incident", "list"}, "  Comes late  "},
		{[]string{"incident", "list", "-o", "jsonl"}, `"event":"late"`},
	} {
		if code, stdout, stderr := invoke(c.args...); code != exitDone || !strings.Contains(stdout, c.want) {
			t.Errorf("%q: got %d %q %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
	var text strings.Builder
	task := &client.Task{Task: api.Task{
		WorkflowID: "leave", StateMachineID: "main", NodeID: "review", Done: &api.TaskEnd{UserName: "Ann", Event: "approve"},
		Events: []api.TaskEvent{{Name: "approve", Label: "Go ahead"}, {Name: "note", Label: "note"}},
	}}
	seen := newLabels(&api.Presentation{
		Nodes: []api.Status{{StateMachineID: "main", NodeID: "review", Label: "To be decided"}}, Events: []api.PresentedEvent{{Name: "approve", Label: "Go ahead"}},
	})
	if err := showTask(&output{form: formTable, to: &text}, task, seen); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"main: To be decided\n", "Go ahead (approve), note\n", "Ann: Go ahead, "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got %q, want %q", &text, want)
		}
	}
}
