package workflow_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/statemachine"
)

// seen is a workflow with titles, of which each fails without a name.
const seen = `
id: seen
name: Seen
title: 'Of ${svcPublic.name}'
stateMachines: {m: {states: {a: {on: {go: b}}, b: {on: {back: a}}}}}
`

func at(node string) statemachine.Position {
	return statemachine.Position{Machine: "m", Node: statemachine.NodeID(node)}
}

// TestStandingCountsInstances: few are counted, and of many there is an estimate.
func TestStandingCountsInstances(t *testing.T) {
	h := startQueries(t, query.Options{})
	h.Publish(seen)
	publics := make([]string, 3000)
	for i := range publics {
		publics[i] = fmt.Sprintf(`{"name":"%d"}`, i)
	}
	ids := h.Fill("seen", publics)
	for _, id := range ids[:40] {
		h.MustSend(boss, "seen", id, "go", "")
	}
	positions := []statemachine.Position{at("a"), at("b"), at("none")}
	got, err := h.Service.Standing(t.Context(), boss, "seen", positions)
	want := []query.Standing{{At: at("a"), Instances: 2960}, {At: at("b"), Instances: 40}, {At: at("none")}}
	assert.True(t, err == nil && slices.Equal(got, want), "got %v, %v, want %v", got, err, want)
	for range 4000 { // so many positions share the rows that are read
		positions = append(positions, at("none"))
	}
	got, err = h.Service.Standing(t.Context(), boss, "seen", positions)
	if err != nil || !got[0].About || got[0].Instances < 2000 || got[0].Instances > 4000 || got[1].About || got[1].Instances != 40 {
		t.Errorf("an estimate: got %v, %v", got[:2], err)
	}
	h.Service.Stop()
	_, err = h.Service.Standing(t.Context(), boss, "seen", positions)
	assert.ErrorIs(t, err, failure.ErrUnavailable, "after the end")
}
