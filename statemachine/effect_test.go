package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestATimerSaysWhatItWillDo as far as that is sure: a guard may decide otherwise.
func TestATimerSaysWhatItWillDo(t *testing.T) {
	d := parseChart(t, `
id: w
stateMachines:
  m:
    initial: a
    states:
      a:
        after:
          P1D: b
          P2D: {actions: [{mail: {to: 'user:x', subject: s, body: b}}]}
          P3D: {target: b, guard: 'svcPublic.?late.orValue(true)'}
          P4D: {actions: [{assign: {svcPublic.late: true}}]}
      b: {type: final}
`)
	want := map[EventName]Effect{"after.P1D.a": {Target: "b"}, "after.P2D.a": {Mails: true}, "after.P3D.a": {}, "after.P4D.a": {}}
	timers := begin(t, d, nil).Timers()
	for _, timer := range timers {
		effect, known := want[timer.Event]
		assert.True(t, known && timer.Effect == effect, "%s: got %+v, want %+v", timer.Event, timer.Effect, effect)
	}
	assert.Len(t, timers, len(want))
}
