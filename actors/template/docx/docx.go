// Package docx finds the parameters of document templates: Office Open XML documents, zip files whose parts lead to
// each other through relationships. It reads the main part, its headers and footers, footnotes, endnotes and comments.
// The text of a paragraph is put together from its runs and given to the scanner of package param as one piece
// (actors/template/DESIGN.md, "Where they stand in a document template (docx)"). The container is not trusted: sizes,
// numbers and ratios have limits, entries must not overlap, and a relationship to something outside the file is not
// followed.
package docx

import (
	"bytes"
	"io"
	"net/url"
	"path"
	"strings"

	"troupe/actors/template/markup"
	"troupe/actors/template/param"
)

// Parameters returns the parameters of the document template of size bytes in r, ascending by name.
func Parameters(r io.ReaderAt, size int64, limits param.Limits) ([]param.Param, error) {
	limits = limits.WithDefaults()
	if size > limits.FileBytes {
		return nil, param.TooLarge(limits.FileBytes, "bytes in a file")
	}
	a, err := newArchive(r, size, limits)
	if err != nil {
		return nil, err
	}
	list := param.NewCollector(limits)
	d := reader{archive: a, limits: limits, list: list}
	if err := d.read(); err != nil {
		return nil, a.cause(err)
	}
	return list.Params(), nil
}

// storyKinds are the relationships of the main part to parts with text, in the order in which these are read.
var storyKinds = [...]string{"header", "footer", "footnotes", "endnotes", "comments"}

var kinds = append(storyKinds[:], mainKind)

// relationsMax bounds the relationships that are followed. Documents have about ten.
const relationsMax = 10_000

type relation struct {
	kind   string // its last word: officeDocument, header
	target string // the name of the part: /word/header1.xml
}

func (d *reader) read() error {
	d.parser = markup.NewParser(d.limits)
	roots, err := d.relations("/")
	if err != nil {
		return err
	}
	mains := targets(roots, mainKind)
	if len(mains) != 1 {
		return param.NotTemplate("a zip file that is not an Office document: it has no main part, or two")
	}
	main := d.partName(mains[0])
	if err := d.scan(main, mainRoots); err != nil {
		return err
	}
	others, err := d.relations(main)
	if err != nil {
		return err
	}
	read := map[string]bool{foldName(main): true}
	for _, kind := range storyKinds {
		for _, target := range targets(others, kind) {
			name := d.partName(target)
			if read[foldName(name)] {
				continue
			}
			read[foldName(name)] = true
			if err := d.scan(name, storyRoots); err != nil {
				return err
			}
		}
	}
	return nil
}

func targets(all []relation, kind string) (of []string) {
	for _, r := range all {
		if r.kind == kind {
			of = append(of, r.target)
		}
	}
	return of
}

// relations returns the relationships of a part that are of one of kinds and lead to something inside the file; for "/"
// those of the whole file.
func (d *reader) relations(of string) ([]relation, error) {
	name := path.Join(path.Dir(of), "_rels", path.Base(of)+".rels")
	if of == "/" {
		name = "/_rels/.rels"
	}
	if !d.archive.has(name) {
		return nil, nil
	}
	if err := d.start(name); err != nil {
		return nil, err
	}
	var all []relation
	names := newNames()
	for {
		event, err := d.parser.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // Next returns it bare
			return all, nil
		case err != nil:
			return nil, inPart(name, err)
		case event == markup.End:
			names.leave()
		case event == markup.Start:
			space, local, err := names.enter(d.parser)
			if err != nil {
				return nil, err
			}
			if d.parser.HasDoctype() {
				return nil, inPart(name, errDoctype)
			}
			if space != spacePackage || string(local) != "Relationship" {
				continue
			}
			r, matters := relationOf(of, d.parser.Attributes())
			if !matters {
				continue
			}
			if all = append(all, r); len(all) > relationsMax {
				return nil, param.TooLarge(relationsMax, "relationships of a part to parts with text")
			}
		}
	}
}

// relationOf reads one relationship of a part.
func relationOf(of string, attributes []markup.Attribute) (r relation, matters bool) {
	var kind, target []byte
	for _, a := range attributes {
		switch string(a.Name) {
		case "Type":
			kind = a.Value
		case "Target":
			target = a.Value
		case "TargetMode":
			if string(a.Value) != "Internal" {
				return relation{}, false
			}
		}
	}
	if r.kind = kindOf(kind); r.kind == "" || len(target) == 0 {
		return relation{}, false
	}
	r.target = resolve(of, string(target))
	return r, true
}

func kindOf(kind []byte) string {
	word, transitional := bytes.CutPrefix(kind, []byte(transitionalKind))
	if !transitional {
		var strict bool
		if word, strict = bytes.CutPrefix(kind, []byte(strictKind)); !strict {
			return ""
		}
	}
	for _, known := range kinds {
		if string(word) == known {
			return known
		}
	}
	return ""
}

func resolve(of, target string) string {
	target, _, _ = strings.Cut(target, "#")
	if !strings.HasPrefix(target, "/") {
		target = path.Join(path.Dir(of), target)
	}
	return path.Clean(target)
}

// The target may be escaped as a URI.
func (d *reader) partName(target string) string {
	if !d.archive.has(target) {
		if plain, err := url.PathUnescape(target); err == nil {
			return plain
		}
	}
	return target
}

func (d *reader) start(name string) error {
	if !d.archive.has(name) {
		return param.NotTemplate("a damaged document: there is no part " + param.Quote(name))
	}
	content, err := d.archive.open(name)
	if err != nil {
		return err
	}
	text, err := markup.Decode(content)
	if err != nil {
		return inPart(name, err)
	}
	d.parser.Reset(text)
	return nil
}
