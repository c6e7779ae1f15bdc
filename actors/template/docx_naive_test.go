package template_test

import (
	"encoding/xml"
	"io"
	"slices"

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

// element is a node of a tree: with a name an element, without one a text.
type element struct {
	space, name string
	text        string
	children    []*element
}

// naiveDocument is the obvious way: a tree of elements, made by encoding/xml, and the text
// of a paragraph by walking it. Only one part, and no limits.
func naiveDocument(r io.Reader) ([]param.Param, error) {
	root, err := tree(r)
	if err != nil {
		return nil, err
	}
	var texts []string
	paragraph(root, &texts)
	var all []param.Param
	for _, text := range texts {
		params, err := templatetest.Scan(param.Limits{}, text)
		if err != nil {
			return nil, err
		}
		all = append(all, params...)
	}
	return templatetest.Distinct(all), nil
}

func tree(r io.Reader) (*element, error) {
	d := xml.NewDecoder(r)
	open := []*element{{}}
	for {
		token, err := d.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it bare
			return open[0], nil
		}
		if err != nil {
			return nil, err
		}
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{space: token.Name.Space, name: token.Name.Local}
			top.children = append(top.children, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.children = append(top.children, &element{text: string(token)})
		}
	}
}

// paragraph returns the text that e has in the paragraph around it, and appends
// those of the paragraphs in it.
func paragraph(e *element, texts *[]string) (text string) {
	word := e.space == "http://schemas.openxmlformats.org/wordprocessingml/2006/main" || e.space == "http://purl.oclc.org/ooxml/wordprocessingml/main"
	math := e.space == "http://schemas.openxmlformats.org/officeDocument/2006/math" || e.space == "http://purl.oclc.org/ooxml/officeDocument/math"
	passed := []string{"del", "moveFrom", "rPr", "pPr", "instrText", "delText", "delInstrText"}
	switch {
	case word && slices.Contains(passed, e.name):
		return ""
	case word && e.name == "tab", word && e.name == "ptab":
		text = "\t"
	case word && e.name == "br", word && e.name == "cr":
		text = "\n"
	case word && e.name == "noBreakHyphen":
		text = "-"
	}
	taken := false
	for _, child := range e.children {
		switch {
		case child.name == "":
			if word && e.name == "t" || math && e.name == "t" {
				text += child.text
			}
			continue
		case e.name == "AlternateContent" && isCompatibility(e) && isCompatibility(child) && (child.name == "Choice" || child.name == "Fallback"):
			if taken {
				continue
			}
			taken = true
		}
		text += paragraph(child, texts)
	}
	if word && e.name == "p" {
		*texts = append(*texts, text)
		return ""
	}
	return text
}

func isCompatibility(e *element) bool {
	return e.space == "http://schemas.openxmlformats.org/markup-compatibility/2006"
}
