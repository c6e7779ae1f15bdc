package export

import (
	"maps"
	"slices"
	"strings"

	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

func (w *writer) namedGuards() {
	if n := w.top.Field("guards"); n != nil {
		for _, f := range n.Fields {
			w.entry(w.guards, "guard", f.Key.Text, f.Value)
		}
	}
}

func (w *writer) namedActions() {
	if n := w.top.Field("actions"); n != nil {
		for _, f := range n.Fields {
			w.entry(w.actions, "action", f.Key.Text, f.Value)
			for _, a := range tree.Items(f.Value) {
				w.checkAction(a)
			}
		}
	}
}

func (w *writer) guardOf(n *document.Node) *document.Node {
	if n.Kind == document.Mapping {
		n = n.Field("type")
	}
	if w.top.Field("guards").Field(n.Text) != nil {
		return tree.Text(n, n.Text)
	}
	text := tree.Condition(n.Text)
	return tree.Text(n, w.entry(w.guards, "guard", text, tree.Text(n, text)))
}

func (w *writer) actionsOf(n *document.Node) *document.Node {
	var list []*document.Node
	for _, a := range tree.Items(n) {
		if tree.IsWord(a) {
			list = append(list, tree.Text(a, a.Text))
			continue
		}
		w.checkAction(a)
		name := w.entry(w.actions, "action", actionName(a), tree.List(a, a))
		list = append(list, tree.Text(a, name))
	}
	return tree.OneOrMore(n, list)
}

func actionName(a *document.Node) string {
	key, v := a.Fields[0].Key.Text, a.Fields[0].Value
	what := v.Text
	switch key {
	case "assign":
		what = strings.Join(tree.KeysOf(v), ", ")
	case "raise", "send":
		if e := v.Field("event"); e != nil {
			what = e.Text
		}
	case "webhook":
		if to := v.Field("to"); to != nil {
			what = to.Text
		}
	case "foreach":
		if list := v.Field("array"); list != nil {
			what = list.Text
		}
	}
	if what == "" {
		return key
	}
	return key + " " + tree.Clipped(what, 60)
}

// checkAction warns of an action that XState does not know, however it is implemented.
func (w *writer) checkAction(a *document.Node) {
	for _, key := range []string{"webhook", "mail", "redirect"} {
		if v := a.Field(key); v != nil {
			w.warn(v, "implement the action of that name", "XState has no %q", key)
		}
	}
	for _, key := range []string{"then", "else", "elseif"} {
		for _, inner := range tree.Items(a.Field(key)) {
			w.checkAction(inner)
		}
	}
	for _, inner := range tree.Items(a.Field("foreach").Field("do")) {
		w.checkAction(inner)
	}
}

func (w *writer) invokes(p *place, n *document.Node) *document.Node {
	var list []*document.Node
	for _, i := range tree.Items(n) {
		out, actor := tree.Mapping(i), tree.Mapping(i)
		for _, key := range []string{"workflow", "version", "job", "priority", "data"} {
			tree.Put(actor, key, i.Field(key))
		}
		name := i.Field("workflow")
		if job := i.Field("job"); job != nil {
			name = job
		}
		tree.Put(out, "src", tree.Text(i, w.entry(w.actors, "actor", name.Text, actor)))
		for _, key := range []string{"onDone", "onError"} {
			if v := i.Field(key); v != nil {
				tree.Put(out, key, w.transitions(p, v))
			}
		}
		list = append(list, out)
	}
	return tree.OneOrMore(n, list)
}

func (w *writer) checkNode(p *place) {
	if !w.native {
		return
	}
	if p.parent == nil && len(w.roots) == 1 && p.at.Field("exit") != nil {
		w.warn(p.at.Field("exit"), "", "XState runs the exit actions of the root when the machine is done")
	}
	if p.kind() == tree.Final && p.parent.parent == nil && p.at.Field("exit") != nil {
		w.warn(p.at.Field("exit"), "", "XState runs the exit actions of a final state when the machine is done")
	}
	w.checkWildcard(p)
	if p.kind() != tree.Parallel {
		return
	}
	inside := map[string]bool{}
	for _, c := range p.inner {
		c.events(inside)
	}
	for around := p; around != nil; around = around.parent {
		for _, f := range fieldsOf(around.at.Field("on")) {
			for _, name := range slices.Sorted(maps.Keys(inside)) {
				if f.Key.Text == name || w.covers(f.Key.Text, name) || w.covers(name, f.Key.Text) {
					w.warn(f.Key, "", "when a region of %q takes %q, XState does not take it here", p.name, tree.Clipped(name, 100))
					break
				}
			}
		}
	}
}

func (w *writer) checkWildcard(p *place) {
	for _, f := range fieldsOf(p.at.Field("on")) {
		for around := p; around != nil && f.Key.Text == "*"; around = around.parent {
			if around.at.Field("after") != nil || around.at.Field("invoke") != nil {
				w.warn(f.Key, "", `in XState "*" also takes the timers and actors of %q`, around.name)
				break
			}
		}
	}
}

func fieldsOf(n *document.Node) []document.Field {
	if n == nil {
		return nil
	}
	return n.Fields
}

func (p *place) events(names map[string]bool) {
	for _, f := range fieldsOf(p.at.Field("on")) {
		names[f.Key.Text] = true
	}
	for _, c := range p.inner {
		c.events(names)
	}
}

func (w *writer) checkCrossing(p *place, v *document.Node) {
	if !w.native || p.parent == nil {
		return
	}
	for around := p.parent; around.parent != nil; around = around.parent {
		inside := true
		for _, at := range tree.Items(v) {
			to := w.byName[p.machine.name+"."+at.Text]
			inside = inside && to != nil && around.contains(to)
		}
		if inside {
			if around.kind() == tree.Parallel {
				w.warn(v, "", "a transition between regions of %q: XState does not leave it and enter it again", around.name)
			}
			return
		}
	}
}

func (p *place) contains(other *place) bool {
	for q := other.parent; q != nil; q = q.parent {
		if q == p {
			return true
		}
	}
	return false
}
