package check

import (
	"fmt"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Warn returns the warnings (statemachine/DEFINITION.md, "Warnings"): a condition that
// reads a default of svcPrivate which creators may replace, a text that looks like an
// expression, and what warn.go has. A stored text has no author who would read them.
func (c *Checker) Warn(doubts document.Collector) document.Faults {
	if c.Stored {
		return nil
	}
	w := doubts
	c.warnOfDefaults(&w)
	c.warnOfTexts(&w)
	c.warnOfReaders(&w)
	c.warnOfUnset(&w)
	c.warnOfEventData(&w)
	c.warnOfPlainDelays(&w)
	c.warnOfOwnSteps(&w)
	c.warnOfKeywords(&w)
	c.warnOfSlips(&w)
	c.warnOfJobs(&w)
	c.warnOfSameState(&w)
	if w.Err() == nil {
		return nil
	}
	return w.Faults()
}

// warnOfTexts tells each text once, however often its action is used.
func (c *Checker) warnOfTexts(w *document.Collector) {
	reported := map[*document.Node]bool{}
	for _, n := range c.Slips {
		if !reported[n] {
			reported[n] = true
			w.Add(n, "%s has \"${\" but is not an expression: only a text that is wholly ${…} is one", data.Quote(data.Shorten(n.Text))).
				Suggestion = "${'…' + …} joins texts"
		}
	}
}

// warnOfDefaults tells each condition once, however often it is used.
func (c *Checker) warnOfDefaults(w *document.Collector) {
	var open []string
	for key := range c.Definition.DefaultPrivate.Members() {
		if !c.Definition.CreatePrivate.Refuses(key) {
			open = append(open, key)
		}
	}
	type place struct{ line, column int }
	reported := map[place]bool{}
	for _, g := range c.Guards {
		at := place{g.At.Line, g.At.Column}
		if reported[at] {
			continue
		}
		reported[at] = true
		names, all := g.Program.PrivateMembers()
		for _, key := range open {
			if !all && !slices.Contains(names, key) {
				continue
			}
			w.Add(g.At, "the condition reads svcPrivate.%s, but users who create an instance can replace its default", data.Shorten(key)).
				Suggestion = fmt.Sprintf("make it const.%s, or say what may be set: create: {svcPrivate: false}", data.Shorten(key))
		}
	}
}
