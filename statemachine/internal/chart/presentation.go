package chart

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine/data"
)

// Tone says how people should take it that an instance stands at a node (statemachine/DEFINITION.md, "Tones and styles").
type Tone uint8

// The tones.
const (
	Neutral Tone = iota
	Waiting      // somebody has to act
	Good
	Bad
)

// String returns the word of the definition.
func (t Tone) String() string { return [...]string{"neutral", "waiting", "good", "bad"}[t] }

// Style says how an event is offered to people.
type Style uint8

// The styles.
const (
	DefaultStyle Style = iota
	PrimaryStyle       // the usual next step
	DangerStyle        // what is not easily undone
)

// String returns the word of the definition.
func (s Style) String() string { return [...]string{"default", "primary", "danger"}[s] }

// MaxTitle is the longest title, in characters; a longer one is cut.
const MaxTitle = 200

// IsTitled reports whether instances have titles that differ.
func (d *Definition) IsTitled() bool { return d.TitleCaption != nil || d.Key != nil }

// Column is a part of svcPublic that lists show.
type Column struct {
	Path  data.Path
	Label Text // the last name of the path when the definition has none
}

// Value returns what an instance has in the column; absent when there is nothing. The result is shared and must not be changed.
func (c *Column) Value(public data.Value) data.Value {
	v := public
	for _, name := range c.Path[1:] {
		var ok bool
		if v.Kind() == data.Array {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 {
				return nil
			}
			v, ok = v.Index(i)
		} else {
			v, ok = v.Lookup(name)
		}
		if !ok {
			return nil
		}
	}
	return v
}

// NodeLabel is how people see a node.
type NodeLabel struct {
	Label Text // the node's id when the definition has none
	Tone  Tone
}

// LabelOf returns how people see where a state machine or region stands.
func (d *Definition) LabelOf(p Position) NodeLabel {
	if n := d.nodeAt(p); n != nil {
		return n.presented()
	}
	return NodeLabel{Label: Plain(string(p.Node))}
}

func (n *Node) presented() NodeLabel {
	if n.Label == nil {
		return NodeLabel{Plain(string(n.ID)), n.Tone}
	}
	return NodeLabel{n.Label, n.Tone}
}

// LabelOfTarget returns how people see a node of the state machine that a position is in.
func (d *Definition) LabelOfTarget(from Position, target NodeID) NodeLabel {
	return d.LabelOf(Position{from.Machine, target})
}

func (d *Definition) nodeAt(p Position) *Node {
	region := d.RegionByID[p.Machine]
	if region == nil {
		return nil
	}
	if region.Kind == Parallel && region.ID == p.Node {
		return region
	}
	return d.Find(region.Machine, p.Node)
}

// LeafNodes returns each position that an instance can have and how people see it, in the order of the file.
func (d *Definition) LeafNodes() []NodePresentation {
	return d.nodesWhere(func(n *Node) bool { return n.IsLeaf() || n.Kind == Parallel })
}

// CompoundNodes returns the other nodes that events, timers and tasks can belong to, the state machines among them, and how people see
// them: an instance stands at one of the nodes inside.
func (d *Definition) CompoundNodes() []NodePresentation {
	return d.nodesWhere(func(n *Node) bool { return n.Kind == Compound })
}

func (d *Definition) nodesWhere(belongs func(*Node) bool) []NodePresentation {
	var out []NodePresentation
	for _, n := range d.Nodes[1:] {
		if !belongs(n) {
			continue
		}
		region := n
		for region.Parent.Kind != Parallel { // NB: that of a state machine is
			region = region.Parent
		}
		out = append(out, NodePresentation{Position{MachineID(region.ID), n.ID}, n.presented()})
	}
	return out
}

// NodePresentation is a position with how people see it.
type NodePresentation struct {
	Position
	NodeLabel
}

// Region is a state machine, or a region of a parallel node, with how people see it.
type Region struct {
	ID    MachineID
	Label Text // the id when the definition has none
}

// Regions returns all of them, in the order of the file.
func (d *Definition) Regions() []Region {
	var out []Region
	for _, n := range d.Nodes[1:] {
		if n.Parent.Kind == Parallel { // NB: that of a state machine is
			out = append(out, Region{MachineID(n.ID), n.presented().Label})
		}
	}
	return out
}

// EventLabel is how people see an event.
type EventLabel struct {
	Label Text // the event's name when the definition has none
	Done  Text // what somebody did who sent it, such as "approved it"; no text when the definition has none
	Style Style
}

// EventLabel returns how people see an event.
func (d *Definition) EventLabel(name EventName) EventLabel {
	c := d.Events[name]
	if c == nil {
		return EventLabel{Label: Plain(string(name))}
	}
	out := EventLabel{c.Label, c.Done, c.Style}
	if out.Label == nil {
		out.Label = Plain(string(name))
	}
	return out
}

// PresentedEvents returns the names of events that callers can send or that the definition declares, in alphabetical order.
func (d *Definition) PresentedEvents() []EventName {
	names := slices.AppendSeq(d.EventNames(), maps.Keys(d.Events))
	slices.Sort(names)
	return slices.Compact(names)
}

// OneLine is a text as a line for people shows it: white space becomes single blanks; control characters and marks that turn the
// direction of what stands around are left out.
func OneLine(text string) string {
	if strings.ContainsFunc(text, IsHidden) {
		text = strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r):
				return ' '
			case IsHidden(r):
				return -1
			}
			return r
		}, text)
	}
	return strings.Join(strings.Fields(text), " ")
}

// IsHidden reports whether a character is none that people see and changes how they see others: a control character, or one that opens
// or ends an embedding, override or isolate of directions (Unicode Standard Annex 9).
func IsHidden(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

// CutText shortens a text to so many characters, with an ellipsis.
func CutText(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n++; n == most {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// ToneIn is the tone of a node that says none: that of the node around, but a final node begins again, and is bad when it has failed.
func (n *Node) ToneIn() Tone {
	switch {
	case n.Kind == Final && n.Failed:
		return Bad
	case n.Kind == Final:
		return Neutral
	}
	return n.Parent.Tone
}
