package statemachine

import (
	"slices"
	"strings"
	"sync"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/schema"
)

// Definition is one version of a workflow: a statechart whose regions are its
// state machines, with everything compiled. It is built once by Parser.Parse
// and never changed, so any number of instances may share it.
type Definition struct {
	ID      WorkflowID
	Name    string // display name; the id when the file has none
	Version uint64 // 1 or more

	places places

	semantics          semantics
	create, read, send *rule // nil: see rights.go
	unmatched          unmatched
	applies            bool           // some event has unmatched: apply
	public, private    data.Value     // defaults of svcPublic and svcPrivate
	publicSchema       *schema.Schema // nil: anything goes
	privateSchema      *schema.Schema
	createPublic       *schema.Schema // of what create brings; nil: anything goes
	createPrivate      *schema.Schema
	indexes            []data.Path
	events             map[EventName]*contract
	declared           declaredNames
	names              []EventName // those of declared that callers can send, in order
	// owned are the events that only the service sends: outcomes.
	owned     map[EventName]bool
	webhooks  map[string]*Webhook
	invoked   []Reference
	schedules []*Schedule
	mailedTo  []Reference // user:NAME and role:NAME
	mailLine  int         // of the first action that is a mail; 0: none is
	ownLine   int         // of the first thing that the instance does by itself; 0: none
	// tasked: some node has work for people. raisesOverdue: something takes the event of a task that becomes overdue.
	tasked, raisesOverdue bool
	taskForms             []TaskForm
	title                 *caption // nil: none
	columns               []Column
	shownLine             int // of the first key that says how people see the workflow; 0: none
	owners                *Owners
	invokers              []string // workflows that may invoke it with any data
	accessLine            int      // of the first key that says who may publish or invoke the workflow; 0: none

	// nodes is the whole chart in document order; nodes[0] is the implicit
	// parallel root. A node's descendants are the places right behind it, up
	// to node.last.
	nodes    []*node
	machines []*node // children of the root, in the order of the file
	regions  map[MachineID]*node

	configurations configurations
	initialOnce    sync.Once
	initial        nodeSet // see initialNodes
}

// semantics says whose rules hold (statemachine/DEFINITION.md, "Semantics of imported files").
type semantics uint8

const (
	nativeSemantics semantics = iota
	scxmlSemantics            // those of W3C SCXML, without our deviations
	xstateSemantics           // those of XState, which are ours but for a few
)

// kind is what a node of the chart is.
type kind uint8

const (
	atomic kind = iota
	compound
	parallel
	final
	shallowHistory
	deepHistory
)

func (k kind) isHistory() bool { return k == shallowHistory || k == deepHistory }

// node is one state of the chart.
type node struct {
	id        NodeID
	kind      kind
	index     int // place in document order
	last      int // place of the last descendant; index when there is none
	parent    *node
	machine   *node // the state machine that it belongs to; itself for one
	children  []*node
	histories []*node
	line      int

	initial []*node // compound: what is entered by default
	// opening are the actions of a default entry: of a compound node behind its entry, of a history node that remembers
	// nothing behind that of its parent. opens: the node or a history node in it has some.
	opening []action
	opens   bool
	// fallback is a history node's target when nothing is remembered; nil
	// means the default entry of its parent.
	fallback []*node

	on     []*transition // by event, timer, and child; in document order
	always []*transition
	entry  []action
	exit   []action
	after  []*after
	invoke []*invoke
	task   *taskRule   // nil: it has no work for people
	label  Text        // nil: the id
	tone   Tone        // with what it has from the nodes around
	failed bool        // final: an instance that ends here has failed
	output *template   // final: the data of done.state
	params []parameter // final, with the rules of SCXML: more of that data
	done   EventName   // "done.state.<id>"
}

// contains reports whether other is a proper descendant of n.
func (n *node) contains(other *node) bool {
	return other.index > n.index && other.index <= n.last
}

// isLeaf reports whether the node can be the innermost active one.
func (n *node) isLeaf() bool { return n.kind == atomic || n.kind == final }

// transition is one way out of a node, or, without targets, a reaction in it.
type transition struct {
	source  *node
	event   eventPattern
	more    []eventPattern // others that it takes; only with the rules of SCXML
	targets []*node
	guard   *expr.Program // nil: always enabled
	// condition is the guard as it stands in the file, without ${ }.
	condition string
	allow     *rule // nil: anyone who may send to the workflow
	actions   []action
	reenter   bool
	into      root      // where event.data goes; rootUnset: as the event says
	apply     applyRule // how; applyUnset: as the event says
	onDone    *node     // only for the done event of this very node
	after     *after    // only for the event of this timer
	told      *telling  // only for what becomes of this child
	// everything: of XState's "*", which takes timers and what becomes of children as well.
	everything bool
	line       int
}

