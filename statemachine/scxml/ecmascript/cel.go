package ecmascript

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine/data"
)

// Names says what the names of an expression mean.
type Names struct {
	// Variable returns the CEL of a declared variable; "" when nobody declares it.
	Variable func(name string) string
	// Title is the value of _name; "": null.
	Title string
}

type typ uint8

const (
	anyType typ = iota
	boolType
	numberType
	textType
	listType
	mapType
	nullType
)

// How strongly the operators of CEL bind.
const (
	choiceLevel = iota
	orLevel
	andLevel
	relationLevel
	sumLevel
	productLevel
	unaryLevel
	memberLevel
)

type cel struct {
	text  string
	level int
	typ   typ
}

// within returns the text, in parentheses when it binds less strongly than level.
func (c cel) within(level int) string {
	if c.level < level {
		return "(" + c.text + ")"
	}
	return c.text
}

// Condition returns the expression as a condition: ECMAScript takes every value for true or false.
func (e *Expression) Condition(names Names) (string, error) {
	return e.write(names, func(w *writer) (cel, error) { return w.truth(e.root) })
}

// Value returns the expression as a value.
func (e *Expression) Value(names Names) (string, error) {
	return e.write(names, func(w *writer) (cel, error) { return w.lenient(e.root) })
}

// Constant returns the JSON of an expression that is a literal; ok is false for all others.
func (e *Expression) Constant() (v data.Value, ok bool) {
	if e.root == nil {
		return nil, false
	}
	return constant(e.root)
}

func constant(n *node) (data.Value, bool) {
	switch n.op {
	case opText:
		return data.AppendString(nil, n.text), true
	case opNumber:
		return data.Value(numberText(n.text)), true
	case opName:
		if slices.Contains([]string{"true", "false", "null"}, n.text) {
			return data.Value(n.text), true
		}
		if n.text == "undefined" {
			return data.Value("null"), true
		}
	case "-x":
		if n.args[0].op == opNumber {
			return data.Value("-" + numberText(n.args[0].text)), true
		}
	case opArray, opObject:
		open, shut := byte('['), byte(']')
		if n.op == opObject {
			open, shut = '{', '}'
		}
		out := data.Value{open}
		for i, arg := range n.args {
			v, ok := constant(arg)
			if !ok {
				return nil, false
			}
			if i > 0 {
				out = append(out, ',')
			}
			if n.op == opObject {
				out = append(data.AppendString(out, n.keys[i]), ':')
			}
			out = append(out, v...)
		}
		clean, err := data.Clean(append(out, shut))
		return clean, err == nil
	}
	return nil, false
}

// numberText is a number in the spelling of JSON. A leading zero does not make it octal.
func numberText(s string) string {
	based := len(s) > 1 && s[0] == '0' && strings.ContainsRune("xXoObB", rune(s[1]))
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && (based || s[0] != '0' || s == "0") {
		return strconv.FormatInt(n, 10)
	}
	f, _ := strconv.ParseFloat(s, 64) // the parser has looked at it
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func (e *Expression) write(names Names, of func(*writer) (cel, error)) (string, error) {
	if e.root == nil {
		return broken(e.src), nil
	}
	c, err := of(&writer{names})
	var undeclared *undeclaredError
	if errors.As(err, &undeclared) {
		return broken(e.src), nil
	}
	return c.text, err
}

// broken is an expression that fails when it runs, as the text does. No language has the function.
func broken(src string) string { return "ecmascript(" + quote(src) + ")" }

func quote(s string) string { return string(data.AppendString(nil, s)) }

// undeclaredError is the ReferenceError of ECMAScript: nobody declares the name.
type undeclaredError struct{ name string }

func (e *undeclaredError) Error() string { return e.name + " is not declared" }

type writer struct{ names Names }

// builtins are names that ECMAScript has on its own, and that are not variables here.
var builtins = []string{"Math", "JSON", "Date", "Array", "Object", "String", "Number", "Boolean", "RegExp", "console", "window", "document", "globalThis", "parseInt", "parseFloat", "isNaN", "isFinite", "eval"}

// value returns n where a value of a certain type is needed: a member that is missing is an error.
func (w *writer) value(n *node) (cel, error) {
	switch n.op {
	case opText:
		return cel{quote(n.text), memberLevel, textType}, nil
	case opNumber:
		return cel{numberText(n.text), memberLevel, numberType}, nil
	case opName:
		return w.name(n.text)
	case opMember, opIndex:
		return w.member(n)
	case opCall:
		return w.call(n)
	case opArray, opObject:
		return w.collection(n)
	case opChoice:
		return w.choice(n)
	case "!x":
		c, err := w.truth(n.args[0])
		return cel{"!" + c.within(unaryLevel), unaryLevel, boolType}, err
	case "-x":
		c, err := w.value(n.args[0])
		return cel{"-" + c.within(memberLevel), unaryLevel, numberType}, err
	case "+x":
		c, err := w.value(n.args[0])
		return cel{"double(" + c.text + ")", memberLevel, numberType}, err
	case "typeofx":
		return cel{}, refuse("typeof that is not compared with a word")
	}
	return w.binary(n)
}

func (w *writer) name(s string) (cel, error) {
	switch s {
	case "true", "false":
		return cel{s, memberLevel, boolType}, nil
	case "null", "undefined":
		return cel{"null", memberLevel, nullType}, nil
	case "_event":
		return cel{s, memberLevel, anyType}, nil
	case "_sessionid":
		return cel{"instance.id", memberLevel, textType}, nil
	case "_name":
		if w.names.Title == "" {
			return cel{"null", memberLevel, nullType}, nil
		}
		return cel{quote(w.names.Title), memberLevel, textType}, nil
	case "_ioprocessors":
		const where = `{"location": "#_scxml_" + instance.id}`
		return cel{`{"http://www.w3.org/TR/scxml/#SCXMLEventProcessor": ` + where + `, "scxml": ` + where + `}`, memberLevel, mapType}, nil
	}
	if v := w.names.Variable(s); v != "" {
		return cel{v, memberLevel, anyType}, nil
	}
	if slices.Contains(builtins, s) {
		return cel{}, refuse(s)
	}
	return cel{}, &undeclaredError{s}
}

// lenient returns n where undefined is a value like others: a member that is missing is null.
func (w *writer) lenient(n *node) (cel, error) {
	if n.op != opMember || n.args[0].op == opName && n.args[0].text == "_ioprocessors" {
		return w.value(n)
	}
	if n.args[0].op == opName && n.args[0].text == "_event" && slices.Contains(fields, n.text) {
		return w.value(n)
	}
	strict, err := w.value(n)
	if err != nil || !w.isOfVariable(n) || !strings.HasSuffix(strict.text, "."+n.text) {
		return strict, err
	}
	return cel{strings.TrimSuffix(strict.text, n.text) + "?" + n.text + ".orValue(null)", memberLevel, anyType}, nil
}

// isOfVariable reports whether n is a member of a variable, whose type is not known.
func (w *writer) isOfVariable(n *node) bool {
	for n.op == opMember || n.op == opIndex {
		n = n.args[0]
	}
	return n.op == opName && (n.text == "_event" || w.names.Variable(n.text) != "")
}

var fields = []string{"name", "type", "sendid", "origin", "origintype", "invokeid", "data"}

func (w *writer) member(n *node) (cel, error) {
	of := n.args[0]
	key, isText := n.text, n.op == opMember
	if n.op == opIndex && n.args[1].op == opText {
		key, isText = n.args[1].text, true
	}
	if of.op == opName && of.text == "_ioprocessors" && isText && strings.Contains(strings.ToLower(key), "basichttp") {
		return cel{}, refuse("the BasicHTTP event processor")
	}
	if of.op == opName && of.text == "Math" && n.op == opMember {
		if constant, ok := map[string]string{"PI": "3.141592653589793", "E": "2.718281828459045"}[key]; ok {
			return cel{constant, memberLevel, numberType}, nil
		}
	}
	c, err := w.value(of)
	if err != nil {
		return cel{}, err
	}
	if isText && key == "length" {
		return cel{"size(" + c.text + ")", memberLevel, numberType}, nil
	}
	if isText {
		if isIdentifier(key) {
			return cel{c.within(memberLevel) + "." + key, memberLevel, anyType}, nil
		}
		return cel{c.within(memberLevel) + "[" + quote(key) + "]", memberLevel, anyType}, nil
	}
	at, err := w.value(n.args[1])
	return cel{c.within(memberLevel) + "[" + at.text + "]", memberLevel, anyType}, err
}

// reserved are the words that CEL has no members of that name for.
var reserved = []string{"in", "true", "false", "null"}

func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && !slices.Contains(reserved, s)
}

