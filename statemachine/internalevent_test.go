package statemachine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func begin(t *testing.T, d *Definition, parent *Parent) *Instance {
	t.Helper()
	r, err := d.Create(Creation{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Internal: true, Parent: parent, Now: testTime})
	require.NoError(t, err)
	return &r.Instance
}

func nodes(d *Definition, in *Instance) string { return string(d.States(in)) }

// TestAnOutcomeThatHasFailedIsTakenAgain also with the rules of SCXML, whose descriptors are no exact names.
func TestAnOutcomeThatHasFailedIsTakenAgain(t *testing.T) {
	for _, semantics := range []string{"native", "scxml", "xstate"} {
		d := parseChart(t, "id: w\nsemantics: "+semantics+"\nwebhooks: {to: {url: 'https://example.org', onDone: delivered}}\n"+
			"stateMachines: {m: {states: {a: {entry: [{webhook: {to: to}}], on: {delivered: b}}, b: {on: {back: a}}}}}\n")
		in := d.FailEvent(begin(t, d, nil), "delivered", data.Value("{}"), testTime)
		r, err := d.Fire(&in, in.Timers()[0].ID, testTime)
		if err != nil || !strings.Contains(nodes(d, &r.Instance), `"b"`) {
			t.Errorf("%s: got %s, %v", semantics, nodes(d, &r.Instance), err)
		}
	}
}

// TestAnEventThatFailedIsHeardOnce: the one who sent it may bring it again.
func TestAnEventThatFailedIsHeardOnce(t *testing.T) {
	d := parseChart(t, "id: w\nsemantics: scxml\nstateMachines: {m: {states: {a: {on: {go: {target: b, actions: [{assign: {svcPublic.x: '${1 / 0}'}}]}}}, b: {}}}}\n")
	in := begin(t, d, &Parent{Workflow: "above", Instance: "01ARZ3NDEKTSV4RRFFQ69G5FAA", Child: ElementID{Sequence: 7, Number: 1}})
	h := Heard{Event: "go", From: ElementID{Sequence: 3, Number: 0}}
	failed, err := d.FailHear(in, h, testTime)
	if err != nil || len(failed.Timers()) != 1 {
		t.Fatalf("got %v, %v", failed.Timers(), err)
	}
	r, err := d.Hear(&failed, h, testTime)
	assert.True(t, err == nil && r.Outcome == Ignored, "once more: got %v, %v", r.Outcome, err)
}
