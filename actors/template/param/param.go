// Package param knows what a parameter of a template is: how one is declared, which declarations a list keeps, and the
// limits and errors that both formats of templates share. A caller makes one Collector for a file and a Scanner that
// fills it: for every piece of text that a declaration cannot leave it writes the piece, in as many parts as it likes,
// and calls End. Time is linear in the text, and only the declaration that is open is kept. The rules are in
// gateway/INTERFACE.md, "Grammar", and actors/template/DESIGN.md, "What is a declaration (param)".
package param

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Param is a parameter of a template.
type Param struct {
	// Name is never empty. It may hold any character.
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"defaultValue"`
}

// Declaration returns the parameter as a template declares it, in the shortest form that means the same.
func (p Param) Declaration() string {
	text := "${" + escape(p.Name)
	if !p.bare() {
		text += "#" + escape(p.Type)
	}
	if p.Default != "" {
		text += "#" + escape(p.Default)
	}
	return text + "}"
}

var escape = strings.NewReplacer(`#`, `\#`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace

func (p Param) bare() bool { return p.Type == "" && p.Default == "" }

// Collector keeps one Param for each name: the first that has a type or a default, else the first.
type Collector struct {
	limits       Limits
	params       map[string]Param
	declarations int
	nameBytes    int64
	resultBytes  int64
	text         []byte // scratch: a name without its escapes
}

// NewCollector returns an empty list.
func NewCollector(limits Limits) *Collector {
	return &Collector{limits: limits.WithDefaults(), params: map[string]Param{}}
}

// A declaration without a name is not a parameter.
func (c *Collector) add(name, typ, def []byte) error {
	if len(name) == 0 {
		return nil
	}
	c.declarations++
	c.nameBytes += int64(len(name))
	switch {
	case c.declarations > c.limits.Declarations:
		return TooLarge(int64(c.limits.Declarations), "declarations of parameters")
	case c.nameBytes > c.limits.NameBytes:
		return TooLarge(c.limits.NameBytes, "bytes of names of parameters")
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		c.text = appendUnescaped(c.text[:0], name)
		name = c.text
	}
	old, known := c.params[string(name)]
	switch {
	case !known:
		return c.put(Param{string(name), unescape(typ), unescape(def)})
	case old.bare() && len(typ)+len(def) > 0:
		// put counts the name again; the limit is far above the difference.
		return c.put(Param{old.Name, unescape(typ), unescape(def)})
	}
	return nil
}

func (c *Collector) put(p Param) error {
	c.params[p.Name] = p
	c.resultBytes += int64(len(p.Name) + len(p.Type) + len(p.Default))
	switch {
	case len(c.params) > c.limits.Parameters:
		return TooLarge(int64(c.limits.Parameters), "parameters")
	case c.resultBytes > c.limits.ResultBytes:
		return TooLarge(c.limits.ResultBytes, "bytes of names, types and defaults of parameters")
	}
	return nil
}

// Params returns the parameters, ascending by name, by code point. The result is never nil, and the caller owns it.
func (c *Collector) Params() []Param {
	out := make([]Param, 0, len(c.params))
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		// The order of the bytes of UTF-8 is that of the code points.
		out = append(out, c.params[name])
	}
	return out
}

func unescape(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	return string(appendUnescaped(make([]byte, 0, len(s)), s))
}

func appendUnescaped(out, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && isEscapable(s[i+1]) {
			i++
		}
		out = append(out, s[i])
	}
	return out
}

// Before anything else a backslash stands for itself.
func isEscapable(b byte) bool { return b == '#' || b == '{' || b == '}' || b == '\\' }

// Scanner finds declarations in text that comes in parts.
//
// Invariants: text is empty, or starts with the ${ of the outermost declaration that is open, and stack is not empty;
// found lists every declaration that began in text, in the order in which they began; the entry of each that is open is
// on the stack.
//
// Every byte is read once, and a declaration is only a few offsets until the outermost one is complete.
type Scanner struct {
	list     *Collector
	text     []byte
	found    []declaration
	stack    []brace
	nesting  int  // nesting counts the declarations on the stack
	dollar   bool // dollar says that the byte before was a $ that is not escaped
	escaping bool // escaping says that the byte before was a backslash that is not escaped
}

// declaration is small because a declaration of 64 KiB can have 20,000 others inside.
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

