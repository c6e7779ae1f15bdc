package export

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

func (w *writer) node(out *document.Node, p *place) {
	own := tree.Mapping(p.at)
	isRoot := p.parent == nil && len(p.path) == 0
	if isRoot {
		w.context(out)
	}
	w.initial(out, own, p)
	for _, f := range p.at.Fields {
		w.member(out, own, p, f)
	}
	w.checkNode(p)
	meta := p.at.Field("meta")
	switch {
	case isRoot:
		root := tree.Mapping(w.top)
		tree.Put(root, "definition", w.definition())
		tree.Put(root, "machine", tree.Text(p.at, p.name))
		if meta != nil && (meta.Kind != document.Mapping || meta.Field(tree.OwnMeta) != nil) {
			tree.Put(own, "meta", meta)
			meta = nil
		}
		if len(own.Fields) > 0 {
			tree.Put(root, "keys", own)
		}
		tree.Put(out, "meta", w.ownMeta(meta, root))
	case len(own.Fields) > 0 || meta != nil && (meta.Kind != document.Mapping || meta.Field(tree.OwnMeta) != nil):
		tree.Put(out, "meta", w.ownMeta(meta, own))
	default:
		tree.Put(out, "meta", meta)
	}
}

func (w *writer) member(out, own *document.Node, p *place, f document.Field) {
	v := f.Value
	switch f.Key.Text {
	case "initial", "meta":
	case "type", "history", "description":
		tree.Put(out, f.Key.Text, v)
	case "states":
		states := tree.Mapping(v)
		for _, c := range p.inner {
			s := tree.Mapping(c.at)
			w.node(s, c)
			tree.Put(states, c.name, s)
		}
		tree.Put(out, "states", states)
	case "on":
		tree.Put(out, "on", w.on(p, v))
	case "always", "onDone":
		tree.Put(out, f.Key.Text, w.transitions(p, v))
	case "after":
		tree.Put(out, "after", w.after(own, p, v))
	case "entry", "exit":
		tree.Put(out, f.Key.Text, w.actionsOf(v))
	case "invoke":
		tree.Put(out, "invoke", w.invokes(p, v))
	case "target":
		if v.Kind == document.Mapping {
			w.warn(v, "", "XState has no actions for the default of a history state: they are kept under meta.%s", tree.OwnMeta)
			tree.Put(own, "target", v)
			v = v.Field("target")
		}
		tree.Put(out, "target", w.targets(p, v))
	case "output":
		if mentionsExpression(v) {
			w.warn(v, "", "an output with expressions, which XState takes for texts")
		}
		tree.Put(out, "output", v)
	case "tags":
		if tree.IsWord(v) || v.Kind == document.Sequence && !slices.ContainsFunc(v.Items, func(n *document.Node) bool { return !tree.IsWord(n) }) {
			tree.Put(out, "tags", v)
			return
		}
		tree.Put(own, "tags", v)
	default:
		w.warn(f.Key, "", "XState has no %q in a state: it is kept under meta.%s", f.Key.Text, tree.OwnMeta)
		tree.PutAt(own, f.Key, f.Key.Text, v)
	}
}

func mentionsExpression(n *document.Node) bool {
	return strings.Contains(n.Text, "${") || slices.ContainsFunc(n.Items, mentionsExpression) ||
		slices.ContainsFunc(n.Fields, func(f document.Field) bool { return mentionsExpression(f.Value) })
}

func (w *writer) initial(out, own *document.Node, p *place) {
	if kind := p.kind(); kind != tree.Compound {
		return
	}
	at := p.at.Field("initial")
	if at == nil {
		for _, c := range p.inner {
			if c.kind() != tree.History {
				tree.Put(out, "initial", tree.Text(p.at, c.name)) // the first one: document order
				return
			}
		}
	}
	target, actions := at, at.Field("actions")
	if at.Kind == document.Mapping {
		target = at.Field("target")
	}
	names := tree.Items(target)
	to := w.byName[p.machine.name+"."+names[0].Text]
	if len(names) > 1 || to.parent != p {
		for to.parent != p {
			to = to.parent
		}
		w.warn(at, "", "XState has no initial state that is further inside: its initial state there is %q", to.name)
		tree.Put(own, "initial", at)
	}
	key := tree.Text(at, to.name)
	if actions == nil {
		tree.Put(out, "initial", key)
		return
	}
	opening := tree.Mapping(at)
	tree.Put(opening, "target", key)
	tree.Put(opening, "actions", w.actionsOf(actions))
	tree.Put(out, "initial", opening)
}

func (p *place) kind() tree.Kind {
	if t := p.at.Field("type"); t != nil {
		return tree.Kind(t.Text)
	}
	if p.at.Field("states") != nil {
		return tree.Compound
	}
	return tree.Atomic
}

