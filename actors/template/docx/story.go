package docx

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"troupe/actors/template/markup"
	"troupe/actors/template/param"
)

// Root elements of parts.
var (
	mainRoots  = []string{"document"}
	storyRoots = []string{"hdr", "ftr", "footnotes", "endnotes", "comments"}
)

// paragraphsMax bounds how deep paragraphs are nested. Each of them may hold an open declaration in memory.
const paragraphsMax = 8

var errDoctype = param.NotTemplate("a document type, which parts of documents do not have")

type role uint8

const (
	roleNone              role = iota
	roleIgnored                // nothing in it is text
	roleText                   // characters in it are text of the paragraph
	roleParagraph              // a piece of text of its own
	roleAlternatives           // only its first choice counts
	roleAlternativesTaken      // one of its choices was taken
)

// Invariant: open has a role for each open element, and paragraphs a scanner for each roleParagraph in it. Paragraphs
// are inside each other through text boxes.
type story struct {
	list       *param.Collector
	names      *names
	open       []role
	paragraphs []*param.Scanner
	spare      []*param.Scanner // spare has the scanners of paragraphs that ended, to use their memory again
	ignored    int              // ignored counts the open elements from the roleIgnored one inwards; at 0 text counts
}

func (d *reader) scan(name string, roots []string) error {
	if err := d.start(name); err != nil {
		return err
	}
	s := story{list: d.list, names: newNames()}
	for {
		event, err := d.parser.Next()
		if err == io.EOF { //nolint:errorlint // Next returns it bare
			return nil
		}
		if err == nil {
			err = s.handle(event, d.parser, roots)
		}
		if err != nil {
			return inPart(name, err)
		}
	}
}

func (s *story) handle(event markup.Event, p *markup.Parser, roots []string) error {
	switch event {
	case markup.Start:
		space, local, err := s.names.enter(p)
		if err != nil {
			return err
		}
		if len(s.open) == 0 {
			if p.HasDoctype() {
				return errDoctype
			}
			if space != spaceWord || !slices.Contains(roots, string(local)) {
				return param.NotTemplate("the root element is not that of a text document: " + param.Quote(string(p.Name())))
			}
		}
		return s.enter(space, local)
	case markup.End:
		s.names.leave()
		return s.leave()
	case markup.Text:
		if s.ignored == 0 && s.open[len(s.open)-1] == roleText {
			return s.write(p.Text())
		}
	}
	return nil
}

func (s *story) enter(space space, local []byte) error {
	if s.ignored > 0 {
		s.ignored++
		return nil
	}
	role, text := roleNone, ""
	switch space {
	case spaceWord:
		role, text = wordRole(local)
	case spaceMath:
		if string(local) == "t" {
			role = roleText
		}
	case spaceCompatibility:
		role = s.compatibilityRole(local)
	}
	switch role {
	case roleIgnored:
		s.ignored = 1
		return nil
	case roleParagraph:
		if len(s.paragraphs) == paragraphsMax {
			return param.TooLarge(paragraphsMax, "paragraphs inside each other")
		}
		s.paragraphs = append(s.paragraphs, s.scanner())
	}
	s.open = append(s.open, role)
	if text != "" {
		return s.write([]byte(text))
	}
	return nil
}

// wordRole returns the role of an element of WordprocessingML, and the text that it stands for.
func wordRole(local []byte) (role, string) {
	switch string(local) {
	case "p":
		return roleParagraph, ""
	case "t":
		return roleText, ""
	case "del", "moveFrom", "rPr", "pPr", "instrText", "delText", "delInstrText":
		return roleIgnored, ""
	case "tab", "ptab":
		return roleNone, "\t"
	case "br", "cr":
		return roleNone, "\n"
	case "noBreakHyphen":
		return roleNone, "-"
	}
	return roleNone, ""
}

// The choices of an mc:AlternateContent are copies of the same content for readers of different age. The first choice
// is read; without one, the fallback.
func (s *story) compatibilityRole(local []byte) role {
	parent := len(s.open) - 1
	switch string(local) {
	case "AlternateContent":
		return roleAlternatives
	case "Choice", "Fallback":
		switch {
		case parent < 0:
		case s.open[parent] == roleAlternatives:
			s.open[parent] = roleAlternativesTaken
		case s.open[parent] == roleAlternativesTaken:
			return roleIgnored
		}
	}
	return roleNone
}

