package workflow_test

import (
	"fmt"
	"slices"
	"testing"

	"troupe/actors/task"
	"troupe/actors/workflow/workflowtest"
)

const benchedWorkflow = "id: %s\nallow: {create: {roles: [member]}, read: %s}\n" +
	"stateMachines: {m: {initial: wait, states: {wait: {task: {for: {roles: [manager]}, due: P1D}, on: {done: {target: end, allow: {roles: [manager]}}}}, end: {type: final}}}}\n"

// BenchmarkHiddenTasks lists the first page of a manager who has 60 tasks behind many that nobody shows to her: of a workflow that she may not read, or of
// instances that a condition hides.
func BenchmarkHiddenTasks(b *testing.B) {
	for _, c := range []struct {
		name, read string
		hidden     int
	}{
		{"none", "{roles: [auditor]}", 0},
		{"of another workflow", "{roles: [auditor]}", 50_000},
		{"by a condition", "{when: 'svcPublic.owner == user.id'}", 30_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := workflowtest.Start(b, workflowtest.Options{})
			h.Publish(fmt.Sprintf(benchedWorkflow, "hidden", c.read), fmt.Sprintf(benchedWorkflow, "shown", "{roles: [manager]}"))
			h.Fill("hidden", slices.Repeat([]string{`{"owner":"nobody","text":"something"}`}, c.hidden))
			h.Fill("shown", slices.Repeat([]string{`{"text":"something"}`}, 60))
			mary := workflowtest.Principal("mary", []string{"employee", "manager"})
			for _, req := range []task.ListRequest{{}, {Count: true}, {Sort: "title"}} {
				req.Caller, req.Scope, req.Limit = mary, task.ScopeAll, 50
				b.Run(fmt.Sprintf("sort=%s,count=%t", req.Sort, req.Count), func(b *testing.B) {
					tasks, counted := 0, false
					for b.Loop() {
						page, err := h.Worklists.List(b.Context(), &req)
						if err != nil {
							b.Skip(err)
						}
						tasks, counted = len(page.Items), page.Count != nil
					}
					b.ReportMetric(float64(tasks), "tasks")
					if counted {
						b.ReportMetric(1, "counted")
					}
				})
			}
		})
	}
}
