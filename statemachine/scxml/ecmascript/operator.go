package ecmascript

import "strings"

func (w *writer) truth(n *node) (cel, error) {
	switch n.op {
	case "&&", "||":
		return w.both(n)
	case "&", "|":
		if isCondition(n.args[0]) && isCondition(n.args[1]) {
			return w.both(&node{op: n.op + n.op, args: n.args})
		}
	case opChoice:
		parts := [3]cel{}
		for i, arg := range n.args {
			var err error
			if parts[i], err = w.truth(arg); err != nil {
				return cel{}, err
			}
		}
		return cel{parts[0].within(orLevel) + " ? " + parts[1].within(orLevel) + " : " + parts[2].text, choiceLevel, boolType}, nil
	}
	c, err := w.lenient(n)
	if err != nil {
		return cel{}, err
	}
	switch c.typ {
	case boolType:
		return c, nil
	case textType:
		return cel{c.within(sumLevel) + ` != ""`, relationLevel, boolType}, nil
	case numberType:
		return cel{c.within(sumLevel) + " != 0", relationLevel, boolType}, nil
	case nullType:
		return cel{"false", memberLevel, boolType}, nil
	case listType, mapType:
		return cel{"true", memberLevel, boolType}, nil
	}
	return cel{"!(" + c.within(sumLevel) + ` in [null, false, 0, ""])`, unaryLevel, boolType}, nil
}

func isCondition(n *node) bool {
	switch n.op {
	case "==", "!=", "===", "!==", "<", ">", "<=", ">=", "!x", "in", "instanceof":
		return true
	case "&&", "||", "&", "|":
		return isCondition(n.args[0]) && isCondition(n.args[1])
	case opName:
		return n.text == "true" || n.text == "false"
	}
	return n.op == opCall && n.args[0].op == opName && n.args[0].text == "In"
}

func (w *writer) both(n *node) (cel, error) {
	level := andLevel
	if n.op == "||" {
		level = orLevel
	}
	a, err := w.truth(n.args[0])
	if err != nil {
		return cel{}, err
	}
	b, err := w.truth(n.args[1])
	return cel{a.within(level) + " " + n.op + " " + b.within(level+1), level, boolType}, err
}

func (w *writer) binary(n *node) (cel, error) {
	switch n.op {
	case "==", "===", "!=", "!==":
		return w.equality(n)
	case "<", ">", "<=", ">=":
		return w.relation(n)
	case "&&", "||", "&", "|":
		if isCondition(n.args[0]) && isCondition(n.args[1]) {
			return w.truth(n)
		}
	case "in":
		return w.in(n)
	case "instanceof":
		if of := n.args[1]; of.op == opName && of.text == "Array" {
			c, err := w.lenient(n.args[0])
			return cel{"type(" + c.text + ") == list", relationLevel, boolType}, err
		}
		return cel{}, refuse("instanceof")
	case "+", "-", "*", "/", "%":
		return w.arithmetic(n)
	}
	switch n.op { // operands that stand for themselves
	case "&&", "||", "??":
		condition, err := w.truth(n.args[0])
		if n.op == "??" {
			var c cel
			c, err = w.lenient(n.args[0])
			condition = cel{c.within(sumLevel) + " != null", relationLevel, boolType}
		}
		if err != nil {
			return cel{}, err
		}
		if n.op == "&&" {
			return w.choose(condition, n.args[1], n.args[0])
		}
		return w.choose(condition, n.args[0], n.args[1])
	}
	return cel{}, refuse("the operator " + n.op)
}

var types = map[string]string{
	"number": "type(%) in [int, double]", "string": "type(%) == string", "boolean": "type(%) == bool", "object": "type(%) in [map, list]",
	"undefined": "% == null", "function": "false",
}

