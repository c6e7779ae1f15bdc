package docx

import (
	"bytes"

	"troupe/actors/template/markup"
	"troupe/actors/template/param"
)

type space uint8

const (
	spaceOther space = iota
	spaceWord
	spaceMath
	spaceCompatibility
	spacePackage
)

// A document uses one of the two sets, and names mean the same in both.
var spaces = map[string]space{
	"http://schemas.openxmlformats.org/wordprocessingml/2006/main": spaceWord,
	"http://purl.oclc.org/ooxml/wordprocessingml/main":             spaceWord,
	"http://schemas.openxmlformats.org/officeDocument/2006/math":   spaceMath,
	"http://purl.oclc.org/ooxml/officeDocument/math":               spaceMath,
	"http://schemas.openxmlformats.org/markup-compatibility/2006":  spaceCompatibility,
	packageNamespace: spacePackage,
}

// bindingsMax bounds the prefixes that are bound at the same time. Documents have about thirty.
const bindingsMax = 10_000

// Invariant: undo has, for every binding since the root, what the prefix meant before; marks has the length of undo at
// the start of each open element.
type names struct {
	bound map[string]space
	undo  []binding
	marks []int
}

type binding struct {
	prefix string
	before space
}

func newNames() *names { return &names{bound: map[string]space{}} }

func (n *names) enter(p *markup.Parser) (space, []byte, error) {
	n.marks = append(n.marks, len(n.undo))
	for _, a := range p.Attributes() {
		prefix, isDefault := []byte(nil), string(a.Name) == "xmlns"
		if !isDefault {
			var isPrefix bool
			if prefix, isPrefix = bytes.CutPrefix(a.Name, []byte("xmlns:")); !isPrefix {
				continue
			}
		}
		if err := n.bind(prefix, spaces[string(a.Value)]); err != nil {
			return 0, nil, err
		}
	}
	prefix, local, found := bytes.Cut(p.Name(), []byte(":"))
	if !found {
		prefix, local = nil, prefix
	}
	return n.bound[string(prefix)], local, nil
}

func (n *names) bind(prefix []byte, to space) error {
	before := n.bound[string(prefix)]
	if before == to {
		return nil
	}
	if len(n.undo) == bindingsMax {
		return param.TooLarge(bindingsMax, "namespace prefixes")
	}
	name := string(prefix)
	n.undo = append(n.undo, binding{name, before})
	n.bound[name] = to
	return nil
}

func (n *names) leave() {
	last := len(n.marks) - 1
	for len(n.undo) > n.marks[last] {
		b := n.undo[len(n.undo)-1]
		if b.before == spaceOther {
			delete(n.bound, b.prefix) // keeps the map small in a part with many prefixes
		} else {
			n.bound[b.prefix] = b.before
		}
		n.undo = n.undo[:len(n.undo)-1]
	}
	n.marks = n.marks[:last]
}
