package scxml

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// File is one definition that an import has made.
type File struct {
	ID   string // of the workflow; the file is ID.yaml
	Text []byte
	// Notes tell what was left out because it has no effect, and which expressions fail when they run.
	Notes document.Faults
}

// Import makes definitions of an SCXML document: first its own, then those of the documents inside. name is the file's, for faults; without
// a name of its own, the definition gets its id from it. The error is document.Faults: everything that cannot be expressed.
//
// A document may refer to others beside it: data and invoked documents with a src. read returns one of them; nil: there are none.
func Import(name string, text []byte, read func(name string) ([]byte, error)) ([]File, error) {
	s := &session{read: read, ids: map[string]bool{}}
	if err := s.add(name, text, ""); err != nil {
		return nil, err
	}
	return s.files, nil
}

type session struct {
	read  func(name string) ([]byte, error)
	files []File
	ids   map[string]bool // of the workflows
}

func (s *session) add(name string, text []byte, id string) error {
	faults := &document.Collector{File: name}
	root := parse(faults, text)
	if root == nil {
		return faults.Err()
	}
	s.document(faults, root, text, id)
	return faults.Err()
}

type importer struct {
	*document.Collector
	session          *session
	source           []byte
	root             *element
	id               string
	title            string // _name
	semantics        string
	isCEL            bool                // expressions are CEL already
	late             bool                // data of a state gets its value when that is entered first
	names            map[*element]string // of states
	parents          map[*element]*element
	known            map[string]*element // states by name
	data             []string            // declared variables
	notes            document.Faults
	childTransitions []childTransition
	unknown          int // names of states that are not there
	slips            int // names in expressions that look like slips
}

func (s *session) document(faults *document.Collector, root *element, source []byte, id string) {
	if root.name != "scxml" || !root.isSCXML() {
		faults.Add(root.at(), "the document is not SCXML: its element is %q", root.name)
		return
	}
	i := &importer{Collector: faults, session: s, source: source, root: root, names: map[*element]string{}, parents: map[*element]*element{}, known: map[string]*element{}}
	i.title, _ = root.attribute("name")
	i.id = s.newID(id, i.title, faults.File)
	at := len(s.files)
	s.files = append(s.files, File{ID: i.id}) // before those inside
	var w document.Writer
	w.Top(i.definition())
	s.files[at].Text, s.files[at].Notes = w.Bytes(), i.notes
}

