package scxml

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Exported is a definition as SCXML.
type Exported struct {
	Text []byte
	// Notes name what only troupe reads in it: other tools pass it over, or stop at it.
	Notes document.Faults
}

// Export writes a definition as SCXML. name is the file's, for notes and faults; its extension says YAML or JSON. The definition should be
// one that statemachine.Parser takes: what it would refuse may be written as it is. The error is document.Faults.
func Export(name string, text []byte) (Exported, error) {
	tree, err := document.Parse(name, text)
	if err != nil {
		return Exported{}, err
	}
	e := &exporter{Collector: document.Collector{File: name}, top: tree, ids: map[*document.Node]string{}, taken: map[string]bool{}}
	e.semantics = textOf(tree.Field("semantics"))
	if e.semantics == "" {
		e.semantics = "native"
	}
	e.demandXML(tree)
	e.document()
	if err := e.Err(); err != nil {
		return Exported{}, err
	}
	return Exported{Text: e.out, Notes: e.notes}, nil
}

type exporter struct {
	document.Collector
	xmlWriter
	top       *document.Node
	semantics string
	machine   string                    // that is being written
	ids       map[*document.Node]string // of the states, by their trees
	byName    map[string]string         // the ids of the machine's states
	taken     map[string]bool
	notes     document.Faults
	expanding []string // named actions
	written   int      // actions
}

// demandXML refuses a character that XML 1.0 has no way to write (section 2.2).
func (e *exporter) demandXML(n *document.Node) {
	for _, r := range n.Text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			e.Add(n, "XML cannot have the character %U: remove it, or export to XState", r)
			break
		}
	}
	for _, f := range n.Fields {
		e.demandXML(f.Key)
		e.demandXML(f.Value)
	}
	for _, item := range n.Items {
		e.demandXML(item)
	}
}

func (e *exporter) note(n *document.Node, reason string, args ...any) {
	f := document.Fault{File: e.File, Reason: fmt.Sprintf(reason, args...)}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	if !slices.Contains(e.notes, f) {
		e.notes = append(e.notes, f)
	}
}

func textOf(n *document.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}

func (e *exporter) jsonOf(n *document.Node) string {
	v, err := n.Data()
	if err != nil {
		e.Add(n, "%v", err)
	}
	return string(v)
}

// elsewhere are the keys at the top that have a place of their own in SCXML. guards and actions are written where they are used.
var elsewhere = []string{"$schema", "id", "semantics", "context", "stateMachines", "guards", "actions"}

