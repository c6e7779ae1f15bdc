package ecmascript

import (
	"errors"
	"strconv"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
)

// Bounds of one expression.
const (
	maxBytes   = 16 << 10
	maxNesting = 60
)

// node is a part of an expression. Only one of its forms is set for each op.
type node struct {
	op string // the operator, or one of the words below
	// text is the name of a variable or member, or the value of a literal.
	text string
	args []*node
	keys []string // of an object
}

// The words of op beside the operators.
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
	root *node // nil: the text is not an expression
}

// Parse reads one expression. The error is a *Refused. A text that is not an expression gives one that fails when it runs: IsBroken.
func Parse(src string) (*Expression, error) {
	if len(src) > maxBytes {
		return nil, refuse("an expression of more than 16 KiB")
	}
	e := &Expression{src: strings.TrimSpace(src)}
	if nestedDeep(src) {
		return nil, refuse("an expression that is nested so deep")
	}
	// NB: the line break ends a comment.
	program, err := parser.ParseFile(nil, "", "("+strings.TrimSuffix(e.src, ";")+"\n)", 0, parser.WithDisableSourceMaps)
	if err != nil || len(program.Body) != 1 {
		return e, nil
	}
	statement, ok := program.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return e, nil
	}
	root, err := (&reading{}).node(statement.Expression)
	if refused, ok := errors.AsType[*Refused](err); ok {
		return nil, refused
	}
	if err == nil {
		e.root = root
	}
	return e, nil
}

// nestedDeep reports whether a text has more brackets in each other than an expression may; the tree has none in parentheses.
func nestedDeep(src string) bool {
	depth, quote := 0, byte(0)
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			if depth++; depth >= maxNesting {
				return true
			}
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// IsBroken reports whether the text is not an expression, so that it fails when it runs.
func (e *Expression) IsBroken() bool { return e.root == nil }

type reading struct{ depth int }

func (r *reading) all(op string, of ...ast.Expression) (*node, error) {
	n := &node{op: op}
	for _, x := range of {
		arg, err := r.node(x)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, arg)
	}
	return n, nil
}

func (r *reading) node(x ast.Expression) (*node, error) {
	if r.depth++; r.depth > maxNesting {
		return nil, refuse("an expression that is nested so deep")
	}
	defer func() { r.depth-- }()
	switch x := x.(type) {
	case *ast.Identifier:
		return &node{op: opName, text: x.Name.String()}, nil
	case *ast.BooleanLiteral:
		return &node{op: opName, text: x.Literal}, nil
	case *ast.NullLiteral:
		return &node{op: opName, text: "null"}, nil
	case *ast.NumberLiteral:
		return &node{op: opNumber, text: x.Literal}, checkNumber(x.Literal)
	case *ast.StringLiteral:
		return &node{op: opText, text: x.Value.String()}, nil
	case *ast.UnaryExpression:
		return r.unary(x)
	case *ast.BinaryExpression:
		r.depth-- // of a + b + c the left one is no deeper
		left, err := r.node(x.Left)
		r.depth++
		if err != nil {
			return nil, err
		}
		right, err := r.node(x.Right)
		return &node{op: x.Operator.String(), args: []*node{left, right}}, err
	case *ast.ConditionalExpression:
		return r.all(opChoice, x.Test, x.Consequent, x.Alternate)
	case *ast.OptionalChain:
		return r.node(x.Expression)
	case *ast.Optional:
		return r.node(x.Expression)
	case *ast.DotExpression:
		n, err := r.all(opMember, x.Left)
		if err == nil {
			n.text = x.Identifier.Name.String()
		}
		return n, err
	case *ast.BracketExpression:
		return r.all(opIndex, x.Left, x.Member)
	case *ast.CallExpression:
		return r.all(opCall, append([]ast.Expression{x.Callee}, x.ArgumentList...)...)
	case *ast.ArrayLiteral:
		return r.all(opArray, x.Value...)
	case *ast.ObjectLiteral:
		return r.object(x)
	case nil:
		return nil, errSyntax // a hole of an array
	}
	return nil, refuse(codeOf(x))
}

// codeOf names what cannot be expressed.
func codeOf(x ast.Expression) string {
	switch x.(type) {
	case *ast.AssignExpression:
		return "an assignment inside an expression"
	case *ast.SequenceExpression:
		return "the comma operator"
	case *ast.ClassLiteral:
		return "a class"
	case *ast.NewExpression:
		return "new"
	case *ast.ThisExpression:
		return "this"
	case *ast.SuperExpression:
		return "super"
	case *ast.TemplateLiteral:
		return "template literals"
	case *ast.RegExpLiteral:
		return "a regular expression"
	case *ast.SpreadElement:
		return "a spread"
	}
	return "a function"
}

func (r *reading) unary(x *ast.UnaryExpression) (*node, error) {
	switch x.Operator {
	case token.INCREMENT, token.DECREMENT:
		return nil, refuse("an assignment inside an expression")
	case token.VOID, token.DELETE, token.BITWISE_NOT:
		return nil, refuse("the operator " + x.Operator.String())
	}
	return r.all(x.Operator.String()+"x", x.Operand)
}

func (r *reading) object(x *ast.ObjectLiteral) (*node, error) {
	n := &node{op: opObject}
	for _, p := range x.Value {
		var key string
		var value ast.Expression
		switch p := p.(type) {
		case *ast.PropertyShort: // {a} is {a: a}
			key, value = p.Name.Name.String(), &p.Name
		case *ast.PropertyKeyed:
			if p.Kind != ast.PropertyKindValue {
				return nil, refuse("a function")
			}
			switch literal := p.Key.(type) {
			case *ast.StringLiteral:
				key = literal.Value.String()
			case *ast.NumberLiteral:
				key = literal.Literal
			}
			if value = p.Value; p.Computed {
				return nil, errSyntax
			}
		case *ast.SpreadElement:
			return nil, refuse("a spread")
		}
		arg, err := r.node(value)
		if err != nil {
			return nil, err
		}
		n.keys, n.args = append(n.keys, key), append(n.args, arg)
	}
	return n, nil
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
