package script_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/simulation/script"
	"troupe/statemachine"
)

// TestADialogueShowsWhatAnInstanceIsLike, and what was refused, and goes on behind that.
func TestADialogueShowsWhatAnInstanceIsLike(t *testing.T) {
	known := office(t)
	steps, err := script.ParseSteps("body", []byte(`[
		{"as": "ann", "create": {}}, {"as": "ann", "send": "approve"}, {"as": "ann", "send": "ask", "data": {"days": 5}}, {"as": "bob", "send": "approve"}
	]`), "trip", "", known)
	require.NoError(t, err)
	of := simulationOf(known, "trip", steps)
	answer, err := of.Run()
	require.NoError(t, err)
	text := string(answer)
	for _, want := range []string{
		`{"steps":[{"state":{"_id":"`, `"error":{"status":`, `"title":"Decide about ann","for":["boss"]`, `"events":{"ann":["ask"]}`, `"sent":[{"webhook":"bank","body":{"days":5}}]`,
	} {
		assert.Contains(t, text, want)
	}
	again, err := of.Run()
	require.NoError(t, err)
	assert.Equal(t, text, string(again), "the same steps have another result")

	steps, err = script.ParseSteps("body", []byte(`[
		{"as": "ann", "create": {}, "expect": {"states": {"main": "late"}}}, {"as": "ann", "send": "ask", "data": {"days": 5}, "refused": true}
	]`), "trip", "", known)
	require.NoError(t, err)
	answer, err = simulationOf(known, "trip", steps).Run()
	require.NoError(t, err)
	assert.Contains(t, string(answer), `"error":{"status":422,"message":"not as expected: states.main: expected \"late\", found \"draft\""}`)
	assert.Contains(t, string(answer), `"error":{"status":422,"message":"expected the step to be refused, but it was done"}`)

	_, err = script.ParseSteps("body", []byte(`[{"as": "ann", "sent": "ask"}]`), "trip", "", known)
	assert.ErrorContains(t, err, "sent")
}

// simulationOf takes no time, and nobody ends it.
func simulationOf(known *script.Known, workflow string, steps []script.Step) *script.Simulation {
	return &script.Simulation{
		Known: known, Workflow: workflow, Now: script.DefaultNow, Steps: steps, Ended: func() error { return nil },
		Clock: func() time.Time { return script.DefaultNow },
	}
}

// hostile are definitions that do as much as they can.
const hostile = `
id: hostile
context: {svcPublic: {all: []}}
webhooks: {out: {url: 'https://example.org/'}}
stateMachines:
  main:
    initial: idle
    states:
      idle:
        on:
          loop: spinning
          tick: ticking
          tell: telling
          grow: {actions: [{assign: {svcPublic.all: '${svcPublic.all + [event.data.text]}'}}]}
      spinning: {always: {guard: 'size(svcPublic.all) >= 0', target: spinning2}}
      spinning2: {always: {guard: 'size(svcPublic.all) >= 0', target: spinning}}
      ticking: {after: {PT1M: ticked}}
      ticked: {after: {PT1M: ticking}}
      telling: {entry: [{webhook: {to: out, body: {all: '${svcPublic.all}'}}}], after: {PT1M: told}}
      told: {after: {PT1M: telling}}
`

// TestASimulationIsBounded by what it may cost, whatever the definition and the steps do, and says how far it has come.
func TestASimulationIsBounded(t *testing.T) {
	users, err := identity.ParseDirectory("identity.yaml", []byte("roles: []\nusers: [{id: ann, name: Ann, roles: []}, {id: bob, name: Bob, roles: [], disabled: true}]\n"))
	require.NoError(t, err)
	none := func(string, uint64) (*statemachine.Definition, error) { return nil, failure.ErrNotFound }
	known := script.NewPublished(users, none, parsed(t, hostile))
	simulate := func(steps string) *script.Simulation {
		t.Helper()
		read, err := script.ParseSteps("steps.json", []byte(`[{"create": {}}`+steps+`]`), "hostile", "ann", known)
		require.NoError(t, err)
		return simulationOf(known, "hostile", read)
	}
	refused := func(s *script.Simulation, why string) {
		t.Helper()
		answer, err := s.Run()
		assert.ErrorIs(t, err, failure.ErrInvalid)
		assert.ErrorContains(t, err, why)
		assert.Zero(t, len(answer)) //nolint:testifylint // it may be megabytes
	}

	// What an event may cost is refused as the service does.
	answer, err := simulate(`, {"send": "loop"}`).Run()
	require.NoError(t, err)
	assert.Contains(t, string(answer), `"error":{"status":500,"message":`)

	refused(simulate(strings.Repeat(`, {"advance": "PT1S"}`, script.StepsMax)), "at most 1000 steps, not 1001")
	answer, err = simulate(strings.Repeat(`, {"send": "tick"}`, script.StepsMax-1)).Run()
	require.NoError(t, err, "as many as there may be")
	assert.Less(t, len(answer), script.DialogueBytes)

	// Time is looked at between the events of one step: each look takes a second here.
	slow := simulate(`, {"send": "tick"}, {"advance": "P1D"}`)
	looks := 0
	slow.Clock = func() time.Time {
		looks++
		return script.DefaultNow.Add(time.Duration(looks) * time.Second)
	}
	refused(slow, "longer than 5s: it has come to step 3 of 3")
	assert.LessOrEqual(t, looks, 8)

	// So does the caller who leaves.
	left, asked := simulate(`, {"send": "tick"}, {"advance": "P1D"}`), 0
	left.Ended = func() error {
		if asked++; asked > 20 {
			return context.Canceled
		}
		return nil
	}
	_, err = left.Run()
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 21, asked, "it went on")

	// Each step answers the whole instance, and what is sent is kept.
	text := strings.Repeat("x", 90_000)
	refused(simulate(strings.Repeat(`, {"send": "grow", "data": {"text": "`+text+`"}}`, 10)+strings.Repeat(`, {"send": "tick"}`, 900)), "the answer has more than")
	refused(simulate(strings.Repeat(`, {"send": "grow", "data": {"text": "`+text+`"}}`, 10)+`, {"send": "tell"}, {"advance": "P1D"}`), "have more than")

	// Nobody is told who else there is.
	for _, login := range []string{"an", "bob"} {
		_, err = script.ParseSteps("steps.json", []byte(`[{"as": "`+login+`", "create": {}}]`), "hostile", "ann", known)
		assert.EqualError(t, err, `steps.json:1:9: there is no user "`+login+`" who can sign in`)
	}
}
