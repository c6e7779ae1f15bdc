package statemachine

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
)

// ParserOptions says what a definition may refer to. The zero value knows no
// files and takes every role and privilege.
type ParserOptions struct {
	// HasRole and HasPrivilege report whether a name in an allow block exists;
	// nil: all do.
	HasRole, HasPrivilege func(name string) bool
	// Roles and Privileges are the existing names, for suggestions.
	Roles, Privileges []string
	// HasZone reports whether there is a time zone of the name; nil: all are.
	HasZone func(name string) bool
	// Stored reads a text that was accepted before, perhaps by another release. Only
	// what keeps the definition from running is a fault then
	// (statemachine/DEFINITION.md, "Stored definitions").
	Stored bool
}

// Parser turns definition files into Definitions. It is safe for concurrent
// use.
type Parser struct {
	options ParserOptions
	env     *expr.Env
	ended   func() error // nil: never
}

// Until returns a parser like p that gives up when ended says why nobody waits for a definition any more. It asks between
// expressions, and every few kilobytes of YAML.
func (p *Parser) Until(ended func() error) *Parser {
	return &Parser{options: p.options, env: p.env, ended: ended}
}

// NewParser builds a parser; it fails only when the expression language cannot
// be set up.
func NewParser(o ParserOptions) (*Parser, error) {
	env, err := expr.New(expr.Options{})
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	return (&Parser{env: env}).With(o), nil
}

// With returns a parser with other options that shares p's expression language.
func (p *Parser) With(o ParserOptions) *Parser {
	// NB: this release may estimate a higher worst case than the one that accepted
	// the text.
	return &Parser{options: o, env: p.env.AnyWorstCase(o.Stored), ended: p.ended}
}

// Source is a definition's text with what it refers to: everything that decides
// what the definition means, so that it can be kept and read again.
type Source struct {
	// File is the name that faults show, and its extension says YAML or JSON.
	File string
	Text []byte
	// Read returns a file beside the definition, named relative to it. nil: there
	// are no such files. Parsed.Refs lists the files that Parse read.
	Read func(name string) ([]byte, error)
}

// Parsed is what Parse returns: the definition, the names of the files that it
// refers to, and warnings for its author.
type Parsed struct {
	*Definition
	Refs     []string
	Warnings document.Faults // none of a stored text
}

