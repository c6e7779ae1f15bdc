package markup

import (
	"strconv"
	"unicode/utf8"
)

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
