package xstate

import (
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// statePath splits "a.b" at its dots; a backslash takes the next character as it is.
func statePath(s string) []string {
	var path []string
	var segment strings.Builder
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			segment.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped = true
		case r == '.':
			path = append(path, segment.String())
			segment.Reset()
		default:
			segment.WriteRune(r)
		}
	}
	return append(path, segment.String())
}

// find follows a path of keys below s; nil when there is no such state. An empty segment ends it.
func (s *state) find(path []string) *state {
	for _, key := range path {
		if key == "" || s == nil {
			break
		}
		s = s.child(key)
	}
	return s
}

func (r *reader) lookUp(target string, from *state) *state {
	switch {
	case strings.HasPrefix(target, "#"):
		path := statePath(target[1:])
		if s := r.byID[path[0]]; s != nil {
			return s.find(path[1:])
		}
		return nil
	case strings.HasPrefix(target, "."):
		return from.find(statePath(target[1:]))
	case from.parent == nil || target == "":
		return nil
	}
	return from.parent.find(statePath(target))
}

func (r *reader) targets(n *document.Node, from *state) []*state {
	if n == nil || tree.IsWord(n) && n.Text == "" {
		return nil
	}
	var out []*state
	for _, item := range n.Items {
		if item.Kind == document.Null {
			r.add(item, "", "null is not a target")
			return nil
		}
	}
	if n.Kind == document.Null {
		r.add(n, "leave target out to stay", "null is not a target")
		return nil
	}
	for _, at := range tree.Items(n) {
		if !tree.IsWord(at) {
			r.Text(at) // the fault
			continue
		}
		to := r.lookUp(at.Text, from)
		if to == nil {
			r.unknownTarget(at, from)
			continue
		}
		out = append(out, to)
	}
	return out
}

func (r *reader) unknownTarget(at *document.Node, from *state) {
	advice := ""
	name := strings.TrimLeft(at.Text, ".#")
	known := make([]string, 0, len(r.states))
	for _, s := range r.states {
		known = append(known, s.key)
		if s.key == name && advice == "" {
			advice = `write "#` + s.id + `"`
		}
	}
	if advice == "" {
		if near := document.Closest(name, known); near != "" {
			advice = "did you mean " + `"` + near + `"?`
		}
	}
	r.add(at, advice, "unknown target %q in the state %q", tree.Clipped(at.Text, 100), tree.Clipped(from.key, 100))
}

// names returns the node names of targets. A target that is the root stands for its default entry, and so does a region
// that is a state machine here.
func (r *reader) names(at *document.Node, targets []*state) []string {
	var out []string
	for _, to := range targets {
		if to.parent != nil {
			out = append(out, to.name)
			continue
		}
		if to.has("entry", "after", "invoke") {
			r.add(at, "name its initial state", "a transition to the root would enter it again, which a state machine cannot")
		}
		out = append(out, r.entryOf(to)...)
	}
	return out
}

func (r *reader) entryOf(root *state) []string {
	var out []string
	switch root.kind {
	case tree.Parallel:
		for _, c := range root.children {
			if c.kind != tree.History {
				out = append(out, c.name)
			}
		}
	case tree.Compound:
		if c := r.initial(root); c != nil {
			out = append(out, c.name)
		}
	default:
		out = append(out, onlyState)
	}
	return out
}

// initial is the child that a compound state enters by default; nil, with a fault once, when there is none.
func (r *reader) initial(s *state) *state {
	n := s.at.Field("initial")
	if n != nil && n.Kind == document.Mapping {
		n = n.Field("target")
	}
	for _, at := range tree.Items(n) {
		if c := s.child(at.Text); tree.IsWord(at) && c != nil {
			return c
		}
	}
	return nil
}

type use uint8

const (
	plainEvent use = iota
	patternEvent
	always
	delayed
)

var transitionKeys = []string{"target", "guard", "actions", "reenter", "meta", "description"}

// on makes the transitions of events. XState tries the exact name first, then the longest pattern; here the order of the
// file decides.
func (r *reader) on(s *state, n *document.Node) *document.Node {
	if n.Kind != document.Mapping {
		r.add(n, "", "must be an object of event names, found %s", n.Kind)
		return nil
	}
	fields := slices.Clone(n.Fields)
	patterns := slices.ContainsFunc(fields, func(f document.Field) bool { return isPattern(f.Key.Text) })
	if patterns && r.native == nil {
		slices.SortStableFunc(fields, func(a, b document.Field) int { return order(a.Key.Text) - order(b.Key.Text) })
	}
	out, used := tree.Mapping(n), map[string]bool{}
	for _, f := range fields {
		r.onOne(out, used, s, f)
	}
	return out
}

// order is 0 for an exact name and behind it the longer patterns first.
func order(name string) int {
	if !isPattern(name) {
		return 0
	}
	return 1<<20 - min(len(name), 1<<19)
}

func isPattern(name string) bool { return name == "*" || strings.HasSuffix(name, ".*") }

