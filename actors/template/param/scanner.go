package param

import "bytes"

// Scanner finds declarations in text that comes in parts.
//
// Invariants: text is empty, or starts with the ${ of the outermost declaration that is open, and stack is not empty;
// found lists every declaration that began in text, in the order in which they began; the entry of each that is open is
// on the stack.
//
// Here every byte is read once, and a declaration is only a few offsets until the outermost one is complete.
type Scanner struct {
	list     *Collector
	text     []byte
	found    []declaration
	stack    []brace
	nesting  int  // nesting counts the declarations on the stack
	dollar   bool // dollar says that the byte before was a $ that is not escaped
	escaping bool // escaping says that the byte before was a backslash that is not escaped
}

// It is small because a declaration of 64 KiB can have 20,000 others inside.
type declaration struct {
	start int32    // of the name
	split [2]int32 // of the first two #, 0 while there is none
	end   int32    // of the }, 0 while it is open
}

type brace struct {
	declaration int32 // the innermost declaration here, as an index of Scanner.found
	plain       bool
}

// NewScanner returns a scanner that fills list.
func NewScanner(list *Collector) *Scanner { return &Scanner{list: list} }

// Write scans the next part of the text. Its errors are about limits, and after one the scanner must not be used.
func (s *Scanner) Write(part []byte) error {
	for len(part) > 0 {
		if len(s.stack) == 0 {
			rest, err := s.begin(part)
			if err != nil {
				return err
			}
			part = rest
			continue
		}
		scanned, err := s.inside(part)
		if err != nil {
			return err
		}
		part = part[scanned:]
	}
	return nil
}

// End ends the text. A declaration that is still open is text; complete ones inside of it count.
func (s *Scanner) End() error {
	s.dollar = false
	if len(s.stack) == 0 {
		return nil
	}
	s.stack = s.stack[:0]
	return s.flush()
}

func (s *Scanner) begin(part []byte) (rest []byte, err error) {
	if !s.dollar {
		i := bytes.IndexByte(part, '$')
		if i < 0 {
			return nil, nil
		}
		s.dollar = true
		return part[i+1:], nil
	}
	if part[0] == '$' {
		return part[1:], nil
	}
	s.dollar = false
	if part[0] != '{' {
		return part, nil
	}
	s.text = append(s.text, "${"...)
	return part[1:], s.open()
}

func (s *Scanner) open() error {
	s.nesting++
	if s.nesting > s.list.limits.Nesting {
		return TooLarge(int64(s.list.limits.Nesting), "levels of ${ in each other")
	}
	s.stack = append(s.stack, brace{declaration: int32(len(s.found))})
	s.found = append(s.found, declaration{start: int32(len(s.text))})
	return nil
}

func (s *Scanner) inside(part []byte) (scanned int, err error) {
	room := s.list.limits.DeclarationBytes - len(s.text)
	if len(part) > room {
		part = part[:max(room, 0)]
		if len(part) == 0 {
			return 0, TooLarge(int64(s.list.limits.DeclarationBytes), "bytes in one declaration of a parameter")
		}
	}
	for i, b := range part {
		escaped, dollar := s.escaping && isEscapable(b), s.dollar
		s.escaping, s.dollar = false, false
		at := int32(len(s.text))
		s.text = append(s.text, b)
		if escaped {
			continue
		}
		switch b {
		case '\\':
			s.escaping = true
		case '$':
			s.dollar = true
		case '#':
			s.split(at)
		case '{':
			if !dollar {
				s.stack = append(s.stack, brace{s.stack[len(s.stack)-1].declaration, true})
			} else if err := s.open(); err != nil {
				return 0, err
			}
		case '}':
			if s.pop(at); len(s.stack) == 0 {
				return i + 1, s.flush()
			}
		}
	}
	return len(part), nil
}

func (s *Scanner) split(at int32) {
	d := &s.found[s.stack[len(s.stack)-1].declaration]
	if d.split[0] == 0 {
		d.split[0] = at
	} else if d.split[1] == 0 {
		d.split[1] = at
	}
}

func (s *Scanner) pop(at int32) {
	last := len(s.stack) - 1
	if top := s.stack[last]; !top.plain {
		s.found[top.declaration].end = at
		s.nesting--
	}
	s.stack = s.stack[:last]
}

func (s *Scanner) flush() error {
	for _, d := range s.found {
		if d.end == 0 {
			continue
		}
		if err := s.list.add(d.parts(s.text)); err != nil {
			return err
		}
	}
	s.text, s.found = s.text[:0], s.found[:0]
	s.nesting, s.dollar, s.escaping = 0, false, false
	return nil
}

func (d declaration) parts(text []byte) (name, typ, def []byte) {
	first, second := d.split[0], d.split[1]
	switch {
	case first == 0:
		return text[d.start:d.end], nil, nil
	case second == 0:
		return text[d.start:first], text[first+1 : d.end], nil
	}
	return text[d.start:first], text[first+1 : second], text[second+1 : d.end]
}
