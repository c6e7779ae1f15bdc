package markup

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"troupe/actors/template/param"
)

// nameBytesMax bounds the names of elements, attributes and targets.
const nameBytesMax = 1024

// tagLength looks at every byte once, however often it reads more.
func (p *Parser) tagLength(what string) (int, error) {
	quote := byte(0)
	for n := 1; ; {
		if !p.need(n + 1) {
			return 0, p.cut(what)
		}
		b := p.ahead()
		for n < len(b) {
			if quote != 0 {
				i := bytes.IndexByte(b[n:], quote)
				if i < 0 {
					n = len(b)
					break
				}
				n += i + 1
				quote = 0
				continue
			}
			switch b[n] {
			case '>':
				if n >= p.limits.TagBytes {
					return 0, param.TooLarge(int64(p.limits.TagBytes), "bytes in one tag")
				}
				return n + 1, nil
			case '"', '\'':
				quote = b[n]
			case '<':
				return 0, p.fault("a < inside " + what)
			case '[':
				if what == doctype {
					return 0, p.fault("the document type has an internal subset, which is not read")
				}
			}
			n++
		}
		if n >= p.limits.TagBytes {
			return 0, param.TooLarge(int64(p.limits.TagBytes), "bytes in one tag")
		}
	}
}

func (p *Parser) startTag() error {
	n, err := p.tagLength("a tag")
	if err != nil {
		return err
	}
	tag := p.ahead()[1 : n-1]
	if len(tag) > 0 && tag[len(tag)-1] == '/' {
		p.empty, tag = true, tag[:len(tag)-1]
	}
	length := nameLength(tag)
	switch {
	case length == 0:
		return p.fault("a tag without a name")
	case length > nameBytesMax:
		return param.TooLarge(nameBytesMax, "bytes in a name")
	case p.rooted && len(p.opened) == 0:
		return p.fault("a second root element")
	case len(p.opened) >= p.limits.Depth:
		return param.TooLarge(int64(p.limits.Depth), "elements inside each other")
	}
	p.name = tag[:length]
	if err := p.parseAttributes(tag[length:]); err != nil {
		return err
	}
	if p.nodes += 1 + len(p.attributes); p.nodes > p.limits.Nodes {
		return param.TooLarge(int64(p.limits.Nodes), "elements and attributes")
	}
	p.rooted = true
	p.opened = append(p.opened, len(p.names))
	p.names = append(p.names, p.name...)
	p.pos += n
	return nil
}

func (p *Parser) endTag() error {
	n, err := p.tagLength("a tag")
	if err != nil {
		return err
	}
	name := bytes.TrimRight(p.ahead()[2:n-1], " \t\r\n")
	if len(p.opened) == 0 || !bytes.Equal(name, p.top()) {
		return p.fault("the end tag " + param.Quote(string(name)) + " closes nothing")
	}
	p.pos += n
	p.close()
	return nil
}

func (p *Parser) top() []byte { return p.names[p.opened[len(p.opened)-1]:] }

func (p *Parser) close() {
	last := len(p.opened) - 1
	p.names, p.opened = p.names[:p.opened[last]], p.opened[:last]
}

func (p *Parser) parseAttributes(tag []byte) error {
	p.attributes, p.scratch = p.attributes[:0], p.scratch[:0]
	for {
		rest := bytes.TrimLeft(tag, " \t\r\n")
		if len(rest) == 0 {
			return p.distinct()
		}
		n := nameLength(rest)
		switch {
		case len(rest) == len(tag) || n == 0:
			return p.fault("a tag that is not a name and attributes")
		case n > nameBytesMax:
			return param.TooLarge(nameBytesMax, "bytes in a name")
		case len(p.attributes) == p.limits.Attributes:
			return param.TooLarge(int64(p.limits.Attributes), "attributes of one element")
		}
		name := rest[:n]
		rest = bytes.TrimLeft(rest[n:], " \t\r\n")
		if len(rest) == 0 || rest[0] != '=' {
			return p.fault("an attribute without a value")
		}
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		if len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
			return p.fault("an attribute without quotes")
		}
		end := bytes.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return p.fault("an attribute that does not end")
		}
		value, err := p.value(rest[1 : 1+end])
		if err != nil {
			return err
		}
		p.attributes = append(p.attributes, Attribute{name, value})
		tag = rest[end+2:]
	}
}