func (s *story) leave() error {
	if s.ignored > 1 {
		s.ignored--
		return nil
	}
	if s.ignored == 1 {
		s.ignored = 0
		return nil
	}
	last := len(s.open) - 1
	role := s.open[last]
	s.open = s.open[:last]
	if role != roleParagraph {
		return nil
	}
	paragraph := s.paragraphs[len(s.paragraphs)-1]
	s.paragraphs = s.paragraphs[:len(s.paragraphs)-1]
	s.spare = append(s.spare, paragraph)
	return paragraph.End()
}

// Text outside all paragraphs does not count.
func (s *story) write(text []byte) error {
	if len(s.paragraphs) == 0 {
		return nil
	}
	return s.paragraphs[len(s.paragraphs)-1].Write(text)
}

func (s *story) scanner() *param.Scanner {
	if last := len(s.spare) - 1; last >= 0 {
		scanner := s.spare[last]
		s.spare = s.spare[:last]
		return scanner
	}
	return param.NewScanner(s.list)
}

func inPart(name string, err error) error {
	var fault *param.Fault
	if errors.As(err, &fault) {
		return &param.Fault{Kind: fault.Kind, Reason: "in the part " + param.Quote(name) + ": " + fault.Reason}
	}
	return err
}

type space uint8

const (
	spaceOther space = iota
	spaceWord
	spaceMath
	spaceCompatibility
	spacePackage
)

// A document uses either the transitional or the strict set, and names mean the same in both.
var spaces = map[string]space{
	"http://schemas.openxmlformats.org/wordprocessingml/2006/main": spaceWord,
	"http://purl.oclc.org/ooxml/wordprocessingml/main":             spaceWord,
	"http://schemas.openxmlformats.org/officeDocument/2006/math":   spaceMath,
	"http://purl.oclc.org/ooxml/officeDocument/math":               spaceMath,
	"http://schemas.openxmlformats.org/markup-compatibility/2006":  spaceCompatibility,
	packageNamespace: spacePackage,
}

// bindingsMax bounds the prefixes that are bound at the same time. Documents have about thirty.
const bindingsMax = 10_000

// Invariant: undo has, for every binding since the root, what the prefix meant before; marks has the length of undo at
// the start of each open element.
type names struct {
	bound map[string]space
	undo  []binding
	marks []int
}

type binding struct {
	prefix string
	before space
}

func newNames() *names { return &names{bound: map[string]space{}} }

func (n *names) enter(p *markup.Parser) (space, []byte, error) {
	n.marks = append(n.marks, len(n.undo))
	for _, a := range p.Attributes() {
		prefix, isDefault := []byte(nil), string(a.Name) == "xmlns"
		if !isDefault {
			var isPrefix bool
			if prefix, isPrefix = bytes.CutPrefix(a.Name, []byte("xmlns:")); !isPrefix {
				continue
			}
		}
		if err := n.bind(prefix, spaces[string(a.Value)]); err != nil {
			return 0, nil, err
		}
	}
	prefix, local, found := bytes.Cut(p.Name(), []byte(":"))
	if !found {
		prefix, local = nil, prefix
	}
	return n.bound[string(prefix)], local, nil
}

func (n *names) bind(prefix []byte, to space) error {
	before := n.bound[string(prefix)]
	if before == to {
		return nil
	}
	if len(n.undo) == bindingsMax {
		return param.TooLarge(bindingsMax, "namespace prefixes")
	}
	name := string(prefix)
	n.undo = append(n.undo, binding{name, before})
	n.bound[name] = to
	return nil
}

func (n *names) leave() {
	last := len(n.marks) - 1
	for len(n.undo) > n.marks[last] {
		b := n.undo[len(n.undo)-1]
		if b.before == spaceOther {
			delete(n.bound, b.prefix) // keeps the map small in a part with many prefixes
		} else {
			n.bound[b.prefix] = b.before
		}
		n.undo = n.undo[:len(n.undo)-1]
	}
	n.marks = n.marks[:last]
}

// Namespaces and kinds of relationships, each as ISO/IEC 29500 transitional and strict spell it.
const (
	packageNamespace = "http://schemas.openxmlformats.org/package/2006/relationships"
	transitionalKind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	strictKind       = "http://purl.oclc.org/ooxml/officeDocument/relationships/"
	mainKind         = "officeDocument"
)

type reader struct {
	archive *archive
	limits  param.Limits
	list    *param.Collector
	parser  *markup.Parser
}
