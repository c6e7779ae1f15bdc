package filter

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

// Limits of a filter. With them a match takes time linear in the instance.
const (
	maxBytes   = 16 << 10
	maxDepth   = 20 // of the text, and of a path
	maxClauses = 64 // conditions in the whole tree
	// maxPositions is how many segments may be positions, of a path and of those
	// of the $elemMatch around it together. Each doubles the ways to follow.
	maxPositions = 4
)

// Options says who asks.
type Options struct {
	// Private allows paths into svcPrivate. Default: not.
	Private bool
	// Own are further roots, the members of Document.Own; they come before the usual ones.
	Own []string
}

// Parse reads a filter. Empty text is the empty filter, which matches everything. src is not kept. Errors wrap ErrSyntax,
// ErrUnsupported, ErrRoot or ErrTooLarge.
func Parse(src []byte, opts Options) (*Filter, error) {
	if len(src) == 0 {
		return &Filter{}, nil
	}
	if len(src) > maxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, len(src), maxBytes)
	}
	text, err := data.Clean(slices.Clone(src))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if text.Kind() != data.Object {
		return nil, fmt.Errorf("%w: it must be an object, not %s", ErrSyntax, text.Kind())
	}
	if depth := text.Depth(); depth > maxDepth {
		return nil, fmt.Errorf("%w: nested %d deep, at most %d are allowed", ErrTooLarge, depth, maxDepth)
	}
	p := parser{private: opts.Private, own: opts.Own}
	all, err := p.document(text, nil)
	if err != nil {
		return nil, err
	}
	return &Filter{all: all}, nil
}

var roots = map[string]root{
	"_id": rootID, "workflowId": rootWorkflowID, "key": rootKey, "states": rootStates, "svcPublic": rootPublic, "svcHistory": rootHistory,
	"svcPrivate": rootPrivate,
}

type parser struct {
	private bool
	own     []string
	// clauses counts the conditions so far, and steps those of their regular expressions. reading is how long these take to read.
	clauses, steps, reading int
}

type subject struct {
	root root
	path []segment
	// positions counts the segments that may be positions, those around it included.
	positions int
}

// document reads an object of paths and combinations, which all must hold.
// around is the path of the $elemMatch around it; nil at the top of the filter.
func (p *parser) document(text data.Value, around *subject) ([]node, error) {
	var all []node
	for key, value := range text.Members() {
		var nodes []node
		var err error
		if strings.HasPrefix(key, "$") {
			nodes, err = p.combination(key, value, around)
		} else {
			nodes, err = p.field(key, value, around)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, nodes...)
	}
	return historyLast(all), nil
}

func historyLast(nodes []node) []node {
	slices.SortStableFunc(nodes, func(a, b node) int {
		switch {
		case a.history == b.history:
			return 0
		case b.history:
			return -1
		}
		return 1
	})
	return nodes
}

func (p *parser) combination(operator string, value data.Value, around *subject) ([]node, error) {
	kind := allOf
	switch operator {
	case "$comment":
		return nil, nil
	case "$and":
	case "$or":
		kind = anyOf
	case "$nor":
		kind = noneOf
	default:
		return nil, unsupported(operator)
	}
	var nodes []node
	for _, e := range value.Elements() {
		if e.Kind() != data.Object {
			return nil, malformed(operator, "takes objects, not "+e.Kind().String())
		}
		before := p.clauses
		all, err := p.document(e, around)
		if err != nil {
			return nil, err
		}
		if p.clauses == before { // {} is a condition, too
			if err := p.count(); err != nil {
				return nil, err
			}
		}
		if kind == allOf {
			nodes = append(nodes, all...)
		} else {
			nodes = append(nodes, joined(all))
		}
	}
	if _, ok := value.Index(0); !ok {
		return nil, malformed(operator, "takes an array that is not empty")
	}
	if kind == allOf || kind == anyOf && len(nodes) == 1 {
		return nodes, nil
	}
	return []node{combined(kind, nodes)}, nil
}

func joined(all []node) node {
	if len(all) == 1 {
		return all[0]
	}
	return combined(allOf, all)
}

func combined(kind nodeKind, nodes []node) node {
	n := node{kind: kind, nodes: historyLast(nodes)}
	if len(nodes) > 0 {
		n.history = nodes[len(nodes)-1].history
	}
	return n
}

func (p *parser) field(key string, value data.Value, around *subject) ([]node, error) {
	s, err := p.subject(key, around)
	if err != nil {
		return nil, err
	}
	if _, ok, err := operatorOf(value); err != nil {
		return nil, err
	} else if ok {
		return p.operators(s, value)
	}
	return p.condition(s, predicate{op: opEqual, want: plain(value)})
}

func (p *parser) count() error {
	if p.clauses == maxClauses {
		return fmt.Errorf("%w: more than %d conditions", ErrTooLarge, maxClauses)
	}
	p.clauses++
	return nil
}

func (p *parser) condition(s *subject, what predicate) ([]node, error) {
	if err := p.count(); err != nil {
		return nil, err
	}
	c := condition{root: s.root, path: s.path, predicate: what}
	return []node{{condition: c, history: s.root == rootHistory}}, nil
}

func negated(all []node, err error) ([]node, error) {
	if err != nil {
		return nil, err
	}
	if len(all) == 1 && all[0].kind == isCondition {
		all[0].condition.negated = !all[0].condition.negated
		return all, nil
	}
	return []node{combined(noneOf, []node{joined(all)})}, nil
}

func (p *parser) subject(key string, around *subject) (*subject, error) {
	if strings.Count(key, ".") >= maxDepth {
		return nil, fmt.Errorf("%w: a path of more than %d segments", ErrTooLarge, maxDepth)
	}
	s := &subject{root: rootElement}
	rest := 0
	if around == nil {
		name, _, _ := strings.Cut(key, ".")
		known := false
		s.root, known = roots[name]
		switch rest = 1; {
		case slices.Contains(p.own, name):
			s.root, rest = rootOwn, 0
		case !known || s.root == rootPrivate && !p.private:
			return nil, fmt.Errorf("%w: %s", ErrRoot, data.Quote(name))
		}
	} else {
		s.positions = around.positions
	}
	keys, err := data.ParsePath(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	s.path = segments(keys[rest:])
	if s.positions += positionsIn(s.path); s.positions > maxPositions {
		return nil, fmt.Errorf("%w: a path with more than %d positions", ErrTooLarge, maxPositions)
	}
	return s, nil
}

func segments(keys []string) []segment {
	path := make([]segment, len(keys))
	for i, key := range keys {
		path[i] = segment{key: key, position: -1}
		if n, ok := data.ParsePosition(key); ok {
			path[i].position = n
		}
	}
	return path
}

func positionsIn(path []segment) int {
	n := 0
	for _, s := range path {
		if s.position >= 0 {
			n++
		}
	}
	return n
}

func unsupported(operator string) error {
	return fmt.Errorf("%w: the operator %s is not supported here", ErrUnsupported, data.Quote(operator))
}

func malformed(operator, why string) error {
	return fmt.Errorf("%w: %s %s", ErrSyntax, operator, why)
}
