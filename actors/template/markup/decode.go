// Package markup parses XML for the packages rml and docx: Decode finds the encoding, and Parser.Next returns one event
// after the other. Text comes in parts of at most a buffer, so a text node of 64 MB needs no more memory than a short
// one; only a start tag is held as a whole. It expands the five entities of XML and character references and nothing
// else, never opens anything, and refuses a document type declaration with an internal subset. Depth, tags, attributes
// and nodes have limits. Why not encoding/xml: actors/template/DESIGN.md, "Our own parser of XML (markup)".
package markup

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"troupe/actors/template/param"
)

const (
	declarationBytesMax = 500  // declarationBytesMax bounds what is between <?xml and ?>
	headBytes           = 1024 // headBytes has all of the XML declaration in it, in 16 bits a character too
)

// marks are the first bytes that tell how wide the units of a text are. Longer ones come first.
var marks = []struct {
	start    string
	encoding encoding.Encoding // nil: UTF-8, or what the declaration says
	drop     int               // bytes of start that are a byte order mark
	refused  string            // the name of an encoding that is refused
	guessed  bool              // without a byte order mark: the declaration must not contradict
}{
	{start: "\x00\x00\xfe\xff", refused: "UTF-32"},
	{start: "\xff\xfe\x00\x00", refused: "UTF-32"},
	{start: "\x00\x00\x00<", refused: "UTF-32"},
	{start: "<\x00\x00\x00", refused: "UTF-32"},
	{start: "\xef\xbb\xbf", drop: 3},
	{start: "\xfe\xff", encoding: utf16BE, drop: 2},
	{start: "\xff\xfe", encoding: utf16LE, drop: 2},
	{start: "\x00<", encoding: utf16BE, guessed: true},
	{start: "<\x00", encoding: utf16LE, guessed: true},
}

var (
	utf16BE = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	utf16LE = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
)

// Decode returns the text of r in UTF-8, without a byte order mark. A byte order mark counts for more than the
// declaration; a text without either is UTF-8.
func Decode(r io.Reader) (io.Reader, error) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	head = head[:n]
	all := io.MultiReader(bytes.NewReader(head), r)
	for _, m := range marks {
		if !strings.HasPrefix(string(head), m.start) {
			continue
		}
		switch {
		case m.refused != "":
			return nil, param.NotTemplate("the encoding " + m.refused + " is not supported")
		case m.guessed && !wide(declared(dropNUL(head))):
			return nil, param.NotTemplate("declared as 8 bits a character, but they are 16")
		}
		if _, err := io.CopyN(io.Discard, all, int64(m.drop)); err != nil {
			return nil, err
		}
		if m.encoding == nil {
			return all, nil
		}
		return checked(all, m.encoding, "UTF-16"), nil
	}
	return decodeDeclared(all, declared(head))
}

func decodeDeclared(r io.Reader, name string) (io.Reader, error) {
	switch lower := strings.ToLower(name); {
	case lower == "", lower == "utf-8", lower == "utf8":
		return r, nil
	case lower != "utf-7" && wideName(lower):
		return nil, param.NotTemplate("declared as 16 bits a character, but they are 8")
	}
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil || e == nil {
		return nil, param.NotTemplate("the encoding " + param.Quote(name) + " is not supported")
	}
	return checked(r, e, name), nil
}

// wide: so is a text that declares no encoding.
func wide(name string) bool { return name == "" || wideName(strings.ToLower(name)) }

func wideName(lower string) bool {
	return strings.HasPrefix(lower, "utf-16") || lower == "utf16" || lower == "iso-10646-ucs-2" || lower == "unicode"
}

func dropNUL(b []byte) []byte { return bytes.ReplaceAll(b, []byte{0}, nil) }

