package tree

import (
	"strings"

	"troupe/statemachine/document"
)

// Kind is the type of a state, in XState's words.
type Kind string

// The kinds of states.
const (
	Atomic   Kind = "atomic"
	Compound Kind = "compound"
	Parallel Kind = "parallel"
	Final    Kind = "final"
	History  Kind = "history"
)

const (
	// OwnMeta is the key of meta under which exports keep what XState has no key for.
	OwnMeta = "troupe"
	// WrittenDelays is the key below it that has delays, by milliseconds, as they are written in the definition.
	WrittenDelays = "delays"
)

// KeysOf returns the keys of a mapping; nil has none.
func KeysOf(n *document.Node) []string {
	if n == nil {
		return nil
	}
	out := make([]string, len(n.Fields))
	for i, f := range n.Fields {
		out[i] = f.Key.Text
	}
	return out
}

// Clipped is a text of at most so many bytes, and an ellipsis when there was more.
func Clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
