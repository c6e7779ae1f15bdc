package statemachine

import (
	"math/bits"
)

// nodeSet is a set of nodes by their place in document order, so that walking
// it upwards is document order and downwards its reverse.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

// emptyFor is an empty set for so many nodes, in the room of s where it has enough.
func (s nodeSet) emptyFor(nodes int) nodeSet {
	words := (nodes + 63) / 64
	if cap(s) < words {
		return newNodeSet(nodes)
	}
	s = s[:words]
	clear(s)
	return s
}

func (s nodeSet) has(i int) bool { return s[i>>6]&(1<<(i&63)) != 0 }

func (s nodeSet) add(i int) { s[i>>6] |= 1 << (i & 63) }

func (s nodeSet) remove(i int) { s[i>>6] &^= 1 << (i & 63) }

func (s nodeSet) clone() nodeSet { return append(nodeSet(nil), s...) }

// next returns the smallest member that is at least from, or -1.
func (s nodeSet) next(from int) int {
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

// previous returns the largest member that is at most from, or -1.
func (s nodeSet) previous(from int) int {
	for i := from; i >= 0; i-- {
		if s.has(i) {
			return i
		}
	}
	return -1
}

// anyIn reports whether a member lies in [from, to].
func (s nodeSet) anyIn(from, to int) bool {
	i := s.next(from)
	return i >= 0 && i <= to
}
