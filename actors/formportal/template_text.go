package formportal

import (
	"path"
	"slices"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// Texts of a template are in one or in several languages, as those of a definition are.

func (p *templateParser) text(n *document.Node) statemachine.Text {
	if n == nil || n.Kind != document.Mapping {
		return statemachine.Plain(p.Text(n))
	}
	return p.languages(p.own(), n)
}

type report struct{ faults, warnings *document.Collector }

func (p *templateParser) own() report { return report{&p.Collector, &p.warnings} }

func (p *templateParser) languages(to report, n *document.Node) statemachine.Text {
	return statemachine.ReadText(to.faults, to.warnings, n, p.known.Workflow == nil)
}

func schemaText(keyword string) bool { return keyword == "title" || keyword == "description" }

// checkSchema finds faults in the texts of a schema, which are maps of languages, and hints that nothing knows.
func (p *templateParser) checkSchema(to report, n *document.Node) {
	if n.Kind == document.Sequence {
		for _, item := range n.Items {
			p.checkSchema(to, item)
		}
	}
	for _, f := range n.Fields {
		warnOfHint(to.warnings, f.Key)
		switch key := f.Key.Text; {
		case schemaText(key) && f.Value.Kind == document.Mapping:
			p.languages(to, f.Value)
		case values[key]:
		case named[key] && f.Value.Kind == document.Mapping:
			for _, schema := range f.Value.Fields {
				p.checkSchema(to, schema.Value)
			}
		default:
			p.checkSchema(to, f.Value)
		}
	}
}

// readChecked reads a file beside the template, and finds faults in its texts. What is no document at all is found when
// it is bundled.
func (p *templateParser) readChecked(name string) ([]byte, error) {
	text, err := p.read(name)
	if err != nil {
		return nil, err
	}
	file := path.Join(path.Dir(p.File), name)
	if tree, err := document.Parse(file, text); err == nil {
		beside := report{&document.Collector{File: file}, &document.Collector{File: file}}
		p.checkSchema(beside, tree)
		p.beside = append(p.beside, beside.faults.Faults()...)
		p.warningsBeside = append(p.warningsBeside, beside.warnings.Faults()...)
	}
	return text, nil
}

type picker struct {
	languages []string
	picked    bool // there was one
}

func (p *picker) text(dst []byte, v data.Value) []byte {
	var t statemachine.Text
	for language, text := range v.Members() {
		t = append(t, statemachine.Translation{Language: language, Text: text.Text()})
	}
	p.picked = true
	return data.AppendString(dst, t.For(p.languages...))
}

// each appends an array or an object with each of its elements replaced; anything else is copied.
func each(dst []byte, v data.Value, replace func(dst []byte, key string, v data.Value) []byte) []byte {
	switch v.Kind() {
	case data.Array:
		dst = append(dst, '[')
		for _, element := range v.Elements() {
			dst = append(replace(dst, "", element), ',')
		}
		return append(trimComma(dst), ']')
	case data.Object:
		dst = append(dst, '{')
		for key, value := range v.Members() {
			dst = append(replace(append(data.AppendString(dst, key), ':'), key, value), ',')
		}
		return append(trimComma(dst), '}')
	}
	return append(dst, v...)
}

func (p *picker) schema(dst []byte, v data.Value) []byte {
	return each(dst, v, func(dst []byte, key string, v data.Value) []byte {
		switch isObject := v.Kind() == data.Object; {
		case schemaText(key) && isObject:
			return p.text(dst, v)
		case values[key]:
			return append(dst, v...)
		case named[key] && isObject:
			return each(dst, v, func(dst []byte, _ string, v data.Value) []byte { return p.schema(dst, v) })
		}
		return p.schema(dst, v)
	})
}

func (p *picker) hints(dst []byte, v data.Value, texts []string) []byte {
	return each(dst, v, func(dst []byte, key string, v data.Value) []byte {
		switch isText := slices.Contains(texts, key); {
		case isText && v.Kind() == data.Object:
			return p.text(dst, v)
		case isText:
			return each(dst, v, func(dst []byte, _ string, v data.Value) []byte {
				if v.Kind() == data.Object {
					return p.text(dst, v)
				}
				return append(dst, v...)
			})
		case key == "ui:options":
			return p.hints(dst, v, optionTexts)
		}
		return p.hints(dst, v, hintTexts)
	})
}

// plainSchema is a schema with the first text of each; several: there was one in several languages.
func plainSchema(v data.Value) (plain data.Value, several bool) {
	p := picker{}
	plain = p.schema(nil, v)
	return plain, p.picked
}

// SchemaFor is the schema with texts in the first of the languages that they are in, else in the first of the file. It
// is only read.
func (t *Template) SchemaFor(languages ...string) data.Value {
	if t.texts == nil {
		return t.Schema
	}
	p := picker{languages: languages}
	return p.schema(nil, t.texts)
}

// UIFor are the hints in the same way.
func (t *Template) UIFor(languages ...string) data.Value {
	p := picker{languages: languages}
	if of := p.hints(nil, t.UI, hintTexts); p.picked {
		return of
	}
	return t.UI
}