func (e *exporter) document() {
	machines := e.top.Field("stateMachines")
	if machines == nil || machines.Kind != document.Mapping || len(machines.Fields) == 0 {
		e.Add(e.top, "the definition has no state machines")
		return
	}
	e.raw(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	e.start("scxml",
		attribute{"xmlns", scxmlSpace}, attribute{"xmlns:troupe", troupeSpace}, attribute{"version", "1.0"}, attribute{"datamodel", "cel"},
		attribute{"name", textOf(e.top.Field("id"))}, attribute{"troupe:semantics", e.semantics})
	first := machines.Fields[0]
	inline := len(machines.Fields) == 1 && isPlainMachine(first.Value)
	if inline {
		e.nameStates(first)
		e.attribute("troupe:machine", first.Key.Text)
		e.attribute("initial", e.initial(first.Value))
	}
	e.rest(e.top, func(key string) bool { return slices.Contains(elsewhere, key) })
	e.context()
	switch {
	case inline:
		e.machine = first.Key.Text
		e.content(first.Value, first.Key.Text)
	case len(machines.Fields) == 1:
		e.topMachine(first)
	default:
		e.start("parallel", attribute{"id", e.unique("troupe.machines")}, attribute{"troupe:machines", "true"})
		for _, f := range machines.Fields {
			e.topMachine(f)
		}
		e.end()
	}
	e.end()
}

// isPlainMachine reports whether a machine has nothing that <scxml> cannot have.
func isPlainMachine(n *document.Node) bool {
	for _, f := range n.Fields {
		if !slices.Contains([]string{"initial", "states"}, f.Key.Text) {
			return false
		}
	}
	initial := n.Field("initial")
	return initial == nil || initial.Kind != document.Mapping
}

func (e *exporter) topMachine(f document.Field) {
	e.machine = f.Key.Text
	e.nameStates(f)
	e.state(f)
}

// nameStates gives the states of a machine their ids: their names, unless another machine has such a state. An id has no blanks: a target
// may be several ids with blanks between them.
func (e *exporter) nameStates(machine document.Field) {
	e.byName = map[string]string{}
	var walk func(f document.Field)
	walk = func(f document.Field) {
		id := f.Key.Text
		if e.taken[id] {
			id = machine.Key.Text + "." + id
		}
		id = e.unique(strings.Join(strings.Fields(id), "_"))
		e.ids[f.Key] = id
		if f.Key != machine.Key {
			e.byName[f.Key.Text] = id
		}
		if states := f.Value.Field("states"); states != nil {
			for _, c := range states.Fields {
				walk(c)
			}
		}
	}
	walk(machine)
}

func (e *exporter) unique(id string) string {
	for e.taken[id] {
		id += "_"
	}
	e.taken[id] = true
	return id
}

func (e *exporter) context() {
	context := e.top.Field("context")
	if context == nil || len(context.Fields) == 0 {
		return
	}
	e.start("datamodel")
	for _, f := range context.Fields {
		e.start("data", attribute{"id", f.Key.Text})
		e.text(e.jsonOf(f.Value))
		e.end()
	}
	e.end()
}

// rest writes what SCXML has no place for: the keys of n that are not known, as JSON that only troupe reads.
func (e *exporter) rest(n *document.Node, known func(key string) bool) {
	m := newMapping()
	for _, f := range n.Fields {
		if known(f.Key.Text) {
			continue
		}
		m.set(f.Key.Text, f.Value)
		if !slices.Contains([]string{"name", "description", "version", "tags", "meta", "into", "apply"}, f.Key.Text) {
			e.note(f.Key, "%q is not part of SCXML: only troupe reads it there", f.Key.Text)
		}
	}
	if m.orNil() != nil {
		e.attribute("troupe:rest", e.jsonOf(m.Node))
	}
}

// condition writes the attribute of a condition. A named one is written out.
func (e *exporter) condition(n *document.Node) string {
	if n == nil {
		return ""
	}
	text := n.Text
	if n.Kind == document.Mapping {
		text = textOf(n.Field("type"))
	}
	if named := e.top.Field("guards").Field(text); named != nil {
		text = named.Text
	}
	return unwrap(text)
}

func unwrap(s string) string {
	if strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}") {
		return s[2 : len(s)-1]
	}
	return s
}

func hasExpression(n *document.Node) bool {
	if n == nil {
		return false
	}
	inside := func(v *document.Node) bool { return hasExpression(v) }
	for _, f := range n.Fields {
		if inside(f.Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, inside) || n.Kind == document.String && strings.HasPrefix(n.Text, "${") && strings.HasSuffix(n.Text, "}")
}

// celOf is a value with expressions in it as one expression.
func (e *exporter) celOf(n *document.Node) string {
	var parts []string
	switch {
	case n.Kind == document.String && hasExpression(n):
		return unwrap(n.Text)
	case n.Kind == document.Mapping:
		for _, f := range n.Fields {
			parts = append(parts, string(data.AppendString(nil, f.Key.Text))+": "+e.celOf(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case n.Kind == document.Sequence:
		for _, item := range n.Items {
			parts = append(parts, e.celOf(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return e.jsonOf(n)
}

// isMixed reports whether a value is neither wholly an expression nor without any: an expression for it does not keep the order of keys.
func isMixed(n *document.Node) bool { return n.Kind >= document.Sequence && hasExpression(n) }
