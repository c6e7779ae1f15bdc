package data

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the decoded string, and "" when v is not a string.
func (v Value) Text() string {
	if v.Kind() != String || len(v) < 2 {
		return ""
	}
	return decode(v[1 : len(v)-1])
}

// TextIs reports whether v is the string s, without allocating.
func (v Value) TextIs(s string) bool {
	return v.Kind() == String && len(v) >= 2 && textIs(v[1:len(v)-1], s)
}

// CompareText orders two strings by code point, decoded, without allocating:
// negative when a comes first. For anything but two strings it returns 0.
func CompareText(a, b Value) int {
	if a.Kind() != String || b.Kind() != String || len(a) < 2 || len(b) < 2 {
		return 0
	}
	return compareRaw(a[1:len(a)-1], b[1:len(b)-1])
}

// AppendString appends s as a JSON string to dst. It escapes what JSON wants
// escaped, in the shortest way, and nothing more; invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = utf8.AppendRune(dst, utf8.RuneError)
				start = i + 1
			}
			i += size
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i-1]...)
		start = i
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			dst = append(dst, '\\', `"\bfnrt`[short])
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// What follows works on raw text: the inside of a valid JSON string, as written, without its quotes.

func decode(raw []byte) string {
	i := bytes.IndexByte(raw, '\\')
	if i < 0 {
		return string(raw)
	}
	b := make([]byte, i, len(raw))
	copy(b, raw)
	for i < len(raw) {
		if raw[i] != '\\' {
			b = append(b, raw[i])
			i++
			continue
		}
		var r rune
		r, i = unescape(raw, i)
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// unescape returns the character that the escape at raw[i] stands for, and the offset behind it. A surrogate pair is one escape.
func unescape(raw []byte, i int) (r rune, next int) {
	if i+1 >= len(raw) {
		return utf8.RuneError, len(raw)
	}
	switch c := raw[i+1]; c {
	case 'b':
		return '\b', i + 2
	case 'f':
		return '\f', i + 2
	case 'n':
		return '\n', i + 2
	case 'r':
		return '\r', i + 2
	case 't':
		return '\t', i + 2
	case 'u':
	default: // a quote, a slash or a backslash stands for itself
		return rune(c), i + 2
	}
	r = hex4(raw, i+2)
	if r < 0 {
		return utf8.RuneError, i + 2
	}
	if utf16.IsSurrogate(r) {
		return joinSurrogates(r, raw, i)
	}
	return r, i + 6
}

// joinSurrogates returns the character that the escape of a high surrogate at raw[i] and the one behind it make together. When
// there is no such pair, next is only behind the first escape.
func joinSurrogates(high rune, raw []byte, i int) (r rune, next int) {
	if i+7 < len(raw) && raw[i+6] == '\\' && raw[i+7] == 'u' {
		if r := utf16.DecodeRune(high, hex4(raw, i+8)); r != utf8.RuneError {
			return r, i + 12
		}
	}
	return utf8.RuneError, i + 6
}

func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// textIs reports whether raw decodes to s. An escape is always longer than
// what it stands for, so most answers need no look at the escapes.
func textIs(raw []byte, s string) bool {
	switch {
	case len(raw) == len(s):
		return string(raw) == s && bytes.IndexByte(raw, '\\') < 0
	case len(raw) < len(s) || bytes.IndexByte(raw, '\\') < 0:
		return false
	}
	return decode(raw) == s
}

func equalRaw(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if len(a) > 0 && len(b) > 0 && a[0] != b[0] && a[0] != '\\' && b[0] != '\\' {
		return false // the usual case when a key is looked for
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	return compareRaw(a, b) == 0
}

func compareRaw(a, b []byte) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if a[i] == b[j] && a[i] != '\\' {
			i, j = i+1, j+1
			continue
		}
		if a[i] != '\\' && b[j] != '\\' {
			// NB: the order of UTF-8 bytes is the order of code points, also where two characters differ in a later byte.
			return int(a[i]) - int(b[j])
		}
		// NB: an escape may stand for several bytes. Both sides are at the beginning of a character: so far all bytes were equal,
		// and one side begins an escape here.
		var r, s rune
		r, i = char(a, i)
		s, j = char(b, j)
		if r != s {
			return int(r) - int(s)
		}
	}
	return (len(a) - i) - (len(b) - j)
}

func char(raw []byte, i int) (r rune, next int) {
	if raw[i] == '\\' {
		return unescape(raw, i)
	}
	r, size := utf8.DecodeRune(raw[i:])
	return r, i + size
}

// Shorten keeps a text that came from outside below 64 visible characters.
func Shorten(s string) string {
	const most = 64
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if r := []rune(clean); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return clean
}
