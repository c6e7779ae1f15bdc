package statemachine

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// What the rules of SCXML add to the file (statemachine/DEFINITION.md, "Rules of SCXML").

func (b *builder) isSCXML() bool { return b.d.Semantics == chart.SCXMLSemantics }

// addSignal adds the variable _event to the expressions.
func (b *builder) addSignal() {
	if !b.isSCXML() {
		return
	}
	if with, err := b.language.With(signalVariable); err == nil {
		b.language = with
	}
}

// opening reads {target, actions} of a default entry, and returns the target. A target by itself is one without actions.
func (b *builder) opening(n *chart.Node, v *document.Node) *document.Node {
	if v == nil || v.Kind != document.Mapping {
		return v
	}
	b.known(v, openingKeys)
	n.Opening = b.actions(v.Field("actions"))
	if v.Field("target") == nil {
		b.Add(v, "needs \"target\"")
	}
	return v.Field("target")
}

// descriptors reads event descriptors with blanks between them (W3C SCXML, section 3.12.1).
func (b *builder) descriptors(at *document.Node) (patterns []chart.EventPattern) {
	for _, word := range strings.Fields(b.Text(at)) {
		p := chart.EventPattern{Any: true}
		if word != "*" {
			name, ok := ParseEventName(strings.TrimSuffix(strings.TrimSuffix(word, "*"), "."))
			if !ok {
				b.Add(at, "%q is not an event name: letters, digits and . _ : ~ -, or a name ending in .*, or *", data.Shorten(word))
				continue
			}
			p = chart.EventPattern{Name: name, Prefix: true}
			b.d.Declared.Add(chart.EventPattern{Name: name}) // NB: so that it can be offered
		}
		b.d.Declared.Add(p)
		patterns = append(patterns, p)
	}
	if len(patterns) == 0 {
		b.Add(at, "an event is missing")
	}
	return patterns
}

func (b *builder) onDescriptors(n *chart.Node, key, v *document.Node) {
	patterns := b.descriptors(key)
	if len(patterns) == 0 {
		return
	}
	for _, t := range b.transitions(n, v, patterns[0]) {
		if len(patterns) > 1 {
			t.More = patterns[1:]
		}
		n.On = append(n.On, t)
	}
}

// onList reads transitions that name their events, for an order that a mapping cannot have.
func (b *builder) onList(n *chart.Node, list *document.Node) {
	for _, item := range list.Items {
		event := item.Field("event")
		if event == nil {
			b.Add(item, "a transition in a list of on needs \"event\"")
			continue
		}
		b.onDescriptors(n, event, item)
	}
}

// settleInternal makes those transitions external that cannot be internal: the source of one that can is compound, and holds all of
// its targets (W3C SCXML, section 3.5).
func (b *builder) settleInternal() {
	if !b.isSCXML() {
		return
	}
	for _, n := range b.d.Nodes {
		for t := range n.TransitionsOf() {
			outside := func(to *chart.Node) bool { return !n.Contains(to) }
			t.Reenter = t.Reenter || n.Kind != Compound || slices.ContainsFunc(t.Targets, outside)
		}
	}
}

// place reads a path. One that is none fails when it is used.
func (b *builder) place(at *document.Node) chart.Place {
	text := strings.TrimSpace(b.Text(at))
	p, err := data.ParsePath(text)
	switch {
	case err != nil:
		return chart.Place{Bad: err}
	case p[0] == "svcPublic":
		return chart.Place{Root: chart.Public, Path: p[1:]}
	case p[0] == "svcPrivate":
		return chart.Place{Root: chart.Private, Path: p[1:]}
	}
	return chart.Place{Bad: fmt.Errorf("nothing can be assigned to %q", data.Shorten(text))}
}

func (b *builder) optionalPlace(at *document.Node) *chart.Place {
	if at == nil {
		return nil
	}
	p := b.place(at)
	return &p
}

func (b *builder) setPlaces(n *document.Node) chart.Action {
	a := &chart.SetPlaces{}
	for _, f := range n.Fields {
		a.Places = append(a.Places, b.place(f.Key))
		a.Values = append(a.Values, b.template(f.Value))
	}
	return a
}

func (b *builder) forEachPlace(n *document.Node) chart.Action {
	list := n.Field("array")
	if list == nil || n.Field("item") == nil || n.Field("do") == nil {
		b.Add(n, "foreach needs \"array\", \"item\" and \"do\"")
		return &chart.ForEach{}
	}
	text := b.Text(list)
	if inner, ok := chart.Expression(text); ok {
		text = inner
	}
	p, err := b.compile(list, text, b.env().Compile)
	return &chart.ForEachPlace{
		List: &chart.Template{Program: b.compiled(list, p, err)},
		Item: b.place(n.Field("item")), Index: b.optionalPlace(n.Field("index")), Body: b.actions(n.Field("do")),
	}
}

// params reads a mapping of names to values.
func (b *builder) params(v *document.Node) (params []chart.Parameter) {
	if v == nil {
		return nil
	}
	if v.Kind != document.Mapping {
		b.Add(v, "must be a mapping of names to values")
		return nil
	}
	for _, f := range v.Fields {
		params = append(params, chart.Parameter{Name: f.Key.Text, Value: b.template(f.Value)})
	}
	return params
}

func (b *builder) optional(v *document.Node) *chart.Template {
	if v == nil {
		return nil
	}
	return b.template(v)
}

// dispatch reads send.
func (b *builder) dispatch(n *document.Node) chart.Action {
	a := &chart.Dispatch{}
	if !b.known(n, scxmlSendKeys) {
		return a
	}
	if a.Event = b.optional(n.Field("event")); a.Event == nil {
		b.Add(n, "send needs an event")
	}
	a.To, a.Kind = b.optional(n.Field("to")), b.optional(n.Field("type"))
	a.Payload = chart.Payload{Value: b.optional(n.Field("data")), Params: b.params(n.Field("params"))}
	if v := n.Field("delay"); v != nil {
		a.Delay = b.delay(v)
	}
	if v := n.Field("id"); v != nil {
		a.ID = b.Text(v)
		b.sent = append(b.sent, a.ID)
	}
	a.IDTo = b.optionalPlace(n.Field("idTo"))
	return a
}

// scxmlInvoke reads what an invoke has. It returns false when the workflow is computed, so that nothing else is to be read.
func (b *builder) scxmlInvoke(inv *chart.Invoke, v *document.Node) bool {
	s := &chart.SCXMLInvoke{Kind: b.optional(v.Field("type")), IDTo: b.optionalPlace(v.Field("idTo"))}
	inv.SCXMLInvoke = s
	if at := v.Field("id"); at != nil {
		s.ID = b.Text(at)
	}
	if at := v.Field("data"); at != nil && b.known(at, documentKeys) {
		s.Payload.Value = b.optional(at.Field("svcPublic"))
		inv.Private = b.optional(at.Field("svcPrivate"))
	}
	s.Payload.Params = b.params(v.Field("params"))
	if at := v.Field("autoforward"); at != nil {
		s.Autoforward = b.Bool(at)
	}
	s.Finalize = b.actions(v.Field("finalize"))
	if of := v.Field("workflow"); of != nil && of.Kind == document.String {
		if _, computed := chart.Expression(of.Text); computed {
			s.Workflow = b.template(of)
			return false
		}
	}
	return true
}
