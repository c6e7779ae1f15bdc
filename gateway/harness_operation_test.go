package gateway

import (
	"context"
	"fmt"
	"time"

	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/statemachine"
	"troupe/statemachine/expr"
)

// What a fakeWorkflows has of what happens by itself: a timer, an event that was sent, a delivery that is dead, a mail,
// and an incident.

var (
	deliveryOne = pending.Delivery{
		ID: instanceOne + "-2-0", InstanceID: instanceOne, Kind: "webhook", Name: "hook", URL: "https://example.org/hook",
		Delivery: &outbox.Delivery{
			Workflow: "order", State: outbox.Dead, Attempts: 9, Created: time.Unix(1_800_000_000, 0), LastStatus: 500, LastError: "the answer was 500",
		},
	}
	deliveryTwo = pending.Delivery{
		ID: instanceOne + "-3-0", InstanceID: instanceOne, Kind: "mail",
		Delivery: &outbox.Delivery{Workflow: "order", State: outbox.Pending, Created: time.Unix(1_800_000_000, 0), Next: time.Unix(1_800_000_005, 0)},
	}
)

func (f *fakeWorkflows) Pending(context.Context, *message.Load) (*message.Pending, error) {
	return &message.Pending{
		Version: 3,
		Timers: []message.Timer{
			{ID: instanceOne + "-1-0", Timer: statemachine.Timer{Event: "after.PT1H.open", Due: time.Unix(1_800_000_000, 0), At: statemachine.Position{Machine: "main", Node: "open"}}},
			{ID: instanceOne + "-1-1", Timer: statemachine.Timer{Event: "remind", Due: time.Unix(1_800_000_000, 0), Failed: true}},
		},
		Deliveries: []pending.Delivery{deliveryOne, deliveryTwo}, IsDone: true, IsEnded: true,
		Children: []message.Child{{WorkflowID: "check", InstanceID: instanceOne, Status: statemachine.ChildFailed}},
	}, f.ask()
}

func (f *fakeWorkflows) Deliveries(_ context.Context, r *pending.DeliveryList) (*pending.DeliveryPage, error) {
	return &pending.DeliveryPage{Deliveries: []pending.Delivery{deliveryOne, deliveryTwo}, Next: "more"}, f.ask(func() { f.asked = []any{r.Caller.ID, r.State, r.Cursor, r.Limit} })
}

func (f *fakeWorkflows) ChangeDelivery(_ context.Context, id string, action outbox.Action) error {
	return f.ask(func() { f.asked = id + " " + string(action) })
}

func (f *fakeWorkflows) Incidents(_ context.Context, r *pending.IncidentList) (*pending.IncidentPage, error) {
	return &pending.IncidentPage{Incidents: []pending.Incident{{
		ID: instanceOne + "-1-1", InstanceID: instanceOne,
		Row: incident.Row{Workflow: "order", Event: "remind", Error: "division by zero", First: time.Unix(1_800_000_000, 0), Last: time.Unix(1_800_000_000, 0), Count: 1, Version: 3, File: "workflows/order.yaml", Line: 9, Expression: "1 / svcPublic.n"},
	}, {
		ID: "7ZAB0JD3F6XW5RHKTN42M8CQEY-1-2", InstanceID: instanceOne,
		Row: incident.Row{
			Workflow: "order", Event: "pay", Error: "no such key: sum", Last: time.Unix(1_800_000_000, 0),
			Kind: incident.Expression, Version: 2, File: "workflows/order.yaml", Line: 7, Expression: "svcPublic.sum + svcPrivate.fee", User: "ann", First: time.Unix(1_700_000_000, 0), Count: 3,
			Read: []expr.Read{{Path: "svcPublic.sum"}, {Path: "svcPrivate.fee", Value: "3"}},
		},
	}}}, f.ask(func() { f.asked = []any{r.Caller.ID, r.Cursor, r.Limit} })
}

func (f *fakeWorkflows) Timers(_ context.Context, r *pending.TimerList) (*pending.TimerPage, error) {
	return &pending.TimerPage{Timers: []pending.Timer{{
		ID: instanceOne + "-1-0", Workflow: "order", InstanceID: instanceOne,
		Timer: statemachine.Timer{Event: "after.PT1H.open", Due: time.Unix(1_800_000_000, 0), At: statemachine.Position{Machine: "main", Node: "open"}},
	}}, Next: "more"}, f.ask(func() { f.asked = *r })
}

func (f *fakeWorkflows) ChangeIncident(_ context.Context, _ *identity.Principal, id string, drop bool) error {
	action := outbox.Retry
	if drop {
		action = outbox.Drop
	}
	return f.ask(func() { f.asked = id + " " + string(action) })
}

func (f *fakeWorkflows) StopTree(_ context.Context, workflowID, instanceID, user string) error {
	return f.ask(func() { f.asked = workflowID + "/" + instanceID + " " + user })
}

func (f *fakeWorkflows) Schedules(context.Context) ([]schedule.State, error) {
	of := &statemachine.Schedule{Name: "monthly", Cron: "0 7 1 * *", Zone: "Europe/Berlin"}
	return []schedule.State{
		{Workflow: "stock", Schedule: of, Next: time.Unix(1_800_000_000, 0), LastError: "access denied"},
		{Workflow: "stock", Schedule: of, Paused: true, Last: time.Unix(1_700_000_000, 0)},
	}, f.ask()
}

func (f *fakeWorkflows) ChangeSchedule(_ context.Context, workflowID, name string, action schedule.Action) error {
	return f.ask(func() { f.asked = workflowID + " " + name + " " + string(action) })
}

func (f *fakeWorkflows) Migrate(_ context.Context, r *migration.Request) (*migration.Answer, error) {
	return &migration.Answer{Matched: 3, Migrated: 2, Refused: []migration.Refusal{{InstanceID: instanceOne, Reason: "map it"}}, Next: "more"}, f.ask(func() {
		f.asked = fmt.Sprint(r.Caller.ID, " ", r.WorkflowID, " ", r.File, " ", string(r.Plan), " ", r.Filter, " ", r.DryRun, " ", r.Limit, " ", r.Cursor)
	})
}