func (w *writer) collection(n *node) (cel, error) {
	parts := make([]string, 0, len(n.args))
	for i, arg := range n.args {
		c, err := w.lenient(arg)
		if err != nil {
			return cel{}, err
		}
		if n.op == opObject {
			c.text = quote(n.keys[i]) + ": " + c.text
		}
		parts = append(parts, c.text)
	}
	if n.op == opObject {
		return cel{"{" + strings.Join(parts, ", ") + "}", memberLevel, mapType}, nil
	}
	return cel{"[" + strings.Join(parts, ", ") + "]", memberLevel, listType}, nil
}

func (w *writer) choice(n *node) (cel, error) {
	condition, err := w.truth(n.args[0])
	if err != nil {
		return cel{}, err
	}
	return w.choose(condition, n.args[1], n.args[2])
}

func (w *writer) choose(condition cel, yes, no *node) (cel, error) {
	a, err := w.lenient(yes)
	if err != nil {
		return cel{}, err
	}
	b, err := w.lenient(no)
	if err != nil {
		return cel{}, err
	}
	known := a.typ
	if a.typ != b.typ {
		known = anyType
		if a.typ != anyType && b.typ != anyType {
			a = cel{"dyn(" + a.text + ")", memberLevel, anyType}
		}
	}
	return cel{condition.within(orLevel) + " ? " + a.within(orLevel) + " : " + b.within(choiceLevel), choiceLevel, known}, nil
}

var errSyntax = errors.New("not an expression of ECMAScript")

// Refused is what an expression has that cannot be expressed in CEL.
type Refused struct{ What string }

func (e *Refused) Error() string { return e.What + " cannot be expressed" }

func refuse(what string) error { return &Refused{what} }

// Uses are the names in an expression that a document must have. What typeof asks about need not be there.
type Uses struct {
	Variables []string
	States    []string // literals of In
}

// Uses returns the names that the expression uses, each once, in their order.
func (e *Expression) Uses() (u Uses) {
	if e.root != nil {
		u.add(e.root)
	}
	return u
}

func (u *Uses) add(n *node) {
	args := n.args
	switch {
	case n.op == opName:
		addNew(&u.Variables, n.text)
	case n.op == "typeofx":
		return
	case n.op == opCall && args[0].op == opName:
		if args[0].text == "In" && len(args) == 2 && args[1].op == opText {
			addNew(&u.States, args[1].text)
		}
		args = args[1:]
	}
	for _, a := range args {
		u.add(a)
	}
}

func addNew(to *[]string, name string) {
	isOurs := strings.HasPrefix(name, "_") || slices.Contains([]string{"true", "false", "null", "undefined"}, name) || slices.Contains(builtins, name)
	if !isOurs && !slices.Contains(*to, name) {
		*to = append(*to, name)
	}
}