// newID is the id of a workflow: as asked for, else of the document's name, else of the file's.
func (s *session) newID(id, title, file string) string {
	base := path.Base(strings.ReplaceAll(file, `\`, "/"))
	if dot := strings.IndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	for _, try := range []string{id, title, base, "chart"} {
		if id = identifier(try); id != "" {
			break
		}
	}
	unique := id
	for n := 2; s.ids[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	s.ids[unique] = true
	return unique
}

// identifier makes an identifier of a name; "" when nothing is left of it.
func identifier(s string) string {
	out := strings.Map(func(r rune) rune {
		if r < 128 && statemachine.IsIdentifier("x"+string(r)) {
			return r
		}
		return '-'
	}, s)
	out = strings.TrimLeft(out, ".-_~")
	out = strings.TrimRight(out, "-")
	return out[:min(len(out), 100)]
}

func (i *importer) note(e *element, reason string, args ...any) {
	i.addNote(document.Fault{File: i.File, Line: e.line, Reason: fmt.Sprintf(reason, args...)})
}

func (i *importer) addNote(f document.Fault) {
	if !slices.Contains(i.notes, f) {
		i.notes = append(i.notes, f)
	}
}

// attributes refuses those that an element does not have, and notes those of other namespaces.
func (i *importer) attributes(e *element, known ...string) {
	for _, a := range e.attributes {
		switch {
		case a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns", a.Name.Space == troupeSpace, strings.Contains(a.Name.Space, "XML/1998"):
		case a.Name.Space != "" && a.Name.Space != scxmlSpace:
			i.note(e, "the attribute %s of another namespace is left out", a.Name.Local)
		case !slices.Contains(known, a.Name.Local):
			f := i.Add(e.at(), "<%s> has no attribute %q", e.name, a.Name.Local)
			f.Suggestion = "known here: " + strings.Join(known, ", ")
		}
	}
}

// children refuses elements that do not belong into e, and notes those of other namespaces.
func (i *importer) children(e *element, known ...string) {
	for _, c := range e.children {
		switch {
		case !c.isSCXML() && c.space != troupeSpace:
			i.note(c, "the element %s of another namespace is left out", c.name)
		case c.name == "script":
			i.script(c)
		case c.isSCXML() && !slices.Contains(known, c.name):
			i.Add(c.at(), "<%s> cannot stand in <%s>", c.name, e.name)
		}
	}
}

func (i *importer) script(e *element) {
	i.Add(e.at(), "<script> cannot be expressed: a definition runs no code").Suggestion = "write what it does as <assign>, <if> and <foreach>"
}

func (i *importer) definition() *document.Node {
	e := i.root
	i.attributes(e, "initial", "name", "version", "datamodel", "binding", "exmode")
	i.children(e, "state", "parallel", "final", "datamodel", "history", "transition")
	switch model, _ := e.attribute("datamodel"); model {
	case "", "ecmascript", "null":
	case "cel":
		i.isCEL = true
	default:
		i.Add(e.at(), "the data model %q cannot be expressed", model).Suggestion = "ecmascript (its small expressions), cel and null are read"
	}
	binding, _ := e.attribute("binding")
	i.late = binding == "late"
	i.nameStates(e)
	i.declare(e)

	out := newMapping().set("id", text(i.id))
	if i.title != "" && i.title != i.id {
		out.set("name", text(i.title))
	}
	i.semantics = "scxml"
	if own, ok := e.own("semantics"); ok {
		i.semantics = own
	}
	out.set("semantics", text(i.semantics))
	i.rest(e, out)
	context, setup := i.dataModel()
	if context.orNil() != nil {
		out.set("context", context.Node)
	}
	return out.set("stateMachines", i.machines(setup)).Node
}

func (i *importer) machines(setup []*document.Node) *document.Node {
	of := i.root
	if p := of.first("parallel"); p != nil {
		if _, several := p.own("machines"); several {
			of = p
		}
	}
	all := newMapping()
	for _, c := range of.children {
		if name, ok := c.own("machine"); ok && c.isSCXML() && isState(c.name) {
			all.set(name, i.state(c))
		}
	}
	if all.orNil() != nil {
		return all.Node
	}
	machine := newMapping()
	i.compound(i.root, machine, setup)
	return all.set(i.machineName(), machine.Node).Node
}

// rest adds what only a definition has, as Export writes it.
func (i *importer) rest(e *element, m mapping) {
	text, ok := e.own("rest")
	if !ok {
		return
	}
	v, err := data.Clean([]byte(text))
	if err != nil || v.Kind() != data.Object {
		i.Add(e.at(), "troupe:rest cannot be read: it is the JSON of an object")
		return
	}
	for key, item := range v.Members() {
		if slices.Contains(elsewhere, key) || e != i.root && slices.Contains(stateKeys, key) {
			i.Add(e.at(), "troupe:rest cannot have %q, which stands elsewhere", key)
			continue
		}
		m.set(key, plain(item))
	}
}

func (i *importer) ownValue(e *element, name string) *document.Node {
	text, ok := e.own(name)
	if !ok {
		return nil
	}
	v, err := data.Clean([]byte(text))
	if err != nil {
		i.Add(e.at(), "troupe:%s cannot be read: it is JSON", name)
		return nil
	}
	return plain(v)
}

func (i *importer) machineName() string {
	name := "main"
	if own, ok := i.root.own("machine"); ok {
		name = own
	}
	for i.known[name] != nil {
		name += "_"
	}
	return name
}
