package ecmascript

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	end kind = iota
	name
	number
	text // a string literal; token.text is its value
	mark // a punctuator
)

type token struct {
	kind kind
	text string
	at   int // in bytes
}

// marks are the punctuators, the longest first.
var marks = []string{
	">>>=", "...", "===", "!==", ">>>", "<<=", ">>=", "**=", "&&=", "||=", "??=",
	"==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "=>", "<<", ">>", "**", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
	"+", "-", "*", "/", "%", "<", ">", "!", "~", "&", "|", "^", "?", ":", "=", ".", ",", ";", "(", ")", "[", "]", "{", "}",
}

// lex cuts a text into tokens. The last one is end.
func lex(src string) ([]token, error) {
	var out []token
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRuneInString(src[i:])
		switch {
		case unicode.IsSpace(r) || r == '\ufeff':
			i += size
		case strings.HasPrefix(src[i:], "//"):
			n := strings.IndexByte(src[i:], '\n')
			if n < 0 {
				n = len(src) - i
			}
			i += n
		case strings.HasPrefix(src[i:], "/*"):
			n := strings.Index(src[i+2:], "*/")
			if n < 0 {
				return nil, errSyntax
			}
			i += n + 4
		case isNameStart(r):
			n := strings.IndexFunc(src[i:], func(r rune) bool { return !isNameStart(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(src) - i
			}
			out = append(out, token{name, src[i : i+n], i})
			i += n
		case r >= '0' && r <= '9' || r == '.' && i+1 < len(src) && src[i+1] >= '0' && src[i+1] <= '9':
			n := numberEnd(src[i:])
			out = append(out, token{number, src[i : i+n], i})
			i += n
		case r == '"' || r == '\'':
			value, n, err := unquote(src[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, token{text, value, i})
			i += n
		case r == '`':
			return nil, refuse("template literals")
		default:
			m := markAt(src[i:])
			if m == "" {
				return nil, errSyntax
			}
			out = append(out, token{mark, m, i})
			i += len(m)
		}
	}
	return append(out, token{kind: end, at: len(src)}), nil
}

func markAt(s string) string {
	for _, m := range marks {
		if strings.HasPrefix(s, m) {
			return m
		}
	}
	return ""
}

func isNameStart(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

// numberEnd is how long a number is. What stands right behind it is for the parser.
func numberEnd(s string) int {
	i := 0
	if len(s) > 1 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0 {
		for i = 2; i < len(s) && isNameStart(rune(s[i])) || i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		}
		return i
	}
	for ; i < len(s); i++ {
		c := s[i]
		exponent := i > 0 && (c == '+' || c == '-') && (s[i-1] == 'e' || s[i-1] == 'E')
		if (c < '0' || c > '9') && c != '.' && c != 'e' && c != 'E' && !exponent {
			break
		}
	}
	return i
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

// unquote reads a string literal at the start of s, and returns how long it is there.
func unquote(s string) (value string, length int, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == s[0]:
			return b.String(), i + 1, nil
		case c == '\n':
			return "", 0, errSyntax
		case c != '\\':
			b.WriteByte(c)
			continue
		}
		if i++; i >= len(s) {
			break
		}
		digits := map[byte]int{'x': 2, 'u': 4}[s[i]]
		if digits > 0 {
			var r rune
			if i+digits >= len(s) {
				return "", 0, errSyntax
			}
			if n, err := fmt.Sscanf(s[i+1:i+1+digits], "%x", &r); n != 1 || err != nil {
				return "", 0, errSyntax
			}
			b.WriteRune(r)
			i += digits
			continue
		}
		if plain, ok := escapes[s[i]]; ok {
			b.WriteString(plain)
			continue
		}
		b.WriteByte(s[i])
	}
	return "", 0, errSyntax
}
