package schemacost

import (
	"encoding/json"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"troupe/statemachine/internal/pattern"
)

// Within counts what checking a value costs, and reports whether that is at most most. It counts every alternative, also where the
// library stops at the first that fits, so it may count too much and never too little.
func Within(s *jsonschema.Schema, v any, most uint64) (cost uint64, within bool) {
	c := counter{left: most, around: make([]*jsonschema.Schema, 0, 32)}
	c.part(s, v)
	return most - c.left, !c.spent
}

type counter struct {
	left   uint64
	spent  bool
	around []*jsonschema.Schema // those that are being visited
	since  int                  // from here on they are about the same value
}

func (c *counter) charge(cost uint64) {
	if cost > c.left {
		c.left, c.spent = 0, true
		return
	}
	c.left -= cost
}

func (c *counter) visit(s *jsonschema.Schema, v any) {
	same := c.around[c.since:]
	depth := uint64(len(same))
	c.charge(visitCost + depth/deepShare)
	if c.spent || s.Bool != nil {
		return
	}
	if slices.Contains(same, s) { // the library stops there, too, and writes down how it came there
		c.charge(depth * depth)
		return
	}
	if s.Types != nil && !s.Types.IsEmpty() && *s.Types&typesOf(v) == 0 {
		return
	}
	c.around = append(c.around, s)
	c.value(s, v)
	whole(s, func(one *jsonschema.Schema) { c.visit(one, v) })
	switch v := v.(type) {
	case map[string]any:
		c.object(s, v)
	case []any:
		c.list(s, v)
	}
	c.around = c.around[:len(c.around)-1]
}

// value charges what s costs on its own, as ownCost estimates it.
func (c *counter) value(s *jsonschema.Schema, v any) {
	c.charge(requirements(s))
	number, isNumber := v.(json.Number)
	digits := uint64(len(number))
	own := uint64(0)
	for _, choice := range choices(s) {
		c.charge(weight(choice))
		switch choice.(type) {
		case json.Number:
			if isNumber {
				c.charge(numberCost + digits)
			}
		case []any, map[string]any:
			if own == 0 {
				own = weight(v)
			}
			c.charge(own)
		}
	}
	text, isText := v.(string)
	if s.Format != nil && isText {
		c.charge(2*visitCost + patternShare*uint64(len(text)))
		if s.Format.Name == regexFormat {
			cost, _ := pattern.Of(text) // what is too large is not read
			c.charge(uint64(cost.Reading))
		}
	}
	if isText {
		c.charge(uint64(len(text)) / 8)
		if s.Pattern != nil {
			c.match(s.Pattern, text)
		}
	}
	if isNumber {
		checks, constants := numberChecks(s)
		c.charge(checks*(numberCost+2*digits) + constants)
		if s.MultipleOf != nil {
			c.charge(4 * digits)
		}
	}
}

func (c *counter) match(re jsonschema.Regexp, text string) {
	size := sizeOf(re)
	c.charge(size/patternStart + 2 + size*uint64(len(text))/patternShare)
}

func (c *counter) part(s *jsonschema.Schema, v any) {
	if s == nil || c.spent {
		return
	}
	before := c.since
	c.since = len(c.around)
	c.visit(s, v)
	c.since = before
}

func (c *counter) object(s *jsonschema.Schema, v map[string]any) {
	c.charge(2 * uint64(len(v)))
	if s.Properties == nil && s.PatternProperties == nil && s.PropertyNames == nil && s.UnevaluatedProperties == nil {
		if of, _ := s.AdditionalProperties.(*jsonschema.Schema); of == nil {
			return
		}
	}
	for name, member := range v {
		if c.spent {
			return
		}
		property := s.Properties[name]
		named := property != nil
		c.part(property, member)
		for re, of := range s.PatternProperties {
			c.match(re, name)
			if re.MatchString(name) {
				named = true
				c.part(of, member)
			}
		}
		if of, _ := s.AdditionalProperties.(*jsonschema.Schema); !named {
			c.part(of, member)
		}
		if s.PropertyNames != nil {
			c.part(s.PropertyNames, name)
		}
		c.part(s.UnevaluatedProperties, member)
	}
}

func (c *counter) list(s *jsonschema.Schema, v []any) {
	c.charge(2 * uint64(len(v)))
	if s.UniqueItems {
		c.charge(weight(v) * uint64(min(max(len(v), 2), closePairs)))
	}
	old, _ := s.Items.(*jsonschema.Schema)
	first, _ := s.Items.([]*jsonschema.Schema)
	first = slices.Concat(s.PrefixItems, first)
	more, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, element := range v {
		if c.spent {
			return
		}
		c.part(old, element)
		if i < len(first) {
			c.part(first[i], element)
		} else {
			c.part(s.Items2020, element)
			c.part(more, element)
		}
		c.part(s.Contains, element)
		c.part(s.UnevaluatedItems, element)
	}
}

// Sets of types, as the library has them. Every number counts as whole, too.
var (
	nothing = set("null")
	boolean = set("boolean")
	number  = set("number", "integer")
	text    = set("string")
	array   = set("array")
	object  = set("object")
)

func set(words ...string) (t jsonschema.Types) {
	for _, word := range words {
		t.Add(word)
	}
	return t
}

func typesOf(v any) jsonschema.Types {
	switch v.(type) {
	case nil:
		return nothing
	case bool:
		return boolean
	case json.Number:
		return number
	case string:
		return text
	case []any:
		return array
	}
	return object
}
