package chart

import (
	"fmt"
	"strings"

	"troupe/statemachine/expr"
)

// Coverage counts what instances of a definition reach. It is for one goroutine. Add joins those of several definitions that were parsed
// once.
type Coverage struct {
	Of          *Definition
	nodes       []uint64 // by index
	transitions map[*Transition]uint64
	guards      map[*expr.Program]*[2]uint64 // false, true
	actions     map[*Action]uint64
}

// NewCoverage returns one of a definition of which nothing is reached yet.
func NewCoverage(d *Definition) *Coverage {
	return &Coverage{
		Of: d, nodes: make([]uint64, len(d.Nodes)), transitions: map[*Transition]uint64{}, guards: map[*expr.Program]*[2]uint64{}, actions: map[*Action]uint64{},
	}
}

// Enter, Take, Decide and Run count a node that is entered, a transition that is taken, a guard that is evaluated, and an action that runs.
// They do nothing without a receiver.
func (c *Coverage) Enter(n *Node) {
	if c != nil {
		c.nodes[n.Index]++
	}
}

// Take is described at Enter, as are the next two.
func (c *Coverage) Take(t *Transition) {
	if c != nil {
		c.transitions[t]++
	}
}

// Decide counts a guard.
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
func (c *Coverage) Run(a *Action) {
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

// CoveredKind says what a Covered is of.
type CoveredKind string

// The kinds, in the order in which a report has them.
const (
	CoveredState      CoveredKind = "state"
	CoveredTransition CoveredKind = "transition"
	CoveredGuard      CoveredKind = "guard"
	CoveredAction     CoveredKind = "action"
)

// Covered is a part of a definition with how often it was reached.
type Covered struct {
	Kind CoveredKind
	// At is the node that it is, or belongs to.
	At Position
	// Text says which one of the node it is: the event of a transition and where it leads, the condition of a guard, the word of an action;
	// "" for a state.
	Text string
	File string
	Line int // 0: it is not known
	// Count is how often it was entered, taken, run, or, of a guard, true, and Refused how often a guard was false.
	Count, Refused uint64
}

// IsReached reports whether it was: a guard, both ways.
func (c *Covered) IsReached() bool { return c.Count > 0 && (c.Kind != CoveredGuard || c.Refused > 0) }

// Parts are all parts of the definition, by node in document order: its state, transitions, guards and actions. History nodes are never
// entered, and no part.
func (c *Coverage) Parts() []Covered {
	r := &coverageReader{Coverage: c, seen: map[*expr.Program]bool{}}
	for _, n := range c.Of.Nodes[1:] {
		r.at = n.Position()
		if !n.Kind.IsHistory() {
			r.add(Covered{Kind: CoveredState, Line: n.Line, Count: c.nodes[n.Index]})
		}
		for t := range n.TransitionsOf() {
			r.add(Covered{Kind: CoveredTransition, Text: transitionText(t), Line: t.Line, Count: c.transitions[t]})
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

type coverageReader struct {
	*Coverage
	at   Position
	seen map[*expr.Program]bool
	out  []Covered
}

func (r *coverageReader) add(c Covered) {
	c.At, c.File = r.at, r.Of.Places.File
	r.out = append(r.out, c)
}

func (r *coverageReader) guard(p *expr.Program, text string) {
	if p == nil || r.seen[p] {
		return
	}
	r.seen[p] = true
	of := Covered{Kind: CoveredGuard, Text: text, Line: r.Of.Places.Programs[p]}
	if n := r.guards[p]; n != nil {
		of.Refused, of.Count = n[0], n[1]
	}
	r.add(of)
}

func (r *coverageReader) read(list []Action) {
	for i := range list {
		r.add(Covered{Kind: CoveredAction, Text: actionWord(list[i]), Line: r.Of.Places.Actions[&list[i]], Count: r.actions[&list[i]]})
		switch a := list[i].(type) {
		case *Choose:
			for _, b := range a.Branches {
				if b.Guard != nil {
					r.guard(b.Guard, b.Guard.Source())
				}
				r.read(b.Actions)
			}
		case *ForEach:
			r.read(a.Body)
		case *ForEachPlace:
			r.read(a.Body)
		case *Block:
			r.read(a.Actions)
		}
	}
}

func transitionText(t *Transition) string {
	words := []string{t.Event.String()}
	switch {
	case t.After != nil:
		words[0] = "after " + t.After.Delay.Text
	case t.Child != nil:
		words[0] = string(t.Child.Event())
	case t.Event == EventPattern{}:
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
func actionWord(a Action) string {
	switch a := a.(type) {
	case *Assign, *SetPlaces:
		return "assign"
	case *Raise:
		return "raise " + string(a.Event)
	case *Redirect:
		return "redirect"
	case *LogLine:
		return "log"
	case *Choose:
		return "if"
	case *ForEach, *ForEachPlace:
		return "foreach"
	case *Send:
		return "send " + string(a.Event)
	case *Dispatch:
		return "send"
	case *SendOut:
		return "webhook " + a.To
	case *SendMail:
		return "mail"
	case *Cancel:
		return "cancel"
	case *Block:
		return "block"
	}
	panic(fmt.Sprintf("chart: no action of type %T", a))
}
