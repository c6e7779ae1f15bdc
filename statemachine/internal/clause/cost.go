package clause

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
	MaxExpressionBytes = 250_000
	MaxInstructions    = schemacost.WeightMax // 400 bytes each; what is compiled twice counts once
	MaxSchemaObjects   = 30_000
	MaxSchemasCost     = 10_000_000
)

const (
	// expressionBytes is added for each expression: the smallest one takes as long as so many bytes of a large one.
	expressionBytes = 40
	// localBytes is added where an expression has variables of its own: they are a language of their own.
	localBytes = 200
)

type parseCost struct {
	expressions, instructions, objects, schemas int
	// over: some of it was too much, which has its fault. stopped is why nobody waits for the definition any more.
	over    bool
	Stopped error
}

// errUncompiled stands for a fault of the file that was added elsewhere.
var errUncompiled = errors.New("the file has too much to compile")

// GoesOn reports whether there is anything left to do.
func (b *Reader) GoesOn() bool {
	if b.Cost.Stopped == nil && b.Ended != nil {
		b.Cost.Stopped = b.Ended()
	}
	return b.Cost.Stopped == nil && !b.Cost.over
}

// spend adds to a part of the cost. Above most it is a fault at n, once for the file.
func (b *Reader) spend(n *document.Node, part *int, by, most int, what string) {
	if *part += by; *part > most && !b.Cost.over {
		b.Cost.over = true
		b.Advise(n, "make several workflows of it", "the file is too large: %s come to more than %d together", what, most)
	}
}

// Compile compiles an expression that stands at n.
func (b *Reader) Compile(n *document.Node, text string, with func(string) (*expr.Program, error)) (*expr.Program, error) {
	if !b.GoesOn() {
		return nil, errUncompiled
	}
	if !b.Stored {
		bytes := len(text) + expressionBytes
		if len(b.Locals) > 0 {
			bytes += localBytes
		}
		if b.spend(n, &b.Cost.expressions, bytes, MaxExpressionBytes, "the bytes of its expressions"); b.Cost.over {
			return nil, errUncompiled
		}
	}
	p, err := with(text)
	if err == nil {
		b.spend(n, &b.Cost.instructions, p.PatternWeight(), MaxInstructions, patternsTogether)
	}
	return p, err
}

const patternsTogether = "the instructions of its regular expressions"

func (b *Reader) schema(n *document.Node) *schema.Schema {
	if n == nil || !b.GoesOn() {
		return nil
	}
	b.SchemaNodes = append(b.SchemaNodes, n)
	v, err := n.Data()
	var s *schema.Schema
	if err == nil {
		s, err = schema.CompileUnbounded(v, b.readRef)
	}
	if err == nil && !b.Stored {
		err = s.Affordable()
	}
	if err != nil {
		b.Add(schema.FaultAt(n, err), "JSON Schema: %v", err)
		return nil
	}
	b.spend(n, &b.Cost.instructions, s.Weight.Patterns, MaxInstructions, patternsTogether)
	if !b.Stored {
		b.spend(n, &b.Cost.objects, s.Weight.Objects, MaxSchemaObjects, "the mappings and lists in its schemas")
		b.spend(n, &b.Cost.schemas, int(s.Cost.Once()), MaxSchemasCost, "the costs of its schemas")
	}
	return s
}
