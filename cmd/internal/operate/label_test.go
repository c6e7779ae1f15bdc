package operate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/cli"
	"troupe/gateway/api"
	"troupe/gateway/client"
)

// TestLabels: nodes are called what people see, and by their ids where that is not known or not clear.
func TestLabels(t *testing.T) {
	l := newLabels(&api.Presentation{
		Titled:  true,
		Columns: []api.Column{{Path: "svcPublic.a", Label: "Größe"}, {Path: "..", Label: "no path"}},
		Nodes: []api.Status{
			{StateMachineID: "m", NodeID: "a", Label: "Open"},
			{StateMachineID: "m", NodeID: "b", Label: "b"},
			{StateMachineID: "n", NodeID: "c", Label: "One"},
			{StateMachineID: "o", NodeID: "c", Label: "Another"},
		},
		Events: []api.PresentedEvent{{Name: "go", Label: "Go on"}},
	})
	states := []api.Position{{StateMachineID: "m", NodeID: "a"}, {StateMachineID: "m", NodeID: "b"}, {StateMachineID: "o", NodeID: "c"}, {StateMachineID: "m", NodeID: "old"}}
	nodes := []string{"a", "b", "c", "old", "Start"}
	paths, heads := l.columns()
	for got, want := range map[string]string{
		l.stateText(states):              "m: Open, m: b, o: Another, m: old",
		l.idText(states):                 "m: Open (a), m: b, o: Another (c), m: old",
		l.nodeText(nodes):                "Open, b, c, old, Start",
		l.eventText(&api.HistoryEntry{}): "(created)",
		l.eventText(&api.HistoryEntry{TransitionEvent: "go"}):  "Go on",
		l.eventText(&api.HistoryEntry{TransitionEvent: "old"}): "old",
		heads[0]:                        "GRÖßE",
		l.event("after.P1D.a"):          "time ran out in Open",
		l.event("after.days"):           "after.days",
		l.timerText(timer("a", "b")):    "changes to b",
		l.timerText(timer("a", "")):     "timer of Open",
		l.timerText(mailing("mail")):    "sends a mail",
		l.timerText(mailing("webhook")): "calls a webhook",
		l.timerText(timer("", "")):      "Go on",
	} {
		assert.Equal(t, want, got)
	}
	assert.True(t, len(paths) == 1 && len(heads) == 1 && l.isTitled(), "got %v and %v", paths, heads)
	var none *labels
	got := none.timerText(timer("a", "b")) + none.event("go")
	assert.Equal(t, "gogo", got, "without labels")
	got = none.stateText(states[:1]) + none.nodeText(nodes[:1]) + none.idText(states[:1]) + none.eventText(&api.HistoryEntry{TransitionEvent: "go"})
	assert.True(t, got == "m: aam: ago" && !none.isTitled(), "without labels: got %q", got)
}

// timer is one with the event "go" of a node, that leads to another one; "": none.
func timer(node, target string) *api.Timer {
	t := &api.Timer{Event: "go", TargetID: target}
	if node != "" {
		t.NodeID = &node
	}
	return t
}

func mailing(what string) *api.Timer { return &api.Timer{Event: "go", Sends: []string{what}} }

// TestLabelsOfCompoundStates: a task or an event can belong to a state with others inside, at which no instance stands. It is called
// as the definition says, also where another state machine has a node of its name.
func TestLabelsOfCompoundStates(t *testing.T) {
	seen := newLabels(&api.Presentation{
		Nodes: []api.Status{
			{StateMachineID: "main", NodeID: "review", Label: "Waiting for a manager"},
			{StateMachineID: "paper", NodeID: "printing", Label: "Being printed"},
			{StateMachineID: "delivery", NodeID: "waiting", Label: "Not ordered yet"},
		},
		Compounds: []api.Status{{StateMachineID: "main", NodeID: "main", Label: "Approval"}, {StateMachineID: "main", NodeID: "waiting", Label: "To be decided"}},
	})
	var text strings.Builder
	task := &client.Task{Task: api.Task{StateMachineID: "main", NodeID: "waiting"}}
	err := showTask(&cli.Output{Form: cli.FormTable, To: &text}, task, seen)
	assert.True(t, err == nil && strings.Contains(text.String(), "main: To be decided\n"), "a task: got %v %s", err, &text)
	for node, want := range map[string]string{
		"waiting": "To be decided", "review": "Waiting for a manager", "main": "Approval",
		"printing": "Being printed", // in a region
		"gone":     "gone",
	} {
		rows := eventRows(&api.Event{Transitions: []api.Transition{{StateMachineID: "main", NodeID: node, Targets: []string{"x", "y"}, TargetLabels: []string{"An x", "A y"}}}}, seen)
		assert.True(t, rows[0][3] == want && rows[0][4] == "An x, A y", "an event of %s: got %q, want %q", node, rows, want)
	}
	seen = newLabels(&api.Presentation{Compounds: []api.Status{{StateMachineID: "main", NodeID: "waiting", Label: "To be decided"}}})
	what, _ := activityText(&api.Activity{Kind: "task", Action: "claim", NodeID: "waiting"}, seen)
	assert.Equal(t, "claim To be decided", what, "an entry of the activity")
	assert.Equal(t, "time ran out in To be decided", seen.event("after.P1D.waiting"), "a timer")
}

// TestLabelsOfATask: a task is in the words of the definition.
func TestLabelsOfATask(t *testing.T) {
	var text strings.Builder
	task := &client.Task{Task: api.Task{
		WorkflowID: "leave", StateMachineID: "main", NodeID: "review", Done: &api.TaskEnd{UserName: "Ann", Event: "approve"},
		Events: []api.TaskEvent{{Name: "approve", Label: "Go ahead"}, {Name: "note", Label: "note"}},
	}}
	seen := newLabels(&api.Presentation{
		Nodes: []api.Status{{StateMachineID: "main", NodeID: "review", Label: "To be decided"}}, Events: []api.PresentedEvent{{Name: "approve", Label: "Go ahead"}},
	})
	require.NoError(t, showTask(&cli.Output{Form: cli.FormTable, To: &text}, task, seen))
	for _, want := range []string{"main: To be decided\n", "Go ahead (approve), note\n", "Ann: Go ahead, "} {
		assert.Contains(t, text.String(), want)
	}
}
