package filter

import "troupe/statemachine/data"

// Document is what a filter looks at: one instance. The matcher keeps none of it.
type Document struct {
	// ID and WorkflowID are _id and workflowId.
	ID, WorkflowID string
	// Key is key; "" is missing.
	Key string
	// States, Public and Private are the values of states, svcPublic and svcPrivate; absent ones are missing.
	States, Public, Private data.Value
	// Own is an object whose members are the roots that Options.Own names; absent when there are none.
	Own data.Value
	// History returns the value of svcHistory. It is called at most once, and
	// only when the rest of the filter does not decide. nil: missing.
	History func() data.Value
	// Ended is called repeatedly during a long match. When it returns true, Match returns soon and its result means nothing; the
	// caller has to remember that it ended the match. nil: the match is never ended early.
	Ended func() bool
}

// Filter is a parsed filter. The zero Filter matches everything.
type Filter struct {
	// all must hold. $and is resolved into it, so every match satisfies each of
	// these nodes. Nodes that read the history come last.
	all []node
}

// node is one part of a filter's tree: a combination of others, or a condition. It is built once and then only read.
type node struct {
	kind nodeKind
	// nodes are the parts of a combination.
	nodes []node
	// condition is what a node of the kind condition asks.
	condition condition
	// history says that deciding may read the history.
	history bool
}

type nodeKind uint8

const (
	isCondition nodeKind = iota
	allOf                // all nodes hold
	anyOf                // one of the nodes holds
	noneOf               // none of the nodes holds
)

// condition asks whether a predicate holds for one of the values that a path leads to.
type condition struct {
	root root
	// path leads on from the root.
	path []segment
	// negated asks whether it holds for none of them.
	negated   bool
	predicate predicate
}

type segment struct {
	key string
	// position is the place in an array that key may mean, or -1.
	position int
}

type root uint8

const (
	rootID root = iota
	rootWorkflowID
	rootStates
	rootKey
	rootPublic
	rootPrivate
	rootHistory
	// rootOwn is a member of Document.Own, which the path names first.
	rootOwn
	// rootElement is the element that $elemMatch looks at, as a document.
	rootElement
	// rootValue is that element as a value, and has no path.
	rootValue
)

// Match reports whether d matches; see Document.Ended.
func (f *Filter) Match(d Document) bool {
	m := matching{document: d}
	for i := range f.all {
		if !m.node(&f.all[i], nil) {
			return false
		}
	}
	return !m.ended
}

// UsesHistory reports whether a match may call Document.History.
func (f *Filter) UsesHistory() bool {
	for i := range f.all {
		if f.all[i].history {
			return true
		}
	}
	return false
}

// UsesData reports whether a match depends on svcPublic, svcPrivate or svcHistory, or on the key, which is made of svcPublic.
func (f *Filter) UsesData() bool { return uses(f.all, rootKey, rootHistory) }

// UsesPrivate reports whether a match depends on svcPrivate.
func (f *Filter) UsesPrivate() bool { return uses(f.all, rootPrivate, rootPrivate) }

// uses reports whether a condition looks at one of the roots from first to last.
func uses(nodes []node, first, last root) bool {
	for i := range nodes {
		if n := &nodes[i]; n.kind == isCondition && first <= n.condition.root && n.condition.root <= last || uses(n.nodes, first, last) {
			return true
		}
	}
	return false
}

type matching struct {
	document Document
	// history is svcHistory, once read.
	history data.Value
	read    bool
	// tried is what opCollect collects.
	tried []data.Value
	// worked is the work done since the last call of Document.Ended; ended is what that call returned.
	worked int
	ended  bool
}

// node decides about n; element is what the $elemMatch around n looks at.
func (m *matching) node(n *node, element data.Value) bool {
	switch n.kind {
	case isCondition:
		return m.condition(&n.condition, element) != n.condition.negated
	case allOf:
		for i := range n.nodes {
			if !m.node(&n.nodes[i], element) {
				return false
			}
		}
		return true
	}
	for i := range n.nodes {
		if m.node(&n.nodes[i], element) {
			return n.kind == anyOf
		}
	}
	return n.kind == noneOf
}

func (m *matching) condition(c *condition, element data.Value) bool {
	if m.ended {
		return false
	}
	switch c.root {
	case rootID:
		return m.text(c, m.document.ID)
	case rootWorkflowID:
		return m.text(c, m.document.WorkflowID)
	case rootElement:
		return m.inElement(c, element)
	case rootValue:
		return m.holds(&c.predicate, element)
	}
	return m.below(c, m.root(c.root), c.path)
}

func (m *matching) root(r root) data.Value {
	switch r {
	case rootKey:
		if m.document.Key == "" {
			return nil
		}
		return data.AppendString(nil, m.document.Key)
	case rootStates:
		return m.document.States
	case rootPublic:
		return m.document.Public
	case rootPrivate:
		return m.document.Private
	case rootOwn:
		return m.document.Own
	}
	if !m.read && m.document.History != nil {
		m.history = m.document.History()
	}
	m.read = true
	return m.history
}

// text decides for the roots that are Go strings and not JSON. Nothing is inside them.
func (m *matching) text(c *condition, s string) bool {
	if len(c.path) > 0 {
		return m.holds(&c.predicate, nil)
	}
	return c.predicate.holdsText(s)
}
