package show

import (
	"encoding/json"

	"troupe/actors/catalog"
	"troupe/actors/presentation"
	"troupe/gateway/api"
	"troupe/statemachine"
)

// Status is a position with its label in the first of the languages that it has.
func Status(p statemachine.Position, l statemachine.NodeLabel, languages []string) api.Status {
	return api.Status{StateMachineID: string(p.Machine), NodeID: string(p.Node), Label: l.Label.For(languages...), Tone: l.Tone.String()}
}

// Event is an event as people see it.
func Event(d *statemachine.Definition, name statemachine.EventName, languages []string) api.PresentedEvent {
	e := d.EventLabel(name)
	out := api.PresentedEvent{Name: string(name), Label: e.Label.For(languages...), Style: e.Style.String()}
	if e.Done != nil {
		done := e.Done.For(languages...)
		out.Done = &done
	}
	return out
}

// Statuses are its positions.
func Statuses(l *presentation.Line, languages []string) []api.Status {
	out := []api.Status{}
	for _, p := range l.At {
		out = append(out, Status(p, l.Of.LabelOf(p), languages))
	}
	return out
}

// Columns are the columns of its definition with what it has there.
func Columns(l *presentation.Line, languages []string) []api.ColumnValue {
	out := []api.ColumnValue{}
	for k, c := range l.Of.Columns {
		out = append(out, api.ColumnValue{Path: c.Path.String(), Label: c.Label.For(languages...), Value: json.RawMessage(l.Values[k])})
	}
	return out
}

// Ended is the member ended: how an instance came to its end, nil while it goes on.
func Ended(isDone, isCancelled bool) *string {
	switch done, cancelled := "done", "cancelled"; {
	case isCancelled:
		return &cancelled
	case isDone:
		return &done
	}
	return nil
}

// Choices are the workflows that somebody may create.
func Choices(choices []catalog.Choice) []api.Choice {
	out := []api.Choice{}
	for _, choice := range choices {
		out = append(out, api.Choice(choice))
	}
	return out
}
