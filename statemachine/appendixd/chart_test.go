package appendixd

import (
	"slices"

	"troupe/statemachine/document"
)

// Kind is what a state is.
type Kind uint8

// The kinds of states.
const (
	Atomic Kind = iota
	Compound
	Parallel
	Final
	ShallowHistory
	DeepHistory
)

// Chart is a document: one implicit parallel root, whose regions are the state machines.
type Chart struct {
	Root *State
	// States are all states in document order, without the root.
	States []*State
	// Events are the declared events, in the order of the file.
	Events []Declaration
	// Unmatched is the chart's word for events that nothing takes: record, reject or ignore; "" is record.
	Unmatched string
	// Variables are the names of the data model, all of them integers, in the order of the file.
	Variables []string
	// Mistake makes the interpreter wrong on purpose (see mistakes); "" does not.
	Mistake string
}

// Declaration is what the chart says of one event: what becomes of it when nothing takes it, "" as the chart says; and
// whether its data goes into the variables: merge, none, or "" for that of callers alone.
type Declaration struct{ Event, Unmatched, Apply string }

// State is one state, final state, parallel state or history state.
type State struct {
	ID        string
	Kind      Kind
	Parent    *State
	Order     int      // document order
	Children  []*State // that are no history states
	Histories []*State
	// Initial are the targets of the initial transition of a compound state; nil: its first child.
	Initial []*State
	// Default are the targets of a history state's transition; nil: see defaultHistoryTargets.
	Default     []*State
	Transitions []*Transition // in document order
	OnEntry     []*document.Node
	OnExit      []*document.Node
	After       []*After
	Output      *document.Node // of a final state; nil: none
}

// Transition is one transition.
type Transition struct {
	Source *State
	// Event is what it matches: a name, "x.*" or "*"; "" for a transition without event. Done and After have none.
	Event string
	// Done: it takes the done event of its own source, and nothing else.
	Done bool
	// After: it takes the event of this timer, and nothing else.
	After   *After
	Cond    string // "": always
	Target  []*State
	Content []*document.Node
	Reenter bool
}

// After is a timer of a state.
type After struct {
	State *State
	Delay string // see interpreter.delay
	Event string
}

// everyChild are the children and history states, the latter last: that is where they stand in the file.
func (s *State) everyChild() []*State { return slices.Concat(s.Children, s.Histories) }

// Machine is the state machine that a state belongs to: the ancestor, or the state itself, below the root.
func (s *State) Machine() *State {
	for s.Parent.Parent != nil {
		s = s.Parent
	}
	return s
}

func isAtomicState(s *State) bool  { return s.Kind == Atomic || s.Kind == Final }
func isHistoryState(s *State) bool { return s.Kind == ShallowHistory || s.Kind == DeepHistory }

func isDescendant(s1, s2 *State) bool {
	for p := s1.Parent; p != nil; p = p.Parent {
		if p == s2 {
			return true
		}
	}
	return false
}

// getProperAncestors are the ancestors of s1 from the inside out, up to s2 and without it; with s2 == nil all of them.
// It is empty when s2 is s1, its parent or one of its descendants.
func getProperAncestors(s1, s2 *State) []*State {
	if s1 == s2 || s2 != nil && isDescendant(s2, s1) {
		return nil
	}
	var ancestors []*State
	for p := s1.Parent; p != nil && p != s2; p = p.Parent {
		ancestors = append(ancestors, p)
	}
	return ancestors
}

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

func (s set) inDocumentOrder() set {
	return slices.SortedFunc(slices.Values(s), func(a, b *State) int { return a.Order - b.Order })
}

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