// Parse reads and checks one definition (statemachine/DEFINITION.md). The error is
// document.Faults: all faults of the file, with their lines; or that of Until.
func (p *Parser) Parse(src Source) (*Parsed, error) {
	ended := p.ended
	if ended == nil {
		ended = func() error { return nil }
	}
	tree, err := document.ParseUntil(src.File, src.Text, ended)
	if err != nil {
		return nil, cmp.Or(ended(), err)
	}
	b := p.builder(src)
	b.definition(tree)
	if b.goesOn() {
		b.check()
	}
	if b.cost.stopped != nil {
		return nil, b.cost.stopped
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	return &Parsed{newDefinition(b.d), b.refs, b.warn()}, nil
}

// builder returns a builder that has read nothing yet.
func (p *Parser) builder(src Source) *builder {
	return &builder{Collector: document.Collector{File: src.File}, doubts: document.Collector{File: src.File}, parser: p, source: src, language: p.env, misshapen: true, d: &chart.Definition{
		Version:        1,
		Places:         chart.NewPlaces(src.File),
		Configurations: &chart.Configurations{},
		Events:         map[EventName]*chart.EventDeclaration{},
		RegionByID:     map[MachineID]*chart.Node{},
	}}
}

// builder makes one definition from its tree, collecting every fault on the way.
type builder struct {
	document.Collector
	parser *Parser
	source Source
	refs   []string
	d      *chart.Definition

	namedGuards  map[string]*document.Node
	namedActions map[string]*document.Node
	shapeOnly    bool     // named actions stand for nothing, and faults of expressions do not count
	built        int      // actions read so far
	expanding    []string // named actions being read, to find cycles
	locals       []string // variables of the foreach bodies around
	byName       map[*chart.Node]map[NodeID]*chart.Node
	pending      []pendingTarget
	taking       []*document.Node // the names of events in on
	raised       []raisedEvent
	sent         []string         // ids of delayed events
	cancelled    []*document.Node // ids that a cancel names
	webhooked    []*document.Node // webhooks that actions name
	programs     []placedProgram
	guards       []placedProgram  // those of programs that are conditions
	slips        []*document.Node // texts in actions that have "${" and are no expressions
	language     *expr.Env        // with the constants of the definition
	cost         parseCost
	tree         *document.Node  // the whole file
	readAt       *document.Node  // the rule who reads; nil: none
	timed        []placedProgram // expressions that are delays
	schemaNodes  []*document.Node
	doubts       document.Collector // warnings that come up amid reading
	harmless     int                // faults of the chart that leave its shape as it is
	misshapen    bool               // it lacks something because of a fault
}

// placedProgram is an expression and where it stands, for what can only be
// checked when all nodes are known.
type placedProgram struct {
	at      *document.Node
	program *expr.Program
}

// pendingTarget is a reference to a node that may stand further down.
type pendingTarget struct {
	at      *document.Node
	machine *chart.Node
	name    NodeID
	found   func(*chart.Node)
}

type raisedEvent struct {
	at       *document.Node
	name     EventName
	byAction bool // or it says what becomes of something
}

// knownShown bounds the words that a suggestion lists.
const knownShown = 12

// suggest adds a fault about an unknown word. It suggests the closest known word or,
// if none is close, lists them.
func (b *builder) suggest(n *document.Node, word string, known []string, reason string, args ...any) {
	full := b.IsFull()
	f := b.Add(n, reason, args...)
	if full {
		return
	}
	if near := document.Closest(word, known); near != "" {
		f.Suggestion = fmt.Sprintf("did you mean %q?", near)
		return
	}
	if len(known) == 0 {
		f.Suggestion = "there are none here"
		return
	}
	known = slices.Sorted(slices.Values(known))
	known = slices.Compact(known)
	more := ""
	if len(known) > knownShown {
		known, more = known[:knownShown], " …"
	}
	f.Suggestion = "known here: " + data.Shorten(strings.Join(known, ", ")) + more
}

// advise adds a fault with what to do about it.
func (b *builder) advise(n *document.Node, suggestion, reason string, args ...any) {
	b.Add(n, reason, args...).Suggestion = suggestion
}

// known reports whether n is there and is a mapping, and adds a fault for each key of it
// that is not allowed. Keys of later versions have a text of their own.
func (b *builder) known(n *document.Node, allowed []string) bool {
	if n == nil {
		return false
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping")
		return false
	}
	rest := *n
	rest.Fields = nil
	for _, f := range n.Fields {
		if what, ok := later[f.Key.Text]; ok && !slices.Contains(allowed, f.Key.Text) {
			b.Add(f.Key, "%q is not supported by this version (%s)", f.Key.Text, what)
			continue
		}
		rest.Fields = append(rest.Fields, f)
	}
	b.Known(&rest, allowed...)
	return true
}

// definition reads the top of the file.
func (b *builder) definition(n *document.Node) {
	if !b.known(n, definitionKeys) {
		return
	}
	d := b.d
	if id := n.Field("id"); id == nil {
		b.Add(n, "\"id\" is missing")
	} else if wf, ok := ParseWorkflowID(b.Text(id)); !ok {
		b.Add(id, "%q is not an identifier: letters, digits and . _ ~ -, at most 128", data.Shorten(id.Text))
	} else {
		d.ID = wf
	}
	d.Name = string(d.ID)
	if name := n.Field("name"); name != nil {
		if d.Name = b.Text(name); utf8.RuneCountInString(d.Name) > maxLabel && !b.parser.options.Stored {
			b.advise(name, "say the rest in the description", "the name is longer than %d characters", maxLabel)
		}
	}
	if v := n.Field("version"); v != nil {
		if i, ok := b.Int(v); ok && i < 1 {
			b.Add(v, "version must be 1 or more")
		} else {
			d.Version = uint64(i)
		}
	}
	d.Semantics = oneOf(b, n.Field("semantics"), semanticsWords)
	b.constants(n.Field("const"))
	b.addSignal()
	b.ownersOf(n.Field("owners"))
	b.allow(n.Field("allow"))
	d.Unmatched = oneOf(b, n.Field("unmatched"), unmatchedWords)
	b.context(n.Field("context"))
	b.creation(n.Field("create"))
	b.schemas(n.Field("schema"))
	b.indexes(n.Field("indexes"))
	d.TitleCaption = b.caption(n.Field("title"))
	b.columns(n.Field("columns"))
	b.events(n.Field("events"))
	b.webhooks(n.Field("webhooks"))
	b.schedules(n.Field("schedules"))
	b.namedGuards = b.named(n.Field("guards"))
	b.namedActions = b.named(n.Field("actions"))
	b.tree = n
	before := b.Count() - b.harmless
	b.stateMachines(n)
	b.misshapen = b.Count()-b.harmless > before
	b.settleTasks()
	b.checkWebhooks()
	d.CallableNames = d.Callable()
	b.checkApplied(n.Field("unmatched"))
	if !b.parser.options.Stored {
		b.checkNamed()
	}
}

// checkNamed finds faults of named conditions and actions that nothing uses. Their expressions may
// have variables of the place where they will be used, so only the shape counts.
func (b *builder) checkNamed() {
	// NB: a copy, so that what they would do is not the definition's.
	shape := *b
	shape.shapeOnly, shape.d = true, &chart.Definition{Places: chart.NewPlaces("")}
	for _, name := range keysOf(b.namedGuards) {
		shape.Text(b.namedGuards[name])
	}
	for _, name := range keysOf(b.namedActions) {
		shape.actions(b.namedActions[name])
	}
	b.Collector, b.cost = shape.Collector, shape.cost
}

func (b *builder) named(n *document.Node) map[string]*document.Node {
	if n == nil {
		return nil
	}
	out := map[string]*document.Node{}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of names")
		return nil
	}
	for _, f := range n.Fields {
		out[f.Key.Text] = f.Value
	}
	return out
}

