package appendixd

import "slices"

// set is an ordered set of states, as a list in the order of insertion.
type set []*State

func (s *set) add(state *State) {
	if !s.isMember(state) {
		*s = append(*s, state)
	}
}

func (s *set) union(states []*State) {
	for _, state := range states {
		s.add(state)
	}
}

func (s *set) delete(state *State) {
	*s = slices.DeleteFunc(slices.Clone(*s), func(other *State) bool { return other == state })
}

func (s set) isMember(state *State) bool { return slices.Contains(s, state) }

func (s set) hasIntersection(other set) bool { return slices.ContainsFunc(s, other.isMember) }

// inDocumentOrder sorts a copy: ancestors before descendants, and the order of the file.
func (s set) inDocumentOrder() set {
	return slices.SortedFunc(slices.Values(s), func(a, b *State) int { return a.Order - b.Order })
}

// inExitOrder sorts a copy: the reverse of the document order.
func (s set) inExitOrder() set {
	return slices.SortedFunc(slices.Values(s), func(a, b *State) int { return b.Order - a.Order })
}

func (s set) filter(keep func(*State) bool) set {
	var out set
	for _, state := range s {
		if keep(state) {
			out = append(out, state)
		}
	}
	return out
}
