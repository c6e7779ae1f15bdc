package ecmascript

import (
	"slices"
	"strings"
)

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
