// Package templatetest makes templates for tests: random parameters, and documents whose text is split, wrapped and
// packed in every way that a writer of documents may choose.
package templatetest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"troupe/actors/template/param"
	_ "troupe/internal/fixedseed" // for those who draw by this package
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

// runes are those with a meaning in a declaration, in XML and in a document, and some of more than one byte.
var runes = []rune("aBc019 ._-,()#{}\\$$<>&\"'\u00e9e\u0301\u05d0\u6f22\U0001f600]\t\n")

// Param draws a parameter with a name.
func Param() *rapid.Generator[param.Param] {
	return rapid.Custom(func(t *rapid.T) param.Param {
		part := rapid.StringOfN(rapid.RuneFrom(runes), 0, 10, -1)
		return param.Param{
			Name:    string(rapid.RuneFrom(runes).Draw(t, "first")) + part.Draw(t, "name"),
			Type:    rapid.OneOf(part, rapid.SampledFrom([]string{"", "date", "integer", "choice(A,B,C)", "textarea:3"})).Draw(t, "type"),
			Default: part.Draw(t, "default"),
		}
	})
}

// Filler draws text that declares nothing, wherever it stands outside a declaration.
func Filler() *rapid.Generator[string] {
	return rapid.Map(rapid.StringOfN(rapid.RuneFrom(runes), 0, 6, -1), func(s string) string {
		out := []rune{}
		for _, r := range s {
			if r != '{' {
				out = append(out, r)
			}
		}
		return string(out) + " " // a $ at the end must not meet a {
	})
}

// Distinct returns what a template that declares params, in this order, has.
func Distinct(params []param.Param) []param.Param {
	out := []param.Param{}
	for _, p := range params {
		i := slices.IndexFunc(out, func(old param.Param) bool { return old.Name == p.Name })
		switch {
		case i < 0:
			out = append(out, p)
		case out[i].Type == "" && out[i].Default == "":
			out[i] = p
		}
	}
	slices.SortFunc(out, func(a, b param.Param) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Scan returns the parameters of one text that comes in parts.
func Scan(limits param.Limits, parts ...string) ([]param.Param, error) {
	list := param.NewCollector(limits)
	s := param.NewScanner(list)
	for _, part := range parts {
		if err := s.Write([]byte(part)); err != nil {
			return nil, err
		}
	}
	if err := s.End(); err != nil {
		return nil, err
	}
	return list.Params(), nil
}

// Short writes parameters as name#type#default, without # at the end.
func Short(params []param.Param) (all []string) {
	for _, p := range params {
		all = append(all, strings.TrimRight(p.Name+"#"+p.Type+"#"+p.Default, "#"))
	}
	return all
}

// Repeat makes the next rapid.Check of a test try 2,000 things, unless -rapid.checks is given.
func Repeat(t *testing.T) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if err := checks.Set("2000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(before) }) // it was read: it can be set
}

// Pick chooses one of n things: 0 to n-1.
type Pick func(n int) int

// Reference writes a character as a reference of XML: by its name, if it has one, or by its number.
func Reference(pick Pick, r rune) string {
	forms := []string{fmt.Sprintf("&#%d;", r), fmt.Sprintf("&#x%x;", r), fmt.Sprintf("&#x%08X;", r)}
	if name, named := map[rune]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;", '\'': "&apos;"}[r]; named {
		forms = append(forms, name, name)
	}
	return forms[pick(len(forms))]
}

// Escape writes a text for XML: the characters of must as references, and now and then others.
func Escape(pick Pick, text, must string) string {
	var out strings.Builder
	for _, r := range text {
		if strings.ContainsRune(must, r) || pick(16) == 0 {
			out.WriteString(Reference(pick, r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// Entry is an entry of a zip file.
type Entry struct {
	Name, Content string
	Method        uint16                // zip.Store, the zero, or zip.Deflate
	Raw           []byte                // the entry's data as it stands, for files that lie; nil: what Method makes of Content
	Change        func(*zip.FileHeader) // Change, if there is one, changes what the headers say
}

// Zip makes a zip file. It panics when it cannot: nothing is written but memory.
func Zip(entries ...Entry) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		raw := e.Raw
		if raw == nil {
			raw = Compress(e.Method, e.Content)
		}
		header := &zip.FileHeader{
			Name: e.Name, Method: e.Method, CRC32: crc32.ChecksumIEEE([]byte(e.Content)),
			CompressedSize64: uint64(len(raw)), UncompressedSize64: uint64(len(e.Content)),
		}
		if e.Change != nil {
			e.Change(header)
		}
		entry, err := w.CreateRaw(header)
		if err == nil {
			_, err = entry.Write(raw)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// writers are kept, because a new one costs more than a small document.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err)
	}
	return w
}}

// Compress returns what a method of zip makes of a content.
func Compress(method uint16, content string) []byte {
	if method != zip.Deflate {
		return []byte(content)
	}
	var out bytes.Buffer
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	_, err := io.WriteString(w, content)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}
