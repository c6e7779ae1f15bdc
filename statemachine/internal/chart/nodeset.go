package chart

import (
	"math/bits"
)

// NodeSet is a set of nodes by their place in document order, so that walking
// it upwards is document order and downwards its reverse.
type NodeSet []uint64

// NewNodeSet is an empty set for so many nodes.
func NewNodeSet(nodes int) NodeSet { return make(NodeSet, (nodes+63)/64) }

// EmptyFor is an empty set for so many nodes, in the memory of s if that is large enough.
func (s NodeSet) EmptyFor(nodes int) NodeSet {
	words := (nodes + 63) / 64
	if cap(s) < words {
		return NewNodeSet(nodes)
	}
	s = s[:words]
	clear(s)
	return s
}

// Has reports whether the node is a member.
func (s NodeSet) Has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

// Add makes the node a member.
func (s NodeSet) Add(i int) { s[i>>6] |= 1 << (i & 63) }

// Remove takes the node out.
func (s NodeSet) Remove(i int) { s[i>>6] &^= 1 << (i & 63) }

func (s NodeSet) clone() NodeSet { return append(NodeSet(nil), s...) }

// Next returns the smallest member that is at least from, or -1.
func (s NodeSet) Next(from int) int {
	if from < 0 {
		from = 0
	}
	w := from >> 6
	if w >= len(s) {
		return -1
	}
	word := s[w] &^ (1<<(from&63) - 1)
	for word == 0 {
		if w++; w >= len(s) {
			return -1
		}
		word = s[w]
	}
	return w<<6 + bits.TrailingZeros64(word)
}

// Previous returns the largest member that is at most from, or -1.
func (s NodeSet) Previous(from int) int {
	for i := from; i >= 0; i-- {
		if s.Has(i) {
			return i
		}
	}
	return -1
}

// AnyIn reports whether a member lies in [from, to].
func (s NodeSet) AnyIn(from, to int) bool {
	i := s.Next(from)
	return i >= 0 && i <= to
}
