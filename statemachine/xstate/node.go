package xstate

import (
	"slices"

	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

type state struct {
	key      string
	id       string // its own one, or the machine's id and the path
	name     string // the node's in the definition; unique among all states
	kind     tree.Kind
	at       *document.Node // its configuration
	parent   *state         // nil: the root
	children []*state
	byKey    map[string]*state
}

func (s *state) contains(other *state) bool {
	for p := other.parent; p != nil; p = p.parent {
		if p == s {
			return true
		}
	}
	return false
}

func (s *state) child(key string) *state { return s.byKey[key] }

// has reports whether the configuration of the state has one of the keys.
func (s *state) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return s.at.Field(key) != nil })
}
