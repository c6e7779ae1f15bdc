package ecmascript

import (
	"errors"
	"slices"
	"strconv"
	"strings"
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
