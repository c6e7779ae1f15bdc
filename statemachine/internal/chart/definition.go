package chart

import (
	"slices"
	"strings"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
	"troupe/statemachine/schema"
)

// Definition is one version of a workflow: a statechart whose regions are its state machines, with everything compiled. It is
// built once by Parser.Parse and never changed, so any number of instances may share it.
type Definition struct {
	ID      WorkflowID
	Name    string // display name; the id when the file has none
	Version uint64 // 1 or more

	// The chart. Nodes is all of it in document order; Nodes[0] is the implicit parallel root. A node's descendants
	// are the places right behind it, up to Node.Last.
	Nodes      []*Node
	Machines   []*Node             // children of the root, in the order of the file
	RegionByID map[MachineID]*Node // these, and the regions of parallel nodes
	Semantics  Semantics
	Places     Places

	// Rights: who may create instances, read them and send to them (nil: everybody; without SendRule, ReadRule), publish the next version, and invoke
	// the workflow with any data.
	CreateRule, ReadRule, SendRule *Rule
	Owners                         *Owners // nil: it names none, and anyone who published the workflow first is its owner
	Invokers                       []string

	// The data of an instance: its defaults, what it must fit, and what a creator may bring; a nil schema lets anything go.
	DefaultPublic, DefaultPrivate data.Value
	PublicSchema, PrivateSchema   *schema.Schema
	CreatePublic, CreatePrivate   *schema.Schema
	Key                           *Prose      // makes the key of a new instance; nil: instances have none
	Indexes                       []data.Path // that of the key among them

	// Events: their declarations; the names and patterns that the file spells out; those names that callers can send, in
	// order; and those that only the service sends.
	Events        map[EventName]*EventDeclaration
	Declared      declaredNames
	CallableNames []EventName
	ServiceEvents map[EventName]bool
	Unmatched     Unmatched
	Applies       bool // some event has unmatched: apply

	// The world around: each with the name of something outside that must be there.
	WebhookByName map[string]*Webhook
	Invokes       []Reference // workflows, in document order, each once
	Addressees    []Reference // user:NAME and role:NAME; those that an expression gives are not known
	Schedules     []*Schedule
	JobByType     map[string]*JobType

	// Retention is how long an instance is kept that is done; 0: for ever.
	Retention time.Duration

	// People: texts, and work for them. HasTasks: some node has work. RaisesOverdue: something takes the event of a task that
	// becomes overdue.
	TitleCaption            *Caption // nil: none
	Columns                 []Column // what lists show; shared
	TaskForms               []TaskForm
	HasTasks, RaisesOverdue bool

	// What is read of an event and of who sends it, beside data, the name of the event and of the user: the rest of the user, rights left
	// out, and the id of the event.
	ReadsUser, ReadsEventID bool

	MailLine int // of the first action that sends a mail; 0: none does

	Configurations *Configurations
	// InitialNodes are the nodes that a creation enters, before anything else moves it.
	InitialNodes NodeSet
}

// Semantics says whose rules hold (statemachine/DEFINITION.md, "Semantics of imported files").
type Semantics uint8

const (
	NativeSemantics Semantics = iota
	SCXMLSemantics            // those of W3C SCXML, without our deviations
	XstateSemantics           // those of XState, which are ours but for a few
)

// Node is one state of the chart.
type Node struct {
	ID        NodeID
	Kind      NodeKind
	Index     int // place in document order
	Last      int // place of the last descendant; Index when there is none
	Parent    *Node
	Machine   *Node // the state machine that it belongs to; itself for one
	Children  []*Node
	Histories []*Node
	Line      int

	Initial []*Node // compound: what is entered by default
	// Opening are the actions of a default entry: of a compound node behind its entry, of a history node that remembers
	// nothing behind that of its parent. Opens: the node or a history node in it has some.
	Opening []Action
	Opens   bool
	// Fallback is a history node's target when nothing is remembered; nil means the default entry of its parent.
	Fallback []*Node

	On     []*Transition // by event, timer, and child; in document order
	Always []*Transition
	Entry  []Action
	Exit   []Action
	After  []*After
	Invoke []*Invoke
	Task   *TaskRule   // nil: it has no work for people
	Label  Text        // nil: the id
	Tone   Tone        // with what it has from the nodes around
	Failed bool        // final: an instance that ends here has failed
	Output *Template   // final: the data of done.state
	Params []Parameter // final, with the rules of SCXML: more of that data
	Done   EventName   // "done.state.<id>"
}

// Contains reports whether other is a proper descendant of n.
func (n *Node) Contains(other *Node) bool {
	return other.Index > n.Index && other.Index <= n.Last
}

// IsLeaf reports whether the node can be the innermost active one.
func (n *Node) IsLeaf() bool { return n.Kind == Atomic || n.Kind == Final }

