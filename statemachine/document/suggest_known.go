package document

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

// knownShown bounds the words that a suggestion lists.
const knownShown = 12

// Suggest adds a fault about an unknown word. It suggests the closest known word or, if none is close, lists them.
func (c *Collector) Suggest(n *Node, word string, known []string, reason string, args ...any) {
	full := c.IsFull()
	f := c.Add(n, reason, args...)
	if full {
		return
	}
	if near := Closest(word, known); near != "" {
		f.Suggestion = fmt.Sprintf("did you mean %q?", near)
		return
	}
	if len(known) == 0 {
		f.Suggestion = "there are none here"
		return
	}
	known = slices.Sorted(slices.Values(known))
	known = slices.Compact(known)
	more := ""
	if len(known) > knownShown {
		known, more = known[:knownShown], " …"
	}
	f.Suggestion = "known here: " + data.Shorten(strings.Join(known, ", ")) + more
}

// Advise adds a fault with what to do about it.
func (c *Collector) Advise(n *Node, suggestion, reason string, args ...any) {
	c.Add(n, reason, args...).Suggestion = suggestion
}
