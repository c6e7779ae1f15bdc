// Package export writes a definition as the JSON of an XState machine. It knows nothing of reading one.
package export

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/tree"
)

// Machine is xstate.Export with a parser.
func Machine(parser *statemachine.Parser, src statemachine.Source) (machine []byte, warnings document.Faults, err error) {
	if _, err = parser.Parse(src); err != nil {
		return nil, nil, err
	}
	read, err := document.Parse(src.File, src.Text)
	if err != nil {
		return nil, nil, err
	}
	if s := read.Field("semantics"); s != nil && s.Text == "scxml" {
		c := document.Collector{File: src.File}
		c.Add(s, "a definition with the rules of SCXML: XState has neither these nor its keys").Suggestion = "export it to SCXML"
		return nil, nil, c.Err()
	}
	w := &writer{Collector: document.Collector{File: src.File}, top: read, byName: map[string]*place{}, names: map[string]string{}}
	v, err := w.machine().Data()
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, v, "", "  "); err != nil {
		return nil, nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), w.Faults(), nil
}

type writer struct {
	document.Collector
	top *document.Node
	// native and byXState: what semantics says.
	native, byXState bool

	rootID string
	roots  []*place
	byName map[string]*place // by "machine.node"

	guards, actions, delays, actors *document.Node
	names                           map[string]string // the contents of the entries of the maps, by map and name
}

// place is a node of the definition and where it stands in the configuration.
type place struct {
	name    string
	at      *document.Node
	machine *place // itself for a state machine
	parent  *place // nil for a state machine
	inner   []*place
	path    []string // keys from the root
}

func (w *writer) warn(at *document.Node, advice, reason string, args ...any) {
	w.Add(at, reason, args...).Suggestion = advice
}

// kept are the keys of the top that have a place of their own in the configuration, or need no warning.
var kept = []string{"id", "stateMachines", "guards", "actions", "context", "$schema", "name", "version", "description", "tags", "meta", "semantics"}

func (w *writer) machine() *document.Node {
	w.native = true
	if s := w.top.Field("semantics"); s != nil {
		w.native, w.byXState = s.Text == "native", s.Text == "xstate"
	}
	w.rootID = w.top.Field("id").Text
	w.guards, w.actions = tree.Mapping(w.top), tree.Mapping(w.top)
	w.delays, w.actors = tree.Mapping(w.top), tree.Mapping(w.top)
	machines := w.top.Field("stateMachines").Fields
	for _, f := range machines {
		root := &place{name: f.Key.Text, at: f.Value}
		root.machine = root
		if len(machines) > 1 {
			root.path = []string{root.name}
		}
		w.roots = append(w.roots, root)
		w.find(root)
	}
	w.namedGuards()
	w.namedActions()
	out := tree.Mapping(w.top)
	tree.Put(out, "id", w.top.Field("id"))
	if len(machines) > 1 {
		w.parallelRoot(out)
	} else {
		w.node(out, w.roots[0])
	}
	for _, m := range []struct {
		key string
		n   *document.Node
	}{{"guards", w.guards}, {"actions", w.actions}, {"delays", w.delays}, {"actors", w.actors}} {
		if len(m.n.Fields) > 0 {
			tree.Put(out, m.key, m.n)
		}
	}
	return out
}

func (w *writer) find(p *place) {
	w.byName[p.machine.name+"."+p.name] = p
	states := p.at.Field("states")
	if states == nil {
		return
	}
	for _, f := range states.Fields {
		c := &place{name: f.Key.Text, at: f.Value, machine: p.machine, parent: p, path: append(slices.Clone(p.path), f.Key.Text)}
		p.inner = append(p.inner, c)
		w.find(c)
	}
}

func (w *writer) parallelRoot(out *document.Node) {
	tree.Put(out, "description", w.top.Field("description"))
	tree.Put(out, "type", tree.Text(w.top, string(tree.Parallel)))
	w.context(out)
	states := tree.Mapping(w.top.Field("stateMachines"))
	for _, root := range w.roots {
		s := tree.Mapping(root.at)
		w.node(s, root)
		tree.Put(states, root.name, s)
	}
	tree.Put(out, "states", states)
	own := tree.Mapping(w.top)
	tree.Put(own, "definition", w.definition())
	tree.Put(own, "machines", tree.Word(w.top, document.Bool, "true"))
	tree.Put(out, "meta", w.ownMeta(nil, own))
}

func (w *writer) ownMeta(meta, own *document.Node) *document.Node {
	out := tree.Mapping(own)
	tree.Put(out, tree.OwnMeta, own)
	if meta == nil {
		return out
	}
	if meta.Kind != document.Mapping || meta.Field(tree.OwnMeta) != nil {
		tree.Put(own, "meta", meta)
		return out
	}
	out.Fields = slices.Concat(meta.Fields, out.Fields)
	return out
}

// context is svcPublic; svcPrivate has no place in XState.
func (w *writer) context(out *document.Node) {
	context := w.top.Field("context")
	tree.Put(out, "context", context.Field("svcPublic"))
	if private := context.Field("svcPrivate"); private != nil {
		w.warn(private, "", "svcPrivate has no place in the context of XState and is kept under meta.%s", tree.OwnMeta)
	}
}

func (w *writer) definition() *document.Node {
	out := tree.Mapping(w.top)
	for _, f := range w.top.Fields {
		switch f.Key.Text {
		case "id", "stateMachines", "guards", "actions":
			continue
		case "context":
			if private := f.Value.Field("svcPrivate"); private != nil {
				tree.Put(out, "context", tree.Only(f.Value, "svcPrivate", private))
			}
			continue
		}
		if !slices.Contains(kept, f.Key.Text) {
			w.warn(f.Key, "", "XState has no %q: it is kept under meta.%s", f.Key.Text, tree.OwnMeta)
		}
		tree.PutAt(out, f.Key, f.Key.Text, f.Value)
	}
	if out.Field("semantics") == nil {
		tree.Put(out, "semantics", tree.Text(w.top, "native"))
	}
	return out
}

// entry adds an entry to one of the maps of names and returns its name: wanted, or another one when that stands for
// something else.
func (w *writer) entry(to *document.Node, which, wanted string, value *document.Node) string {
	content := "?"
	if v, err := value.Data(); err == nil {
		content = v.String()
	}
	for name, i := wanted, 2; ; i++ {
		before, taken := w.names[which+" "+name]
		if !taken {
			w.names[which+" "+name] = content
			tree.Put(to, name, value)
			return name
		}
		if before == content {
			return name
		}
		name = wanted + " " + strconv.Itoa(i)
	}
}