// declared returns the encoding that the XML declaration at the start of a text names, or "".
func declared(head []byte) string {
	if len(head) < 6 || !bytes.HasPrefix(head, []byte("<?xml")) || !isBlank(head[5]) {
		return ""
	}
	end := bytes.Index(head, []byte("?>"))
	if end < 0 {
		return ""
	}
	_, after, found := bytes.Cut(head[:end], []byte("encoding"))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !found || len(after) == 0 || after[0] != '=' {
		return ""
	}
	after = bytes.TrimLeft(after[1:], " \t\r\n")
	if len(after) == 0 || after[0] != '"' && after[0] != '\'' {
		return ""
	}
	name, _, closed := bytes.Cut(after[1:], after[:1])
	if !closed {
		return ""
	}
	return string(name)
}

// Decoders replace them by U+FFFD, so a template with this character must be UTF-8.
func checked(r io.Reader, e encoding.Encoding, name string) io.Reader {
	return &replacementChecker{r: transform.NewReader(r, e.NewDecoder()), name: name}
}

type replacementChecker struct {
	r    io.Reader
	name string
	tail []byte // tail has the last bytes of the read before, which may begin a U+FFFD
}

const replacement = "\uFFFD"

func (c *replacementChecker) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	seam := append(c.tail, p[:min(n, len(replacement)-1)]...)
	if bytes.Contains(p[:n], []byte(replacement)) || bytes.Contains(seam, []byte(replacement)) {
		return 0, param.NotTemplate("there are bytes that are not " + param.Quote(c.name))
	}
	if n >= len(replacement)-1 {
		seam = p[n-(len(replacement)-1) : n]
	}
	c.tail = append(c.tail[:0], seam[max(0, len(seam)-(len(replacement)-1)):]...)
	return n, err
}

// bufferBytes is how much is read at once.
const bufferBytes = 64 << 10

// The parser is past what is before pos.
type buffer struct {
	from  io.Reader
	text  []byte // text was read; text[pos:] is still to be parsed
	pos   int
	lines int   // line ends before text
	err   error // why there is no more text: io.EOF, or the reader's error
	cr    bool  // cr says that the last byte read is a carriage return
}

func (b *buffer) ahead() []byte { return b.text[b.pos:] }

// more moves the text in the buffer, which makes slices of it invalid, and grows the buffer when all of the text is
// ahead.
func (b *buffer) more() bool {
	if b.err != nil {
		return false
	}
	if b.pos > 0 {
		b.lines += bytes.Count(b.text[:b.pos], []byte{'\n'})
		b.text = b.text[:copy(b.text, b.ahead())]
		b.pos = 0
	}
	if len(b.text) == cap(b.text) {
		b.text = append(make([]byte, 0, 2*cap(b.text)), b.text...)
	}
	for range 100 { // as bufio does: a reader that keeps returning nothing is broken
		space := b.text[len(b.text):cap(b.text)]
		n, err := b.from.Read(space)
		n = b.lineEnds(space[:n])
		b.text = b.text[:len(b.text)+n]
		b.err = err
		if n > 0 || err != nil {
			return n > 0
		}
	}
	b.err = io.ErrNoProgress
	return false
}

// lineEnds replaces line ends in p as XML 1.0, 2.11 wants it before any parsing, and returns the new length of p.
func (b *buffer) lineEnds(p []byte) int {
	read, size := 0, 0
	if b.cr && len(p) > 0 && p[0] == '\n' { // the carriage return before it stands for both
		read = 1
	}
	b.cr = len(p) > 0 && p[len(p)-1] == '\r'
	for {
		length := bytes.IndexByte(p[read:], '\r')
		end := read + length
		if length < 0 {
			end = len(p)
		}
		if size < read {
			copy(p[size:], p[read:end])
		}
		size += end - read
		if length < 0 {
			return size
		}
		p[size] = '\n'
		size++
		read += length + 1
		if read < len(p) && p[read] == '\n' {
			read++
		}
	}
}

func (b *buffer) need(n int) bool {
	for len(b.text)-b.pos < n {
		if !b.more() {
			return false
		}
	}
	return true
}

