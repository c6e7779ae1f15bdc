package ecmascript

import (
	"fmt"
	"strconv"
	"strings"
)

var functions = map[string]struct {
	cel      string
	operands int
	typ      typ
}{
	"Math.floor": {"math.floor(double(%s))", 1, numberType}, "Math.ceil": {"math.ceil(double(%s))", 1, numberType},
	"Math.round": {"math.floor(double(%s) + 0.5)", 1, numberType}, "Math.trunc": {"math.trunc(double(%s))", 1, numberType},
	"Math.abs": {"math.abs(%s)", 1, numberType}, "Math.sqrt": {"math.sqrt(double(%s))", 1, numberType},
	"Math.max": {"math.greatest(%s, %s)", 2, numberType}, "Math.min": {"math.least(%s, %s)", 2, numberType},
	"String": {"string(%s)", 1, textType}, "Number": {"double(%s)", 1, numberType},
	"parseFloat": {"double(%s)", 1, numberType}, "parseInt": {"int(%s)", 1, numberType},
	"Array.isArray": {"type(%s) == list", 1, boolType}, "In": {"In(%s)", 1, boolType},
}

var methods = map[string]struct {
	cel      string
	operands int
	typ      typ
}{
	"startsWith": {"%s.startsWith(%s)", 1, boolType}, "endsWith": {"%s.endsWith(%s)", 1, boolType},
	"toUpperCase": {"%s.upperAscii()", 0, textType}, "toLowerCase": {"%s.lowerAscii()", 0, textType}, "trim": {"%s.trim()", 0, textType},
	"substring": {"%s.substring(%s, %s)", 2, textType}, "charAt": {"%s.charAt(%s)", 1, textType}, "indexOf": {"%s.indexOf(%s)", 1, numberType},
	"join": {"%s.join(%s)", 1, textType}, "split": {"%s.split(%s)", 1, listType}, "toString": {"string(%s)", 0, textType},
}

func (w *writer) call(n *node) (cel, error) {
	of, args := n.args[0], n.args[1:]
	path := of.text
	if of.op == opMember && of.args[0].op == opName {
		path = of.args[0].text + "." + of.text
	}
	if path == "Math.pow" {
		return w.power(args)
	}
	if path == "JSON.stringify" {
		return cel{}, refuse("JSON.stringify outside of a log")
	}
	if f, ok := functions[path]; ok && (of.op == opName || of.op == opMember) {
		return w.apply(f.cel, f.operands, f.typ, path, args)
	}
	switch of.op {
	case opName:
		if w.names.Variable(of.text) != "" {
			return cel{}, refuse("a function")
		}
		if _, err := w.name(of.text); err != nil {
			return cel{}, err
		}
	case opMember:
		if of.args[0].op == opName { // NB: what nobody declares fails before its method is looked for
			if _, err := w.name(of.args[0].text); err != nil {
				return cel{}, err
			}
		}
		if of.text == "concat" {
			return w.concat(of.args[0], args)
		}
		if m, ok := methods[of.text]; ok {
			return w.apply(m.cel, m.operands+1, m.typ, of.text, append([]*node{of.args[0]}, args...))
		}
		return cel{}, refuse("the function " + of.text)
	}
	return cel{}, refuse("a function")
}

func (w *writer) apply(form string, operands int, of typ, name string, args []*node) (cel, error) {
	if len(args) != operands {
		return cel{}, refuse(fmt.Sprintf("%s with %d operands", name, len(args)))
	}
	parts := make([]any, len(args))
	for i, arg := range args {
		c, err := w.value(arg)
		if err != nil {
			return cel{}, err
		}
		parts[i] = c.text
		if strings.HasPrefix(form, "%s.") && i == 0 {
			parts[i] = c.within(memberLevel)
		}
	}
	level := memberLevel
	if strings.Contains(form, " == ") {
		level = relationLevel
	}
	return cel{fmt.Sprintf(form, parts...), level, of}, nil
}

const powerMax = 8

func (w *writer) power(args []*node) (cel, error) {
	if len(args) == 2 && args[1].op == opNumber {
		if times, err := strconv.Atoi(args[1].text); err == nil && times > 0 && times <= powerMax {
			c, err := w.value(args[0])
			return cel{strings.Repeat(c.within(unaryLevel)+" * ", times-1) + c.within(unaryLevel), productLevel, numberType}, err
		}
	}
	return cel{}, refuse("a power that is not a small whole number")
}

func (w *writer) concat(first *node, rest []*node) (cel, error) {
	var parts []string
	for _, n := range append([]*node{first}, rest...) {
		if n.op == opArray && len(n.args) == 0 {
			continue
		}
		c, err := w.value(n)
		if err != nil {
			return cel{}, err
		}
		parts = append(parts, c.within(productLevel))
	}
	if len(parts) == 0 {
		return cel{"[]", memberLevel, listType}, nil
	}
	return cel{strings.Join(parts, " + "), sumLevel, anyType}, nil
}

// Text cuts an expression into the parts of a text for people: literals, and values (CEL) that stand where they are. JSON.stringify is the
// value itself, which such texts write as JSON.
func (e *Expression) Text(names Names) (parts []Part, err error) {
	if e.root == nil {
		return []Part{{Value: broken(e.src)}}, nil
	}
	w := &writer{names}
	for _, n := range sum(e.root) {
		if n.op == opText {
			parts = append(parts, Part{Literal: n.text})
			continue
		}
		if n.op == opCall && len(n.args) == 2 && n.args[0].op == opMember && n.args[0].text == "stringify" {
			n = n.args[1]
		}
		v, err := (&Expression{src: e.src, root: n}).write(names, func(*writer) (cel, error) { return w.lenient(n) })
		if err != nil {
			return nil, err
		}
		parts = append(parts, Part{Value: v})
	}
	return parts, nil
}

// Part is a part of a text: what it says, or the expression that says it.
type Part struct{ Literal, Value string }

// sum cuts a + b + c, where one of them is a text: what comes before the first text could be numbers.
func sum(n *node) []*node {
	var parts []*node
	for n.op == "+" {
		parts = append([]*node{n.args[1]}, parts...)
		n = n.args[0]
	}
	parts = append([]*node{n}, parts...)
	for i, part := range parts {
		if part.op == opText {
			if i < 2 {
				return parts
			}
			break
		}
	}
	if len(parts) == 1 {
		return parts
	}
	whole := parts[0]
	for _, part := range parts[1:] {
		whole = &node{op: "+", args: []*node{whole, part}}
	}
	return []*node{whole}
}

// Place returns the path that an expression names, as the segments below the variable; ok is false when it is none, or computed.
func (e *Expression) Place() (variable string, path []string, ok bool) {
	if e.root == nil {
		return "", nil, false
	}
	n := e.root
	for {
		switch {
		case n.op == opName:
			return n.text, path, true
		case n.op == opMember:
			path = append([]string{n.text}, path...)
		case n.op == opIndex && (n.args[1].op == opText || n.args[1].op == opNumber):
			path = append([]string{n.args[1].text}, path...)
		default:
			return "", nil, false
		}
		n = n.args[0]
	}
}
