package statemachine

import (
	"errors"

	"troupe/statemachine/document"
	"troupe/statemachine/expr"
	"troupe/statemachine/internal/schemacost"
	"troupe/statemachine/schema"
)

// What a file may take to be compiled, and to be kept: a second or two, and some tens of megabytes (statemachine/DEFINITION.md,
// "Limits"). Of what is used in several places, each use counts.
const (
	maxExpressionBytes = 250_000
	maxInstructions    = schemacost.WeightMax // 400 bytes each; what is compiled twice counts once
	maxSchemaObjects   = 30_000
	maxSchemasCost     = 10_000_000
)

const (
	// expressionBytes is added for each expression: the smallest one takes as long as so many bytes of a large one.
	expressionBytes = 40
	// localBytes is added where an expression has variables of its own: they are a language of their own.
	localBytes = 200
)

// parseCost is what a file has taken so far.
type parseCost struct {
	expressions, instructions, objects, schemas int
	// over: some of it was too much, which has its fault. stopped is why nobody waits for the definition any more.
	over    bool
	stopped error
}

// errUncompiled stands for a fault of the file that was added elsewhere.
var errUncompiled = errors.New("the file has too much to compile")

// goesOn reports whether there is anything left to do.
func (b *builder) goesOn() bool {
	if b.cost.stopped == nil && b.parser.ended != nil {
		b.cost.stopped = b.parser.ended()
	}
	return b.cost.stopped == nil && !b.cost.over
}

// spend adds to a part of the cost. Above most it is a fault at n, once for the file.
func (b *builder) spend(n *document.Node, part *int, by, most int, what string) {
	if *part += by; *part > most && !b.cost.over {
		b.cost.over = true
		b.advise(n, "make several workflows of it", "the file is too large: %s come to more than %d together", what, most)
	}
}

// compile compiles an expression that stands at n.
func (b *builder) compile(n *document.Node, text string, with func(string) (*expr.Program, error)) (*expr.Program, error) {
	if !b.goesOn() {
		return nil, errUncompiled
	}
	if !b.parser.options.Stored {
		bytes := len(text) + expressionBytes
		if len(b.locals) > 0 {
			bytes += localBytes
		}
		if b.spend(n, &b.cost.expressions, bytes, maxExpressionBytes, "the bytes of its expressions"); b.cost.over {
			return nil, errUncompiled
		}
	}
	p, err := with(text)
	if err == nil {
		b.spend(n, &b.cost.instructions, p.PatternWeight(), maxInstructions, patternsTogether)
	}
	return p, err
}

const patternsTogether = "the instructions of its regular expressions"

// schema reads a JSON Schema; nil when there is none or it has a fault.
func (b *builder) schema(n *document.Node) *schema.Schema {
	if n == nil || !b.goesOn() {
		return nil
	}
	b.schemaNodes = append(b.schemaNodes, n)
	v, err := n.Data()
	var s *schema.Schema
	if err == nil {
		s, err = schema.CompileUnbounded(v, b.readRef)
	}
	if err == nil && !b.parser.options.Stored {
		err = s.Affordable()
	}
	if err != nil {
		b.Add(schema.FaultAt(n, err), "JSON Schema: %v", err)
		return nil
	}
	b.spend(n, &b.cost.instructions, s.Weight.Patterns, maxInstructions, patternsTogether)
	if !b.parser.options.Stored {
		b.spend(n, &b.cost.objects, s.Weight.Objects, maxSchemaObjects, "the mappings and lists in its schemas")
		b.spend(n, &b.cost.schemas, int(s.Cost.Once()), maxSchemasCost, "the costs of its schemas")
	}
	return s
}
