package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// checkEvents finds names that look like slips: events that are raised and that nothing takes, and declarations of a name beside a name that
// is used. Which of the two is the slip is said by slipped.
func (c *Checker) checkEvents() {
	var used []string
	for _, key := range c.Taking {
		used = append(used, key.Text)
	}
	named, reported := c.spelt(), map[string]bool{}
	untaken := func(at *document.Node, name chart.EventName) {
		if c.IsFull() {
			c.Add(at, "unknown event %q: no transition takes it", string(name))
			return
		}
		near := document.Closest(string(name), used)
		if near == "" || !c.slipped(named, near, name) {
			c.Suggest(at, string(name), used, "unknown event %q: no transition takes it", string(name))
			return
		}
		if reported[near] {
			return
		}
		reported[near] = true
		what := "the file sends itself"
		if c.Definition.Events[name] != nil {
			what = "events declares"
		}
		for _, key := range c.Taking {
			if key.Text == near {
				c.Suggest(key, near, []string{string(name)}, "unknown event %q: %s %q, and no transition takes that", near, what, string(name))
			}
		}
	}
	for _, r := range c.Raised {
		if r.ByAction && c.Definition.ServiceEvents[r.Name] && !c.IsSCXML() {
			c.Advise(r.At, "give it another name, and a transition that does the same", "%q reports the outcome of a delivery: only the service sends it", string(r.Name))
		}
		if !c.takes(r.Name) {
			untaken(r.At, r.Name)
		}
	}
	for _, n := range c.Cancelled {
		if !slices.Contains(c.Sent, n.Text) {
			c.Suggest(n, n.Text, c.Sent, "unknown id %q: nothing is sent under it", data.Shorten(n.Text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Definition.Events)) {
		if c.takes(name) {
			continue
		}
		if near := document.Closest(string(name), used); near != "" && c.Definition.Events[chart.EventName(near)] == nil {
			untaken(at(c.Definition.Events[name].Line), name)
		}
	}
}

func (c *Checker) takes(name chart.EventName) bool {
	return slices.ContainsFunc(c.Definition.Nodes, func(n *chart.Node) bool {
		return slices.ContainsFunc(n.On, func(t *chart.Transition) bool { return t.Event.Matches(name) })
	})
}

// slipped reports whether near, an event that transitions take, is the slip, and not name, one that none takes: name stands in the file more
// often, or as often and is declared.
func (c *Checker) slipped(named map[string]int, near string, name chart.EventName) bool {
	if c.Definition.Events[chart.EventName(near)] != nil {
		return false
	}
	often := named[string(name)] - named[near]
	return often > 0 || often == 0 && c.Definition.Events[name] != nil
}

func (c *Checker) spelt() map[string]int {
	often := map[string]int{}
	for _, key := range c.Taking {
		often[key.Text]++
	}
	for _, r := range c.Raised {
		often[string(r.Name)]++
	}
	for name := range c.Definition.Events {
		often[string(name)]++
	}
	return often
}

const (
	// shortName is below what has too many neighbours for one of them to look like a slip of it.
	shortName = 5
	// maxCompared bounds the events of a file of which each is compared with each.
	maxCompared = 500
)

// warnOfSlips tells events that one transition takes, that stand nowhere else, and that are one slip of the keyboard from an event which is
// declared or which other states take. It is not a fault: anyone who sends the event may mean it.
func (c *Checker) warnOfSlips(w *document.Collector) {
	named := c.spelt()
	if c.Definition.Semantics != chart.NativeSemantics || len(named) > maxCompared {
		return
	}
	var others []string
	for name, often := range named {
		if often > 1 || c.Definition.Events[chart.EventName(name)] != nil {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, key := range c.Taking {
		name := key.Text
		if named[name] > 1 || len(name) < shortName || chart.IsReserved(chart.EventName(name)) || slices.Contains(others, name) {
			continue
		}
		if i := slices.IndexFunc(others, func(other string) bool { return isSlip(name, other) }); i >= 0 {
			w.Add(key, "the event %s stands nowhere else in the file", data.Quote(data.Shorten(name))).Suggestion = fmt.Sprintf("did you mean %q?", others[i])
		}
	}
}

// isSlip reports whether word is other with one character wrong, missing, too many or swapped with its neighbour. Names that are counted,
// such as step1 and step2, are none, nor are forms of one word, such as close and closed.
func isSlip(word, other string) bool {
	if len(word) > len(other) {
		word, other = other, word
	}
	if len(other) > len(word)+1 || strings.HasPrefix(other, word) {
		return false
	}
	first := 0
	for word[first] == other[first] { // NB: they differ before the shorter one ends
		first++
	}
	word, other = word[first:], other[first:]
	for len(word) > 0 && word[len(word)-1] == other[len(other)-1] {
		word, other = word[:len(word)-1], other[:len(other)-1]
	}
	switch {
	case len(word) == 2 && len(other) == 2:
		return word[0] == other[1] && word[1] == other[0]
	case len(other) != 1:
		return false
	}
	return !isDigit(other[0]) || len(word) > 0 && !isDigit(word[0])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
