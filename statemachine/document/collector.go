package document

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

const maxFaults = 100

// Collector gathers the faults of one file. Its methods read a node as a loader wants it, and on anything else add a
// fault and return the zero value. The zero Collector with a File is ready. It belongs to one goroutine.
type Collector struct {
	// File is the name that the faults carry.
	File string

	entries []*Entry
	dropped int
}

// Entry is a fault that a collector has taken. It is not an error, since there is nothing for the caller to handle.
type Entry struct {
	// Suggestion becomes that of the fault; it may be set until Faults is called.
	Suggestion string

	line, column int
	reason       string
}

// Add adds a fault at the place of n; with a nil n it is one of the whole file.
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
// and one when n is not a mapping. A nil n has no unknown keys.
func (c *Collector) Known(n *Node, allowed ...string) {
	if n == nil || !c.is(n, Mapping) {
		return
	}
	for _, f := range n.Fields {
		if slices.Contains(allowed, f.Key.Text) {
			continue
		}
		c.Add(f.Key, "unknown key %s", data.Quote(f.Key.Text)).Suggestion = cmp.Or(DidYouMean(f.Key.Text, allowed), "known here: "+strings.Join(allowed, ", "))
	}
}

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

// Fault is one thing that is wrong with a file. The author of the file has to correct it; the text is made for them.
type Fault struct {
	// File is the name as it was given to Parse.
	File string
	// Line and Column count from 1, in characters. Column 0: the whole line; Line 0: the whole file.
	Line, Column int
	// Reason says what is wrong.
	Reason string
	// Suggestion says what to do, and may be empty.
	Suggestion string
}

// Error returns "file:line:column: reason (suggestion)", without what is not known.
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Line > 0 && f.Column > 0 {
		fmt.Fprintf(&b, ":%d", f.Column)
	}
	b.WriteString(": " + f.Reason)
	if f.Suggestion != "" {
		b.WriteString(" (" + f.Suggestion + ")")
	}
	return b.String()
}

// Faults is the error of Parse and of Collector.Err: all that is wrong, in
// order of file, line and column. It is never empty when returned as an error.
type Faults []Fault

// Error returns the faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Take moves the faults in err here; what is not a fault is returned.
func (f *Faults) Take(err error) error {
	var faults Faults
	if errors.As(err, &faults) {
		*f = append(*f, faults...)
		return nil
	}
	return err
}

// Sort puts the faults, for example of several files, in their order. Faults at the same place keep theirs.
func (f Faults) Sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// knownShown bounds the words that a suggestion lists.
const knownShown = 12

// Suggest adds a fault about an unknown word. It suggests the closest known word or, if none is close, lists them.
func (c *Collector) Suggest(n *Node, word string, known []string, reason string, args ...any) {
	full := c.IsFull()
	f := c.Add(n, reason, args...)
	if full {
		return
	}
	if f.Suggestion = DidYouMean(word, known); f.Suggestion != "" {
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

const maxWord = 64

// maxAmong is with how many words one is compared at most: a large file has tens of thousands, and as many slips.
const maxAmong = 1_000

// Closest returns the word of among that word was probably meant to be, and "" when none is near: at most 2 or a third
// of its characters are wrong, missing, too many or swapped with a neighbour, and no more than half. Case does not
// count. Of words equally near it is one that begins with word, or the first. Of a long list only the first words are looked at.
func Closest(word string, among []string) string {
	if len(word) > maxWord {
		return ""
	}
	w := []rune(strings.ToLower(word))
	best, bestDistance := "", maxWord
	for _, candidate := range among[:min(len(among), maxAmong)] {
		if len(candidate) > maxWord {
			continue
		}
		c := []rune(strings.ToLower(candidate))
		d := distance(w, c)
		longer := max(len(w), len(c))
		completes := d == bestDistance && strings.HasPrefix(candidate, word) && !strings.HasPrefix(best, word)
		if (d < bestDistance || completes) && d <= max(2, longer/3) && 2*d <= longer {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// DidYouMean asks for the word of among that is Closest, for a Fault's Suggestion; "" when none is near.
func DidYouMean(word string, among []string) string {
	near := Closest(word, among)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}

// distance is the Damerau-Levenshtein distance in its usual restricted form: no part is edited twice.
func distance(a, b []rune) int {
	// Rows of the table: for the prefix of a before the last, the last, and the present character.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			// One less of a, one more of b, or one for the other.
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		// NB: the oldest row is used again for the next.
		before, last, row = last, row, before
	}
	return last[len(b)]
}
