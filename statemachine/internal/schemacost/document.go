package schemacost

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/internal/pattern"
)

const (
	// ObjectsMax is how many objects and lists a schema may be written with, together with the files that it refers to. NB: the library
	// compares each schema with all before it when it compiles.
	ObjectsMax = 3_000
	// A number in a schema is held against those of the data, which have bounds of their own.
	digitsMax   = 1_000
	exponentMax = 2_000
)

// Documents are the texts of one schema. The zero value has none.
type Documents struct {
	Objects   int // objects and lists, together
	dynamic   map[string]bool
	recursive int
}

// Add looks at one more text of the schema. The error says why it cannot be compiled at a bounded cost.
func (d *Documents) Add(v any) error {
	switch v := v.(type) {
	case json.Number:
		if isFar(string(v)) {
			return fmt.Errorf("a number with more than %d digits or an exponent beyond %d", digitsMax, exponentMax)
		}
	case []any:
		if err := d.object(); err != nil {
			return err
		}
		for _, one := range v {
			if err := d.Add(one); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := d.object(); err != nil {
			return err
		}
		if err := d.anchor(v); err != nil {
			return err
		}
		for _, one := range v {
			if err := d.Add(one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Documents) object() error {
	if d.Objects++; d.Objects > ObjectsMax {
		return fmt.Errorf("it has more than %d mappings and lists, with the files that it refers to", ObjectsMax)
	}
	return nil
}

func (d *Documents) anchor(v map[string]any) error {
	if name, is := v["$dynamicAnchor"].(string); is {
		if d.dynamic[name] {
			return fmt.Errorf("two schemas have the $dynamicAnchor %.64q", name)
		}
		if d.dynamic == nil {
			d.dynamic = map[string]bool{}
		}
		d.dynamic[name] = true
	}
	if v["$recursiveAnchor"] == true {
		if d.recursive++; d.recursive > 1 {
			return fmt.Errorf("two schemas have a $recursiveAnchor")
		}
	}
	return nil
}

func isFar(literal string) bool {
	if e := strings.IndexAny(literal, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(literal[e+1:])
		if err != nil || exponent < -exponentMax || exponent > exponentMax {
			return true
		}
		literal = literal[:e]
	}
	return len(literal) > digitsMax
}

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
