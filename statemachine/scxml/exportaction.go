package scxml

import (
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// maxActions bounds what named actions can grow into.
const maxActions = 10_000

func itemsOf(n *document.Node) []*document.Node {
	if n.Kind == document.Sequence {
		return n.Items
	}
	return []*document.Node{n}
}

func (e *exporter) actions(n *document.Node) {
	if n == nil || n.Kind == document.Null {
		return
	}
	for _, item := range itemsOf(n) {
		e.action(item)
	}
}

func (e *exporter) action(n *document.Node) {
	if e.written++; e.written > maxActions {
		if e.written == maxActions+1 {
			e.Add(n, "more than %d actions, named ones counted where they are used", maxActions)
		}
		return
	}
	if n.Kind == document.String {
		e.named(n)
		return
	}
	if n.Kind != document.Mapping || len(n.Fields) == 0 {
		e.Add(n, "an action cannot be read here")
		return
	}
	v := n.Fields[0].Value
	switch n.Fields[0].Key.Text {
	case "assign":
		for _, f := range v.Fields {
			e.start("assign", attribute{"location", f.Key.Text})
			e.value(f.Value)
			e.end()
		}
	case "raise":
		e.raise(v)
	case "send":
		e.send(v)
	case "cancel":
		e.start("cancel", computedOr("sendid", v)...)
		e.end()
	case "log":
		e.logAction(v)
	case "if":
		e.choose(n)
	case "foreach":
		e.start("foreach", attribute{"array", unwrap(textOf(v.Field("array")))}, attribute{"item", textOf(v.Field("item"))}, attribute{"index", textOf(v.Field("index"))})
		e.actions(v.Field("do"))
		e.end()
	default:
		e.note(n, "the action %q is not part of SCXML: only troupe runs it", n.Fields[0].Key.Text)
		e.start("troupe:action")
		e.text(e.jsonOf(n))
		e.end()
	}
}

func (e *exporter) named(n *document.Node) {
	actions := e.top.Field("actions").Field(n.Text)
	if actions == nil || slices.Contains(e.expanding, n.Text) || len(e.expanding) > 16 {
		e.Add(n, "unknown action %q, or one that contains itself", n.Text)
		return
	}
	e.expanding = append(e.expanding, n.Text)
	e.actions(actions)
	e.expanding = e.expanding[:len(e.expanding)-1]
}

func (e *exporter) value(v *document.Node) {
	switch {
	case v == nil:
	case isMixed(v):
		e.attribute("expr", e.celOf(v))
		e.attribute("troupe:value", e.jsonOf(v))
	case hasExpression(v):
		e.attribute("expr", unwrap(v.Text))
	default:
		e.text(e.jsonOf(v))
	}
}

// computedOr is an attribute, or its companion …expr for an expression.
func computedOr(name string, v *document.Node) []attribute {
	switch {
	case v == nil:
		return nil
	case hasExpression(v):
		return []attribute{{name + "expr", unwrap(v.Text)}}
	}
	return []attribute{{name, v.Text}}
}

func (e *exporter) raise(v *document.Node) {
	if v.Kind == document.String {
		e.start("raise", attribute{"event", v.Text})
		e.end()
		return
	}
	if v.Field("data") == nil {
		e.start("raise", attribute{"event", textOf(v.Field("event"))})
		e.end()
		return
	}
	e.start("send", attribute{"event", textOf(v.Field("event"))}, attribute{"target", "#_internal"}, attribute{"troupe:raise", "true"})
	e.payload(v.Field("data"), nil)
	e.end()
}

func (e *exporter) send(v *document.Node) {
	e.start("send", computedOr("event", v.Field("event"))...)
	for _, of := range []struct{ key, name string }{{"to", "target"}, {"type", "type"}} {
		for _, a := range computedOr(of.name, v.Field(of.key)) {
			e.attribute(a.name, a.value)
		}
	}
	e.attribute("id", textOf(v.Field("id")))
	e.attribute("idlocation", textOf(v.Field("idTo")))
	if d := v.Field("delay"); d != nil {
		e.delay(d)
	}
	e.payload(v.Field("data"), v.Field("params"))
	e.end()
}

// payload writes data for others. What is neither content nor parameters in SCXML is both: troupe:data has it whole.
func (e *exporter) payload(value, params *document.Node) {
	switch {
	case value != nil && params != nil:
		e.attribute("troupe:data", e.jsonOf(value))
		if value.Kind == document.Mapping {
			e.params(value)
		}
	case value != nil:
		e.start("content")
		e.value(value)
		e.end()
	}
	e.params(params)
}

func (e *exporter) params(n *document.Node) {
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		e.start("param", attribute{"name", f.Key.Text}, attribute{"expr", e.celOf(f.Value)})
		if !hasExpression(f.Value) || isMixed(f.Value) {
			e.attribute("troupe:value", e.jsonOf(f.Value))
		}
		e.end()
	}
}

// logAction writes a log. The text of a definition has expressions in it; SCXML has one expression.
func (e *exporter) logAction(v *document.Node) {
	e.start("log")
	defer e.end()
	if v.Kind != document.String {
		e.attribute("expr", e.celOf(v))
		e.attribute("troupe:value", e.jsonOf(v))
		return
	}
	var parts []string
	pieces, computed := statemachine.SplitText(v.Text)
	for n, piece := range pieces {
		switch {
		case !computed[n]:
			piece = string(data.AppendString(nil, piece))
		case len(pieces) > 1:
			piece = "string(" + piece + ")"
		}
		parts = append(parts, piece)
	}
	e.attribute("expr", strings.Join(parts, " + "))
	e.attribute("troupe:text", v.Text)
}

func (e *exporter) choose(n *document.Node) {
	e.start("if", attribute{"cond", e.condition(n.Field("if"))})
	e.actions(n.Field("then"))
	var branches []*document.Node
	if more := n.Field("elseif"); more != nil {
		branches = itemsOf(more)
	}
	for _, b := range branches {
		e.start("elseif", attribute{"cond", e.condition(b.Field("if"))})
		e.end()
		e.actions(b.Field("then"))
	}
	if last := n.Field("else"); last != nil {
		e.start("else")
		e.end()
		e.actions(last)
	}
	e.end()
}
