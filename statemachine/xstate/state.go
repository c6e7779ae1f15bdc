package xstate

import (
	"cmp"
	"slices"
	"strings"

	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

var stateKeys = []string{
	"id", "type", "initial", "states", "on", "always", "after", "entry", "exit", "invoke", "onDone", "history", "target",
	"output", "tags", "meta", "description",
}

func (r *reader) state(s *state) *document.Node {
	n := s.at
	allowed := stateKeys
	if s.parent == nil {
		allowed = slices.Concat(topKeys, idle)
	}
	r.known(n, allowed, laterKeys)
	r.checkState(s)
	out := tree.Mapping(n)
	if s.kind == tree.History && n.Field("type") == nil {
		tree.Put(out, "type", tree.Text(n, string(tree.History)))
	}
	for _, f := range n.Fields {
		r.member(out, s, f)
	}
	if root := s.parent; s.kind == tree.Final && root != nil && root.parent == nil && !s.has("output") {
		tree.Put(out, "output", root.at.Field("output"))
	}
	r.restore(out, n.Field("meta"))
	return out
}

func (r *reader) member(out *document.Node, s *state, f document.Field) {
	v := f.Value
	switch f.Key.Text {
	case "type":
		if s.parent != nil || s.kind == tree.Parallel {
			tree.Put(out, "type", v)
		}
	case "initial":
		tree.Put(out, "initial", r.initialOf(s, v))
	case "states":
		r.children(out, s, v)
	case "on":
		tree.Put(out, "on", r.on(s, v))
	case "always":
		tree.Put(out, "always", r.transitions(s, v, always))
	case "after":
		tree.Put(out, "after", r.after(s, v))
	case "entry", "exit":
		tree.Put(out, f.Key.Text, r.actionsOf(v))
	case "invoke":
		tree.Put(out, "invoke", r.invokes(s, v))
	case "onDone":
		if s.parent != nil {
			tree.Put(out, "onDone", r.transitions(s, v, plainEvent))
		}
	case "history":
		tree.Put(out, "history", r.historyOf(v))
	case "target":
		if s.kind == tree.History {
			tree.Put(out, "target", r.historyTarget(s, v))
		}
	case "output":
		r.output(out, s, v)
	case "tags":
		if s.parent != nil || !r.split {
			tree.Put(out, "tags", v)
		}
	case "meta":
		tree.Put(out, "meta", withoutOwn(v))
	case "description":
		if s.parent != nil || r.native != nil {
			tree.Put(out, "description", tree.Text(v, r.Text(v)))
		}
	}
}

func (r *reader) checkState(s *state) {
	n := s.at
	if s.kind == tree.Compound && len(s.children) == 0 {
		r.add(n, "give it states, or leave type out", "a compound state without states")
	}
	if s.kind == tree.Compound && len(s.children) > 0 && r.initial(s) == nil {
		r.add(cmp.Or(n.Field("initial"), n), "give it the key of one of its states as initial", "the initial state of %q is missing or none of its states", tree.Clipped(s.key, 100))
	}
	if s.parent == nil && s.kind == tree.Atomic && len(s.children) > 0 {
		r.add(n, "leave type out", "an atomic state cannot have states")
	}
	if s.kind == tree.History && s.has("onDone", "on", "entry", "exit") {
		return // the parser names these
	}
	if s.parent != nil && s.parent.kind == tree.Parallel && s.kind == tree.Final {
		r.add(n, "put it into a region", "a final state cannot be a region of a parallel state here")
	}
}

func (r *reader) initialOf(s *state, v *document.Node) *document.Node {
	var actions *document.Node
	if v.Kind == document.Mapping {
		r.known(v, []string{"target", "actions", "meta", "description"}, nil)
		actions = r.actionsOf(v.Field("actions"))
		for _, key := range []string{"meta", "description"} {
			if at := v.Field(key); at != nil {
				r.warn(at, "", "%s of an initial transition has no place here and was left out", key)
			}
		}
	}
	if s.kind != tree.Compound {
		r.warn(v, "", "the state %q is %s: its initial does nothing, and was left out", tree.Clipped(s.key, 100), string(s.kind))
		return nil
	}
	c := r.initial(s)
	if c == nil {
		return nil
	}
	if actions == nil {
		return tree.Text(v, c.name)
	}
	out := tree.Mapping(v)
	tree.Put(out, "target", tree.Text(v, c.name))
	tree.Put(out, "actions", actions)
	return out
}

func (r *reader) children(out *document.Node, s *state, v *document.Node) {
	if len(s.children) == 0 {
		return
	}
	states := tree.Mapping(v)
	for _, c := range s.children {
		tree.PutAt(states, c.at, c.name, r.state(c))
	}
	tree.Put(out, "states", states)
}

func (r *reader) historyOf(v *document.Node) *document.Node {
	switch {
	case v.Kind == document.Bool && v.Text == "true":
		return tree.Text(v, "shallow")
	case v.Kind == document.Bool:
		return nil
	}
	return tree.Text(v, r.Text(v))
}

// historyTarget is the default of a history state, found from its parent.
func (r *reader) historyTarget(s *state, v *document.Node) *document.Node {
	for _, at := range tree.Items(v) {
		if tree.IsWord(at) && strings.HasPrefix(at.Text, ".") {
			r.add(at, "name a state beside it, or use its #id", "the target of a history state cannot begin with a dot")
			return nil
		}
	}
	names := r.names(v, r.targets(v, s))
	list := make([]*document.Node, len(names))
	for i, name := range names {
		list[i] = tree.Text(v, name)
	}
	return tree.OneOrMore(v, list)
}

// output of the root is that of the machine: here the final states have it.
func (r *reader) output(out *document.Node, s *state, v *document.Node) {
	switch {
	case s.parent == nil && s.kind == tree.Compound:
	case s.parent == nil:
		r.add(v, "give the final states an output", "the output of a root that is %s", string(s.kind))
	case s.kind != tree.Final:
		r.warn(v, "", "only a final state has an output: that of %q was left out", tree.Clipped(s.key, 100))
	case s.parent.parent == nil && s.parent.has("output"):
		tree.Put(out, "output", s.parent.at.Field("output"))
	default:
		tree.Put(out, "output", v)
	}
}

// withoutOwn is meta without what an export of ours has put there; nil when nothing is left.
func withoutOwn(v *document.Node) *document.Node {
	if v.Field(tree.OwnMeta) == nil {
		return v
	}
	out := tree.Mapping(v)
	for _, f := range v.Fields {
		if f.Key.Text != tree.OwnMeta {
			out.Fields = append(out.Fields, f)
		}
	}
	if len(out.Fields) == 0 {
		return nil
	}
	return out
}

// restore puts the keys of a node or transition back that an export of ours has kept in meta. They win.
func (r *reader) restore(out, meta *document.Node) {
	at := keptIn(meta)
	if at == nil || at.Kind != document.Mapping {
		return
	}
	out.Fields = slices.DeleteFunc(out.Fields, func(f document.Field) bool { return at.Field(f.Key.Text) != nil })
	for _, f := range at.Fields {
		if f.Key.Text != tree.WrittenDelays {
			tree.PutAt(out, f.Key, f.Key.Text, f.Value)
		}
	}
}

func keptIn(meta *document.Node) *document.Node {
	kept := meta.Field(tree.OwnMeta)
	if kept.Field("definition") != nil || kept.Field("machine") != nil { // the root
		return kept.Field("keys")
	}
	return kept
}

func (s *state) keptKeys() *document.Node { return keptIn(s.at.Field("meta")) }

// topKeys are the keys of a machine's configuration beside those of a state.
var topKeys = slices.Concat(stateKeys, []string{"context", "version", "guards", "actions", "delays", "actors", "$schema"})

// laterKeys has advice for keys that other versions of XState have.
var laterKeys = map[string]string{
	"cond":                       "XState v5 has guard",
	"in":                         "XState v5 has the guard stateIn",
	"internal":                   "XState v5 has reenter",
	"data":                       "XState v5 has output, and input of what is invoked",
	"activities":                 "XState v5 has invoke",
	"delay":                      "use after",
	"strict":                     "leave it out: XState v5 has no such option",
	"predictableActionArguments": "leave it out: XState v5 always does that",
	"preserveActionOrder":        "leave it out: XState v5 always does that",
	"onEntry":                    "XState v5 has entry",
	"onExit":                     "XState v5 has exit",
	"services":                   "XState v5 has actors",
	"route":                      "use a transition in each state",
}

// idle are keys for tools alone: types and layout. They do nothing in XState.
var idle = []string{"types", "tsTypes", "schema", "schemas", "$schema", "options"}

// onlyState is the state of a machine whose root has none.
const onlyState = "active"

func (r *reader) findNative(root *state) {
	meta := root.at.Field("meta")
	if kept := meta.Field(tree.OwnMeta); kept != nil && kept.Field("definition") != nil {
		r.native = kept
	}
}

func (r *reader) top(root *state, machines *document.Node) *document.Node {
	n := root.at
	r.knownTop(n)
	out := tree.Mapping(n)
	id := r.workflowID(root)
	tree.Put(out, "id", tree.Text(n.Field("id"), id))
	if r.native != nil {
		r.topOfOurs(out, root, machines)
		return out
	}
	if root.has("id") && root.id != id {
		tree.Put(out, "name", tree.Text(n.Field("id"), root.id))
	}
	if d := n.Field("description"); d != nil {
		tree.Put(out, "description", tree.Text(d, r.Text(d)))
	}
	tree.Put(out, "version", r.version(n.Field("version")))
	tree.Put(out, "semantics", tree.Text(n, "xstate"))
	tree.Put(out, "unmatched", tree.Text(n, "ignore"))
	if r.split {
		tree.Put(out, "tags", n.Field("tags"))
		tree.Put(out, "meta", n.Field("meta"))
	}
	tree.Put(out, "context", r.context(n.Field("context"), nil))
	if len(r.events) > 0 {
		events := tree.Mapping(n)
		for _, at := range r.events {
			none := tree.Mapping(at)
			tree.Put(none, "apply", tree.Text(at, "none"))
			tree.PutAt(events, at, at.Text, none)
		}
		tree.Put(out, "events", events)
	}
	tree.Put(out, "guards", r.guardMap())
	tree.Put(out, "actions", r.actionMap())
	tree.Put(out, "stateMachines", machines)
	return out
}

func (r *reader) topOfOurs(out *document.Node, root *state, machines *document.Node) {
	kept := r.native.Field("definition")
	if kept.Kind != document.Mapping {
		r.add(kept, "", "must be an object, found %s", kept.Kind)
		return
	}
	for _, f := range kept.Fields {
		switch f.Key.Text {
		case "id", "context", "guards", "actions", "stateMachines":
		default:
			tree.PutAt(out, f.Key, f.Key.Text, f.Value)
		}
	}
	tree.Put(out, "context", r.context(root.at.Field("context"), kept.Field("context")))
	tree.Put(out, "guards", r.guardMap())
	tree.Put(out, "actions", r.actionMap())
	tree.Put(out, "stateMachines", machines)
}

func (r *reader) knownTop(n *document.Node) {
	for _, f := range n.Fields {
		if slices.Contains(idle, f.Key.Text) {
			r.warn(f.Key, "", "%q does nothing when a machine runs, and was left out", f.Key.Text)
		}
	}
	if d := n.Field("onDone"); d != nil {
		r.warn(d, "", "onDone of the root is never taken, and was left out")
	}
}

func (r *reader) context(n, private *document.Node) *document.Node {
	if n == nil && private == nil {
		return nil
	}
	out := tree.Mapping(n)
	if n != nil {
		if n.Kind != document.Mapping {
			r.add(n, "", "context must be an object, found %s", n.Kind)
			return nil
		}
		tree.Put(out, "svcPublic", n)
	}
	if private != nil {
		tree.Put(out, "svcPrivate", private.Field("svcPrivate"))
	}
	return out
}

// event notes the name of an event, whose data goes nowhere on its own: in XState it stays with the event.
func (r *reader) event(at *document.Node) {
	if !r.seen[at.Text] {
		r.seen[at.Text] = true
		r.events = append(r.events, at)
	}
}

func (r *reader) machines(root *state) *document.Node {
	out := tree.Mapping(root.at)
	if r.split {
		for _, c := range root.children {
			tree.Put(out, c.name, r.state(c))
		}
		return out
	}
	main := r.state(root)
	if len(root.children) == 0 {
		tree.Put(main, "initial", tree.Text(root.at, onlyState))
		states := tree.Mapping(root.at)
		tree.Put(states, onlyState, tree.Mapping(root.at))
		tree.Put(main, "states", states)
	}
	tree.Put(out, root.name, main)
	return out
}
