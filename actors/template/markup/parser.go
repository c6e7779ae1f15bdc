package markup

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"

	"troupe/actors/template/param"
)

// Event is what Parser.Next found.
type Event uint8

const (
	Start Event = iota + 1 // a start tag, or the first half of an empty-element tag: Name and Attributes are set
	End                    // an end tag, or the second half of an empty-element tag
	// Text is a part of a text node or CDATA section: Text is set. Successive ones belong to the same node.
	Text
	// Break separates two text nodes, as tags do: a comment, a processing instruction, the start or the end of a CDATA
	// section.
	Break
)

// Attribute is one of a start tag. Value is decoded and normalised: white space that is not a reference is a blank.
type Attribute struct{ Name, Value []byte }

// Parser checks and parses one text after the other.
type Parser struct {
	limits param.Limits
	buffer
	name       []byte // They are slices of buffer or scratch, and valid until the next call of Next
	attributes []Attribute
	text       []byte
	scratch    []byte
	sorted     [][]byte // scratch for distinct

	names  []byte // the names of the open elements, one after the other
	opened []int  // where each of them starts in names
	nodes  int    // of all texts

	begun   bool // something was parsed
	rooted  bool // the root element began
	doctype bool
	cdata   bool // inside a CDATA section
	empty   bool // the last event was the first half of an empty-element tag
}

// NewParser returns a parser without a text; call Reset before Next.
func NewParser(limits param.Limits) *Parser { return &Parser{limits: limits} }

// Reset starts with another text, in UTF-8 without a byte order mark. Nodes are counted over all texts.
func (p *Parser) Reset(r io.Reader) {
	if p.buffer.text == nil {
		p.buffer.text = make([]byte, 0, bufferBytes)
	}
	p.buffer = buffer{from: r, text: p.buffer.text[:0]}
	p.names, p.opened = p.names[:0], p.opened[:0]
	p.begun, p.rooted, p.doctype, p.cdata, p.empty = false, false, false, false, false
}

// Name returns the name of the start tag, valid until the next call of Next.
func (p *Parser) Name() []byte { return p.name }

// Attributes returns those of the start tag, valid until the next call of Next.
func (p *Parser) Attributes() []Attribute { return p.attributes }

// Text returns the text of a Text event. It is never empty, and valid until the next call of Next.
func (p *Parser) Text() []byte { return p.text }

// HasDoctype reports whether there was a document type declaration.
func (p *Parser) HasDoctype() bool { return p.doctype }

// Next returns the next event. The error is io.EOF at the end of a well-formed text.
func (p *Parser) Next() (Event, error) {
	if p.empty {
		p.empty = false
		p.close()
		return End, nil
	}
	if p.cdata {
		return p.nextCDATA()
	}
	for {
		if !p.need(1) {
			return 0, p.atEnd()
		}
		if p.ahead()[0] == '<' {
			return p.nextMarkup()
		}
		found, err := p.nextText()
		if err != nil {
			return 0, err
		}
		if found {
			return Text, nil
		}
	}
}

func (p *Parser) atEnd() error {
	switch {
	case p.err != io.EOF: //nolint:errorlint // readers return it bare
		return p.err
	case len(p.opened) > 0:
		return p.fault("the text ends inside the element " + param.Quote(string(p.top())))
	case !p.rooted:
		return p.fault("there is no element")
	}
	return io.EOF
}

func (p *Parser) cut(what string) error { return p.fault("the text ends inside " + what) }

// After an error of the reader it returns that error: the text only seems damaged.
func (p *Parser) fault(reason string) error {
	if p.err != nil && p.err != io.EOF { //nolint:errorlint // readers return it bare
		return p.err
	}
	return param.NotTemplate("not well-formed XML: line " + strconv.Itoa(p.line()) + ": " + reason)
}

