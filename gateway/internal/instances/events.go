package instances

import (
	"encoding/json"

	"troupe/actors/message"
	"troupe/gateway/api"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
)

// eventOf is what a caller may send.
func eventOf(e statemachine.Available) api.Event {
	out := api.Event{
		PresentedEvent: api.PresentedEvent{Name: string(e.Name)}, Guard: api.Guard(e.Guard.String()), Transitions: []api.Transition{}, Schema: json.RawMessage(e.Schema),
	}
	for _, t := range e.Transitions {
		to := []string{}
		for _, target := range t.Targets {
			to = append(to, string(target))
		}
		out.Transitions = append(out.Transitions, api.Transition{
			StateMachineID: string(t.From.Machine), NodeID: string(t.From.Node), Targets: to, Guard: api.Guard(t.Guard.String()),
		})
	}
	return out
}

// presentEvents adds to events how people see them.
func presentEvents(events []api.Event, reply *message.Events, languages []string) {
	for i := range events {
		e := &events[i]
		seen := show.Event(reply.Of, statemachine.EventName(e.Name), languages)
		e.Label, e.Done, e.Style = seen.Label, seen.Done, seen.Style
		for k := range e.Transitions {
			t := &e.Transitions[k]
			from := statemachine.Position{Machine: statemachine.MachineID(t.StateMachineID)}
			t.TargetLabels = []string{}
			for _, target := range t.Targets {
				l := reply.Of.LabelOfTarget(from, statemachine.NodeID(target))
				t.TargetLabels = append(t.TargetLabels, l.Label.For(languages...))
			}
		}
	}
}
