package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOnlyWhatNothingTookIsAnAttempt: neither a transition that stays where it is, nor a timer's nor a create's entry is one.
func TestOnlyWhatNothingTookIsAnAttempt(t *testing.T) {
	d := parseChart(t, "id: w\nevents: {idle: {}}\nstateMachines: {m: {initial: a, states: {a: {on: {stay: {actions: [{assign: {svcPublic.n: 1}}]}, again: a}}}}}\n")
	begun := started(t, d)
	for name, want := range map[EventName]bool{"stay": false, "again": false, "idle": true} {
		r, err := d.Step(&begun.Instance, Event{Name: name, Caller: &Caller{ID: "me"}})
		assert.True(t, err == nil && r.Entry.Attempt == want, "%s: got %v, %v, want %v", name, r.Entry.Attempt, err, want)
	}
}
