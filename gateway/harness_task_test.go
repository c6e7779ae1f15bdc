package gateway

import (
	"context"
	"fmt"
	"time"

	"troupe/actors/activity"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// What a fakeWorkflows has of tasks: one that is open, one that was decided, and a line of each kind of activity.

var (
	taskOne = task.Item{
		WorkflowID: "order", InstanceID: instanceOne, Status: task.Open, Requester: "john.doe",
		Task:       statemachine.Task{ID: statemachine.ElementID{Sequence: 2}, At: statemachine.Position{Machine: "main", Node: "review"}, Created: time.Unix(1_800_000_000, 0), Priority: 50},
		TaskText:   statemachine.TaskText{Title: statemachine.Text{{Language: "en", Text: "Review"}, {Language: "de", Text: "Prüfung"}}},
		Candidates: statemachine.Candidates{Roles: []string{"manager"}},
		Events:     []statemachine.Available{{Name: "approve"}}, EventLabels: []statemachine.EventLabel{{Label: statemachine.Plain("Approve"), Style: statemachine.PrimaryStyle}},
	}
	taskTwo = task.Item{
		WorkflowID: "order", InstanceID: instanceOne, Status: task.Done, Requester: "john.doe",
		Task: statemachine.Task{
			ID: statemachine.ElementID{Sequence: 3, Number: 1}, At: statemachine.Position{Machine: "main", Node: "packing"}, Created: time.Unix(1_800_000_000, 0),
			Due: time.Unix(1_800_000_060, 0), Priority: 70, Assignee: "mary.major", Form: "pack-form",
		},
		TaskText: statemachine.TaskText{Title: statemachine.Plain("Pack"), Description: statemachine.Plain("Carefully")},
		Decided:  &task.Decided{By: "mary.major", Event: "pack", When: time.Unix(1_800_000_030, 0)},
	}
)

func (f *fakeWorkflows) Tasks(_ context.Context, r *task.ListRequest) (*task.Page, error) {
	count := int64(2)
	return &task.Page{Items: []*task.Item{&taskOne, &taskTwo}, Next: "more", Count: &count}, f.ask(func() {
		f.asked = fmt.Sprint(r.Scope, "|", r.WorkflowID, "|", r.Filter, "|", r.Query, "|", r.Sort, "|", r.Limit, "|", r.Cursor, "|", r.Count, "|", r.Languages)
	})
}

func (f *fakeWorkflows) Task(_ context.Context, _ *identity.Principal, id string) (*task.Item, error) {
	return &taskOne, f.ask(func() { f.asked = id })
}

func (f *fakeWorkflows) ChangeTask(_ context.Context, r *message.TaskChange) (*task.Item, error) {
	return &taskOne, f.ask(func() { f.asked = fmt.Sprint(r.TaskID, " ", r.Action, " ", r.To != nil) })
}

func (f *fakeWorkflows) AddComment(_ context.Context, r *message.Comment) (*activity.Row, error) {
	return &activity.Row{Kind: activity.Comment, User: string(r.Caller.ID), Text: r.Text, At: time.Unix(1_800_000_000, 0)}, f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) Activity(_ context.Context, r *message.Activity) (*activity.Page, error) {
	at := time.Unix(1_800_000_000, 0)
	node := statemachine.Position{Machine: "main", Node: "review"}
	return &activity.Page{Next: "more", Items: []*activity.Item{
		{At: at, Timer: &statemachine.Timer{Event: "remind", Due: at}, Name: instanceOne + "-1-1"},
		{At: at, Delivery: &deliveryOne},
		{At: at, User: "mary.major", Row: &activity.Row{Kind: activity.Assigned, Task: statemachine.ElementID{Sequence: 2}, Node: node, To: "john.doe"}},
		{At: at, User: "mary.major", Row: &activity.Row{Kind: activity.Comment, Text: "<b>hello</b>"}},
		{At: at, User: "john.doe", Sequence: 1, Entry: data.Value(`{"user":"john.doe","startState":["Start"],"transitionEvent":"","endState":["draft"],"ts":"2027-01-15T08:00:00.000Z","data":{"a":1}}`)},
	}}, f.ask(func() { f.asked = fmt.Sprint(r.OldestFirst, " ", r.Limit, " ", r.Cursor) })
}

func (f *fakeWorkflows) WatchTasks(_ context.Context, r *task.WatchRequest, deliver func(*task.Event) error) error {
	if err := f.ask(); err != nil {
		return err
	}
	for _, e := range []*task.Event{
		{Kind: task.Opened}, {Kind: task.Changed, WorkflowID: "order", InstanceID: instanceOne, Items: []*task.Item{&taskOne}}, {Kind: task.Lost}, {Kind: task.Heartbeat},
	} {
		if _, err := r.Reauthorize(); err != nil {
			return err
		}
		if err := deliver(e); err != nil {
			return err
		}
	}
	return nil
}
