package xstate

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// File is one definition that Import made.
type File struct {
	ID   string // the workflow's
	Text []byte // YAML
	// Warnings name what was left out because it has no effect in XState, with the lines of the JSON.
	Warnings document.Faults
}

// Import reads the JSON of an XState v5 machine and returns the definition that does the same. name is the file's, for
// faults; a machine without an id gets its base name as one. The error is document.Faults: everything that cannot be
// expressed, with its line, reason and advice. What is returned can be parsed by statemachine.Parser.
func Import(name string, text []byte) ([]File, error) {
	// The text is JSON whatever the name of the file.
	read, err := document.Parse("machine.json", text)
	if err != nil {
		return nil, named(err, name)
	}
	r := &reader{Collector: document.Collector{File: name}, warnings: document.Collector{File: name}, byID: map[string]*state{}}
	definition := r.machine(read)
	if err := r.Err(); err != nil {
		return nil, err
	}
	w := document.NewWriter()
	w.Comment(r.notes...)
	w.Top(definition)
	out := File{ID: definition.Field("id").Text, Text: w.Bytes(), Warnings: r.warnings.Faults()}
	if err := check(name, out.Text, w); err != nil {
		return nil, err
	}
	return []File{out}, nil
}

type reader struct {
	document.Collector
	warnings document.Collector
	faults   int // added so far
	notes    []string

	states []*state // in document order; the first is the root
	byID   map[string]*state
	split  bool // the regions of the root are state machines
	// native: an export of ours, which has the rest of the definition (see Export).
	native *document.Node

	guards, actions, delays, actors *names   // the maps of names
	expanding                       []string // names being read, to find circles
	grown                           int      // bytes of what names have become
	events                          []*document.Node
	seen                            map[string]bool // names of events in events
	assigning                       map[string]bool // which named actions assign something, as far as that was asked
}

func (r *reader) add(at *document.Node, advice, reason string, args ...any) {
	r.faults++
	r.Add(at, reason, args...).Suggestion = advice
}

func (r *reader) warn(at *document.Node, advice, reason string, args ...any) {
	r.warnings.Add(at, reason, args...).Suggestion = advice
}

// faultsShown is how many faults are kept; to find advice for more of them is a waste.
const faultsShown = 100

// known adds a fault for each key that is not among allowed. later has advice for keys of other versions.
func (r *reader) known(n *document.Node, allowed []string, later map[string]string) bool {
	if n == nil {
		return false
	}
	if n.Kind != document.Mapping {
		r.add(n, "", "must be an object, found %s", n.Kind)
		return false
	}
	for _, f := range n.Fields {
		if slices.Contains(allowed, f.Key.Text) {
			continue
		}
		advice, ok := later[f.Key.Text]
		if !ok && r.faults < faultsShown {
			advice = cmp.Or(document.DidYouMean(f.Key.Text, allowed), "known here: "+strings.Join(allowed, ", "))
		}
		r.add(f.Key, advice, "unknown key %q", tree.Clipped(f.Key.Text, 100))
	}
	return true
}

// keysOfDefinition are those that tell the JSON of a machine from that of its configuration.
var keysOfDefinition = []string{"transitions", "order"}

func (r *reader) machine(n *document.Node) *document.Node {
	if !r.isMachine(n) {
		return nil
	}
	r.maps(n)
	id := n.Field("id")
	rootID := "(machine)"
	if id != nil && r.Text(id) != "" {
		rootID = id.Text
	}
	root := &state{key: rootID, id: rootID, at: n}
	r.chart(root)
	if len(r.states) > maxStates {
		r.add(n, "", "more than %d states", maxStates)
		return nil
	}
	if root.kind == tree.Final || root.kind == tree.History {
		r.add(n, "give it states", "the root cannot be of type %s", string(root.kind))
		return nil
	}
	r.findNative(root)
	r.nameStates()
	r.split = r.canSplit(root)
	if r.split {
		for _, c := range root.children {
			r.noteRenamed(c)
		}
	} else {
		r.noteRenamed(root)
	}
	machines := r.machines(root)
	return r.top(root, machines)
}

func (r *reader) isMachine(n *document.Node) bool {
	if n.Kind != document.Mapping {
		r.add(n, "", "the machine must be an object, found %s", n.Kind)
		return false
	}
	for _, key := range keysOfDefinition {
		if at := n.Field(key); at != nil {
			r.add(at, "write JSON.stringify(machine.config)", "%q: this is the JSON of a machine, which leaves eventless and delayed transitions out, and not of its configuration", key)
			return false
		}
	}
	return true
}

