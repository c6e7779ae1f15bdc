package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
)

func TestOperations(t *testing.T) {
	id := clitest.StartNotice(t)
	delivery := `{"id":"` + id + `-2-0","kind":"webhook","workflowId":"notice","instanceId":"` + id + `","name":"hook","state":"dead","attempts":1,` +
		`"created":"2026-11-21T10:00:01.000Z","nextAttempt":null,"lastStatus":500,"lastError":"the answer was 500"}`
	_, shown, _ := clitest.Invoke("incident", "list", "-o", "jsonl")
	incident := strings.TrimSuffix(shown, "\n") // its error is held by the tests of statemachine
	require.True(t, strings.HasPrefix(incident, `{"id":"`+id+`-2-`) && strings.Contains(incident, `"event":"late"`), "got the incident %s", incident)
	failed := incident[len(`{"id":"`):strings.Index(incident, `","workflowId"`)]
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "a table", Args: []string{"outbox", "list"}, Stdout: "" +
			"ID                              WORKFLOW  KIND     NAME  STATE  ATTEMPTS  NEXT  STATUS  ERROR\n" +
			id + "-2-0  notice    webhook  hook  dead   1               500     the answer was 500\n"},
		{Name: "JSON", Args: []string{"outbox", "list", "-o", "json", "--state", "dead"}, Stdout: `{"outbox":[` + delivery + `],"next":null}` + "\n"},
		{Name: "lines of all pages", Args: []string{"outbox", "list", "-o", "jsonl", "--all", "--limit", "1"}, Stdout: delivery + "\n"},
		{Name: "none", Args: []string{"outbox", "list", "-o", "jsonl", "--state", "pending"}},
		{Name: "an unknown state", Args: []string{"outbox", "list", "--state", "late"}, Code: cli.ExitFailed, Stderr: `"state" must be "pending" or "dead"`},
		{Name: "incidents", Args: []string{"instance", "list", "--incidents", "-o", "json"}, Stdout: `{"incidents":[` + incident + `],"next":null}` + "\n"},
		{Name: "incidents of all pages", Args: []string{"incident", "list", "-o", "jsonl", "--all", "--limit", "1"}, Stdout: incident + "\n"},
		{Name: "incidents of a workflow", Args: []string{"instance", "list", "notice", "--incidents"}, Code: cli.ExitUsage, Stderr: "those of all workflows"},
		{Name: "pending", Args: []string{"instance", "pending", "notice", id}, Stdout: "" +
			"ID                              WHAT     NAME                   STATE     ATTEMPTS  WHEN\n" +
			id + "-1-0  timer    changes to Taken down  pending             2026-11-22T10:00:00.000Z\n" +
			failed + "  timer    Comes late             incident            2026-11-21T10:00:01.000Z\n" +
			id + "-2-0  webhook  hook                   dead      1         \n"},
		{Name: "ids for programs", Args: []string{"instance", "pending", "notice", id, "-o", "yaml"}, Stdout: "" +
			"timers:\n" +
			"- id: \"" + id + "-1-0\"\n  event: after.P1D.open\n  stateMachineId: main\n  nodeId: open\n  due: \"2026-11-22T10:00:00.000Z\"\n  incident: false\n  targetId: closed\n" +
			"- id: \"" + failed + "\"\n  event: late\n  stateMachineId: null\n  nodeId: null\n  due: \"2026-11-21T10:00:01.000Z\"\n  incident: true\n" +
			"deliveries:\n" +
			"- id: \"" + id + "-2-0\"\n  kind: webhook\n  name: hook\n  state: dead\n  attempts: 1\n  nextAttempt: null\n" +
			"  url: \"https://example.org/hook\"\n  lastStatus: 500\n  lastError: the answer was 500\n" +
			"children: []\nended: null\nversion: 1\n"},
		{Name: "events", Args: []string{"instance", "events", "notice", id}, Stdout: "" +
			"EVENT    GUARD  MACHINE  FROM         TO  LABEL\n" +
			"tell     true   main     In the hall      tell\n" +
			"late     true   main     In the hall      Comes late\n" +
			"correct  true   main     In the hall      correct\n"},
		{Name: "running timers", Args: []string{"timer", "list", "--all", "--limit", "1"}, Stdout: "" +
			"ID                              WORKFLOW  INSTANCE                    TIMER                  DUE\n" +
			id + "-1-0  notice    " + id + "  changes to Taken down  2026-11-22T10:00:00.000Z\n"},
		{Name: "timers of no workflow", Args: []string{"timer", "list", "--workflow", "none", "-o", "json"}, Stdout: `{"timers":[],"next":null}` + "\n"},
		{Name: "retry fails again", Args: []string{"incident", "retry", failed}, Code: cli.ExitFailed, Stderr: "500 MarshallingError: the event failed again: "},
		{Name: "retry of a dead letter", Args: []string{"outbox", "retry", id + "-2-0"}},
		{Name: "one of two is there", Args: []string{"incident", "drop", "nothing", failed}, Code: cli.ExitFailed, Stderr: "drop incident nothing: 404 NotFound"},
		{Name: "no incidents", Args: []string{"incident", "list"}, Stdout: "ID  WORKFLOW  INSTANCE  EVENT  TIME  COUNT  ERROR\n"},
		{Name: "drop", Args: []string{"outbox", "drop", id + "-2-0"}},
		{Name: "an empty outbox", Args: []string{"outbox", "list"}, Stdout: "ID  WORKFLOW  KIND  NAME  STATE  ATTEMPTS  NEXT  STATUS  ERROR\n"},
		{Name: "no id", Args: []string{"outbox", "drop"}, Code: cli.ExitUsage, Stderr: "ID is missing"},
		{Name: "a home without a server", Args: []string{"outbox", "list", "--home", t.TempDir()}, Code: cli.ExitFailed, Stderr: "no server is running on "},
		{Name: "a home and an address", Args: []string{"outbox", "list", "--home", ".", "--address", "http://localhost"}, Code: cli.ExitUsage, Stderr: "--home names a server on this machine"},
	})
}