// eventPattern is a key of "on" (statemachine/DEFINITION.md, "Event patterns"): an
// exact name, "x.*" (x and everything below it), or "*". The zero value is that of
// eventless transitions and matches nothing.
type eventPattern struct {
	name   EventName // without ".*"
	prefix bool
	any    bool
}

func parsePattern(s string) (eventPattern, bool) {
	if s == "*" {
		return eventPattern{any: true}, true
	}
	name, prefix := strings.CutSuffix(s, ".*")
	n, ok := ParseEventName(name)
	return eventPattern{name: n, prefix: prefix}, ok && !strings.HasSuffix(name, ".")
}

func (p eventPattern) matches(name EventName) bool {
	switch {
	case p.any:
		return true
	case p.name == "":
		return false
	case name == p.name:
		return true
	case !p.prefix:
		return false
	}
	return len(name) > len(p.name) && name[len(p.name)] == '.' && name[:len(p.name)] == p.name
}

// declaredNames are the names and patterns of events in the whole definition.
type declaredNames struct {
	exact    map[EventName]bool
	patterns []eventPattern
}

func (d *declaredNames) add(p eventPattern) {
	if p.any || p.prefix {
		d.patterns = append(d.patterns, p)
		return
	}
	if d.exact == nil {
		d.exact = map[EventName]bool{}
	}
	d.exact[p.name] = true
}

func (d *declaredNames) has(name EventName) bool {
	return d.exact[name] ||
		slices.ContainsFunc(d.patterns, func(p eventPattern) bool { return p.matches(name) })
}

// IsReserved reports whether only the machine itself raises events of the name:
// SCXML's platform events, and those of timers and of the parent (statemachine/DEFINITION.md, "Declared events").
func IsReserved(name EventName) bool {
	s := string(name)
	if s == "" {
		return false
	}
	switch s[0] {
	case 'a':
		return strings.HasPrefix(s, "after.")
	case 'd':
		// NB: with the rules of SCXML, done.invoke takes what is below it
		return s == "done.state" || s == "done.invoke" || strings.HasPrefix(s, "done.state.") || strings.HasPrefix(s, "done.invoke.")
	case 'e':
		return s == "error" || strings.HasPrefix(s, "error.")
	}
	return name == parentCancelled
}

// Declares reports whether a caller may use the name: some node, machine or
// contract of the definition mentions it, and it is neither a platform event nor an outcome.
func (d *Definition) Declares(name EventName) bool {
	return !IsReserved(name) && !d.owned[name] && d.declared.has(name)
}

// isExact reports whether only the service sends what the pattern names, so that no wider pattern takes it.
func (d *Definition) isExact(p eventPattern) bool {
	return !p.any && !p.prefix && (p.name == parentCancelled || d.owned[p.name])
}

// contract is the declaration of one event (statemachine/DEFINITION.md,
// "Event declarations").
type contract struct {
	line      int
	schema    *schema.Schema // nil: any object
	into      root
	apply     applyRule
	unmatched unmatched
	private   bool  // event.data may hold svcPrivate
	unkept    bool  // the history does not keep event.data
	allow     *rule // asked in every state; nil: anyone who may send to the workflow
	label     Text  // nil: the name
	done      Text
	style     Style
}

func (c *contract) mayTake(caller *Caller, s *expr.Scope) bool {
	return c == nil || c.allow.admits(caller, s)
}

// unmatched says what becomes of an event that no transition takes now
// (statemachine/DEFINITION.md, "Unmatched events").
type unmatched uint8

const (
	unmatchedUnset unmatched = iota
	unmatchedRecord
	unmatchedReject
	unmatchedIgnore
	unmatchedApply
)

// root is one of the two documents of an instance.
type root uint8

const (
	rootUnset root = iota
	rootPublic
	rootPrivate
)

// applyRule says how event.data is applied to its document.
type applyRule uint8

const (
	applyUnset applyRule = iota
	applyMerge
	applyReplace
	applyNone
)

// unmatchedRule returns what holds for an event of that name.
func (d *Definition) unmatchedRule(name EventName) unmatched {
	if c := d.events[name]; c != nil && c.unmatched != unmatchedUnset {
		return c.unmatched
	}
	if d.unmatched != unmatchedUnset {
		return d.unmatched
	}
	return unmatchedRecord
}

// Indexes returns the paths that the definition declares as indexes.
func (d *Definition) Indexes() []data.Path { return d.indexes }
