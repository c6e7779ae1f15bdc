// Package signal has what the rules of SCXML know of an event besides its name and data, and the names by which events are sent.
package signal

import (
	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// Processor is the type of events that SCXML sessions send each other (W3C SCXML, section C.1).
const Processor = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"

// Processors are the names of the only way to send events.
var Processors = []string{"", "scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml", Processor}

// SessionPrefix is that of the name by which instances reach each other (W3C SCXML, section C.1).
const SessionPrefix = "#_scxml_"

// Kind is _event.type.
type Kind uint8

// The kinds: of the machine itself, of its actions, and from outside.
const (
	Platform Kind = iota
	Internal
	External
)

var kinds = [...]string{"platform", "internal", "external"}

// Signal is of one event. Origin is where an answer goes to.
type Signal struct {
	Kind                     Kind
	SendID, Origin, InvokeID string
}

// None are the variables before the first event.
var None = map[string]data.Value{chart.SignalVariable: data.Value("null")}

// Variables are those of an event: _event. What is not known is null.
func (s *Signal) Variables(name chart.EventName, eventData data.Value) map[string]data.Value {
	v := data.AppendString(data.Value(`{"name":`), string(name))
	v = data.AppendString(append(v, `,"type":`...), kinds[s.Kind])
	origin := ""
	if s.Origin != "" {
		origin = Processor
	}
	for _, member := range []struct{ key, text string }{
		{"sendid", s.SendID}, {"origin", s.Origin}, {"origintype", origin}, {"invokeid", s.InvokeID},
	} {
		v = append(data.AppendString(append(v, ','), member.key), ':')
		if member.text == "" {
			v = append(v, "null"...)
			continue
		}
		v = data.AppendString(v, member.text)
	}
	v = append(v, `,"data":`...)
	if len(eventData) == 0 {
		eventData = data.Value("null")
	}
	return map[string]data.Value{chart.SignalVariable: append(append(v, eventData...), '}')}
}
