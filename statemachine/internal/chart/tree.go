package chart

import (
	"iter"
)

// TransitionsOf yields everything that can be taken while n is active.
func (n *Node) TransitionsOf() iter.Seq[*Transition] {
	return func(yield func(*Transition) bool) {
		for _, list := range [2][]*Transition{n.On, n.Always} {
			for _, t := range list {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// AreOrthogonal reports whether the nodes can be active together: each two lie in different regions of a parallel node.
func AreOrthogonal(targets []*Node) bool {
	for i, t := range targets {
		for _, u := range targets[:i] {
			if common(t, u).Kind != Parallel || t.Contains(u) || u.Contains(t) || t == u {
				return false
			}
		}
	}
	return true
}

// common returns the deepest node that holds both, which may be one of them.
func common(a, b *Node) *Node {
	for a != b && !a.Contains(b) {
		a = a.Parent
	}
	return a
}

// Defaults is what a history node enters when it remembers nothing.
func (n *Node) Defaults() []*Node {
	if n.Fallback != nil {
		return n.Fallback
	}
	return n.Parent.DefaultEntry()
}

// DefaultEntry is what entering a compound or parallel node leads to.
func (n *Node) DefaultEntry() []*Node {
	if n.Kind == Parallel {
		return n.Children
	}
	return n.Initial
}
