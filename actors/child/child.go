// Package child has what parents and children tell each other, as it stands in the outbox and goes to another node.
//
// The id of a child follows from its parent and from how that calls it, so it is the same however often the child is
// asked for.
package child

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"troupe/actors/internal/instanceid"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Ref names an instance.
type Ref struct {
	Workflow string `json:"workflow"`
	Instance string `json:"instance"`
}

// ID is that of the child of a parent.
func ID(parent key.ID, part statemachine.ElementID, begun time.Time) key.ID {
	h := sha256.New()
	h.Write(parent[:])
	h.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, part.Sequence), part.Number))
	var id ulid.ULID
	_ = id.SetTime(uint64(max(begun.UnixMilli(), 0))) // NB: it is no later than what a record can hold
	_ = id.SetEntropy(h.Sum(nil)[:10])                // it has 10 bytes
	return key.ID(id)
}

// Message is one of these.
type Message struct {
	From  Ref    `json:"from,omitzero"` // who sends it: the parent, and with News the child
	Part  Part   `json:"part"`          // how the parent calls the child
	Start *Start `json:"start,omitempty"`
	End   *End   `json:"end,omitempty"`
	News  *News  `json:"news,omitempty"`
	Event *Event `json:"event,omitempty"`
	Join  *Join  `json:"join,omitempty"`
	Erase *Erase `json:"erase,omitempty"`
	Trace string `json:"trace,omitempty"` // of the delivery that brings it
}

// Part is a statemachine.ElementID.
type Part struct {
	Sequence uint64 `json:"sequence"`
	Number   uint32 `json:"number"`
}

// Start has the child created.
type Start struct {
	Child   string          `json:"child"`
	To      string          `json:"to"`                // its workflow
	Version uint64          `json:"version,omitempty"` // 0: the newest
	Public  json.RawMessage `json:"public,omitempty"`
	Private json.RawMessage `json:"private,omitempty"`
	Depth   int             `json:"depth"`
	Bound   bool            `json:"bound,omitempty"` // the rules of its workflow bind, asked of the user For; "" is nobody
	For     string          `json:"for,omitempty"`
	Full    string          `json:"full,omitempty"` // why its tree takes no more (package invoke); "" is none
}

// Join asks, before a child is created, whether its tree takes one more. It is not a delivery: it goes to another node at
// most.
type Join struct {
	Root  Ref    `json:"root"`
	Child string `json:"child"`
}

// Erase has the child deleted, with all that it has invoked. It is not a delivery either: the parent goes after it.
type Erase struct {
	Child Ref    `json:"child"`
	By    string `json:"by"`
}

// End has the child cancelled.
type End struct {
	Child string `json:"child"`
	To    string `json:"to"`
	By    string `json:"by,omitempty"` // who has stopped the whole tree; "": nobody, the parent has left the node
}

