package parse

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

// opening reads {target, actions} of a default entry, and returns the target. A target on its own is one without actions.
func (b *builder) opening(n *chart.Node, v *document.Node) *document.Node {
	if v == nil || v.Kind != document.Mapping {
		return v
	}
	b.Mapping(v, clause.OpeningKeys)
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
			name, ok := chart.ParseEventName(strings.TrimSuffix(strings.TrimSuffix(word, "*"), "."))
			if !ok {
				b.Add(at, "%q is not an event name: letters, digits and . _ : ~ -, or a name ending in .*, or *", data.Shorten(word))
				continue
			}
			p = chart.EventPattern{Name: name, Prefix: true}
			b.Definition.Declared.Add(chart.EventPattern{Name: name}) // NB: so that it can be offered
		}
		b.Definition.Declared.Add(p)
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
	if !b.IsSCXML() {
		return
	}
	for _, n := range b.Definition.Nodes {
		for t := range n.TransitionsOf() {
			outside := func(to *chart.Node) bool { return !n.Contains(to) }
			t.Reenter = t.Reenter || n.Kind != chart.Compound || slices.ContainsFunc(t.Targets, outside)
		}
	}
}

func (b *builder) setPlaces(n *document.Node) chart.Action {
	a := &chart.SetPlaces{}
	for _, f := range n.Fields {
		a.Places = append(a.Places, b.Place(f.Key))
		a.Values = append(a.Values, b.Template(f.Value))
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
	p, err := b.Compile(list, text, b.LanguageHere().Compile)
	return &chart.ForEachPlace{
		List: &chart.Template{Program: b.Compiled(list, p, err)},
		Item: b.Place(n.Field("item")), Index: b.OptionalPlace(n.Field("index")), Body: b.actions(n.Field("do")),
	}
}

func (b *builder) dispatch(n *document.Node) chart.Action {
	a := &chart.Dispatch{}
	if !b.Mapping(n, clause.SCXMLSendKeys) {
		return a
	}
	if a.Event = b.Optional(n.Field("event")); a.Event == nil {
		b.Add(n, "send needs an event")
	}
	a.To, a.Kind = b.Optional(n.Field("to")), b.Optional(n.Field("type"))
	a.Payload = chart.Payload{Value: b.Optional(n.Field("data")), Params: b.Params(n.Field("params"))}
	if v := n.Field("delay"); v != nil {
		a.Delay = b.Delay(v)
	}
	if v := n.Field("id"); v != nil {
		a.ID = b.Text(v)
		b.Sent = append(b.Sent, a.ID)
	}
	a.IDTo = b.OptionalPlace(n.Field("idTo"))
	return a
}

// scxmlInvoke reads what an invoke has. It returns false when the workflow is computed, so that nothing else is to be read.
func (b *builder) scxmlInvoke(inv *chart.Invoke, v *document.Node) bool {
	s := &chart.SCXMLInvoke{Kind: b.Optional(v.Field("type")), IDTo: b.OptionalPlace(v.Field("idTo"))}
	inv.SCXMLInvoke = s
	if at := v.Field("id"); at != nil {
		s.ID = b.Text(at)
	}
	if at := v.Field("data"); at != nil && b.Mapping(at, clause.DocumentKeys) {
		s.Payload.Value = b.Optional(at.Field("svcPublic"))
		inv.Private = b.Optional(at.Field("svcPrivate"))
	}
	s.Payload.Params = b.Params(v.Field("params"))
	if at := v.Field("autoforward"); at != nil {
		s.Autoforward = b.Bool(at)
	}
	s.Finalize = b.actions(v.Field("finalize"))
	if of := v.Field("workflow"); of != nil && of.Kind == document.String {
		if _, computed := chart.Expression(of.Text); computed {
			s.Workflow = b.Template(of)
			return false
		}
	}
	return true
}