// Every error about the content of a file is a *Fault that wraps one of these; any other error is the reader's own.
var (
	ErrNotTemplate = errors.New("not a template")
	ErrEncrypted   = errors.New("encrypted")
	ErrTooLarge    = errors.New("over a limit")
)

// Fault is an error about the content of a file.
type Fault struct {
	Kind error // ErrNotTemplate, ErrEncrypted or ErrTooLarge
	// Reason says what is wrong, or which limit it is. everyone who can read the file may see it.
	Reason string
}

func (f *Fault) Error() string { return f.Kind.Error() + ": " + f.Reason }

// Unwrap returns the kind, for errors.Is.
func (f *Fault) Unwrap() error { return f.Kind }

// NotTemplate returns a Fault of the kind ErrNotTemplate.
func NotTemplate(reason string) error { return &Fault{ErrNotTemplate, reason} }

// TooLarge returns a Fault of the kind ErrTooLarge that names the limit, as in "more than 10000 parameters".
func TooLarge(limit int64, what string) error {
	if of, bytes := strings.CutPrefix(what, "bytes "); bytes {
		switch {
		case limit > 0 && limit%(1<<20) == 0:
			limit, what = limit>>20, "MiB "+of
		case limit > 0 && limit%(1<<10) == 0:
			limit, what = limit>>10, "KiB "+of
		}
	}
	return &Fault{ErrTooLarge, "more than " + strconv.FormatInt(limit, 10) + " " + what}
}

// quotedBytesMax bounds what one Quote repeats of a file.
const quotedBytesMax = 64

// Quote returns a piece of a file for a Reason: escaped, at most 64 characters.
func Quote(s string) string {
	if len(s) > quotedBytesMax {
		s = s[:quotedBytesMax]
	}
	for q := strconv.QuoteToASCII(s); ; q = strconv.QuoteToASCII(s) {
		if len(q) <= quotedBytesMax {
			return q
		}
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
}

// Limits bound the work that one file can cause. The zero value of a field means its default; the defaults together
// keep every file below 2 s and 64 MB on one core.
type Limits struct {
	// FileBytes is the size of a file as it is stored. Default: 20 MiB.
	FileBytes int64
	// Entries is how many entries the zip file of a document may have. Default: 2000.
	Entries int
	// PartBytes is the size of one part of a document, inflated. Default: 64 MiB.
	PartBytes int64
	// DocumentBytes is the size of all parts that are read, together, inflated. Default: 128 MiB.
	DocumentBytes int64
	// Ratio is the largest allowed size of an inflated part, as a multiple of its compressed size. Default: 100.
	Ratio int64
	// Depth is how deep elements may be nested. Default: 256.
	Depth int
	// TagBytes is the length of one start tag with its attributes, in UTF-8. Default: 4 MiB.
	TagBytes int
	// Attributes is how many one element may have. Default: 1000.
	Attributes int
	// Nodes is how many elements and attributes a file may have together. Default: 4,000,000.
	Nodes int
	// Parameters is how many different names may be declared. Default: 10,000.
	Parameters int
	// Declarations is how many declarations there may be, repetitions included. Default: 1,000,000.
	Declarations int
	// DeclarationBytes is the length of one declaration, from its ${ to its }, in UTF-8; at most 1 GiB. Default: 64
	// KiB.
	DeclarationBytes int
	// Nesting is how deep declarations may be nested. Default: 32.
	Nesting int
	// NameBytes is the length of the names of all declarations together, repetitions included. Default: 32 MiB.
	NameBytes int64
	// ResultBytes is the length of what is returned: names, types and defaults. Default: 8 MiB.
	ResultBytes int64
}

// WithDefaults returns the limits with every zero replaced by its default.
func (l Limits) WithDefaults() Limits {
	set(&l.FileBytes, 20<<20)
	set(&l.Entries, 2000)
	set(&l.PartBytes, 64<<20)
	set(&l.DocumentBytes, 128<<20)
	set(&l.Ratio, 100)
	set(&l.Depth, 256)
	set(&l.TagBytes, 4<<20)
	set(&l.Attributes, 1000)
	set(&l.Nodes, 4_000_000)
	set(&l.Parameters, 10_000)
	set(&l.Declarations, 1_000_000)
	set(&l.DeclarationBytes, 64<<10)
	set(&l.Nesting, 32)
	set(&l.NameBytes, 32<<20)
	set(&l.ResultBytes, 8<<20)
	return l
}

func set[N int | int64](field *N, value N) {
	if *field == 0 {
		*field = value
	}
}
