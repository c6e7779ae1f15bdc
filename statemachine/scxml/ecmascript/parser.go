package ecmascript

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of one expression.
const (
	maxBytes   = 16 << 10
	maxNesting = 60
)

// Expression is a parsed text. Only one of its forms is set for each op.
type node struct {
	op string // the operator, or one of the words below
	// text is the name of a variable or member, or the value of a literal.
	text string
	args []*node
	keys []string // of an object
}

// The words of op that are no operators.
const (
	opName   = "name"
	opNumber = "number"
	opText   = "text"
	opMember = "."  // args[0].text
	opIndex  = "[]" // args[0][args[1]]
	opCall   = "()" // args[0](args[1:]…)
	opArray  = "array"
	opObject = "object"
	opChoice = "?:"
)

// Expression is what Parse returns.
type Expression struct {
	src  string
	root *node // nil: the text is no expression
}

// Parse reads one expression. The error is a *Refused. A text that is no expression gives one that fails when it runs: IsBroken.
func Parse(src string) (*Expression, error) {
	if len(src) > maxBytes {
		return nil, refuse("an expression of more than 16 KiB")
	}
	e := &Expression{src: strings.TrimSpace(src)}
	tokens, err := lex(src)
	if err == nil {
		p := &parser{tokens: tokens}
		if e.root, err = p.expression(0); err == nil {
			err = p.behind()
		}
	}
	var refused *Refused
	if errors.As(err, &refused) {
		return nil, refused
	}
	if err != nil {
		e.root = nil
	}
	return e, nil
}

// IsBroken reports whether the text is no expression, so that it fails when it runs.
func (e *Expression) IsBroken() bool { return e.root == nil }

type parser struct {
	tokens []token
	depth  int
}

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != end {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) is(m string) bool { return p.tokens[0].kind == mark && p.tokens[0].text == m }

func (p *parser) take(m string) bool {
	if !p.is(m) {
		return false
	}
	p.next()
	return true
}

// behind looks at what follows a whole expression.
func (p *parser) behind() error {
	p.take(";")
	switch t := p.tokens[0]; {
	case t.kind == end:
		return nil
	case t.kind == mark && (t.text == "=" || len(t.text) > 1 && strings.HasSuffix(t.text, "=")):
		return refuse("an assignment inside an expression")
	case t.kind == mark && t.text == "=>":
		return refuse("a function")
	case t.kind == mark && t.text == ",":
		return refuse("the comma operator")
	}
	return errSyntax
}

// binary are the operators between two operands, by how strongly they bind.
var binary = map[string]int{
	"??": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6,
	"==": 7, "!=": 7, "===": 7, "!==": 7, "<": 8, ">": 8, "<=": 8, ">=": 8, "in": 8, "instanceof": 8,
	"<<": 9, ">>": 9, ">>>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11, "**": 12,
}

// expression reads operands whose operators bind at least as strongly as least. 0 also reads a conditional expression.
func (p *parser) expression(least int) (*node, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, refuse("an expression that is nested so deep")
	}
	defer func() { p.depth-- }()
	left, err := p.unary()
	if err != nil {
		return nil, err
	}
	for {
		t := p.tokens[0]
		strength := 0
		if t.kind == mark || t.kind == name {
			strength = binary[t.text]
		}
		if strength == 0 || strength < max(least, 1) {
			break
		}
		p.next()
		right, err := p.expression(strength + 1)
		if err != nil {
			return nil, err
		}
		left = &node{op: t.text, args: []*node{left, right}}
	}
	if least > 0 || !p.take("?") {
		return left, nil
	}
	yes, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if !p.take(":") {
		return nil, errSyntax
	}
	no, err := p.expression(0)
	return &node{op: opChoice, args: []*node{left, yes, no}}, err
}

// unaryMarks are the operators before an operand.
var unaryMarks = []string{"!", "-", "+", "~", "++", "--"}

