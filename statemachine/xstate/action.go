package xstate

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

func (r *reader) actionsOf(n *document.Node) *document.Node {
	out := r.actionList(n)
	if len(out) == 0 {
		return nil
	}
	return tree.List(n, out...)
}

func (r *reader) actionList(n *document.Node) []*document.Node {
	if n != nil && n.Kind == document.Null {
		r.noFunction(n)
	}
	var out []*document.Node
	for _, item := range tree.Items(n) {
		out = append(out, r.action(item)...)
	}
	return out
}

func (r *reader) noFunction(n *document.Node) {
	r.add(n, `name the action, and say what it does in a map "actions" at the top`, "the action was a function, which JSON leaves out")
}

func (r *reader) action(n *document.Node) []*document.Node {
	switch {
	case tree.IsWord(n):
		return r.namedAction(n, n.Text, nil)
	case n.Kind == document.Null:
		r.noFunction(n)
		return nil
	case n.Kind != document.Mapping || !tree.IsWord(n.Field("type")):
		r.add(n, `{"type": "name"}`, "an action is a name or an object with a type")
		return nil
	}
	t := n.Field("type")
	if r.actions.get(t.Text) == nil {
		if own, ok := strings.CutPrefix(strings.TrimPrefix(t.Text, "@"), "xstate."); ok {
			return r.ownAction(n, own)
		}
	}
	r.known(n, []string{"type", "params"}, nil)
	return r.namedAction(t, t.Text, n.Field("params"))
}

func (r *reader) namedAction(at *document.Node, name string, given *document.Node) []*document.Node {
	entry := r.actions.get(name)
	if entry == nil {
		advice := `say what it does at the top: "actions": {` + data.Quote(name) + `: […]}, or [] for nothing`
		if r.faults < faultsShown {
			if near := document.Closest(name, tree.KeysOf(r.actions.node)); near != "" {
				advice = "did you mean " + data.Quote(near) + "?"
			}
		}
		r.add(at, advice, "the action %s does nothing that could be known: JSON has no functions", data.Quote(name))
		return nil
	}
	if !r.actions.hasParams(entry) {
		return []*document.Node{tree.Text(at, name)}
	}
	if !r.grow(at, 1) || !r.enter(at, "action", name) {
		return nil
	}
	defer r.leave()
	var out []*document.Node
	for _, a := range r.entryActions(entry) {
		if a = r.withParams(at, a, given, false); a != nil {
			out = append(out, a)
		}
	}
	return out
}

func (r *reader) entryActions(entry *document.Node) []*document.Node {
	var out []*document.Node
	for _, a := range tree.Items(entry) {
		switch {
		case a.Kind == document.Mapping && a.Field("type") != nil:
			out = append(out, r.action(a)...)
		case tree.IsWord(a):
			out = append(out, r.namedAction(a, a.Text, nil)...)
		default:
			out = append(out, a)
		}
	}
	return out
}

func (r *reader) actionMap() *document.Node {
	if r.actions.node == nil || r.native != nil {
		return r.actions.node
	}
	out := tree.Mapping(r.actions.node)
	for _, f := range r.actions.node.Fields {
		if f.Value.Kind == document.Null {
			r.noFunction(f.Value)
		}
		if r.actions.hasParams(f.Value) || !r.enter(f.Key, "action", f.Key.Text) {
			continue
		}
		tree.PutAt(out, f.Key, f.Key.Text, tree.List(f.Value, r.entryActions(f.Value)...))
		r.leave()
	}
	if len(out.Fields) == 0 {
		return nil
	}
	return out
}

// conditions are the keys whose texts are CEL without "${…}".
var conditions = []string{"if", "array"}

// withParams returns a copy of an action in which every expression knows its params. bare: a text is CEL as it is.
func (r *reader) withParams(at, n, given *document.Node, bare bool) *document.Node {
	if !r.grow(at, len(n.Text)+1) {
		return nil
	}
	out := *n
	out.Line, out.Column = at.Line, at.Column
	switch n.Kind {
	case document.String:
		out.Text = r.textWithParams(at, n, given, bare)
	case document.Sequence:
		out.Items = make([]*document.Node, 0, len(n.Items))
		for _, item := range n.Items {
			if c := r.withParams(at, item, given, false); c != nil {
				out.Items = append(out.Items, c)
			}
		}
	case document.Mapping:
		out.Fields = make([]document.Field, 0, len(n.Fields))
		for _, f := range n.Fields {
			if c := r.withParams(at, f.Value, given, slices.Contains(conditions, f.Key.Text)); c != nil {
				out.Fields = append(out.Fields, document.Field{Key: f.Key, Value: c})
			}
		}
	}
	return &out
}

func (r *reader) textWithParams(at, n, given *document.Node, bare bool) string {
	inner, wholly := tree.Expression(n.Text)
	switch {
	case !params.MatchString(n.Text):
		return n.Text
	case wholly:
		return "${" + r.bound(at, inner, given) + "}"
	case bare:
		return r.bound(at, n.Text, given)
	case strings.Contains(n.Text, "${"):
		r.add(n, `join it: "${\"a \" + params.b}"`, "params inside a text: the whole text must be an expression")
	}
	return n.Text
}
