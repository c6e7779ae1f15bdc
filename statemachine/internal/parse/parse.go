package parse

import (
	"cmp"
	"fmt"
	"sync"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/check"
	"troupe/statemachine/internal/clause"
)

// Parser turns definition files into Definitions. It is safe for concurrent use.
type Parser struct {
	options clause.Options
	Env     *expr.Env
	ended   func() error
}

// Until returns a parser like p that gives up when ended says why nobody waits for a definition any more. It asks between
// expressions, and every few kilobytes of YAML.
func (p *Parser) Until(ended func() error) *Parser {
	return &Parser{options: p.options, Env: p.Env, ended: ended}
}

// language is the expression language, which all parsers share.
var language = sync.OnceValues(func() (*expr.Env, error) { return expr.New(expr.Options{}) })

// New returns a parser; it fails only when the expression language cannot be set up.
func New(o clause.Options) (*Parser, error) {
	env, err := language()
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	return (&Parser{Env: env, ended: func() error { return nil }}).With(o), nil
}

// With returns a parser with other options that shares p's expression language.
func (p *Parser) With(o clause.Options) *Parser {
	// NB: this release may estimate a higher worst case than the one that accepted the text.
	return &Parser{options: o, Env: p.Env.AnyWorstCase(o.Stored), ended: p.ended}
}

// Parsed is what Parse returns: the definition, the names of the files that it refers to, and warnings for its author.
type Parsed struct {
	*chart.Definition
	Refs     []string
	Warnings document.Faults // none of a stored text
}

// Parse reads and checks one definition (statemachine/DEFINITION.md). The error is
// document.Faults: all faults of the file, with their lines; or that of Until.
func (p *Parser) Parse(src clause.Source) (*Parsed, error) {
	b, err := p.build(src)
	if err != nil {
		return nil, err
	}
	return &Parsed{b.Definition, b.Refs, b.checker().Warn(b.Doubts)}, nil
}

// build returns what could be read also when it has faults, and nil when the text is none that can be read at all.
func (p *Parser) build(src clause.Source) (*builder, error) {
	tree, err := document.ParseUntil(src.File, src.Text, p.ended)
	if err != nil {
		return nil, cmp.Or(p.ended(), err)
	}
	b := p.builder(src)
	b.definition(tree)
	if b.GoesOn() {
		b.checker().Check(b.misshapen)
	}
	return b, cmp.Or(b.Cost.Stopped, b.Err())
}

func (p *Parser) builder(src clause.Source) *builder {
	b := p.builderOf(src.File)
	b.Source, b.misshapen = src, true
	b.Definition = &chart.Definition{
		Version:        1,
		Places:         chart.NewPlaces(src.File),
		Configurations: &chart.Configurations{},
		Events:         map[chart.EventName]*chart.EventDeclaration{},
		RegionByID:     map[chart.MachineID]*chart.Node{},
	}
	return b
}

func (b *builder) checker() *check.Checker {
	return &check.Checker{Collector: &b.Collector, Notes: &b.Notes}
}

func (p *Parser) builderOf(file string) *builder {
	b := &builder{Reader: clause.Reader{Collector: document.Collector{File: file}, Doubts: document.Collector{File: file}, Options: p.options, Env: p.Env, Ended: p.ended, Language: p.Env}}
	b.Stored, b.Definition = p.options.Stored, &chart.Definition{Places: chart.NewPlaces(file)}
	return b
}

type builder struct {
	clause.Reader
	namedActions map[string]*document.Node
	built        int      // actions read so far
	expanding    []string // named actions being read, to find cycles
	byName       map[*chart.Node]map[chart.NodeID]*chart.Node
	pending      []pendingTarget
	webhooked    []*document.Node // webhooks that actions name
	misshapen    bool             // the chart lacks something because of a fault
}

// pendingTarget is a reference to a node that may stand further down.
type pendingTarget struct {
	at      *document.Node
	machine *chart.Node
	name    chart.NodeID
	found   func(*chart.Node)
}

func (b *builder) definition(n *document.Node) {
	if !b.Mapping(n, clause.DefinitionKeys) {
		return
	}
	d := b.Definition
	if id := n.Field("id"); id == nil {
		b.Add(n, "\"id\" is missing")
	} else if wf, ok := chart.ParseWorkflowID(b.Text(id)); !ok {
		b.Add(id, "%q is not an identifier: letters, digits and . _ ~ -, at most 128", data.Shorten(id.Text))
	} else {
		d.ID = wf
	}
	d.Name = string(d.ID)
	if name := n.Field("name"); name != nil {
		if d.Name = b.Text(name); utf8.RuneCountInString(d.Name) > clause.MaxLabel && !b.Stored {
			b.Advise(name, "say the rest in the description", "the name is longer than %d characters", clause.MaxLabel)
		}
	}
	if v := n.Field("version"); v != nil {
		if i, ok := b.Int(v); ok && i < 1 {
			b.Add(v, "version must be 1 or more")
		} else {
			d.Version = uint64(i)
		}
	}
	d.Semantics = clause.OneOf(&b.Reader, n.Field("semantics"), clause.SemanticsWords)
	b.Constants(n.Field("const"))
	b.AddSignal()
	b.OwnersOf(n.Field("owners"))
	b.Allow(n.Field("allow"))
	d.Unmatched = clause.OneOf(&b.Reader, n.Field("unmatched"), clause.UnmatchedWords)
	b.Context(n.Field("context"))
	b.Creation(n.Field("create"))
	b.Schemas(n.Field("schema"))
	b.Key(n.Field("key"))
	b.Indexes(n.Field("indexes"))
	d.TitleCaption = b.Caption(n.Field("title"))
	b.Columns(n.Field("columns"))
	b.Events(n.Field("events"))
	b.Webhooks(n.Field("webhooks"))
	b.Schedules(n.Field("schedules"))
	b.Jobs(n.Field("jobs"))
	b.Retention(n.Field("retention"))
	b.NamedGuards = b.Named(n.Field("guards"))
	b.namedActions = b.Named(n.Field("actions"))
	b.Tree = n
	before := b.Count() - b.Harmless
	b.stateMachines(n)
	b.misshapen = b.Count()-b.Harmless > before
	b.settleTasks()
	b.checkWebhooks()
	d.CallableNames = d.Callable()
	b.checkApplied(n.Field("unmatched"))
	if !b.Stored {
		b.checkNamed()
	}
}

// checkNamed finds faults of named conditions and actions that nothing uses. Their expressions may
// have variables of the place where they will be used, so only the shape counts.
func (b *builder) checkNamed() {
	// NB: a copy, so that what they would do is not the definition's.
	shape := *b
	shape.ShapeOnly, shape.Definition = true, &chart.Definition{Places: chart.NewPlaces("")}
	for _, name := range clause.KeysOf(b.NamedGuards) {
		shape.Text(b.NamedGuards[name])
	}
	for _, name := range clause.KeysOf(b.namedActions) {
		shape.actions(b.namedActions[name])
	}
	b.Collector, b.Cost = shape.Collector, shape.Cost
}
