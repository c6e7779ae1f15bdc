// Package coverage counts what instances of a definition reach.
package coverage

import (
	"fmt"
	"strings"

	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// Coverage counts what instances of a definition reach. It is for one goroutine.
type Coverage struct {
	Of          *chart.Definition
	nodes       []uint64 // by index
	transitions map[*chart.Transition]uint64
	guards      map[*expr.Program]*[2]uint64 // false, true
	actions     map[*chart.Action]uint64
}

// New returns one of a definition of which nothing is reached yet.
func New(d *chart.Definition) *Coverage {
	return &Coverage{
		Of: d, nodes: make([]uint64, len(d.Nodes)), transitions: map[*chart.Transition]uint64{}, guards: map[*expr.Program]*[2]uint64{}, actions: map[*chart.Action]uint64{},
	}
}

// Enter counts a node that is entered. Like the other counts it does nothing where nobody counts: c is nil.
func (c *Coverage) Enter(n *chart.Node) {
	if c != nil {
		c.nodes[n.Index]++
	}
}

// Take counts a transition.
func (c *Coverage) Take(t *chart.Transition) {
	if c != nil {
		c.transitions[t]++
	}
}

// Decide counts a guard that was evaluated.
func (c *Coverage) Decide(p *expr.Program, holds bool) {
	if c != nil {
		c.decide(p, holds)
	}
}

func (c *Coverage) decide(p *expr.Program, holds bool) {
	of := c.guards[p]
	if of == nil {
		of = new([2]uint64)
		c.guards[p] = of
	}
	if holds {
		of[1]++
	} else {
		of[0]++
	}
}

// Run counts an action.
func (c *Coverage) Run(a *chart.Action) {
	if c != nil {
		c.actions[a]++
	}
}

// Add adds the counts of another coverage of the same definition.
func (c *Coverage) Add(other *Coverage) {
	for i, n := range other.nodes {
		c.nodes[i] += n
	}
	for t, n := range other.transitions {
		c.transitions[t] += n
	}
	for a, n := range other.actions {
		c.actions[a] += n
	}
	for p, of := range other.guards {
		if c.guards[p] == nil {
			c.guards[p] = new([2]uint64)
		}
		c.guards[p][0] += of[0]
		c.guards[p][1] += of[1]
	}
}

// Kind says what a Part is of.
type Kind string

// The kinds, in the order in which a report has them.
const (
	State      Kind = "state"
	Transition Kind = "transition"
	Guard      Kind = "guard"
	Action     Kind = "action"
)

// Part is a part of a definition with how often it was reached.
type Part struct {
	Kind Kind
	// At is the node that it is, or belongs to.
	At chart.Position
	// Text says which one of the node it is: the event of a transition and where it leads, the condition of a guard, the word of an action;
	// "" for a state.
	Text string
	File string
	Line int // 0: it is not known
	// Count is how often it was entered, taken, run, or, of a guard, true, and Refused how often a guard was false.
	Count, Refused uint64
}

// IsReached reports whether it was: a guard, both ways.
func (c *Part) IsReached() bool { return c.Count > 0 && (c.Kind != Guard || c.Refused > 0) }

// Parts are all parts of the definition, by node in document order: its state, transitions, guards and actions. History nodes are never
// entered, and no part.
func (c *Coverage) Parts() []Part {
	r := &reader{Coverage: c, seen: map[*expr.Program]bool{}}
	for _, n := range c.Of.Nodes[1:] {
		r.at = n.Position()
		if !n.Kind.IsHistory() {
			r.add(Part{Kind: State, Line: n.Line, Count: c.nodes[n.Index]})
		}
		for t := range n.TransitionsOf() {
			r.add(Part{Kind: Transition, Text: transitionText(t), Line: t.Line, Count: c.transitions[t]})
			r.guard(t.Guard, t.Condition)
			r.read(t.Actions)
		}
		r.read(n.Entry)
		r.read(n.Exit)
		r.read(n.Opening)
		for _, inv := range n.Invoke {
			if inv.SCXMLInvoke != nil {
				r.read(inv.Finalize)
			}
		}
	}
	return r.out
}

// Reached says of the nodes and transitions of the definition's Chart, by index, which were entered and taken. A compound node counts as
// entered when a node in it was.
func (c *Coverage) Reached() (nodes []bool, transitions [][]bool) {
	nodes, transitions = make([]bool, len(c.Of.Nodes)-1), make([][]bool, len(c.Of.Nodes)-1)
	for i, n := range c.Of.Nodes[1:] {
		nodes[i] = c.nodes[n.Index] > 0
		for t := range n.TransitionsOf() {
			transitions[i] = append(transitions[i], c.transitions[t] > 0)
		}
	}
	return nodes, transitions
}

type reader struct {
	*Coverage
	at   chart.Position
	seen map[*expr.Program]bool
	out  []Part
}

func (r *reader) add(c Part) {
	c.At, c.File = r.at, r.Of.Places.File
	r.out = append(r.out, c)
}

func (r *reader) guard(p *expr.Program, text string) {
	if p == nil || r.seen[p] {
		return
	}
	r.seen[p] = true
	of := Part{Kind: Guard, Text: text, Line: r.Of.Places.Programs[p]}
	if n := r.guards[p]; n != nil {
		of.Refused, of.Count = n[0], n[1]
	}
	r.add(of)
}

func (r *reader) read(list []chart.Action) {
	for i := range list {
		r.add(Part{Kind: Action, Text: actionWord(list[i]), Line: r.Of.Places.Actions[&list[i]], Count: r.actions[&list[i]]})
		switch a := list[i].(type) {
		case *chart.Choose:
			for _, b := range a.Branches {
				if b.Guard != nil {
					r.guard(b.Guard, b.Guard.Source())
				}
				r.read(b.Actions)
			}
		case *chart.ForEach:
			r.read(a.Body)
		case *chart.ForEachPlace:
			r.read(a.Body)
		case *chart.Block:
			r.read(a.Actions)
		}
	}
}

func transitionText(t *chart.Transition) string {
	words := []string{t.Event.String()}
	switch {
	case t.After != nil:
		words[0] = "after " + t.After.Delay.Text
	case t.Child != nil:
		words[0] = string(t.Child.Event())
	case t.Event == chart.EventPattern{}:
		words[0] = "always"
	}
	for _, p := range t.More {
		words = append(words, p.String())
	}
	if len(t.Targets) == 0 {
		return strings.Join(words, " ")
	}
	words = append(words, "→")
	for _, to := range t.Targets {
		words = append(words, string(to.ID))
	}
	return strings.Join(words, " ")
}

// actionWord is how a definition calls an action.
func actionWord(a chart.Action) string {
	switch a := a.(type) {
	case *chart.Assign, *chart.SetPlaces:
		return "assign"
	case *chart.Raise:
		return "raise " + string(a.Event)
	case *chart.Redirect:
		return "redirect"
	case *chart.LogLine:
		return "log"
	case *chart.Choose:
		return "if"
	case *chart.ForEach, *chart.ForEachPlace:
		return "foreach"
	case *chart.Send:
		return "send " + string(a.Event)
	case *chart.Dispatch:
		return "send"
	case *chart.SendOut:
		return "webhook " + a.To
	case *chart.SendMail:
		return "mail"
	case *chart.Cancel:
		return "cancel"
	case *chart.Block:
		return "block"
	}
	panic(fmt.Sprintf("coverage: no action of type %T", a))
}
