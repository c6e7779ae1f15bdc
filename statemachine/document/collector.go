package document

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

// maxFaults bounds how many faults of one file are kept; nobody corrects more at once.
const maxFaults = 100

// Collector gathers the faults of one file. Its methods read a node as a loader wants it, and on anything else add a
// fault and return the zero value. The zero Collector with a File is ready. It belongs to one goroutine.
type Collector struct {
	// File is the name that the faults carry.
	File string

	entries []*Entry
	dropped int
}

// Entry is a fault that a collector has taken. It is no error, since there is nothing for the caller to handle.
type Entry struct {
	// Suggestion becomes that of the fault; it may be set until Faults is called.
	Suggestion string

	line, column int
	reason       string
}

// Add adds a fault at the place of n; with a nil n it is one of the whole file.
// The caller may set the Suggestion of the entry that it returns.
func (c *Collector) Add(n *Node, reason string, args ...any) *Entry {
	if n == nil {
		return c.at(0, 0, reason, args...)
	}
	return c.at(n.Line, n.Column, reason, args...)
}

// at adds a fault at a place. Above the limit it is counted only.
func (c *Collector) at(line, column int, reason string, args ...any) *Entry {
	e := &Entry{line: line, column: column, reason: fmt.Sprintf(reason, args...)}
	if slices.ContainsFunc(c.entries, func(f *Entry) bool { return f.line == line && f.column == column && f.reason == e.reason }) {
		return e // two walks have come there
	}
	if len(c.entries) == maxFaults {
		c.dropped++
		return e
	}
	c.entries = append(c.entries, e)
	return e
}

// Count returns how many faults were added, those above the limit included.
func (c *Collector) Count() int { return len(c.entries) + c.dropped }

// IsFull reports whether further faults are only counted, so that nobody sees their suggestions.
func (c *Collector) IsFull() bool { return len(c.entries) == maxFaults }

// Faults returns what was added so far, in order.
func (c *Collector) Faults() Faults {
	faults := make(Faults, 0, len(c.entries)+1)
	for _, e := range c.entries {
		faults = append(faults, Fault{File: c.File, Line: e.line, Column: e.column, Reason: e.reason, Suggestion: e.Suggestion})
	}
	faults.Sort()
	// NB: behind all others, although it has no line.
	if c.dropped > 0 {
		faults = append(faults, Fault{File: c.File, Reason: fmt.Sprintf("and %d more", c.dropped)})
	}
	return faults
}

// Err returns the Faults, or nil when there are none.
func (c *Collector) Err() error {
	if len(c.entries) == 0 {
		return nil
	}
	return c.Faults()
}

// Known adds a fault for every key of the mapping n that is not among allowed,
// and one when n is no mapping. A nil n has no unknown keys.
func (c *Collector) Known(n *Node, allowed ...string) {
	if n == nil || !c.is(n, Mapping) {
		return
	}
	for _, f := range n.Fields {
		if slices.Contains(allowed, f.Key.Text) {
			continue
		}
		fault := c.Add(f.Key, "unknown key %s", data.Quote(f.Key.Text))
		if near := Closest(f.Key.Text, allowed); near != "" {
			fault.Suggestion = fmt.Sprintf("did you mean %q?", near)
		} else {
			fault.Suggestion = "known here: " + strings.Join(allowed, ", ")
		}
	}
}

// is reports whether n is of a kind, and adds a fault when it is not.
func (c *Collector) is(n *Node, want Kind) bool {
	if n.Kind == want {
		return true
	}
	f := c.Add(n, "expected %s, found %s", want, n.Kind)
	if want == String && (n.Kind == Number || n.Kind == Bool) {
		f.Suggestion = "quote it"
	}
	return false
}

// Text returns the string of n, and "" when n is nil.
func (c *Collector) Text(n *Node) string {
	if n == nil || !c.is(n, String) {
		return ""
	}
	return n.Text
}

// Texts returns the strings of a sequence, or the one that n is. Of a sequence,
// elements of another kind are left out, each with a fault.
func (c *Collector) Texts(n *Node) []string {
	switch {
	case n == nil:
		return nil
	case n.Kind == String: // a list of one needs no brackets
		return []string{n.Text}
	case n.Kind != Sequence:
		c.Add(n, "expected a text or a list of texts, found %s", n.Kind)
		return nil
	}
	texts := make([]string, 0, len(n.Items))
	for _, item := range n.Items {
		if c.is(item, String) {
			texts = append(texts, item.Text)
		}
	}
	return texts
}

// Bool returns whether n is true, and false when n is nil.
func (c *Collector) Bool(n *Node) bool {
	if n == nil || !c.is(n, Bool) {
		return false
	}
	return strings.EqualFold(n.Text, "true")
}

// Int returns the whole number of n, and whether n is one.
func (c *Collector) Int(n *Node) (number int, ok bool) {
	if n == nil || !c.is(n, Number) {
		return 0, false
	}
	literal, _ := readNumber(n.Text)
	i, ok := data.Value(literal).Int64()
	if !ok || int64(int(i)) != i {
		c.Add(n, "expected a whole number, found %s", data.Quote(n.Text))
		return 0, false
	}
	return int(i), true
}
