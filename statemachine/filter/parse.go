package filter

import (
	"fmt"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

// Limits of a filter. With them a match takes time linear in the instance.
const (
	maxBytes    = 16 << 10
	maxDepth    = 20 // of the text, and of a path
	maxClauses  = 64
	maxPosition = 4 // segments of a path that may be positions; each doubles the ways to follow
)

// Options says who asks.
type Options struct {
	// Private allows paths into svcPrivate. Default: not.
	Private bool
}

// Parse reads a filter. Empty text is the empty filter, which matches
// everything. src is not kept. Errors wrap ErrSyntax, ErrUnsupported, ErrRoot or
// ErrTooLarge.
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
	f := &Filter{}
	for key, condition := range text.Members() {
		if len(f.clauses) == maxClauses {
			return nil, fmt.Errorf("%w: more than %d conditions", ErrTooLarge, maxClauses)
		}
		c, err := parseClause(key, condition, opts)
		if err != nil {
			return nil, err
		}
		f.clauses = append(f.clauses, c)
	}
	slices.SortStableFunc(f.clauses, func(a, b clause) int { return cost(a) - cost(b) })
	return f, nil
}

// cost puts the conditions last that make Match read the history.
func cost(c clause) int {
	if c.root == rootHistory {
		return 1
	}
	return 0
}

func parseClause(key string, condition data.Value, opts Options) (clause, error) {
	if strings.HasPrefix(key, "$") {
		return clause{}, unsupported(key)
	}
	c, err := parsePath(key, opts)
	if err != nil {
		return clause{}, err
	}
	c.want = plain(condition)
	if operator, ok := firstKey(c.want); ok && strings.HasPrefix(operator, "$") {
		if operator == "$oid" {
			return clause{}, fmt.Errorf("%w: $oid takes a text and stands alone", ErrSyntax)
		}
		return clause{}, unsupported(operator)
	}
	return c, nil
}

func unsupported(operator string) error {
	return fmt.Errorf("%w: the operator %s is not supported", ErrUnsupported, data.Quote(operator))
}

// parsePath reads the path of a condition.
func parsePath(key string, opts Options) (clause, error) {
	name, _, _ := strings.Cut(key, ".")
	r, ok := rootOf(name, opts)
	if !ok {
		return clause{}, fmt.Errorf("%w: %s", ErrRoot, data.Quote(name))
	}
	if strings.Count(key, ".") >= maxDepth {
		return clause{}, fmt.Errorf("%w: a path of more than %d segments", ErrTooLarge, maxDepth)
	}
	keys, err := data.ParsePath(key)
	if err != nil {
		return clause{}, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	c := clause{root: r, path: make([]segment, 0, len(keys)-1)}
	positions := 0
	for _, k := range keys[1:] {
		s := segment{key: k, position: -1}
		if n, ok := data.ParsePosition(k); ok {
			s.position = n
			positions++
		}
		c.path = append(c.path, s)
	}
	if positions > maxPosition {
		return clause{}, fmt.Errorf("%w: a path with more than %d positions", ErrTooLarge, maxPosition)
	}
	return c, nil
}

func rootOf(name string, opts Options) (root, bool) {
	switch name {
	case "_id":
		return rootID, true
	case "workflowId":
		return rootWorkflowID, true
	case "states":
		return rootStates, true
	case "svcPublic":
		return rootPublic, true
	case "svcHistory":
		return rootHistory, true
	case "svcPrivate":
		return rootPrivate, opts.Private
	}
	return 0, false
}

// firstKey returns the first key of an object.
func firstKey(v data.Value) (string, bool) {
	for key := range v.Members() {
		return key, true
	}
	return "", false
}

// plain returns v with every {"$oid": s} in it replaced by s.
func plain(v data.Value) data.Value {
	switch v.Kind() {
	case data.Object:
		if id, ok := objectID(v); ok {
			return id
		}
		out := []byte{'{'}
		for key, member := range v.Members() {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(data.AppendString(out, key), ':')
			out = append(out, plain(member)...)
		}
		return append(out, '}')
	case data.Array:
		out := []byte{'['}
		for i, e := range v.Elements() {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, plain(e)...)
		}
		return append(out, ']')
	}
	return v
}

// objectID returns s of {"$oid": s}.
func objectID(v data.Value) (data.Value, bool) {
	var id data.Value
	for key, member := range v.Members() {
		if key != "$oid" || id != nil {
			return nil, false
		}
		id = member
	}
	return id, id.Kind() == data.String
}
