package scxml

import (
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// dataModel makes the context, and the blocks of actions that give the other variables their values. Variables without a value are null.
func (i *importer) dataModel() (context mapping, setup []*document.Node) {
	context = newMapping()
	public := newMapping()
	for _, name := range i.data {
		public.set(name, &document.Node{Kind: document.Null})
	}
	var walk func(e *element)
	walk = func(e *element) {
		for _, c := range e.children {
			switch {
			case !c.isSCXML() || c.name == "content":
			case c.name == "datamodel":
				i.attributes(c)
				i.children(c, "data")
				for _, d := range c.all("data") {
					if block := i.datum(d, i.late && e != i.root, context, public); block != nil {
						setup = append(setup, block)
					}
				}
			case isState(c.name):
				walk(c)
			}
		}
	}
	walk(i.root)
	if of := context.Field("svcPublic"); of != nil {
		of.Fields = append(of.Fields, public.Fields...)
	} else {
		context.set("svcPublic", public.orNil())
	}
	return context, setup
}

// datum takes one data element: a constant goes into the context, and everything else is a block of its own. later: it gets its value when
// its state is entered.
func (i *importer) datum(e *element, later bool, context, public mapping) *document.Node {
	i.attributes(e, "id", "expr", "src")
	id, _ := e.attribute("id")
	v := i.datumValue(e)
	switch {
	case i.isCEL && (id == "svcPublic" || id == "svcPrivate"):
		switch {
		case v == nil:
		case v.Kind == document.Mapping:
			context.set(id, v)
		default:
			i.Add(e.at(), "the value of %s must be the JSON of an object, inside the element", id)
		}
		return nil
	case v == nil || later:
		return nil
	case i.isLate(v):
		return i.initialization(id, v)
	}
	public.set(id, v)
	return nil
}

func (i *importer) isLate(v *document.Node) bool { return isExpression(v) }

func (i *importer) datumValue(e *element) *document.Node {
	if src, ok := e.attribute("src"); ok {
		return i.dataFile(e, src)
	}
	if expr, ok := e.attribute("expr"); ok {
		return i.value(e, expr)
	}
	if len(e.children) == 0 && strings.TrimSpace(e.text) == "" {
		return nil
	}
	return i.inline(e)
}

func (i *importer) dataFile(e *element, src string) *document.Node {
	if i.session.read == nil {
		i.Add(e.at(), "data of another file (%s) cannot be expressed", shorten(src)).Suggestion = "put it into the document"
		return nil
	}
	b, err := i.session.read(strings.TrimPrefix(src, "file:"))
	if err != nil {
		i.Add(e.at(), "data of another file: %v", err)
		return nil
	}
	of := strings.TrimSpace(string(b))
	if strings.HasPrefix(of, "<") {
		i.Add(e.at(), "XML as data cannot be expressed: data is JSON")
		return nil
	}
	return i.inline(&element{text: of, line: e.line})
}

// initializations are the blocks for the data of one state.
func (i *importer) initializations(e *element) (blocks []*document.Node) {
	for _, model := range e.all("datamodel") {
		for _, d := range model.all("data") {
			if v := i.datumValue(d); v != nil {
				id, _ := d.attribute("id")
				blocks = append(blocks, i.initialization(id, v))
			}
		}
	}
	return blocks
}

// initialization gives a variable its first value. One that has a value keeps it: anyone who created the instance gave it, or the state was
// entered before.
func (i *importer) initialization(id string, v *document.Node) *document.Node {
	at := i.variable(id)
	if at == "" {
		return list()
	}
	set := newMapping().set(strings.Join([]string{"svcPublic", id}, "."), v)
	return list(newMapping().set("if", text(at+" == null")).set("then", list(one("assign", set.Node))).Node)
}

func (i *importer) invoke(state, e *element) mapping {
	i.attributes(e, "type", "typeexpr", "src", "srcexpr", "id", "idlocation", "namelist", "autoforward")
	i.children(e, "param", "finalize", "content")
	m := newMapping()
	own := i.ownValue(e, "invoke")
	if own != nil {
		m = mapping{own}
	} else {
		m.set("workflow", i.invoked(state, e))
		m.set("type", i.either(e, "type", "typeexpr"))
	}
	if kind := m.Field("type"); kind != nil && !isExpression(kind) {
		m.remove("type")
		if !isSCXMLType(kind.Text) {
			i.Add(e.at(), "an invoke of type %q cannot be expressed", kind.Text).Suggestion = "http://www.w3.org/TR/scxml/ is the only type"
		}
	}
	if id, ok := e.attribute("id"); ok {
		m.set("id", text(id))
	}
	if location, ok := e.attribute("idlocation"); ok {
		m.set("idTo", text(i.place(e, location)))
	}
	if own == nil {
		value, params := i.payload(e)
		if value != nil {
			m.set("data", one("svcPublic", value))
		}
		m.set("params", params)
	}
	if forward, _ := e.attribute("autoforward"); forward == "true" {
		m.set("autoforward", truth(true))
	}
	if f := e.first("finalize"); f != nil {
		i.attributes(f)
		m.set("finalize", i.actions(f.children))
	}
	return m
}

func isSCXMLType(kind string) bool {
	return kind == "scxml" || strings.TrimSuffix(kind, "/") == "http://www.w3.org/TR/scxml"
}

// invoked is the workflow of an invoke: a document inside becomes a definition of its own.
func (i *importer) invoked(state, e *element) *document.Node {
	src, given := e.attribute("src")
	computed, isComputed := e.attribute("srcexpr")
	content := e.first("content")
	switch {
	case given:
		return text(i.beside(e, src))
	case isComputed:
		return text("${(" + i.expression(e, computed) + `).replace("file:", "").replace(".scxml", "")}`)
	case content == nil:
		i.Add(e.at(), "<invoke> needs src, srcexpr or <content>")
		return nil
	}
	if _, ok := content.attribute("expr"); ok {
		i.Add(content.at(), "a document that is computed cannot be invoked").Suggestion = "write it inside, or name it with srcexpr"
		return nil
	}
	for _, c := range content.children {
		if c.name == "scxml" && c.isSCXML() {
			id := i.id + "." + identifier(i.nameOf(state))
			if len(state.all("invoke")) > 1 {
				if name, ok := e.attribute("id"); ok {
					id += "." + identifier(name)
				}
			}
			before := len(i.session.files)
			i.session.document(i.Collector, c, i.source, id)
			return text(i.session.files[before].ID)
		}
	}
	i.Add(content.at(), "<content> of an <invoke> needs an <scxml> inside")
	return nil
}

func (i *importer) nameOf(e *element) string {
	if name, ok := i.names[e]; ok {
		return name
	}
	return i.machineName()
}

const maxFiles = 100

// beside is the workflow of a document in a file of its own. It is imported as well, where it can be read.
func (i *importer) beside(e *element, src string) string {
	name := strings.TrimPrefix(src, "file:")
	id := i.session.idOf(name)
	if i.session.read == nil || i.session.ids[id] {
		return id
	}
	if len(i.session.files) >= maxFiles {
		i.Add(e.at(), "more than %d documents are invoked", maxFiles)
		return id
	}
	b, err := i.session.read(name)
	if err != nil {
		i.note(e, "the document %s is not beside this one: import it as %s", shorten(src), id)
		return id
	}
	if err := i.session.add(name, b, id); err != nil {
		if faults, ok := err.(document.Faults); ok { //nolint:errorlint // add returns no other
			for _, f := range faults {
				i.Add(e.at(), "in %s: %s", shorten(src), f.Error())
			}
		}
	}
	return id
}

func (*session) idOf(file string) string {
	base := file[strings.LastIndexByte(file, '/')+1:]
	if dot := strings.IndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	return identifier(base)
}

// ownAction reads an action that only a definition has, as Export writes it: JSON.
func (i *importer) ownAction(e *element) *document.Node {
	v, err := data.Clean([]byte(strings.TrimSpace(e.text)))
	if e.name != "action" || err != nil || v.Kind() != data.Object {
		i.Add(e.at(), "the action <%s> of troupe cannot be read", e.name)
		return nil
	}
	n := newMapping()
	for key, item := range v.Members() {
		n.set(key, plain(item))
	}
	return n.Node
}

// plain is a JSON value as a part of a definition in which texts are as they are, expressions too.
func plain(v data.Value) *document.Node {
	switch v.Kind() {
	case data.String:
		return text(v.Text())
	case data.Array:
		out := list()
		for _, item := range v.Elements() {
			out.Items = append(out.Items, plain(item))
		}
		return out
	case data.Object:
		m := newMapping()
		for key, item := range v.Members() {
			m.set(key, plain(item))
		}
		return m.Node
	}
	return literal(v)
}
