package script

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine/data"
)

// sampler makes values that fit JSON Schemas, as far as it understands them: those that decide what a caller can send. The caller checks
// what it has made.
type sampler struct {
	r    *rand.Rand
	root data.Value // where references point into
}

const sampleDepthMax = 8

// value makes a value for a schema. Absent is any.
func (s *sampler) value(schema data.Value, depth int) data.Value {
	member := func(key string) data.Value { v, _ := schema.Lookup(key); return v }
	if depth > sampleDepthMax {
		return data.Value("null")
	}
	if ref := member("$ref").Text(); ref != "" {
		return s.value(s.resolve(ref), depth+1)
	}
	if fixed := member("const"); fixed.Kind() != data.Absent {
		return fixed
	}
	if words := elements(member("enum")); len(words) > 0 {
		return words[s.r.IntN(len(words))]
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if ways := elements(member(key)); len(ways) > 0 {
			return s.value(ways[s.r.IntN(len(ways))], depth+1)
		}
	}
	kinds := elements(member("type"))
	kind := member("type").Text()
	if len(kinds) > 0 {
		kind = kinds[s.r.IntN(len(kinds))].Text()
	}
	switch kind {
	case "integer", "number":
		return s.number(member, kind == "integer")
	case "boolean":
		return truth(s.r.IntN(2) == 0)
	case "null":
		return data.Value("null")
	case "string":
		return data.AppendString(nil, s.text(member))
	case "array":
		return s.array(member, depth)
	}
	return s.object(member, depth)
}

func elements(v data.Value) (out []data.Value) {
	for _, e := range v.Elements() {
		out = append(out, e)
	}
	return out
}

func (s *sampler) resolve(ref string) data.Value {
	at := s.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at, _ = at.Lookup(name)
	}
	return at
}

// number prefers the ends of what is allowed: guards mostly compare with what is near them.
func (s *sampler) number(member func(string) data.Value, isWhole bool) data.Value {
	bound := func(key string, otherwise float64) float64 {
		if v := member(key); v.Kind() == data.Number {
			return v.Float64()
		}
		return otherwise
	}
	step := 0.5
	if isWhole {
		step = 1
	}
	least := bound("minimum", bound("exclusiveMinimum", -step)+step)
	most := bound("maximum", bound("exclusiveMaximum", math.Max(least, 0)+10_000+step)-step)
	span := math.Max(most-least, 0)
	choices := []float64{least, least + 1, least + 2, least + 5, least + 100*s.r.Float64(), least + span*s.r.Float64(), most}
	x := math.Min(choices[s.r.IntN(len(choices))], most)
	if isWhole {
		x = math.Floor(x)
	}
	return data.Value(strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64))
}

func (s *sampler) text(member func(string) data.Value) string {
	if pattern := member("pattern").Text(); pattern != "" {
		if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return s.matching(tree.Simplify())
		}
	}
	switch member("format").Text() {
	case "date":
		return "2026-01-0" + strconv.Itoa(1+s.r.IntN(9))
	case "date-time":
		return "2026-01-05T09:00:00Z"
	case "time":
		return "09:00:00Z"
	case "email":
		return "somebody@example.org"
	case "uri":
		return "https://example.org/"
	case "uuid":
		return "123e4567-e89b-42d3-a456-426614174000"
	}
	text := []string{"a", "some text", "x1", "Größe"}[s.r.IntN(4)]
	if least, ok := member("minLength").Int64(); ok {
		text += strings.Repeat("x", int(max(0, min(least, 10_000)-int64(len([]rune(text))))))
	}
	if most, ok := member("maxLength").Int64(); ok && int64(len([]rune(text))) > most {
		text = string([]rune(text)[:most])
	}
	return text
}

// matching makes a text that a regular expression matches.
func (s *sampler) matching(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		at := 2 * s.r.IntN(len(re.Rune)/2)
		low, high := re.Rune[at], re.Rune[at+1]
		return string(low + rune(s.r.IntN(int(min(high-low, 25))+1)))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture, syntax.OpPlus:
		return s.matching(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		if s.r.IntN(2) == 0 {
			return ""
		}
		return s.matching(re.Sub[0])
	case syntax.OpConcat:
		var b strings.Builder
		for _, part := range re.Sub {
			b.WriteString(s.matching(part))
		}
		return b.String()
	case syntax.OpAlternate:
		return s.matching(re.Sub[s.r.IntN(len(re.Sub))])
	}
	return ""
}

func (s *sampler) array(member func(string) data.Value, depth int) data.Value {
	least, _ := member("minItems").Int64()
	n := int(min(least, 100)) + s.r.IntN(3)
	if most, ok := member("maxItems").Int64(); ok {
		n = min(n, int(most))
	}
	items := make([]data.Value, n)
	for i := range items {
		items[i] = s.value(member("items"), depth+1)
	}
	return listOf(items)
}

func (s *sampler) object(member func(string) data.Value, depth int) data.Value {
	var required []string
	for _, name := range elements(member("required")) {
		required = append(required, name.Text())
	}
	var o object
	for name, of := range member("properties").Members() {
		if string(of) != "false" && (slices.Contains(required, name) || s.r.IntN(2) == 0) {
			o.put(name, s.value(of, depth+1))
		}
	}
	return o.value()
}

// fitting makes a value that a check takes; false when it finds none.
func (s *sampler) fitting(schema data.Value, check func(data.Value) error) (data.Value, bool) {
	s.root = schema
	for range 20 {
		if v := s.value(schema, 0); json.Valid(v) && check(v) == nil {
			return v, true
		}
	}
	return nil, false
}
