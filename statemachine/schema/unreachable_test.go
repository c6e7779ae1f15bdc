package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestStrays(t *testing.T) {
	for _, c := range []struct{ name, schema, value, want string }{
		{"what fits", `{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, `{"a":"x","b":1}`, ""},
		{"what is missing, or can be corrected", `{"properties":{"a":{"minLength":3},"b":{"type":"integer","maximum":5}},"required":["c"]}`, `{"a":"","b":1.5}`, ""},
		{"a field that is gone", `{"properties":{"a":{}}}`, `{"a":1,"b":{"c":1}}`, "/b unknown"},
		{"a field that is refused", `{"additionalProperties":false}`, `{"b":1}`, "/b unknown"},
		{"a schema without fields", `{"type":"object"}`, `{"b":1}`, ""},
		{"fields of any name", `{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, `{"a":1,"b":"x","c":2}`, "/c type"},
		{"fields of a pattern", `{"patternProperties":{"^x":{"type":"string"}}}`, `{"x1":1,"x2":"","y":1}`, "/x1 type /y unknown"},
		{"another type", `{"properties":{"a":{"type":"string"},"b":{"type":["object","null"]},"c":{"type":"integer"}}}`, `{"a":{},"b":"x","c":true}`, "/a type /b type /c type"},
		{"inside others", `{"properties":{"a":{"properties":{"b":{"properties":{"c":{"type":"string"}}}}}}}`, `{"a":{"b":{"c":1,"d":1}}}`, "/a/b/c type /a/b/d unknown"},
		{"in a list", `{"properties":{"l":{"type":"array","items":{"properties":{"x":{"type":"string"}}}}}}`, `{"l":[{"x":""},{"x":1,"y":2},3]}`, "/l/1/x type /l/1/y unknown"},
		{"a list that begins with others", `{"properties":{"l":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, `{"l":[1,"x"]}`, ""},
		{"a choice that is gone", `{"properties":{"a":{"enum":["x","y"]},"b":{"oneOf":[{"const":1},{"const":2}]}}}`, `{"a":"z","b":3}`, "/a choice /b choice"},
		{"a choice that is there", `{"properties":{"a":{"enum":["x","y"]},"b":{"oneOf":[{"const":1},{"const":2}]}}}`, `{"a":"x","b":2}`, ""},
		{"a box that has to be ticked", `{"properties":{"a":{"type":"boolean","const":true}}}`, `{"a":false}`, ""},
		{"fields of an alternative", `{"properties":{"a":{}},"oneOf":[{"properties":{"b":{"type":"string"}}},{}]}`, `{"a":1,"b":2,"c":3}`, "/c unknown"},
		{"fields of a condition", `{"properties":{"a":{}},"if":{},"then":{"properties":{"b":{}}}}`, `{"b":2,"c":3}`, "/c unknown"},
		{"a schema that refers to itself", `{"properties":{"a":{"$ref":"#"},"t":{"type":"string"}}}`, `{"a":{"a":{"t":1},"b":1}}`, "/a/a/t type /a/b unknown"},
		{"names with slashes", `{"properties":{"a/b":{"type":"string"}}}`, `{"a/b":1,"c~d":1}`, "/a~1b type /c~0d unknown"},
		{"a number beyond all bounds", `{"properties":{"a":{"enum":[1,2]}}}`, `{"a":1e999999}`, ""},
	} {
		var got []string
		for _, s := range compiled(t, c.schema).Unreachable(data.Value(c.value)) {
			got = append(got, s.Pointer+" "+string(s.Reason))
		}
		assert.Equal(t, c.want, strings.Join(got, " "), "%s: got %v", c.name, got)
	}
	var many strings.Builder
	for n := range 2 * unreachableMax {
		fmt.Fprintf(&many, `,"x%d":1`, n)
	}
	assert.Len(t, compiled(t, `{"properties":{"a":{}}}`).Unreachable(data.Value(`{"a":1`+many.String()+`}`)), unreachableMax)
	var none *Schema
	assert.Nil(t, none.Unreachable(data.Value(`{"a":1}`)), "without a schema")
}

// TestAStrayNeverFits holds that a value with a place that does not fit its type or choices fails the schema.
func TestAStrayNeverFits(t *testing.T) {
	rule := rapid.SampledFrom([]string{`{}`, `{"type":"string"}`, `{"type":["integer","null"]}`, `{"enum":["x",1]}`, `{"type":"array","items":{"type":"boolean"}}`, `{"properties":{"a":{"type":"string"}}}`})
	value := rapid.SampledFrom([]string{`null`, `1`, `"x"`, `"y"`, `[true]`, `[1]`, `{"a":1}`, `{"a":"x"}`, `{}`})
	unreachable := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := compiled(t, `{"properties":{"a":`+rule.Draw(rt, "a")+`,"b":`+rule.Draw(rt, "b")+`}}`)
		v := data.Value(`{"a":` + value.Draw(rt, "value of a") + `,"b":` + value.Draw(rt, "value of b") + `}`)
		for _, place := range s.Unreachable(v) {
			unreachable++
			require.Error(rt, s.Check(v), "%s takes %s, and %s unreachable", s.Text(), v, place.Pointer)
		}
	})
	assert.NotZero(t, unreachable, "nothing strayed: the test tested nothing")
}