// News tells the parent what happened to the child.
type News struct {
	Parent Ref             `json:"parent"`
	Failed bool            `json:"failed,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
}

// Event is an event for the parent or a child.
type Event struct {
	To     Ref             `json:"to"`
	Up     bool            `json:"up,omitempty"` // it is for the parent
	Name   string          `json:"name"`
	Data   json.RawMessage `json:"data,omitempty"`
	SendID string          `json:"sendId,omitempty"`
	// Mark tells it from every other one of its sender: the history entry that sent it, and its place there. The outbox
	// knows it.
	Mark Part `json:"mark,omitzero"`
}

// Of returns the body of the delivery for what an instance sends; nil when that is for neither a child nor a parent.
func Of(sender key.ID, out *statemachine.Delivery) data.Value {
	var m Message
	name := func(part statemachine.ElementID, begun time.Time) string {
		m.Part = Part(part)
		return instanceid.Text(ID(sender, part, begun))
	}
	switch {
	case out.Start != nil:
		s := out.Start
		m.Start = &Start{
			Child: name(s.ID, s.Begun), To: s.Workflow, Version: s.Version, Public: json.RawMessage(s.Public), Private: json.RawMessage(s.Private), Depth: s.Depth,
		}
	case out.End != nil:
		m.End = &End{Child: name(out.End.ID, out.End.Begun), To: out.End.Workflow, By: out.End.By}
	case out.Notice != nil:
		p := out.Notice.Parent
		m.Part = Part(p.Child)
		m.News = &News{Parent: Ref{p.Workflow, p.Instance}, Failed: out.Notice.Failed, Output: json.RawMessage(out.Notice.Output)}
	case out.Forward != nil:
		f := out.Forward
		m.Event = &Event{Name: string(f.Event), Data: json.RawMessage(f.Data), SendID: f.SendID}
		if p := f.Parent; p != nil {
			m.Part, m.Event.To, m.Event.Up = Part(p.Child), Ref{p.Workflow, p.Instance}, true
		} else {
			m.Event.To = Ref{f.Child.Workflow, name(f.Child.ID, f.Child.Begun)}
		}
	default:
		return nil
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // NB: data stays as it is, byte for byte
	if err := e.Encode(m); err != nil {
		panic(err) // the raw messages are values of the state machine: JSON
	}
	return data.Value(bytes.TrimSpace(body.Bytes()))
}

// ErrMessage: it is none of them.
var ErrMessage = errors.New("a message between parent and child cannot be read")

// Parse reads the body of a delivery.
func Parse(body []byte) (m Message, err error) {
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return m, m.Check()
}

// Value is a part of a message as the state machine takes values; nothing for nothing.
func Value(raw json.RawMessage) (data.Value, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return data.Clean(raw)
}

// Data is the child's data. The error is about what a valid message cannot have.
func (s *Start) Data() (public, private data.Value, err error) {
	if public, err = Value(s.Public); err == nil {
		private, err = Value(s.Private)
	}
	return public, private, err
}

// Check returns nil for one message.
func (m *Message) Check() error {
	n := 0
	for _, there := range []bool{m.Start != nil, m.End != nil, m.News != nil, m.Event != nil, m.Join != nil, m.Erase != nil} {
		if there {
			n++
		}
	}
	if n != 1 {
		return ErrMessage
	}
	parts := []json.RawMessage{}
	switch {
	case m.Start != nil:
		parts = append(parts, m.Start.Public, m.Start.Private)
	case m.News != nil:
		parts = append(parts, m.News.Output)
	case m.Event != nil:
		parts = append(parts, m.Event.Data)
	}
	for _, part := range parts {
		if _, err := Value(part); err != nil {
			return fmt.Errorf("%w: %w", ErrMessage, err)
		}
	}
	return nil
}

// To is the instance that the message is for.
func (m *Message) To() Ref {
	switch {
	case m.Start != nil:
		return Ref{m.Start.To, m.Start.Child}
	case m.End != nil:
		return Ref{m.End.To, m.End.Child}
	case m.Event != nil:
		return m.Event.To
	case m.Join != nil:
		return m.Join.Root
	case m.Erase != nil:
		return m.Erase.Child
	}
	return m.News.Parent
}

// ElementID is Part.
func (m *Message) ElementID() statemachine.ElementID { return statemachine.ElementID(m.Part) }

// IsForParent reports whether a child has sent it.
func (m *Message) IsForParent() bool { return m.News != nil || m.Event != nil && m.Event.Up }

// IsFor reports whether an instance is the one that a message was sent to: a parent by its name, a child by its place.
func (m *Message) IsFor(in *statemachine.Instance) bool {
	parent := in.Parent()
	return m.IsForParent() || parent != nil && parent.Instance == m.From.Instance && parent.Child == m.ElementID()
}

// SetMark tells an event which one of its sender's it is: the outbox knows.
func (m *Message) SetMark(of key.Delivery) {
	if m.Event != nil {
		m.Event.Mark = Part{Sequence: of.Sequence, Number: of.Number}
	}
}

// Heard is an event as the state machine takes it.
func (m *Message) Heard() statemachine.Heard {
	v, _ := Value(m.Event.Data) // Check has looked at it
	h := statemachine.Heard{Event: statemachine.EventName(m.Event.Name), Data: v, SendID: m.Event.SendID, From: statemachine.ElementID(m.Event.Mark)}
	if m.Event.Up {
		part := m.ElementID()
		h.Child = &part
	}
	return h
}

// Brought is event.data of what happened to a child.
func Brought(of Ref, key string, value data.Value) data.Value {
	out := append(data.AppendString(append([]byte(nil), `{"workflowId":`...), of.Workflow), `,"instanceId":`...)
	out = append(data.AppendString(out, of.Instance), ',')
	out = append(data.AppendString(out, key), ':')
	if len(value) == 0 {
		value = data.Value("null")
	}
	return append(append(out, value...), '}')
}
