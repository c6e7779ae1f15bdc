package presentation_test

import (
	"errors"
	"testing"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/workflow/workflowtest"
)

// told is a workflow with a title and a column, which counts.
const told = `
id: told
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
	shown := presentation.New(presentation.Options{Instances: h.Router, Catalog: h.Catalog, Store: h.Store, Clock: h.Clock})
	member, boss, eve := workflowtest.Member, workflowtest.Boss, workflowtest.Eve
	h.Publish(told)
	id := h.Make(member, "told", `{}`)
	of := &message.Load{Caller: boss, WorkflowID: "told", InstanceID: id}
	const events = 601
	for range events - 1 {
		h.MustSend(boss, "told", id, "count", "")
	}
	h.MustSend(boss, "told", id, "end", "")

	s, err := shown.Summary(t.Context(), of)
	if err != nil || s.Title.For() != "Number 600" || s.Requester != "mem" || s.Sequence != events+1 || !s.IsDone || s.IsEnded || s.Form != nil || s.Created.After(s.Updated) {
		t.Errorf("got %+v, %v", s, err)
	}
	if len(s.Values) != 2 || string(s.Values[0]) != "600" || s.Values[1] != nil || len(s.At) != 1 || s.At[0].Node != "z" {
		t.Errorf("got the values %q at %v", s.Values, s.At)
	}
	way, err := shown.Trace(t.Context(), of)
	if err != nil || len(way.Steps) != events+1 || way.Sequence != events+1 || way.At[0].Node != "z" {
		t.Fatalf("got %d steps, %v", len(way.Steps), err)
	}
	seen := map[string]int{}
	for _, step := range way.Steps {
		seen[string(step.Event)+" "+string(step.Start[0])+" "+string(step.End[0])]++
	}
	if seen["end a z"] != 1 || seen["count a a"] != events-1 || seen[" Start a"] != 1 {
		t.Errorf("got %v", seen)
	}

	of.Caller = eve
	if _, err := shown.Summary(t.Context(), of); !errors.Is(err, failure.ErrForbidden) {
		t.Errorf("a summary for who may not read: got %v", err)
	}
	if _, err := shown.Trace(t.Context(), of); !errors.Is(err, failure.ErrForbidden) {
		t.Errorf("a way for who may not read: got %v", err)
	}
	for version, want := range map[uint64]error{0: nil, 1: nil, 2: failure.ErrNotFound} {
		if d, err := shown.Presented(member, "told", version); !errors.Is(err, want) || err == nil && d.Version != 1 {
			t.Errorf("version %d: got %v", version, err)
		}
	}
	if _, err := shown.Presented(eve, "told", 0); !errors.Is(err, failure.ErrForbidden) {
		t.Errorf("a presentation for who may not read: got %v", err)
	}
	if _, err := shown.Presented(boss, "none", 0); !errors.Is(err, failure.ErrNotFound) {
		t.Errorf("a presentation of nothing: got %v", err)
	}
}