// run returns the characters ahead that stand for themselves in a class, and moves past them. An empty result means
// that this byte is markup or a control character.
func (p *Parser) run(class uint8) ([]byte, error) {
	b, i := p.ahead(), 0
	for i < len(b) {
		if classes[b[i]]&class != 0 {
			i++
			continue
		}
		if b[i] < utf8.RuneSelf {
			if class&(inText|inCDATA) != 0 && isPlain(b[i:]) {
				i++
				continue
			}
			break
		}
		if !utf8.FullRune(b[i:]) {
			if i > 0 {
				break
			}
			if p.more() {
				b = p.ahead()
				continue
			}
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, p.fault("there are bytes that are not UTF-8")
		}
		if !isChar(r) {
			return nil, p.fault("a character that must not be in XML")
		}
		i += size
	}
	p.pos += i
	return b[:i], nil
}

// isPlain reports whether b starts with a bracket that does not begin a ]]>. It is false when b is too short to tell.
func isPlain(b []byte) bool { return b[0] == ']' && len(b) > 2 && (b[1] != ']' || b[2] != '>') }

var bracket = []byte("]")

func (p *Parser) nextText() (found bool, err error) {
	p.begun = true
	if p.text, err = p.run(inText); err != nil {
		return false, err
	}
	if len(p.text) == 0 {
		if err := p.special(); err != nil {
			return false, err
		}
	}
	if len(p.opened) > 0 {
		return len(p.text) > 0, nil
	}
	for _, b := range p.text {
		if !isBlank(b) {
			return false, p.fault("text outside the root element")
		}
	}
	return false, nil
}

func (p *Parser) special() error {
	switch p.ahead()[0] {
	case ']':
		if p.startsWith("]]>") {
			return p.fault("]]> outside a CDATA section")
		}
		p.pos++
		p.text = bracket
	case '&':
		return p.reference()
	case '<':
	default:
		return p.fault("a character that must not be in XML")
	}
	return nil
}

// referenceBytesMax bounds a reference. Only a number with leading zeros can be longer and still stand for a character.
const referenceBytesMax = 64

func (p *Parser) reference() error {
	if len(p.opened) == 0 {
		return p.fault("text outside the root element")
	}
	for n := 1; n < referenceBytesMax; n++ {
		if !p.need(n + 1) {
			return p.cut("a reference")
		}
		switch b := p.ahead()[n]; {
		case b == '<' || b == '&' || isBlank(b):
			return p.fault("an & that is not a reference")
		case b != ';':
			continue
		}
		ref, known := p.ahead()[1:n], false
		if p.text, known = appendReference(p.scratch[:0], ref); !known {
			return p.unknown(ref)
		}
		p.scratch = p.text
		p.pos += n + 1
		return nil
	}
	return p.fault("an & that is not a reference")
}

func (p *Parser) unknown(ref []byte) error {
	return p.fault("the reference " + param.Quote("&"+string(ref)+";") + " is not one of &lt; &gt; &amp; &quot; &apos; or a character")
}

func (p *Parser) nextCDATA() (Event, error) {
	if !p.need(1) {
		return 0, p.cut("a CDATA section")
	}
	var err error
	if p.text, err = p.run(inCDATA); err != nil {
		return 0, err
	}
	switch {
	case len(p.text) > 0:
	case p.ahead()[0] != ']':
		return 0, p.fault("a character that must not be in XML")
	case p.startsWith("]]>"):
		p.pos += len("]]>")
		p.cdata = false
		return Break, nil
	default:
		p.pos++
		p.text = bracket
	}
	return Text, nil
}

