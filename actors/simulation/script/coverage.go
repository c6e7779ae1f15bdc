package script

import (
	"cmp"
	"slices"

	"troupe/statemachine"
)

// Coverage is what tests have reached of one version of a workflow.
type Coverage struct {
	Workflow string `json:"workflow"`
	Version  uint64 `json:"version"`
	// The parts by kind. A guard counts twice: it should be true once, and false once.
	States      Share `json:"states"`
	Transitions Share `json:"transitions"`
	Guards      Share `json:"guards"`
	Actions     Share `json:"actions"`
	// Missed are the parts that no test has reached, in the order of the file.
	Missed []Missed `json:"missed"`

	Counts *statemachine.Coverage `json:"-"`
}

// Share is how many of all parts were reached.
type Share struct {
	Reached int `json:"reached"`
	Of      int `json:"of"`
}

func (s *Share) add(reached bool) {
	if s.Of++; reached {
		s.Reached++
	}
}

// Missed is a part that was not reached.
type Missed struct {
	File           string `json:"file"`
	Line           int    `json:"line"`
	Kind           string `json:"kind"` // "state", "transition", "guard" or "action"
	StateMachineID string `json:"stateMachineId"`
	NodeID         string `json:"nodeId"`
	Text           string `json:"text"` // Text says which one of the node; empty for a state
}

// Cover joins what tests have reached, ordered by workflow and version; the counts of the results are used up. Workflows of whole that no
// test has used are added.
func Cover(results []*Result, whole *Known) (out []*Coverage) {
	var all []*statemachine.Coverage
	add := func(c *statemachine.Coverage) {
		i := slices.IndexFunc(all, func(sum *statemachine.Coverage) bool { return sum.Of == c.Of })
		if i < 0 {
			all = append(all, c)
			return
		}
		all[i].Add(c)
	}
	for _, r := range results {
		for _, c := range r.Coverage {
			add(c)
		}
	}
	if whole != nil {
		for _, d := range whole.newest {
			add(statemachine.NewCoverage(d))
		}
	}
	for _, c := range all {
		out = append(out, reportOf(c))
	}
	slices.SortFunc(out, func(a, b *Coverage) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Version, b.Version))
	})
	return out
}

func reportOf(counts *statemachine.Coverage) *Coverage {
	c := &Coverage{Workflow: string(counts.Of.ID), Version: counts.Of.Version, Missed: []Missed{}, Counts: counts}
	shares := map[statemachine.CoveredKind]*Share{"state": &c.States, "transition": &c.Transitions, "guard": &c.Guards, "action": &c.Actions}
	for _, p := range counts.Parts() {
		missed := func(text string) {
			c.Missed = append(c.Missed, Missed{p.File, p.Line, string(p.Kind), string(p.At.Machine), string(p.At.Node), text})
		}
		share := shares[p.Kind]
		share.add(p.Count > 0)
		isGuard := share == &c.Guards
		switch {
		case p.Count == 0 && isGuard:
			missed(p.Text + " was never true")
		case p.Count == 0:
			missed(p.Text)
		}
		if isGuard {
			if share.add(p.Refused > 0); p.Refused == 0 {
				missed(p.Text + " was never false")
			}
		}
	}
	slices.SortStableFunc(c.Missed, func(a, b Missed) int { return cmp.Compare(a.Line, b.Line) })
	return c
}

// Percent is the part of all that was reached: of a chart without parts, everything.
func (c *Coverage) Percent() float64 {
	var sum Share
	for _, s := range []Share{c.States, c.Transitions, c.Guards, c.Actions} {
		sum.Reached, sum.Of = sum.Reached+s.Reached, sum.Of+s.Of
	}
	if sum.Of == 0 {
		return 100
	}
	return 100 * float64(sum.Reached) / float64(sum.Of)
}