// TestInstanceStop: an instance that is stopped says by whom, and takes nothing more.
func TestInstanceStop(t *testing.T) {
	id := clitest.StartNotice(t)
	stopped := "notice/" + id + " was stopped, and everything it invoked is being stopped\n"
	_, listed, _ := clitest.Invoke("instance", "list", "notice", "-o", "jsonl")
	listed = strings.TrimSuffix(listed, "}\n")
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "without --tree", Args: []string{"instance", "stop", "notice", id}, Code: cli.ExitUsage, Stderr: "--tree is required: everything that the instance invoked is stopped with it"},
		{Name: "no instance", Args: []string{"instance", "stop", "notice", "--tree"}, Code: cli.ExitUsage, Stderr: "INSTANCE is missing"},
		{Name: "nothing by that name", Args: []string{"instance", "stop", "notice", "01M7YZAB2GNTJFQE62690KHSQT", "--tree"}, Code: cli.ExitFailed, Stderr: "stop notice/01M7YZAB2GNTJFQE62690KHSQT: 404 NotFound"},
		{Name: "a tree", Args: []string{"instance", "stop", "notice", id, "--tree"}, Stdout: stopped},
		{Name: "once more", Args: []string{"instance", "stop", "notice", id, "--tree"}, Stdout: stopped},
		{Name: "what pending shows", Args: []string{"instance", "pending", "notice", id}, Stdout: "" +
			"ID                              WHAT      NAME    STATE      ATTEMPTS  WHEN\n" +
			id + "      instance  notice  cancelled            \n" +
			id + "-2-0  webhook   hook    dead       1         \n"},
		{Name: "what it waits for", Args: []string{"timer", "list", "-o", "json"}, Stdout: `{"timers":[],"next":null}` + "\n"},
		{Name: "an event", Args: []string{"instance", "send", "notice", id, "tell"}, Code: cli.ExitFailed, Stderr: "409 Ended: the instance was stopped, or"},
		{Name: "a list", Args: []string{"instance", "list", "notice"}, Stdout: "" +
			"ID                          STATES\n" + id + "  main: In the hall; cancelled\n"},
		{Name: "lines of a list", Args: []string{"instance", "list", "notice", "-o", "jsonl", "--all"}, Stdout: listed + `,"cancelled":true}` + "\n"},
	})
	_, shown, _ := clitest.Invoke("instance", "show", "notice", id)
	assert.Contains(t, shown, "\nENDED     cancelled\n", "it is shown")
	_, shown, _ = clitest.Invoke("instance", "show", "notice", id, "-o", "json")
	assert.True(t, strings.HasSuffix(shown, `,"cancelled":true}`+"\n") && !strings.Contains(listed, "cancelled"), "%v %v", shown, listed)
	_, shown, _ = clitest.Invoke("instance", "history", "notice", id, "-o", "jsonl")
	lines := strings.Split(strings.TrimSpace(shown), "\n")
	last := lines[len(lines)-1]
	assert.True(t, strings.Contains(last, `"transitionEvent":"parent.cancelled"`) && strings.Contains(last, `"user":"john.doe"`), "the last entry is %s", last)
}

