package docx

import (
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

// paragraphsMax bounds how deep paragraphs are inside each other: each may have a
// declaration that is open.
const paragraphsMax = 8

var errDoctype = param.NotTemplate("a document type, which parts of documents do not have")

// role is what an element does to the text in it.
type role uint8

const (
	roleNone role = iota
	// rolePassed: nothing in it is text.
	rolePassed
	// roleText: characters in it are text of the paragraph.
	roleText
	// roleParagraph: a piece of text of its own.
	roleParagraph
	// roleAlternatives: of its choices the first one counts.
	roleAlternatives
	// roleAlternativesTaken: one of its choices was taken.
	roleAlternativesTaken
)

// story puts the text of the paragraphs of one part together.
//
// Invariant: open has a role for each open element, and paragraphs a scanner for
// each roleParagraph in it. Paragraphs are inside each other through text boxes.
type story struct {
	list       *param.Collector
	names      *names
	open       []role
	paragraphs []*param.Scanner
	// spare are scanners of paragraphs that ended, with their memory.
	spare []*param.Scanner
	// passed counts the open elements since one that is passed over; 0: text counts.
	passed int
}

// scan hands the paragraphs of a part to the list.
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
			err = s.take(event, d.parser, roots)
		}
		if err != nil {
			return inPart(name, err)
		}
	}
}

// take goes on by one event.
func (s *story) take(event markup.Event, p *markup.Parser, roots []string) error {
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
		if s.passed == 0 && s.open[len(s.open)-1] == roleText {
			return s.write(p.Text())
		}
	}
	return nil
}

// enter goes into an element.
func (s *story) enter(space space, local []byte) error {
	if s.passed > 0 {
		s.passed++
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
	case rolePassed:
		s.passed = 1
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

// wordRole returns the role of an element of WordprocessingML, and what it stands
// for in the text.
func wordRole(local []byte) (role, string) {
	switch string(local) {
	case "p":
		return roleParagraph, ""
	case "t":
		return roleText, ""
	case "del", "moveFrom", "rPr", "pPr", "instrText", "delText", "delInstrText":
		return rolePassed, ""
	case "tab", "ptab":
		return roleNone, "\t"
	case "br", "cr":
		return roleNone, "\n"
	case "noBreakHyphen":
		return roleNone, "-"
	}
	return roleNone, ""
}

// compatibilityRole returns the role of an element of mc. The choices of an
// mc:AlternateContent are copies of the same thing for readers of different age:
// the first one is read, and the fallback when there is no choice.
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
			return rolePassed
		}
	}
	return roleNone
}

// leave goes out of the innermost element.
func (s *story) leave() error {
	if s.passed > 1 {
		s.passed--
		return nil
	}
	if s.passed == 1 {
		s.passed = 0
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

// write adds to the innermost paragraph. Text outside of all paragraphs is none of
// the document.
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

// inPart says in which part a fault is.
func inPart(name string, err error) error {
	var fault *param.Fault
	if errors.As(err, &fault) {
		return &param.Fault{Kind: fault.Kind, Reason: "in the part " + param.Quote(name) + ": " + fault.Reason}
	}
	return err
}
