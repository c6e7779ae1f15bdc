package workflow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine"
)

// counting is a workflow with a title and a column.
const counting = `
id: counting
title: 'Number ${svcPublic.n}'
columns: [svcPublic.n, svcPublic.none]
allow: {read: {roles: [member]}, create: {roles: [member]}}
context: {svcPublic: {n: 0}}
stateMachines:
  m:
    states:
      a: {on: {count: {actions: [{assign: {svcPublic.n: '${svcPublic.n + 1}'}}]}, end: z}}
      z: {tone: good, type: final}
`

// TestSummaryAndWayOfAnInstance: of a long history too, the newest entries first.
func TestSummaryAndWayOfAnInstance(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	shown := presentation.New(presentation.Options{Instances: h.Router, Queries: h.Router.Queries, Catalog: h.Catalog, Store: h.Store, Clock: h.Clock})
	h.Publish(counting)
	id := h.Make(member, "counting", `{}`)
	of := &message.Load{Caller: boss, WorkflowID: "counting", InstanceID: id}
	const events = 601
	for range events - 1 {
		h.MustSend(boss, "counting", id, "count", "")
	}
	h.MustSend(boss, "counting", id, "end", "")

	s, err := shown.Summary(t.Context(), of)
	if err != nil || s.Title.For() != "Number 600" || s.Requester != "mem" || s.Sequence != events+1 || !s.IsDone || s.IsEnded || s.Form != nil || s.Created.After(s.Updated) {
		t.Errorf("got %+v, %v", s, err)
	}
	assert.True(t, len(s.Values) == 2 && string(s.Values[0]) == "600" && s.Values[1] == nil && len(s.At) == 1 && s.At[0].Node == "z", "%v %v", s.Values, s.At)
	way, err := shown.Trace(t.Context(), of, 0)
	if err != nil || len(way.Steps) != events+1 || way.Sequence != events+1 || way.At[0].Node != "z" {
		t.Fatalf("got %d steps, %v", len(way.Steps), err)
	}
	seen := map[string]int{}
	for _, step := range way.Steps {
		seen[string(step.Event)+" "+string(step.Start[0])+" "+string(step.End[0])]++
	}
	assert.True(t, seen["end a z"] == 1 && seen["count a a"] == events-1 && seen[" Start a"] == 1, "got %v", seen)
	for at, want := range map[uint64]statemachine.NodeID{1: "a", 2: "a", 251: "a", events: "a", events + 1: "z"} {
		way, err = shown.Trace(t.Context(), of, at)
		require.NoError(t, err, "entry %d", at)
		assert.Equal(t, want, way.At[0].Node, "entry %d", at)
		assert.Len(t, way.Steps, int(at), "entry %d", at)
	}
	_, err = shown.Trace(t.Context(), of, events+2)
	assert.ErrorIs(t, err, failure.ErrNotFound, "an entry that is not there")

	of.Caller = eve
	_, err = shown.Summary(t.Context(), of)
	assert.ErrorIs(t, err, failure.ErrForbidden, "a summary for who may not read")
	_, err = shown.Trace(t.Context(), of, 1)
	assert.ErrorIs(t, err, failure.ErrForbidden, "a way for who may not read")
	for version, want := range map[uint64]error{0: nil, 1: nil, 2: failure.ErrNotFound} {
		d, err := shown.Presented(member, "counting", version)
		assert.True(t, errors.Is(err, want) && (err != nil || d.Version == 1), "version %d: got %v", version, err)
	}
	_, err = shown.Presented(eve, "counting", 0)
	assert.ErrorIs(t, err, failure.ErrForbidden, "a presentation for who may not read")
	_, err = shown.Presented(boss, "none", 0)
	assert.ErrorIs(t, err, failure.ErrNotFound, "a presentation of nothing")
}