func (r *reader) doneName(s *state) string { return "done.state." + s.name }

func (r *reader) patternName(at *document.Node, name string) bool {
	if name == "done" || statemachine.IsReserved(statemachine.EventName(name+".x")) {
		r.add(at, "give the events another name", "%q would take events that the machine itself raises here", at.Text)
		return false
	}
	return r.eventName(at, name)
}

func (r *reader) onOne(out *document.Node, used map[string]bool, s *state, f document.Field) {
	name, what := f.Key.Text, plainEvent
	switch id, ok := strings.CutPrefix(name, "xstate.done.state."); {
	case ok && r.byID[id] != nil:
		name = r.doneName(r.byID[id])
	case name == "*":
		what = patternEvent
	case strings.HasSuffix(name, ".*"):
		what = patternEvent
		if r.native == nil && !r.patternName(f.Key, strings.TrimSuffix(name, ".*")) {
			return
		}
	case r.native != nil: // the parser judges our own names
	case !r.eventName(f.Key, name):
		return
	default:
		r.event(f.Key)
	}
	if used[name] {
		r.add(f.Key, "leave one of them out", "%q has the same meaning as another key", tree.Clipped(f.Key.Text, 100))
		return
	}
	if f.Value.Kind == document.Null {
		r.add(f.Value, "write {} for a transition that does nothing", "null is not a transition")
		return
	}
	v := r.transitions(s, f.Value, what)
	if v == nil {
		v = tree.List(f.Value)
	}
	tree.PutAt(out, f.Key, name, v)
	used[name] = true
}

func (r *reader) transitions(s *state, v *document.Node, what use) *document.Node {
	var list []*document.Node
	for _, item := range tree.Items(v) {
		if t := r.transition(s, item, what); t != nil {
			list = append(list, t)
		}
	}
	return tree.OneOrMore(v, list)
}

func (r *reader) transition(s *state, v *document.Node, what use) *document.Node {
	out := tree.Mapping(v)
	target := v
	if !tree.IsWord(v) {
		if !r.known(v, transitionKeys, laterKeys) {
			return nil
		}
		target = v.Field("target")
	}
	tree.Put(out, "target", list(target, r.targetNames(s, target, v)))
	for _, f := range v.Fields {
		switch f.Key.Text {
		case "guard":
			tree.Put(out, "guard", r.guardOf(f.Value))
		case "actions":
			tree.Put(out, "actions", r.actionsOf(f.Value))
		case "reenter":
			tree.Put(out, "reenter", tree.Word(f.Value, document.Bool, strconv.FormatBool(r.Bool(f.Value))))
		case "description":
			tree.Put(out, "description", tree.Text(f.Value, r.Text(f.Value)))
		case "meta":
			if withoutOwn(f.Value) != nil {
				r.warn(f.Value, "", "meta of a transition has no place here and was left out")
			}
		}
	}
	r.entersAgain(s, target, out)
	r.restore(out, v.Field("meta"))
	r.applyNone(out, v, what)
	if what == always && r.native == nil {
		r.checkAlways(v, out)
	}
	if to := out.Field("target"); len(out.Fields) == 1 && tree.IsWord(to) {
		return to
	}
	return out
}

func (r *reader) targetNames(s *state, target, t *document.Node) []string {
	targets := r.targets(target, s)
	if len(targets) == 0 {
		return nil
	}
	if again := t.Field("reenter"); s.parent == nil && again != nil && again.Text == "true" && s.has("entry", "exit", "after", "invoke") {
		r.add(again, "put what it has into a state inside", "the root cannot be entered again here, and it has entry, exit, after or invoke")
	}
	return r.names(target, targets)
}

// entersAgain adds reenter to a transition to the root from inside, which leaves everything and stands here for one to
// the default entry.
func (r *reader) entersAgain(s *state, target, out *document.Node) {
	if s.parent == nil || out.Field("reenter") != nil {
		return
	}
	for _, at := range tree.Items(target) {
		if to := r.lookUp(at.Text, s); tree.IsWord(at) && to != nil && to.parent == nil {
			tree.Put(out, "reenter", tree.Word(at, document.Bool, "true"))
			return
		}
	}
}

// applyNone keeps the data of an event that only a pattern names from being applied.
func (r *reader) applyNone(out, v *document.Node, what use) {
	if what == patternEvent && r.native == nil {
		tree.Put(out, "apply", tree.Text(v, "none"))
	}
}

// checkAlways refuses eventless transitions that change nothing: XState takes them once, and here they never end.
func (r *reader) checkAlways(v, out *document.Node) {
	if out.Field("target") == nil && !r.assigns(v.Field("actions")) {
		r.add(v, "give it a target, or an action that makes its guard false", "an eventless transition that neither leads to a state nor assigns anything would be taken again and again")
	}
}

func list(at *document.Node, names []string) *document.Node {
	out := make([]*document.Node, len(names))
	for i, name := range names {
		out[i] = tree.Text(at, name)
	}
	return tree.OneOrMore(at, out)
}