func (w *writer) equality(n *node) (cel, error) {
	not := n.op[0] == '!'
	left, right := n.args[0], n.args[1]
	if right.op == "typeofx" {
		left, right = right, left
	}
	if left.op == "typeofx" {
		return w.typeOf(left.args[0], right, not)
	}
	a, err := w.lenient(left)
	if err != nil {
		return cel{}, err
	}
	b, err := w.lenient(right)
	if err != nil {
		return cel{}, err
	}
	if a.typ != anyType && b.typ != anyType && a.typ != b.typ { // CEL refuses to compare them
		a = cel{"dyn(" + a.text + ")", memberLevel, anyType}
	}
	op := " == "
	if not {
		op = " != "
	}
	return cel{a.within(sumLevel) + op + b.within(sumLevel), relationLevel, boolType}, nil
}

func (w *writer) typeOf(of, word *node, not bool) (cel, error) {
	test, ok := types[word.text]
	if word.op != opText || !ok {
		return cel{}, refuse("typeof that is not compared with a word")
	}
	c := cel{"null", memberLevel, nullType} // what nobody declares is undefined, and no error here
	if of.op != opName || of.text == "_event" || strings.HasPrefix(of.text, "_") || w.names.Variable(of.text) != "" {
		var err error
		if c, err = w.lenient(of); err != nil {
			return cel{}, err
		}
	}
	out := cel{strings.ReplaceAll(test, "%", c.within(sumLevel)), relationLevel, boolType}
	if not {
		return cel{"!(" + out.text + ")", unaryLevel, boolType}, nil
	}
	return out, nil
}

// relation compares. What is missing is in no order, so the result is false then.
func (w *writer) relation(n *node) (cel, error) {
	var there []string
	var parts [2]cel
	for i, arg := range n.args {
		c, err := w.value(arg)
		if err != nil {
			return cel{}, err
		}
		parts[i] = c
		if arg.op == opMember && strings.HasSuffix(c.text, "."+arg.text) {
			there = append(there, "has("+c.text+")")
		}
	}
	if parts[0].typ != anyType && parts[1].typ != anyType && parts[0].typ != parts[1].typ {
		parts[0] = cel{"dyn(" + parts[0].text + ")", memberLevel, anyType}
	}
	out := cel{parts[0].within(sumLevel) + " " + n.op + " " + parts[1].within(sumLevel), relationLevel, boolType}
	if there != nil {
		out = cel{strings.Join(append(there, out.text), " && "), andLevel, boolType}
	}
	return out, nil
}

func (w *writer) in(n *node) (cel, error) {
	if of := n.args[1]; of.op == opName && of.text == "_event" && n.args[0].op == opText {
		for _, field := range fields {
			if field == n.args[0].text {
				return cel{"true", memberLevel, boolType}, nil
			}
		}
	}
	key, err := w.value(n.args[0])
	if err != nil {
		return cel{}, err
	}
	of, err := w.value(n.args[1])
	return cel{key.within(sumLevel) + " in " + of.within(sumLevel), relationLevel, boolType}, err
}

func (w *writer) arithmetic(n *node) (cel, error) {
	a, err := w.value(n.args[0])
	if err != nil {
		return cel{}, err
	}
	b, err := w.value(n.args[1])
	if err != nil {
		return cel{}, err
	}
	switch n.op {
	case "+":
		if a.typ == textType || b.typ == textType {
			return cel{asText(a).within(sumLevel) + " + " + asText(b).within(productLevel), sumLevel, textType}, nil
		}
		known := anyType
		if a.typ == b.typ {
			known = a.typ
		}
		return cel{a.within(sumLevel) + " + " + b.within(productLevel), sumLevel, known}, nil
	case "-":
		return cel{a.within(sumLevel) + " - " + b.within(productLevel), sumLevel, numberType}, nil
	case "/":
		return cel{"double(" + a.text + ") / double(" + b.text + ")", productLevel, numberType}, nil
	}
	return cel{a.within(productLevel) + " " + n.op + " " + b.within(unaryLevel), productLevel, numberType}, nil
}

func asText(c cel) cel {
	if c.typ == textType {
		return c
	}
	return cel{"string(" + c.text + ")", memberLevel, textType}
}
