package xstate

import (
	"slices"

	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

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

// findNative finds what an export of ours has kept (see Export).
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

// topOfOurs makes the definition from what an export of ours has kept of it.
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

// context makes the defaults of the data. private is what an export of ours has kept.
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

// event notes the name of an event, whose data goes nowhere by itself: in XState it stays with the event.
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
