package statemachine

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
func (b *builder) checkEvents() {
	var used []string
	for _, key := range b.taking {
		used = append(used, key.Text)
	}
	named, told := b.spelt(), map[string]bool{}
	untaken := func(at *document.Node, name EventName) {
		if b.IsFull() {
			b.Add(at, "unknown event %q: no transition takes it", string(name))
			return
		}
		near := document.Closest(string(name), used)
		if near == "" || !b.slipped(named, near, name) {
			b.suggest(at, string(name), used, "unknown event %q: no transition takes it", string(name))
			return
		}
		if told[near] {
			return
		}
		told[near] = true
		what := "the file sends itself"
		if b.d.Events[name] != nil {
			what = "events declares"
		}
		for _, key := range b.taking {
			if key.Text == near {
				b.suggest(key, near, []string{string(name)}, "unknown event %q: %s %q, and no transition takes that", near, what, string(name))
			}
		}
	}
	for _, r := range b.raised {
		if r.byAction && b.d.ServiceEvents[r.name] && !b.isSCXML() {
			b.advise(r.at, "give it another name, and a transition that does the same", "%q says what became of a delivery: only the service sends it", string(r.name))
		}
		if !b.takes(r.name) {
			untaken(r.at, r.name)
		}
	}
	for _, n := range b.cancelled {
		if !slices.Contains(b.sent, n.Text) {
			b.suggest(n, n.Text, b.sent, "unknown id %q: nothing is sent under it", data.Shorten(n.Text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.d.Events)) {
		if b.takes(name) {
			continue
		}
		if near := document.Closest(string(name), used); near != "" && b.d.Events[EventName(near)] == nil {
			untaken(at(b.d.Events[name].Line), name)
		}
	}
}

// takes reports whether some transition takes the event.
func (b *builder) takes(name EventName) bool {
	return slices.ContainsFunc(b.d.Nodes, func(n *chart.Node) bool {
		return slices.ContainsFunc(n.On, func(t *chart.Transition) bool { return t.Event.Matches(name) })
	})
}

// slipped reports whether near, an event that transitions take, is the slip, and not name, one that none takes: name stands in the file more
// often, or as often and is declared.
func (b *builder) slipped(named map[string]int, near string, name EventName) bool {
	if b.d.Events[EventName(near)] != nil {
		return false
	}
	often := named[string(name)] - named[near]
	return often > 0 || often == 0 && b.d.Events[name] != nil
}

// spelt is how often the file names each event.
func (b *builder) spelt() map[string]int {
	often := map[string]int{}
	for _, key := range b.taking {
		often[key.Text]++
	}
	for _, r := range b.raised {
		often[string(r.name)]++
	}
	for name := range b.d.Events {
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
// declared or which other states take. It is no fault: whoever sends the event may mean it.
func (b *builder) warnOfSlips(w *document.Collector) {
	named := b.spelt()
	if b.d.Semantics != chart.NativeSemantics || len(named) > maxCompared {
		return
	}
	var others []string
	for name, often := range named {
		if often > 1 || b.d.Events[EventName(name)] != nil {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, key := range b.taking {
		name := key.Text
		if named[name] > 1 || len(name) < shortName || IsReserved(EventName(name)) || slices.Contains(others, name) {
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
