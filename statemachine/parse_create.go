package statemachine

import (
	"fmt"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/schema"
)

// constants reads const: values that expressions name as const.name. It comes
// before anything that may hold an expression.
func (b *builder) constants(n *document.Node) {
	if n == nil {
		return
	}
	values := b.object(n)
	if values == nil {
		return
	}
	b.literal(n)
	language, err := b.parser.env.WithConstants(values)
	if err == nil {
		b.language = language
		return
	}
	for _, f := range n.Fields {
		if !expr.IsName(f.Key.Text) {
			b.advise(f.Key, "letters, digits and _, and no word of the expression language", "%q cannot be the name of a constant", data.Shorten(f.Key.Text))
		}
	}
	if b.Err() == nil {
		b.Add(n, "%v", err)
	}
}

// literal refuses expressions inside a constant.
func (b *builder) literal(n *document.Node) {
	if _, is := chart.Expression(n.Text); is && n.Kind == document.String {
		b.advise(n, "write the value, or compute it where it is used", "a constant cannot be an expression")
	}
	for _, f := range n.Fields {
		b.literal(f.Value)
	}
	for _, item := range n.Items {
		b.literal(item)
	}
}

// creation reads create: what callers may set, a JSON Schema each, or false.
func (b *builder) creation(n *document.Node) {
	if !b.known(n, documentKeys) {
		return
	}
	b.d.CreatePublic = b.settable(n.Field("svcPublic"))
	b.d.CreatePrivate = b.settable(n.Field("svcPrivate"))
}

func (b *builder) settable(n *document.Node) *schema.Schema {
	if n == nil || n.Kind != document.Bool || b.Bool(n) {
		return b.schema(n)
	}
	s, err := schema.Nothing()
	if err != nil {
		b.Add(n, "JSON Schema: %v", err)
	}
	return s
}

// checkApplied holds that each event that is applied in every state says who may
// send it. at is the definition's own unmatched, or nil.
func (b *builder) checkApplied(at *document.Node) {
	d := b.d
	for _, name := range d.EventNames() {
		if d.UnmatchedRule(name) != chart.UnmatchedApply {
			continue
		}
		d.Applies = true
		c := d.Events[name]
		if c != nil && c.Allow != nil {
			continue
		}
		where := at
		if c != nil && c.Unmatched == chart.UnmatchedApply {
			where = &document.Node{Line: c.Line}
		}
		b.advise(where, fmt.Sprintf("events: {%s: {allow: …}}", name),
			"event %q is applied in every state, so its declaration needs an \"allow\"", string(name))
	}
	if d.Unmatched == chart.UnmatchedApply && len(d.Declared.Patterns) > 0 {
		b.advise(at, "say unmatched: apply where an event is declared", "\"apply\" cannot hold for events that only a pattern names")
	}
}

// warn returns the warnings (statemachine/DEFINITION.md, "Warnings"): a condition that
// reads a default of svcPrivate which creators may replace, a text that looks like an
// expression, and what warn.go has. A stored text has no author who would read them.
func (b *builder) warn() document.Faults {
	if b.parser.options.Stored {
		return nil
	}
	w := b.doubts
	b.warnOfDefaults(&w)
	b.warnOfTexts(&w)
	b.warnOfReaders(&w)
	b.warnOfUnset(&w)
	b.warnOfPlainDelays(&w)
	b.warnOfOwnSteps(&w)
	b.warnOfKeywords(&w)
	b.warnOfSlips(&w)
	if w.Err() == nil {
		return nil
	}
	return w.Faults()
}

// warnOfTexts tells each text once, however often its action is used.
func (b *builder) warnOfTexts(w *document.Collector) {
	told := map[*document.Node]bool{}
	for _, n := range b.slips {
		if !told[n] {
			told[n] = true
			w.Add(n, "%s has \"${\" and is no expression: only a text that is wholly ${…} is one", data.Quote(data.Shorten(n.Text))).
				Suggestion = "${'…' + …} joins texts"
		}
	}
}

// warnOfDefaults tells each condition once, however often it is used.
func (b *builder) warnOfDefaults(w *document.Collector) {
	var open []string
	for key := range b.d.DefaultPrivate.Members() {
		if !b.d.CreatePrivate.Refuses(key) {
			open = append(open, key)
		}
	}
	type place struct{ line, column int }
	told := map[place]bool{}
	for _, g := range b.guards {
		at := place{g.at.Line, g.at.Column}
		if told[at] {
			continue
		}
		told[at] = true
		names, all := g.program.PrivateMembers()
		for _, key := range open {
			if !all && !slices.Contains(names, key) {
				continue
			}
			w.Add(g.at, "the condition reads svcPrivate.%s, and whoever creates an instance may replace its default", data.Shorten(key)).
				Suggestion = fmt.Sprintf("make it const.%s, or say what may be set: create: {svcPrivate: false}", data.Shorten(key))
		}
	}
}
