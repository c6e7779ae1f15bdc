package show

import (
	"encoding/json"
	"time"

	"troupe/actors/job"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/gateway/api"
	"troupe/statemachine"
)

// PendingDelivery is what an instance has sent out, with what only those who run the service may see if isWhole.
func PendingDelivery(of *pending.Delivery, isWhole bool) api.PendingDelivery {
	d := Delivery(of)
	shown := api.PendingDelivery{ID: d.ID, Kind: d.Kind, Name: d.Name, State: d.State, Attempts: d.Attempts, NextAttempt: d.NextAttempt}
	if isWhole {
		shown.URL, shown.LastStatus, shown.LastError = of.URL, d.LastStatus, d.LastError
	}
	return shown
}

// Timer is a timer as package api writes it.
func Timer(id string, t *statemachine.Timer) api.Timer {
	out := api.Timer{ID: id, Event: string(t.Event), Due: Time(t.Due), Incident: t.Failed}
	if t.At != (statemachine.Position{}) {
		machine, node := string(t.At.Machine), string(t.At.Node)
		out.StateMachineID, out.NodeID = &machine, &node
	}
	out.TargetID = string(t.Effect.Target)
	if t.Effect.Mails {
		out.Sends = append(out.Sends, "mail")
	}
	if t.Effect.Calls {
		out.Sends = append(out.Sends, "webhook")
	}
	return out
}

// Job is a job as package api writes it.
func Job(l *job.Listed) api.ListedJob {
	return api.ListedJob{
		JobID: l.JobID, Type: l.Type, State: string(l.State), WorkflowID: l.WorkflowID, Version: l.Version, InstanceID: l.InstanceID,
		StateMachineID: l.StateMachineID, NodeID: l.NodeID, Attempts: l.Attempts, AttemptsLeft: l.AttemptsLeft, Priority: l.Priority,
		Created: Time(l.Created), Due: TimeOrNil(l.Due), Worker: TextOrNil(l.Worker), Deadline: TimeOrNil(l.Deadline),
		Message: TextOrNil(l.Message), Data: json.RawMessage(l.Data),
	}
}

// Time is a time as the interface writes it.
func Time(at time.Time) string { return at.UTC().Format(statemachine.TimeLayout) }

// AppendTime appends what Time returns.
func AppendTime(dst []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(dst, statemachine.TimeLayout)
}

// Delivery is a delivery as package api writes it.
func Delivery(d *pending.Delivery) api.Delivery {
	out := api.Delivery{
		ID: d.ID, Kind: d.Kind, WorkflowID: d.Workflow, InstanceID: d.InstanceID, Name: d.Name, URL: d.URL, State: string(d.State),
		Attempts: d.Attempts, Created: Time(d.Created), LastStatus: d.LastStatus, LastError: d.LastError,
	}
	if d.State == outbox.Pending {
		next := Time(d.Next)
		out.NextAttempt = &next
	}
	return out
}

// TimeOrNil is nil for no time.
func TimeOrNil(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := Time(at)
	return &text
}
