package statemachine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func rendered(events []Available) string {
	var lines []string
	for _, e := range events {
		line := fmt.Sprintf("%s %s:", e.Name, e.Guard)
		for _, t := range e.Transitions {
			line += fmt.Sprintf(" %s.%s", t.From.Machine, t.From.Node)
			for _, target := range t.Targets {
				line += fmt.Sprintf(">%s", target)
			}
			line += fmt.Sprintf(" %s;", t.Guard)
		}
		if e.Schema != nil {
			line += " " + string(e.Schema)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// machineOf is a definition of one state machine; on is what its first node takes.
func machineOf(on string) string {
	return "id: w\nstateMachines: {main: {initial: a, states: {a: {on: {" + on + "}}, b: {on: {back: a}}}}}\n"
}

// TestAvailableSeesTheTimeThatStepSees: it never goes back within an instance.
func TestAvailableSeesTheTimeThatStepSees(t *testing.T) {
	parsed := parseChart(t, machineOf(`go: {guard: 'now >= timestamp("2026-01-01T00:00:00Z")', target: b}`))
	caller := &Caller{ID: "john"}
	r, err := parsed.Create(Creation{ID: "i", Caller: caller, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	late := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // a clock that was set back
	next, err := parsed.Step(&r.Instance, Event{Name: "go", Caller: caller, Now: late})
	require.True(t, err == nil && next.Outcome == Moved, "control: %+v, %v", next, err)
	assert.Equal(t, "go true: main.a>b true;", rendered(View{Instance: &r.Instance, Of: parsed}.Available(caller, late)))
}
