package schemacost

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// PatternSizeMax is how many instructions a regular expression may have, as in expressions. The time of a match is
	// their number times the length of the text, and each takes some 400 bytes.
	PatternSizeMax = 2_000
	// patternBytesMax is how long a regular expression may be. Reading it costs before its size is known.
	patternBytesMax = 4 << 10
)

// pattern is a regular expression whose size is known.
type pattern struct {
	*regexp.Regexp
	size int
}

// Patterns compiles the regular expressions of one schema. It counts what they take, each text once.
type Patterns struct {
	Size int // instructions, together
	// Text and Fault are of the first one that is wrong; Fault is nil when none is.
	Text  string
	Fault error

	known map[string]*pattern
	whole bool
}

// End says that the schema has no more. NB: the library goes on to use Compile, from any goroutine, for texts of the data where an
// old schema says that they are regular expressions.
func (p *Patterns) End() { p.known, p.whole = nil, true }

// Compile is a jsonschema.RegexpEngine.
func (p *Patterns) Compile(text string) (jsonschema.Regexp, error) {
	if p.whole {
		return measured(text)
	}
	if known := p.known[text]; known != nil {
		return known, nil
	}
	made, err := measured(text)
	if err != nil {
		if p.Fault == nil {
			p.Text, p.Fault = text, err
		}
		return nil, err
	}
	if p.known == nil {
		p.known = map[string]*pattern{}
	}
	p.known[text] = made
	p.Size += made.size
	return made, nil
}

// measured compiles a regular expression unless it is too large.
func measured(text string) (*pattern, error) {
	if len(text) > patternBytesMax {
		return nil, fmt.Errorf("longer than %d bytes", patternBytesMax)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(tree)
	if size > PatternSizeMax {
		return nil, fmt.Errorf("it has %d instructions, the limit is %d: a repetition counts as what it repeats, so many times", size, PatternSizeMax)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re, size}, nil
}

// instructions is how many instructions the expression compiles to, or a few more. NB: it must not be compiled to find out.
func instructions(re *syntax.Regexp) int {
	below := 0
	for _, sub := range re.Sub {
		below += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpAlternate:
		return below + len(re.Sub)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		return below + 1
	case syntax.OpCapture:
		return below + 2
	case syntax.OpRepeat:
		if re.Max < 0 {
			return below*max(re.Min, 1) + 1
		}
		return below*re.Max + re.Max - re.Min
	case syntax.OpConcat:
		return below
	}
	return 1
}

// sizeOf is how many instructions an expression has that Compile made.
func sizeOf(re jsonschema.Regexp) uint64 {
	if p, ok := re.(*pattern); ok {
		return uint64(p.size)
	}
	return PatternSizeMax
}