func (p *parser) unary() (*node, error) {
	t := p.tokens[0]
	switch {
	case t.kind == mark && slices.Contains(unaryMarks, t.text):
	case t.kind == name && slices.Contains([]string{"typeof", "void", "delete", "await", "yield"}, t.text):
	default:
		return p.postfix()
	}
	p.next()
	switch t.text {
	case "++", "--":
		return nil, refuse("an assignment inside an expression")
	case "void", "delete", "await", "yield", "~":
		return nil, refuse("the operator " + t.text)
	}
	if p.depth++; p.depth > maxNesting {
		return nil, refuse("an expression that is nested so deep")
	}
	defer func() { p.depth-- }()
	of, err := p.unary()
	return &node{op: t.text + "x", args: []*node{of}}, err
}

func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	for err == nil {
		switch {
		case p.take("."), p.take("?."):
			t := p.next()
			if t.kind != name {
				return nil, errSyntax
			}
			n = &node{op: opMember, text: t.text, args: []*node{n}}
		case p.take("["):
			var at *node
			if at, err = p.expression(0); err == nil && !p.take("]") {
				err = errSyntax
			}
			n = &node{op: opIndex, args: []*node{n, at}}
		case p.take("("):
			n = &node{op: opCall, args: []*node{n}}
			err = p.list(")", func() error {
				arg, err := p.expression(0)
				n.args = append(n.args, arg)
				return err
			})
		case p.is("++"), p.is("--"):
			return nil, refuse("an assignment inside an expression")
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) list(shut string, element func() error) error {
	for !p.take(shut) {
		if p.is("...") {
			return refuse("a spread")
		}
		if err := element(); err != nil {
			return err
		}
		if !p.is(shut) && !p.take(",") {
			return errSyntax
		}
	}
	return nil
}

// runs are the words that begin code.
var runs = map[string]string{
	"function": "a function", "class": "a class", "new": "new", "this": "this", "async": "a function", "super": "super", "import": "import",
}

// statements begin no expression.
var statements = []string{
	"return", "var", "let", "const", "if", "else", "for", "while", "do", "switch", "case", "break", "continue", "throw", "try", "catch", "finally", "with", "in", "instanceof", "default", "export", "extends", "enum", "debugger",
}

func (p *parser) primary() (*node, error) {
	t := p.next()
	switch t.kind {
	case number:
		return &node{op: opNumber, text: t.text}, checkNumber(t.text)
	case text:
		return &node{op: opText, text: t.text}, nil
	case name:
		if what, ok := runs[t.text]; ok {
			return nil, refuse(what)
		}
		if slices.Contains(statements, t.text) {
			return nil, errSyntax
		}
		return &node{op: opName, text: t.text}, nil
	case mark:
	default:
		return nil, errSyntax
	}
	switch t.text {
	case "(":
		if p.is(")") {
			return nil, refuse("a function")
		}
		n, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		if p.take(")") {
			return n, nil
		}
		return nil, p.behindOr()
	case "[":
		n := &node{op: opArray}
		return n, p.list("]", func() error {
			item, err := p.expression(0)
			n.args = append(n.args, item)
			return err
		})
	case "{":
		return p.object()
	case "/", "/=":
		return nil, refuse("a regular expression")
	}
	return nil, errSyntax
}

// behindOr is behind where something must follow.
func (p *parser) behindOr() error {
	if err := p.behind(); err != nil {
		return err
	}
	return errSyntax
}

func (p *parser) object() (*node, error) {
	n := &node{op: opObject}
	return n, p.list("}", func() error {
		key := p.next()
		if key.kind == end || key.kind == mark {
			return errSyntax
		}
		n.keys = append(n.keys, key.text)
		if key.kind == name && (p.is(",") || p.is("}")) { // {a} is {a: a}
			n.args = append(n.args, &node{op: opName, text: key.text})
			return nil
		}
		if p.is("(") {
			return refuse("a function")
		}
		if !p.take(":") {
			return errSyntax
		}
		value, err := p.expression(0)
		n.args = append(n.args, value)
		return err
	})
}

func checkNumber(s string) error {
	_, asFloat := strconv.ParseFloat(s, 64)
	_, asInt := strconv.ParseInt(s, 0, 64)
	switch {
	case asFloat == nil || asInt == nil:
		return nil
	case errors.Is(asFloat, strconv.ErrRange) || errors.Is(asInt, strconv.ErrRange):
		return refuse("a number of that size")
	}
	return errSyntax
}

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
