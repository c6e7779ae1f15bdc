package filter

import "troupe/statemachine/data"

// Document is what a filter looks at: one instance. The matcher keeps none of
// it.
type Document struct {
	// ID and WorkflowID are _id and workflowId.
	ID, WorkflowID string
	// States, Public and Private are the values of states, svcPublic and
	// svcPrivate; absent ones are missing.
	States, Public, Private data.Value
	// History returns the value of svcHistory. It is called at most once, and
	// only when the rest of the filter matches. nil: missing.
	History func() data.Value
}

// Filter is a parsed filter. The zero Filter matches everything.
type Filter struct {
	// clauses must all hold; those on the history come last, because it has to
	// be read for them.
	clauses []clause
}

// clause is one condition: what stands at path equals want.
type clause struct {
	root root
	// path leads on from the root.
	path []segment
	want data.Value
}

// segment is one step of a path.
type segment struct {
	key string
	// position is the place in an array that key may mean, or -1.
	position int
}

// root is where a path begins.
type root uint8

const (
	rootID root = iota
	rootWorkflowID
	rootStates
	rootPublic
	rootPrivate
	rootHistory
)

// Match reports whether d is wanted.
func (f *Filter) Match(d Document) bool {
	var history data.Value
	read := false
	for i := range f.clauses {
		c := &f.clauses[i]
		if c.root == rootHistory && !read && d.History != nil {
			history, read = d.History(), true
		}
		if !c.match(&d, history) {
			return false
		}
	}
	return true
}

func (c *clause) match(d *Document, history data.Value) bool {
	switch c.root {
	case rootID:
		return c.matchText(d.ID)
	case rootWorkflowID:
		return c.matchText(d.WorkflowID)
	case rootStates:
		return c.below(d.States, c.path)
	case rootPublic:
		return c.below(d.Public, c.path)
	case rootPrivate:
		return c.below(d.Private, c.path)
	}
	return c.below(history, c.path)
}

// matchText is for the roots that are strings and not JSON: nothing is inside
// of them.
func (c *clause) matchText(s string) bool {
	if len(c.path) > 0 {
		return c.holds(nil)
	}
	return c.want.TextIs(s)
}

// Nodes returns the nodes of which a matching instance must be in at least one:
// those that a condition on states.nodeId names. When there is no such
// condition it returns nil, and says nothing.
func (f *Filter) Nodes() []string {
	var nodes []string
	for _, c := range f.clauses {
		if c.root == rootStates && len(c.path) == 1 && c.path[0].key == "nodeId" && c.want.Kind() == data.String {
			nodes = append(nodes, c.want.Text())
		}
	}
	return nodes
}
