package filter

import (
	"slices"

	"troupe/statemachine/data"
)

// IDs returns the _id values that a matching instance can have, sorted, each once. When the filter does not restrict them, ok is
// false (statemachine/filter/FILTER.md, "What drives a plan").
func (f *Filter) IDs() (ids []string, ok bool) {
	for i := range f.all {
		c := &f.all[i].condition
		if f.all[i].kind != isCondition || c.root != rootID || len(c.path) > 0 {
			continue
		}
		values, has := c.values()
		if !has {
			continue
		}
		texts, _ := textsOf(values) // an id is a string and nothing else
		if !ok {
			ids, ok = texts, true
			continue
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(texts, id) })
	}
	return ids, ok
}

// Alternatives returns the branches of each $or that every matching instance satisfies: anyone who matches f matches at least one
// branch of each. A branch is a filter of its own. Outer conditions are not in it.
func (f *Filter) Alternatives() [][]*Filter {
	var all [][]*Filter
	for i := range f.all {
		if f.all[i].kind != anyOf {
			continue
		}
		branches := make([]*Filter, len(f.all[i].nodes))
		for k, n := range f.all[i].nodes {
			if n.kind == allOf {
				branches[k] = &Filter{all: n.nodes}
			} else {
				branches[k] = &Filter{all: []node{n}}
			}
		}
		all = append(all, branches)
	}
	return all
}

// values returns what a condition compares for equality with, and false when it does something else.
func (c *condition) values() ([]data.Value, bool) {
	switch {
	case c.negated:
		return nil, false
	case c.predicate.op == opEqual:
		return []data.Value{c.predicate.want}, true
	case c.predicate.op == opIn:
		return c.predicate.list, true
	case c.predicate.op == opNever:
		return nil, true
	}
	return nil, false
}

func textsOf(values []data.Value) (texts []string, all bool) {
	for _, v := range values {
		if v.Kind() == data.String {
			texts = append(texts, v.Text())
		}
	}
	return texts, len(texts) == len(values)
}

// Positions says where the machines of an instance stand.
type Positions struct {
	// Machine is the machine that is in one of Nodes; "": some machine is.
	Machine string
	// Nodes has at least one, each once.
	Nodes []string
}

// Positions returns what the filter requires of states. Every matching instance satisfies each of them: one of its states has a
// nodeId in Nodes and, when Machine is not "", that stateMachineId.
func (f *Filter) Positions() []Positions {
	var list []Positions
	for i := range f.all {
		c := &f.all[i].condition
		if f.all[i].kind != isCondition || c.root != rootStates || c.negated {
			continue
		}
		if p, ok := c.positions(); ok {
			list = append(list, p)
		}
	}
	return list
}

func (c *condition) positions() (Positions, bool) {
	if c.predicate.op == opElement && len(c.path) == 0 {
		return elementPositions(&c.predicate)
	}
	values, ok := c.values()
	switch {
	case !ok || len(values) == 0:
		return Positions{}, false
	case len(c.path) == 0:
		return wholePositions(values)
	case c.pathIs("nodeId"):
		nodes, all := textsOf(values)
		return Positions{Nodes: nodes}, all
	}
	return Positions{}, false
}

func (c *condition) pathIs(key string) bool { return len(c.path) == 1 && c.path[0].key == key }

func elementPositions(p *predicate) (Positions, bool) {
	var at Positions
	for i := range p.nodes {
		c := &p.nodes[i].condition
		if p.nodes[i].kind != isCondition {
			continue
		}
		values, _ := c.values()
		texts, all := textsOf(values)
		switch {
		case len(texts) == 0 || !all:
		case c.pathIs("nodeId") && (at.Nodes == nil || len(texts) < len(at.Nodes)):
			at.Nodes = texts
		case c.pathIs("stateMachineId") && len(texts) == 1:
			at.Machine = texts[0]
		}
	}
	return at, at.Nodes != nil
}

func wholePositions(values []data.Value) (Positions, bool) {
	var at Positions
	for i, v := range values {
		machine, hasMachine := v.Lookup("stateMachineId")
		node, hasNode := v.Lookup("nodeId")
		if !hasMachine || !hasNode || machine.Kind() != data.String || node.Kind() != data.String {
			return Positions{}, false
		}
		if i == 0 {
			at.Machine = machine.Text()
		} else if !machine.TextIs(at.Machine) {
			at.Machine = "" // of several machines
		}
		if text := node.Text(); !slices.Contains(at.Nodes, text) {
			at.Nodes = append(at.Nodes, text)
		}
	}
	return at, len(at.Nodes) > 0
}