func (b *buffer) line() int { return 1 + b.lines + bytes.Count(b.text[:b.pos], []byte{'\n'}) }

// Classes of bytes.
const (
	inText    = 1 << iota // ASCII that stands for itself in text
	inCDATA               // in a CDATA section
	inComment             // in a comment
	inPI                  // in a processing instruction
	inValue               // in the value of an attribute
	nameStart             // ASCII that can start a name
	nameByte              // ASCII that can be in a name
	blank                 // white space
)

var classes = func() (c [256]uint8) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		c[b] |= inText | inCDATA | inComment | inPI | inValue
	}
	for _, b := range "\t\n" {
		c[b] |= inText | inCDATA | inComment | inPI
	}
	c['<'] &^= inText | inValue
	c['&'] &^= inText | inValue
	c[']'] &^= inText | inCDATA
	c['-'] &^= inComment
	c['?'] &^= inPI
	for b := 'a'; b <= 'z'; b++ {
		c[b] |= nameStart | nameByte
		c[b-'a'+'A'] |= nameStart | nameByte
	}
	for b := '0'; b <= '9'; b++ {
		c[b] |= nameByte
	}
	for _, b := range ":_" {
		c[b] |= nameStart | nameByte
	}
	for _, b := range "-." {
		c[b] |= nameByte
	}
	for _, b := range " \t\r\n" {
		c[b] |= blank
	}
	return c
}()

func isBlank(b byte) bool { return classes[b]&blank != 0 }

// isChar is the production Char of XML 1.0.
func isChar(r rune) bool {
	return r >= ' ' && r < 0xD800 || r == '\t' || r == '\n' || r == '\r' ||
		r >= 0xE000 && r <= 0xFFFD || r >= 0x10000 && r <= utf8.MaxRune
}

// wideStarts are the ranges of NameStartChar beyond ASCII (XML 1.0, fifth edition),
// and wideOthers the additional ones of NameChar.
var (
	wideStarts = [][2]rune{
		{0xC0, 0xD6},
		{0xD8, 0xF6},
		{0xF8, 0x2FF},
		{0x370, 0x37D},
		{0x37F, 0x1FFF},
		{0x200C, 0x200D},
		{0x2070, 0x218F},
		{0x2C00, 0x2FEF},
		{0x3001, 0xD7FF},
		{0xF900, 0xFDCF},
		{0xFDF0, 0xFFFD},
		{0x10000, 0xEFFFF},
	}
	wideOthers = [][2]rune{{0xB7, 0xB7}, {0x300, 0x36F}, {0x203F, 0x2040}}
)

func within(r rune, ranges [][2]rune) bool {
	for _, x := range ranges {
		if r >= x[0] && r <= x[1] {
			return true
		}
	}
	return false
}

func nameLength(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			class := classes[b[i]]
			if class&nameByte == 0 || i == 0 && class&nameStart == 0 {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 || !within(r, wideStarts) && (i == 0 || !within(r, wideOthers)) {
			return i
		}
		i += size
	}
	return len(b)
}

// appendReference appends the character that a reference stands for, if there is one; ref is the text between & and ;.
func appendReference(out, ref []byte) ([]byte, bool) {
	switch string(ref) {
	case "lt":
		return append(out, '<'), true
	case "gt":
		return append(out, '>'), true
	case "amp":
		return append(out, '&'), true
	case "apos":
		return append(out, '\''), true
	case "quot":
		return append(out, '"'), true
	}
	if len(ref) < 2 || ref[0] != '#' {
		return out, false
	}
	digits, base := ref[1:], 10
	if digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	if len(digits) == 0 || digits[0] == '+' || digits[0] == '-' {
		return out, false
	}
	n, err := strconv.ParseUint(string(digits), base, 32)
	if err != nil || n > utf8.MaxRune || !isChar(rune(n)) {
		return out, false
	}
	return utf8.AppendRune(out, rune(n)), true
}