func (r *reader) maps(n *document.Node) {
	get := func(key string) *names {
		m := n.Field(key)
		if m != nil && m.Kind != document.Mapping {
			r.add(m, "", "%q must be an object with the names as keys", key)
			m = nil
		}
		names := newNames(m)
		names.native = n.Field("meta").Field(tree.OwnMeta).Field("definition") != nil
		return names
	}
	r.guards, r.actions, r.delays, r.actors = get("guards"), get("actions"), get("delays"), get("actors")
	r.seen, r.assigning = map[string]bool{}, map[string]bool{}
}

// noteRenamed notes for the reader of the YAML which names are others than in the JSON.
func (r *reader) noteRenamed(s *state) {
	const most = 50
	for _, c := range s.children {
		if c.name != c.key && len(r.notes) < most {
			r.notes = append(r.notes, fmt.Sprintf("The state %s is named %s here.", tree.Clipped(strings.TrimPrefix(c.id, r.states[0].id+"."), 200), c.name))
		}
		r.noteRenamed(c)
	}
}

// canSplit reports whether the regions of the root can be state machines of their own: nothing stands at the root
// itself, and no transition leads from one to another or enters one as a whole.
func (r *reader) canSplit(root *state) bool {
	if root.kind != tree.Parallel || len(root.children) == 0 {
		return false
	}
	if r.native != nil {
		return r.native.Field("machines") != nil
	}
	if root.has("on", "always", "after", "entry", "exit", "invoke", "onDone", "output") {
		return false
	}
	for _, c := range root.children {
		if c.kind != tree.Compound && c.kind != tree.Parallel || c.has("onDone") {
			return false
		}
	}
	return !slices.ContainsFunc(r.states[1:], func(s *state) bool {
		region := s
		for region.parent != root {
			region = region.parent
		}
		return slices.ContainsFunc(transitionsOf(s.at), func(t *document.Node) bool { return r.leavesRegion(t, s, region) })
	})
}

// leavesRegion reports whether a transition of s has to do with more than what is inside the region.
func (r *reader) leavesRegion(t *document.Node, s, region *state) bool {
	to := t
	if t.Kind == document.Mapping {
		to = t.Field("target")
	}
	for _, at := range tree.Items(to) {
		if at.Kind != document.String || at.Text == "" {
			continue
		}
		if target := r.lookUp(at.Text, s); target != nil && !region.contains(target) {
			return true
		}
		if reenter := t.Field("reenter"); s == region && reenter != nil && reenter.Text == "true" {
			return true
		}
	}
	return false
}

func transitionsOf(n *document.Node) []*document.Node {
	out := slices.Concat(tree.Items(n.Field("always")), tree.Items(n.Field("onDone")))
	for _, key := range []string{"on", "after"} {
		if m := n.Field(key); m != nil {
			for _, f := range m.Fields {
				out = append(out, tree.Items(f.Value)...)
			}
		}
	}
	for _, i := range tree.Items(n.Field("invoke")) {
		out = slices.Concat(out, tree.Items(i.Field("onDone")), tree.Items(i.Field("onError")))
	}
	return out
}

// workflowID returns the id of the definition: that of the machine when it can be one, otherwise with "-" for other
// characters, and the base name of the file without one.
func (r *reader) workflowID(root *state) string {
	id := ""
	if root.has("id") {
		id = root.id
	} else {
		id = path.Base(strings.ReplaceAll(r.File, `\`, "/"))
		id = strings.TrimSuffix(id, path.Ext(id))
	}
	id = strings.Map(func(c rune) rune {
		if statemachine.IsIdentifier("a" + string(c)) {
			return c
		}
		return '-'
	}, id)
	id = strings.TrimLeft(id, "-._~")
	if id = strings.TrimRight(id, "-"); id == "" {
		return "machine"
	}
	return id[:min(len(id), 128)]
}

func (r *reader) version(n *document.Node) *document.Node {
	if n == nil {
		return nil
	}
	if i, err := strconv.Atoi(n.Text); err == nil && i >= 1 && i < 1<<31 && (n.Kind == document.Number || n.Kind == document.String) {
		return tree.Word(n, document.Number, strconv.Itoa(i))
	}
	r.warn(n, "versions are whole numbers here", "the version %q was left out", tree.Clipped(n.Text, 100))
	return nil
}
