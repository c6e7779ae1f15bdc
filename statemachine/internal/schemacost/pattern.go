package schemacost

import (
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/internal/pattern"
)

// known is a regular expression whose size is known.
type known struct {
	*regexp.Regexp
	cost pattern.Cost
}

// WeightMax is what the regular expressions of one schema may weigh together, in instructions.
const WeightMax = 20_000

// Patterns compiles the regular expressions of one schema. It counts what they take, each text once.
type Patterns struct {
	Weight int // of all, in instructions
	// Text and Fault are of the first one that is wrong; Fault is nil when none is.
	Text  string
	Fault error

	texts map[string]*known
	whole bool
}

// End says that the schema has no more. NB: the library goes on to use Compile, from any goroutine, for texts of the data where an
// old schema says that they are regular expressions.
func (p *Patterns) End() { p.texts, p.whole = nil, true }

// Compile is a jsonschema.RegexpEngine.
func (p *Patterns) Compile(text string) (jsonschema.Regexp, error) {
	if p.whole {
		return measured(text)
	}
	if p.Fault != nil {
		return nil, p.Fault // NB: the library goes on after a fault, and each text costs
	}
	if before := p.texts[text]; before != nil {
		return before, nil
	}
	made, err := measured(text)
	if err == nil && p.Weight+made.cost.Weight > WeightMax {
		err = fmt.Errorf("the regular expressions come to more than %d instructions together", WeightMax)
	}
	if err != nil {
		p.Text, p.Fault = text, err
		return nil, err
	}
	if p.texts == nil {
		p.texts = map[string]*known{}
	}
	p.texts[text] = made
	p.Weight += made.cost.Weight
	return made, nil
}

// measured compiles a regular expression unless it is too large.
func measured(text string) (*known, error) {
	re, cost, err := pattern.Compile(text)
	if err != nil {
		return nil, err
	}
	return &known{re, cost}, nil
}

func sizeOf(re jsonschema.Regexp) uint64 {
	if p, ok := re.(*known); ok {
		return uint64(p.cost.Size)
	}
	return pattern.SizeMax
}
