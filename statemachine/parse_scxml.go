package statemachine

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// What the rules of SCXML add to the file (statemachine/DEFINITION.md, "Rules of SCXML").

func (b *builder) isSCXML() bool { return b.d.semantics == scxmlSemantics }

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
func (b *builder) opening(n *node, v *document.Node) *document.Node {
	if v == nil || v.Kind != document.Mapping {
		return v
	}
	b.byItself(v)
	b.known(v, openingKeys)
	n.opening = b.actions(v.Field("actions"))
	if v.Field("target") == nil {
		b.Add(v, "needs \"target\"")
	}
	return v.Field("target")
}

// descriptors reads event descriptors with blanks between them (W3C SCXML, section 3.12.1).
func (b *builder) descriptors(at *document.Node) (patterns []eventPattern) {
	for _, word := range strings.Fields(b.Text(at)) {
		p := eventPattern{any: true}
		if word != "*" {
			name, ok := ParseEventName(strings.TrimSuffix(strings.TrimSuffix(word, "*"), "."))
			if !ok {
				b.Add(at, "%q is not an event name: letters, digits and . _ : ~ -, or a name ending in .*, or *", data.Shorten(word))
				continue
			}
			p = eventPattern{name: name, prefix: true}
			b.d.declared.add(eventPattern{name: name}) // NB: so that it can be offered
		}
		b.d.declared.add(p)
		patterns = append(patterns, p)
	}
	if len(patterns) == 0 {
		b.Add(at, "an event is missing")
	}
	return patterns
}

func (b *builder) onDescriptors(n *node, key, v *document.Node) {
	patterns := b.descriptors(key)
	if len(patterns) == 0 {
		return
	}
	for _, t := range b.transitions(n, v, patterns[0]) {
		if len(patterns) > 1 {
			t.more = patterns[1:]
		}
		n.on = append(n.on, t)
	}
}

// onList reads transitions that name their events, for an order that a mapping cannot have.
func (b *builder) onList(n *node, list *document.Node) {
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
	for _, n := range b.d.nodes {
		for t := range n.transitionsOf() {
			outside := func(to *node) bool { return !n.contains(to) }
			t.reenter = t.reenter || n.kind != compound || slices.ContainsFunc(t.targets, outside)
		}
	}
}

// place reads a path. One that is none fails when it is used.
func (b *builder) place(at *document.Node) place {
	text := strings.TrimSpace(b.Text(at))
	p, err := data.ParsePath(text)
	switch {
	case err != nil:
		return place{bad: err}
	case p[0] == "svcPublic":
		return place{root: rootPublic, path: p[1:]}
	case p[0] == "svcPrivate":
		return place{root: rootPrivate, path: p[1:]}
	}
	return place{bad: fmt.Errorf("nothing can be assigned to %q", data.Shorten(text))}
}

func (b *builder) optionalPlace(at *document.Node) *place {
	if at == nil {
		return nil
	}
	p := b.place(at)
	return &p
}

func (b *builder) setPlaces(n *document.Node) action {
	var a setPlaces
	for _, f := range n.Fields {
		a.places = append(a.places, b.place(f.Key))
		a.values = append(a.values, b.template(f.Value))
	}
	return a
}

func (b *builder) forEachPlace(n *document.Node) action {
	list := n.Field("array")
	if list == nil || n.Field("item") == nil || n.Field("do") == nil {
		b.Add(n, "foreach needs \"array\", \"item\" and \"do\"")
		return forEach{}
	}
	text := b.Text(list)
	if inner, ok := expression(text); ok {
		text = inner
	}
	p, err := b.compile(list, text, b.env().Compile)
	return forEachPlace{
		list: &template{program: b.compiled(list, p, err)},
		item: b.place(n.Field("item")), index: b.optionalPlace(n.Field("index")), body: b.actions(n.Field("do")),
	}
}

// params reads a mapping of names to values.
func (b *builder) params(v *document.Node) (params []parameter) {
	if v == nil {
		return nil
	}
	if v.Kind != document.Mapping {
		b.Add(v, "must be a mapping of names to values")
		return nil
	}
	for _, f := range v.Fields {
		params = append(params, parameter{f.Key.Text, b.template(f.Value)})
	}
	return params
}

func (b *builder) optional(v *document.Node) *template {
	if v == nil {
		return nil
	}
	return b.template(v)
}

// dispatch reads send.
func (b *builder) dispatch(n *document.Node) action {
	var a dispatch
	if !b.known(n, scxmlSendKeys) {
		return a
	}
	if a.event = b.optional(n.Field("event")); a.event == nil {
		b.Add(n, "send needs an event")
	}
	a.to, a.kind = b.optional(n.Field("to")), b.optional(n.Field("type"))
	a.payload = payload{b.optional(n.Field("data")), b.params(n.Field("params"))}
	if v := n.Field("delay"); v != nil {
		a.delay = b.delay(v)
	}
	if v := n.Field("id"); v != nil {
		a.id = b.Text(v)
		b.sent = append(b.sent, a.id)
	}
	a.idTo = b.optionalPlace(n.Field("idTo"))
	return a
}

// scxmlInvoke reads what an invoke has. It returns false when the workflow is computed, so that nothing else is to be read.
func (b *builder) scxmlInvoke(inv *invoke, v *document.Node) bool {
	s := &scxmlInvoke{kind: b.optional(v.Field("type")), idTo: b.optionalPlace(v.Field("idTo"))}
	inv.scxmlInvoke = s
	if at := v.Field("id"); at != nil {
		s.id = b.Text(at)
	}
	if at := v.Field("data"); at != nil && b.known(at, documentKeys) {
		s.payload.value = b.optional(at.Field("svcPublic"))
		inv.private = b.optional(at.Field("svcPrivate"))
	}
	s.payload.params = b.params(v.Field("params"))
	if at := v.Field("autoforward"); at != nil {
		s.autoforward = b.Bool(at)
	}
	s.finalize = b.actions(v.Field("finalize"))
	if of := v.Field("workflow"); of != nil && of.Kind == document.String {
		if _, computed := expression(of.Text); computed {
			s.workflow = b.template(of)
			return false
		}
	}
	return true
}