func TestScheduleCommands(t *testing.T) {
	clitest.StartNotice(t)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "a table", Args: []string{"schedule", "list"}, Stdout: "" +
			"SCHEDULE       CRON       ZONE           PAUSED  LAST  NEXT                      ERROR\n" +
			"notice/yearly  0 7 1 1 *  Europe/Berlin  false         2027-01-01T06:00:00.000Z  \n"},
		{Name: "run", Args: []string{"schedule", "run", "notice/yearly"}},
		{Name: "pause", Args: []string{"schedule", "pause", "notice/yearly"}},
		{Name: "JSON", Args: []string{"schedule", "list", "-o", "json"}, Stdout: `{"schedules":[{"workflowId":"notice","name":"yearly","cron":"0 7 1 1 *","zone":"Europe/Berlin","paused":true,"last":"2026-11-21T10:00:02.000Z","next":null,"lastError":""}]}` + "\n"},
		{Name: "resume all", Args: []string{"schedule", "resume", "--all"}},
		{Name: "nothing to resume", Args: []string{"schedule", "resume", "--all"}},
		{Name: "one of two is there", Args: []string{"schedule", "pause", "notice/none", "notice/yearly"}, Code: cli.ExitFailed, Stderr: "pause schedule notice/none: 404 NotFound"},
		{Name: "no schedule", Args: []string{"schedule", "run"}, Code: cli.ExitUsage, Stderr: "WORKFLOW/NAME is missing"},
		{Name: "no workflow", Args: []string{"schedule", "run", "yearly"}, Code: cli.ExitUsage, Stderr: "WORKFLOW/NAME"},
		{Name: "all and one", Args: []string{"schedule", "resume", "--all", "notice/yearly"}, Code: cli.ExitUsage, Stderr: "WORKFLOW/NAME"},
	})
}

// TestCheckWarnsOfSending: of webhooks that lead nowhere, and of settings of what is not there.
func TestCheckWarnsOfSending(t *testing.T) {
	dir := clitest.ExampleHome(t)
	check := func(want ...string) {
		t.Helper()
		_, stdout, stderr := clitest.Invoke("check", "--home", dir)
		for _, text := range want {
			assert.Contains(t, stdout+stderr, text, "got %s%s", stdout, stderr)
		}
		assert.False(t, len(want) == 0 && strings.Contains(stdout+stderr, "warning"), "got %s%s", stdout, stderr)
	}
	check()
	clitest.Edit(t, dir, "troupe.yaml", "supplier:", "suplier:")
	check("purchase-order.yaml:73: webhook supplier has no url", "webhooks.endpoints of troupe.yaml has a webhook suplier, but the definition has no webhook of that name (did you mean supplier?)")
	clitest.Edit(t, dir, "troupe.yaml", "purchase-order:", "purchase-ordr:")
	check("webhooks.endpoints has the workflow purchase-ordr, which is not defined (did you mean purchase-order?)")
}
