package statemachine

import (
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/parse"
)

// Parser turns definition files into Definitions. It is safe for concurrent use.
type Parser struct{ of *parse.Parser }

// Parsed is what Parse returns: the definition, the names of the files that it refers to, and warnings for its author.
type Parsed struct {
	*Definition
	Refs     []string
	Warnings document.Faults // none of a stored text
}

// NewParser builds a parser; it fails only when the expression language cannot be set up.
func NewParser(o ParserOptions) (*Parser, error) {
	p, err := parse.New(o)
	if err != nil {
		return nil, err
	}
	return &Parser{p}, nil
}

// With returns a parser with other options that shares p's expression language.
func (p *Parser) With(o ParserOptions) *Parser { return &Parser{p.of.With(o)} }

// Until returns a parser like p that gives up when ended says why nobody waits for a definition any more. It asks between
// expressions, and every few kilobytes of YAML.
func (p *Parser) Until(ended func() error) *Parser { return &Parser{p.of.Until(ended)} }

// Parse reads and checks one definition (statemachine/DEFINITION.md). The error is
// document.Faults: all faults of the file, with their lines; or that of Until.
func (p *Parser) Parse(src Source) (*Parsed, error) {
	of, err := p.of.Parse(src)
	if err != nil {
		return nil, err
	}
	return &Parsed{newDefinition(of.Definition), of.Refs, of.Warnings}, nil
}

// Sketch returns as much of a definition's chart as can be drawn, and its faults as Parse has them. The Chart is nil when nothing can. Of a
// text whose syntax is wrong it is what stands before the fault.
func (p *Parser) Sketch(src Source) (*Chart, error) { return p.of.Sketch(src) }

// ParsePlan reads a plan of migration, in YAML or JSON (statemachine/DEFINITION.md, "Migration"). version returns a version of the
// workflow, or an error that a fault shows. The error of ParsePlan is document.Faults.
func (p *Parser) ParsePlan(file string, text []byte, version func(number uint64) (*Definition, error)) (*Plan, error) {
	whole := map[*chart.Definition]*Definition{}
	plan, err := p.of.ParsePlan(file, text, func(number uint64) (*chart.Definition, error) {
		d, err := version(number)
		if err != nil {
			return nil, err
		}
		whole[&d.Definition] = d
		return &d.Definition, nil
	})
	if err != nil {
		return nil, err
	}
	return &Plan{Plan: *plan, from: whole[plan.Old], to: whole[plan.New]}, nil
}