func (p *Parser) nextMarkup() (Event, error) {
	first := !p.begun
	p.begun = true
	if !p.need(2) {
		return 0, p.cut("a tag")
	}
	switch p.ahead()[1] {
	case '/':
		return End, p.endTag()
	case '?':
		return Break, p.instruction(first)
	case '!':
		switch {
		case p.startsWith("<!--"):
			p.pos += len("<!--")
			return Break, p.skip(inComment, "--", "a comment")
		case p.startsWith("<![CDATA["):
			if len(p.opened) == 0 {
				return 0, p.fault("text outside the root element")
			}
			p.pos += len("<![CDATA[")
			p.cdata = true
			return Break, nil
		case p.startsWith("<!DOCTYPE"):
			return Break, p.doctypeDeclaration()
		}
		return 0, p.fault("a <! that is neither a comment nor a CDATA section nor a document type")
	}
	return Start, p.startTag()
}

func (p *Parser) startsWith(s string) bool { return p.need(len(s)) && string(p.ahead()[:len(s)]) == s }

// The mark of a comment is --, which only a > may follow.
func (p *Parser) skip(class uint8, mark, what string) error {
	for {
		if !p.need(1) {
			return p.cut(what)
		}
		taken, err := p.run(class)
		switch {
		case err != nil:
			return err
		case len(taken) > 0:
			continue
		case p.startsWith(mark):
			p.pos += len(mark)
			if class != inComment {
				return nil
			}
			if !p.need(1) {
				return p.cut(what)
			}
			if p.ahead()[0] != '>' {
				return p.fault("-- inside a comment")
			}
			p.pos++
			return nil
		}
		if p.ahead()[0] < ' ' {
			return p.fault("a character that must not be in XML")
		}
		p.pos++
	}
}

func (p *Parser) instruction(first bool) error {
	p.pos += len("<?")
	target, err := p.nameAhead("a processing instruction")
	if err != nil {
		return err
	}
	if bytes.EqualFold(target, []byte("xml")) {
		if !first || string(target) != "xml" {
			return p.fault("an XML declaration that is not at the start")
		}
		return p.declaration()
	}
	p.pos += len(target)
	if !p.need(1) {
		return p.cut("a processing instruction")
	}
	if !p.startsWith("?>") && !isBlank(p.ahead()[0]) {
		return p.fault("no blank after the name of a processing instruction")
	}
	return p.skip(inPI, "?>", "a processing instruction")
}

func (p *Parser) nameAhead(what string) ([]byte, error) {
	for size := nameBytesMax / 8; ; size *= 2 {
		complete := !p.need(size)
		b := p.ahead()
		n := nameLength(b)
		switch {
		case n < len(b) && utf8.FullRune(b[n:]) || complete:
			if n == 0 {
				return nil, p.fault("there is no name at the start of " + what)
			}
			if n > nameBytesMax {
				return nil, param.TooLarge(nameBytesMax, "bytes in a name")
			}
			return b[:n], nil
		case size > nameBytesMax:
			return nil, param.TooLarge(nameBytesMax, "bytes in a name")
		}
	}
}

// declaration checks the rest of the XML declaration. Decode has used its encoding.
func (p *Parser) declaration() error {
	p.pos += len("xml")
	end := -1
	for n := 2; end < 0; n = len(p.ahead()) + 1 {
		if !p.need(n) {
			return p.cut("the XML declaration")
		}
		end = bytes.Index(p.ahead(), []byte("?>"))
		size := end
		if end < 0 {
			size = len(p.ahead())
		}
		if size > declarationBytesMax {
			return p.fault("an XML declaration of more than " + strconv.Itoa(declarationBytesMax) + " bytes")
		}
	}
	if err := p.parseAttributes(p.ahead()[:end]); err != nil {
		return err
	}
	rest := p.attributes
	for _, name := range []string{"version", "encoding", "standalone"} {
		if len(rest) > 0 && string(rest[0].Name) == name {
			rest = rest[1:]
		} else if name == "version" {
			return p.fault("the XML declaration has no version")
		}
	}
	version := p.attributes[0].Value
	if len(rest) > 0 || !bytes.HasPrefix(version, []byte("1.")) {
		return p.fault("an XML declaration that is none of XML 1")
	}
	p.pos += end + len("?>")
	return nil
}