// oneOf reads a word; the zero value when n is nil or the word is unknown.
func oneOf[T any](b *builder, n *document.Node, words map[string]T) T {
	var none T
	if n == nil {
		return none
	}
	word := b.Text(n)
	if v, ok := words[word]; ok {
		return v
	}
	all := make([]string, 0, len(words))
	for w := range words {
		all = append(all, w)
	}
	b.suggest(n, word, all, "%q is not one of the known words", data.Shorten(word))
	return none
}

// context reads the defaults of the data.
func (b *builder) context(n *document.Node) {
	b.d.DefaultPublic, b.d.DefaultPrivate = emptyObject, emptyObject
	if !b.known(n, documentKeys) {
		return
	}
	if v := b.object(n.Field("svcPublic")); v != nil {
		b.d.DefaultPublic = v
	}
	if v := b.object(n.Field("svcPrivate")); v != nil {
		b.d.DefaultPrivate = v
	}
}

// object reads a mapping as JSON; nil when n is nil or no mapping.
func (b *builder) object(n *document.Node) data.Value {
	if n == nil {
		return nil
	}
	v, err := n.Data()
	if err != nil {
		b.Add(n, "%v", err)
		return nil
	}
	if v.Kind() != data.Object {
		b.Add(n, "must be a mapping")
		return nil
	}
	return v
}

func (b *builder) schemas(n *document.Node) {
	if !b.known(n, documentKeys) {
		return
	}
	b.d.PublicSchema = b.schema(n.Field("svcPublic"))
	b.d.PrivateSchema = b.schema(n.Field("svcPrivate"))
}

// readRef reads a file that a schema refers to, and remembers its name.
func (b *builder) readRef(name string) ([]byte, error) {
	if name == "" || path.Clean(name) != name || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("%q is not a file beside the definition", data.Shorten(name))
	}
	if b.source.Read == nil {
		return nil, fmt.Errorf("file %q is not there", data.Shorten(name))
	}
	text, err := b.source.Read(name)
	if err == nil {
		b.refs = append(b.refs, name)
	}
	return text, err
}

// maxIndexes bounds the indexes of a workflow: each has a row or more of every instance, which an event may change.
const maxIndexes = 64

func (b *builder) indexes(n *document.Node) {
	if n == nil {
		return
	}
	texts := b.Texts(n)
	if len(texts) > maxIndexes && !b.parser.options.Stored {
		b.Add(n, "more than %d indexes", maxIndexes)
	}
	for _, text := range texts {
		p, err := data.ParsePath(text)
		if err != nil || len(p) < 2 || p[0] != "svcPublic" && p[0] != "svcPrivate" {
			b.Add(n, "index %q: must be a path below svcPublic or svcPrivate", data.Shorten(text))
			continue
		}
		b.d.Indexes = append(b.d.Indexes, p)
	}
}

// events reads the event declarations.
func (b *builder) events(n *document.Node) {
	if n == nil {
		return
	}
	if n.Kind != document.Mapping {
		b.Add(n, "must be a mapping of event names")
		return
	}
	for _, f := range n.Fields {
		name, ok := ParseEventName(f.Key.Text)
		if !ok || IsReserved(name) {
			b.Add(f.Key, "%q cannot be an event that callers send", data.Shorten(f.Key.Text))
			continue
		}
		c := &chart.EventDeclaration{Line: f.Key.Line}
		b.d.Events[name] = c
		b.d.Declared.Add(chart.EventPattern{Name: name})
		if f.Value.Kind == document.Null {
			continue
		}
		b.known(f.Value, eventKeys)
		c.Schema = b.schema(f.Value.Field("data"))
		c.Into = oneOf(b, f.Value.Field("into"), intoWords)
		c.Apply = oneOf(b, f.Value.Field("apply"), applyWords)
		c.Unmatched = oneOf(b, f.Value.Field("unmatched"), unmatchedWords)
		c.Private = b.Bool(f.Value.Field("private"))
		if at := f.Value.Field("history"); at != nil {
			c.Unkept = !b.Bool(at)
		}
		if at := f.Value.Field("private"); c.Into != chart.NoDocument && at != nil {
			b.advise(at, "leave out one of them", "\"into\" takes the data as a whole, so \"private\" says nothing")
		}
		c.Allow = b.rule(f.Value.Field("allow"))
		b.presentedEvent(c, f.Value)
	}
}