// Transition is one way out of a node, or, without targets, a reaction in it.
type Transition struct {
	Source  *Node
	Event   EventPattern
	More    []EventPattern // others that it takes; only with the rules of SCXML
	Targets []*Node
	Guard   *expr.Program // nil: always enabled
	// Condition is the guard as it stands in the file, without ${ }.
	Condition string
	Allow     *Rule // nil: anyone who may send to the workflow
	Actions   []Action
	Reenter   bool
	Into      Document         // where event.data goes; NoDocument: as the event says
	Apply     ApplyRule        // how; ApplyUnset: as the event says
	OnDone    *Node            // only for the done event of this very node
	After     *After           // only for the event of this timer
	Child     *ChildTransition // only for what happens to this child
	// Everything: of XState's "*", which takes timers and what happens to children as well.
	Everything bool
	Line       int
}

// EventPattern is a key of "on" (statemachine/DEFINITION.md, "Event patterns"): an exact name, "x.*" (x and everything below it),
// or "*". The zero value is that of eventless transitions and matches nothing.
type EventPattern struct {
	Name   EventName // without ".*"
	Prefix bool
	Any    bool
}

// ParsePattern reads a key of "on".
func ParsePattern(s string) (EventPattern, bool) {
	if s == "*" {
		return EventPattern{Any: true}, true
	}
	name, prefix := strings.CutSuffix(s, ".*")
	n, ok := ParseEventName(name)
	return EventPattern{Name: n, Prefix: prefix}, ok && !strings.HasSuffix(name, ".")
}

// Matches reports whether the pattern takes an event of the name.
func (p EventPattern) Matches(name EventName) bool {
	switch {
	case p.Any:
		return true
	case p.Name == "":
		return false
	case name == p.Name:
		return true
	case !p.Prefix:
		return false
	}
	return len(name) > len(p.Name) && name[len(p.Name)] == '.' && name[:len(p.Name)] == p.Name
}

type declaredNames struct {
	Exact    map[EventName]bool
	Patterns []EventPattern
}

func (d *declaredNames) Add(p EventPattern) {
	if p.Any || p.Prefix {
		d.Patterns = append(d.Patterns, p)
		return
	}
	if d.Exact == nil {
		d.Exact = map[EventName]bool{}
	}
	d.Exact[p.Name] = true
}

func (d *declaredNames) has(name EventName) bool {
	return d.Exact[name] ||
		slices.ContainsFunc(d.Patterns, func(p EventPattern) bool { return p.Matches(name) })
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
	return name == ParentCancelled
}

// Declares reports whether a caller may use the name: some node, machine or
// declaration of the definition mentions it, and it is neither a platform event nor an outcome.
func (d *Definition) Declares(name EventName) bool {
	return !IsReserved(name) && !d.ServiceEvents[name] && d.Declared.has(name)
}

// IsExact reports whether only the service sends what the pattern names, so that no wider pattern takes it.
func (d *Definition) IsExact(p EventPattern) bool {
	return !p.Any && !p.Prefix && (p.Name == ParentCancelled || d.ServiceEvents[p.Name])
}

// EventDeclaration is the declaration of one event (statemachine/DEFINITION.md, "Event declarations").
type EventDeclaration struct {
	Line      int
	Schema    *schema.Schema // nil: any object
	Into      Document
	Apply     ApplyRule
	Unmatched Unmatched
	Private   bool  // event.data may hold svcPrivate
	Unkept    bool  // the history does not keep event.data
	Allow     *Rule // asked in every state; nil: anyone who may send to the workflow
	Label     Text  // nil: the name
	Done      Text
	Style     Style
}

// Unmatched says what happens to an event that no transition takes now (statemachine/DEFINITION.md, "Unmatched events").
type Unmatched uint8

const (
	UnmatchedUnset Unmatched = iota
	UnmatchedRecord
	UnmatchedReject
	UnmatchedIgnore
	UnmatchedApply
)

// Document is one of the two documents of an instance.
type Document uint8

const (
	NoDocument Document = iota
	Public
	Private
)

// ApplyRule says how event.data is applied to its document.
type ApplyRule uint8

const (
	ApplyUnset ApplyRule = iota
	ApplyMerge
	ApplyReplace
	ApplyNone
)

// UnmatchedRule returns what holds for an event of that name.
func (d *Definition) UnmatchedRule(name EventName) Unmatched {
	if c := d.Events[name]; c != nil && c.Unmatched != UnmatchedUnset {
		return c.Unmatched
	}
	if d.Unmatched != UnmatchedUnset {
		return d.Unmatched
	}
	return UnmatchedRecord
}

// Name is how a definition writes a document; "" for none.
func (r Document) Name() string { return [...]string{"", "svcPublic", "svcPrivate"}[r] }