// value returns raw when there is nothing to decode, and a slice of scratch otherwise.
func (p *Parser) value(raw []byte) ([]byte, error) {
	start, done := len(p.scratch), 0
	for i := 0; i < len(raw); {
		b := raw[i]
		if classes[b]&inValue != 0 {
			i++
			continue
		}
		if b >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				return nil, p.fault("there are bytes that are not UTF-8")
			}
			if !isChar(r) {
				return nil, p.fault("a character that must not be in XML")
			}
			i += size
			continue
		}
		p.scratch = append(p.scratch, raw[done:i]...)
		switch {
		case b == '&':
			end := bytes.IndexByte(raw[i:min(len(raw), i+referenceBytesMax)], ';')
			if end < 0 {
				return nil, p.fault("an & that is not a reference")
			}
			known := false
			if p.scratch, known = appendReference(p.scratch, raw[i+1:i+end]); !known {
				return nil, p.unknown(raw[i+1 : i+end])
			}
			i += end + 1
		case isBlank(b):
			p.scratch = append(p.scratch, ' ')
			i++
		case b == '<':
			return nil, p.fault("a < inside an attribute")
		default:
			return nil, p.fault("a character that must not be in XML")
		}
		done = i
	}
	if done == 0 {
		return raw, nil
	}
	p.scratch = append(p.scratch, raw[done:]...)
	return p.scratch[start:], nil
}

// pairsMax is the number of attributes up to which comparing all pairs is faster than sorting.
const pairsMax = 8

func (p *Parser) distinct() error {
	if len(p.attributes) <= pairsMax {
		for i, a := range p.attributes {
			for _, b := range p.attributes[:i] {
				if bytes.Equal(a.Name, b.Name) {
					return p.twice(a.Name)
				}
			}
		}
		return nil
	}
	p.sorted = p.sorted[:0]
	for _, a := range p.attributes {
		p.sorted = append(p.sorted, a.Name)
	}
	slices.SortFunc(p.sorted, bytes.Compare)
	for i := 1; i < len(p.sorted); i++ {
		if bytes.Equal(p.sorted[i-1], p.sorted[i]) {
			return p.twice(p.sorted[i])
		}
	}
	return nil
}

func (p *Parser) twice(name []byte) error {
	return p.fault("the attribute " + param.Quote(string(name)) + " stands twice in a tag")
}

// doctype names a document type declaration for tagLength.
const doctype = "the document type"

// An external subset that it names is not opened.
func (p *Parser) doctypeDeclaration() error {
	if p.doctype || p.rooted {
		return p.fault("a document type that is not before the root element")
	}
	p.doctype = true
	n, err := p.tagLength(doctype)
	if err != nil {
		return err
	}
	rest := p.ahead()[len("<!DOCTYPE") : n-1]
	if !utf8.Valid(rest) || bytes.ContainsFunc(rest, func(r rune) bool { return !isChar(r) }) {
		return p.fault("a character that must not be in XML")
	}
	if rest, err = p.word(rest); err != nil {
		return err
	}
	literals := 0
	if blank := bytes.TrimLeft(rest, " \t\r\n"); len(blank) > 0 {
		kind := blank[:nameLength(blank)]
		if literals = map[string]int{"SYSTEM": 1, "PUBLIC": 2}[string(kind)]; literals == 0 {
			return p.fault("a document type that is neither SYSTEM nor PUBLIC")
		}
		if rest, err = p.word(rest); err != nil {
			return err
		}
	}
	for range literals {
		literal := bytes.TrimLeft(rest, " \t\r\n")
		if len(literal) == len(rest) || len(literal) == 0 || literal[0] != '"' && literal[0] != '\'' {
			return p.fault("a document type without its identifier")
		}
		end := bytes.IndexByte(literal[1:], literal[0]) // the quote is there: tagLength paired them
		rest = literal[end+2:]
	}
	if len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return p.fault("a document type that does not end")
	}
	p.pos += n
	return nil
}

func (p *Parser) word(b []byte) (rest []byte, err error) {
	name := bytes.TrimLeft(b, " \t\r\n")
	n := nameLength(name)
	if len(name) == len(b) || n == 0 {
		return nil, p.fault("a document type without a name")
	}
	return name[n:], nil
}
