package xstate

import (
	"strings"

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

// lookUp finds what a target means in a state: "sibling", "sibling.child", ".child", "#id" or "#id.child".
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

// targets reads the value of "target": the states that it means, in order.
func (r *reader) targets(n *document.Node, from *state) []*state {
	if n == nil || tree.IsWord(n) && n.Text == "" {
		return nil
	}
	var out []*state
	for _, item := range n.Items {
		if item.Kind == document.Null {
			r.add(item, "", "null is no target")
			return nil
		}
	}
	if n.Kind == document.Null {
		r.add(n, "leave target out to stay", "null is no target")
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

// entryOf returns what is entered with the root.
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