// on writes the transitions of events. XState tries the exact name before patterns, and longer patterns first. Where a
// pattern comes first here, what it takes stands before the transitions of the more exact name.
func (w *writer) on(p *place, n *document.Node) *document.Node {
	out := tree.Mapping(n)
	for i, f := range n.Fields {
		var all []*document.Node
		for _, earlier := range n.Fields[:i] {
			if w.covers(earlier.Key.Text, f.Key.Text) {
				for _, t := range transitionItems(earlier.Value) {
					all = append(all, w.transition(p, t))
				}
			}
		}
		for _, t := range transitionItems(f.Value) {
			all = append(all, w.transition(p, t))
		}
		value := tree.OneOrMore(f.Value, all)
		if value == nil {
			value = tree.List(f.Value)
		}
		tree.PutAt(out, f.Key, w.eventOf(p, f.Key), value)
	}
	return out
}

func transitionItems(n *document.Node) []*document.Node {
	if n.Kind == document.Null {
		return []*document.Node{n}
	}
	return tree.Items(n)
}

func (w *writer) covers(pattern, other string) bool {
	if other == "parent.cancelled" {
		return false
	}
	for _, f := range fieldsOf(w.top.Field("webhooks")) {
		for _, key := range []string{"onDone", "onError"} {
			if outcome := f.Value.Field(key); tree.IsWord(outcome) && outcome.Text == other {
				return false // only the exact name takes what becomes of a delivery
			}
		}
	}
	if pattern == "*" {
		return !w.byXState // there it comes last, wherever it stands
	}
	prefix, ok := strings.CutSuffix(pattern, ".*")
	other = strings.TrimSuffix(other, ".*")
	return ok && (other == prefix || strings.HasPrefix(other, prefix+"."))
}

func (w *writer) eventOf(p *place, at *document.Node) string {
	name := at.Text
	if of, ok := strings.CutPrefix(name, "done.state."); ok {
		for _, root := range append([]*place{p.machine}, w.roots...) {
			if to := w.byName[root.name+"."+of]; to != nil {
				return "xstate.done.state." + strings.Join(append([]string{w.rootID}, to.path...), ".")
			}
		}
	}
	if statemachine.IsReserved(statemachine.EventName(name)) {
		w.warn(at, "", "XState never raises the event %q", name)
	}
	return name
}

func (w *writer) transitions(p *place, v *document.Node) *document.Node {
	var list []*document.Node
	for _, t := range transitionItems(v) {
		list = append(list, w.transition(p, t))
	}
	if len(list) == 0 {
		return tree.List(v)
	}
	return tree.OneOrMore(v, list)
}

func (w *writer) transition(p *place, t *document.Node) *document.Node {
	if tree.IsWord(t) {
		w.checkCrossing(p, t)
		return w.targets(p, t)
	}
	out, own := tree.Mapping(t), tree.Mapping(t)
	for _, f := range t.Fields {
		v := f.Value
		switch f.Key.Text {
		case "target":
			if v.Kind != document.Null {
				tree.Put(out, "target", w.targets(p, v))
				w.checkCrossing(p, v)
			}
		case "guard":
			tree.Put(out, "guard", w.guardOf(v))
		case "actions":
			tree.Put(out, "actions", w.actionsOf(v))
		case "reenter", "description":
			tree.Put(out, f.Key.Text, v)
		default:
			w.warn(f.Key, "", "XState has no %q in a transition: it is kept under meta.%s", f.Key.Text, tree.OwnMeta)
			tree.PutAt(own, f.Key, f.Key.Text, v)
		}
	}
	if len(own.Fields) > 0 {
		tree.Put(out, "meta", w.ownMeta(nil, own))
	}
	return out
}

// targets writes the names of nodes: a key for one beside the source, otherwise its id and path.
func (w *writer) targets(p *place, v *document.Node) *document.Node {
	var list []*document.Node
	for _, at := range tree.Items(v) {
		to := w.byName[p.machine.name+"."+at.Text]
		text := at.Text
		if to == nil || to.parent == nil || to.parent != p.parent {
			path := []string{escaped(w.rootID)}
			if to != nil {
				path = append(path, to.path...)
			}
			text = "#" + strings.Join(path, ".")
		}
		list = append(list, tree.Text(at, text))
	}
	return tree.OneOrMore(v, list)
}

func escaped(id string) string { return strings.ReplaceAll(id, ".", `\.`) }

// after writes timers: constant ones in milliseconds, the others by a name. own gets how the constant ones are written
// here, which names their events.
func (w *writer) after(own *document.Node, p *place, n *document.Node) *document.Node {
	out, used, written := tree.Mapping(n), map[string]bool{}, tree.Mapping(n)
	for _, f := range n.Fields {
		key := f.Key.Text
		ms := ""
		if d, err := statemachine.ParseDelay(key); err == nil && d%time.Millisecond == 0 {
			ms = strconv.FormatInt(d.Milliseconds(), 10)
		}
		switch {
		case ms == "" || used[ms]:
			key = w.entry(w.delays, "delay", "after "+key, tree.Text(f.Key, key))
		case ms != key:
			tree.Put(written, ms, tree.Text(f.Key, key))
			key = ms
		}
		used[key] = true
		tree.PutAt(out, f.Key, key, asObjects(w.transitions(p, f.Value)))
	}
	if len(written.Fields) > 0 {
		tree.Put(own, tree.WrittenDelays, written)
	}
	return out
}

func asObjects(v *document.Node) *document.Node {
	for i, t := range v.Items {
		if tree.IsWord(t) {
			v.Items[i] = tree.Only(t, "target", t)
		}
	}
	return v
}
