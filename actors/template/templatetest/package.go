package templatetest

import (
	"archive/zip"
	"fmt"
	"path"
	"strings"
)

// Namespaces, transitional and strict.
const (
	transitionalWord  = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
	strictWord        = "http://purl.oclc.org/ooxml/wordprocessingml/main"
	transitionalKinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	strictKinds       = "http://purl.oclc.org/ooxml/officeDocument/relationships/"
	relationships     = "http://schemas.openxmlformats.org/package/2006/relationships"
	compatibility     = "http://schemas.openxmlformats.org/markup-compatibility/2006"
	otherNamespaces   = ` xmlns:mc="` + compatibility + `" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"` +
		` xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"` +
		` xmlns:v="urn:schemas-microsoft-com:vml" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"`
)

// Part is a part of a document that the main part has a relationship to.
type Part struct {
	Kind string // the last word of the relationship: header
	Name string // in the zip file: word/header1.xml
	XML  string
}

// Package is a document in parts. The zero value of a field is what most documents have.
type Package struct {
	Main   string // the main part's XML
	Name   string // its name; default: word/document.xml
	Strict bool
	Others []Part
	Method uint16
	Target func(from, to string) string // Target spells a relationship's target; default: relative to the part
	More   []Entry                      // entries that nothing leads to
}

// Body returns a main part with the given content of its body.
func Body(content string) string { return Story("document", "<w:body>"+content+"</w:body>", false) }

// Story returns a part with the root element root.
func Story(root, content string, strict bool) string {
	word := transitionalWord
	if strict {
		word = strictWord
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:%s xmlns:w=%q%s>%s</w:%[1]s>`, root, word, otherNamespaces, content)
}

// Paragraph returns a paragraph with a text in one run.
func Paragraph(text string) string {
	return `<w:p><w:r><w:t xml:space="preserve">` + strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(text) + `</w:t></w:r></w:p>`
}

// Entries returns what the zip file of the document has.
func (p Package) Entries() []Entry {
	if p.Name == "" {
		p.Name = "word/document.xml"
	}
	if p.Target == nil {
		p.Target = func(from, to string) string {
			if from == "" {
				return to
			}
			up := strings.Repeat("../", strings.Count(from, "/"))
			if inside, same := strings.CutPrefix(to, path.Dir(from)+"/"); same {
				return inside
			}
			return up + to
		}
	}
	kinds := transitionalKinds
	if p.Strict {
		kinds = strictKinds
	}
	list := func(from string, parts ...Part) string {
		out := `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Relationships xmlns="` + relationships + `">`
		for i, part := range parts {
			out += fmt.Sprintf(`<Relationship Id="rId%d" Type="%s%s" Target=%q/>`, i+1, kinds, part.Kind, p.Target(from, part.Name))
		}
		return out + `</Relationships>`
	}
	entries := []Entry{
		{Name: "[Content_Types].xml", Content: `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		{Name: "_rels/.rels", Content: list("", Part{Kind: "officeDocument", Name: p.Name})},
		{Name: p.Name, Content: p.Main},
		{Name: path.Join(path.Dir(p.Name), "_rels", path.Base(p.Name)+".rels"), Content: list(p.Name, p.Others...)},
	}
	for _, part := range p.Others {
		entries = append(entries, Entry{Name: part.Name, Content: part.XML})
	}
	for i := range entries {
		entries[i].Method = p.Method
	}
	return append(entries, p.More...)
}

// Docx returns the document with a body of this content.
func Docx(body string) []byte {
	return Zip(Package{Main: Body(body), Method: zip.Deflate}.Entries()...)
}
