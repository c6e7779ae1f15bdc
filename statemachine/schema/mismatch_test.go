package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

// TestWhatIsRefusedNeverFits holds that an object with a refused member fails the check.
func TestWhatIsRefusedNeverFits(t *testing.T) {
	member := rapid.SampledFrom([]string{`{}`, `false`, `true`, `{"type":"string"}`})
	part := rapid.Custom(func(t *rapid.T) string {
		var out []string
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, name) {
				out = append(out, fmt.Sprintf(`%q:%s`, name, member.Draw(t, "schema")))
			}
		}
		text := `"properties":{` + strings.Join(out, ",") + `}`
		for _, more := range []string{`"additionalProperties":false`, `"additionalProperties":{}`, `"unevaluatedProperties":false`, `"patternProperties":{"^a":{}}`, `"patternProperties":{"^b":false}`, `"anyOf":[{"properties":{"b":{}}},{}]`} {
			if key, _, _ := strings.Cut(more, ":"); !strings.Contains(text, key) && rapid.IntRange(0, 3).Draw(t, more) == 0 {
				text += "," + more
			}
		}
		return text
	})
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := "{" + part.Draw(rt, "top") + `,"allOf":[{` + part.Draw(rt, "below") + "}]}"
		s := compiled(t, text)
		if !s.Refuses("a") {
			return
		}
		refused++
		for _, object := range []string{`{"a":1}`, `{"a":"x"}`, `{"a":null,"b":1}`, `{"b":"x","a":{}}`} {
			require.Error(rt, s.Check(data.Value(object)), "%s refuses a, and takes %s", text, object)
		}
	})
	assert.NotZero(t, refused, "no schema refused anything: the test tested nothing")
}

// TestEachPartIsAskedOnce: of a schema whose alternatives lead to the same parts
// again and again there are more ways than could be gone: the comparison would not end.
func TestEachPartIsAskedOnce(t *testing.T) {
	const deep = 40
	var defs strings.Builder
	for i := range deep {
		fmt.Fprintf(&defs, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	s := compiled(t, fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s"d%d":{}}}`, &defs, deep))
	missing := s.Mismatches(compiled(t, `{"required":["a"]}`))
	require.Len(t, missing, 1)
	assert.True(t, missing[0].Missing, "some part has the field")
}

// TestRefusedValuesNeverFit holds that a form that has only values that are refused cannot be submitted with them.
func TestRefusedValuesNeverFit(t *testing.T) {
	values := []string{`null`, `true`, `1`, `1.5`, `"x"`, `"yyy"`, `[]`, `["x"]`, `{}`}
	rule := rapid.SampledFrom([]string{
		`"type":"string"`, `"type":"integer"`, `"type":"number"`, `"type":["null","boolean"]`, `"type":"array"`, `"enum":["x",1]`, `"enum":[null,true,"yyy"]`,
		`"enum":[1.5,"x",true,{}]`, `"const":1.5`, `"oneOf":[{"const":"x"},{"const":1}]`, `"anyOf":[{"type":"string"},{"type":"null"}]`, `"maxLength":2`, `"minimum":1`,
	})
	schema := rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "alone") {
			return `{` + rule.Draw(t, "rule") + `}`
		}
		return `{` + rule.Draw(t, "rule") + `,"allOf":[{` + rule.Draw(t, "another") + `}]}`
	})
	all, some := 0, 0
	check := func(rt rapid.TB, of, to string) {
		sent, taken := compiled(t, `{"properties":{"a":`+of+`}}`), compiled(t, `{"properties":{"a":`+to+`}}`)
		for _, m := range sent.Mismatches(taken) {
			for _, v := range values {
				given := data.Value(`{"a":` + v + `}`)
				both := sent.Check(given) == nil && taken.Check(given) == nil
				require.False(rt, both && (m.Values.All || slices.Contains(m.Values.Refused, v)), "%s and %s both take %s: %+v", sent.Text(), taken.Text(), v, m.Values)
			}
			if m.Values.All {
				all++
			} else {
				some++
			}
		}
	}
	check(t, `{"type":"string"}`, `{"type":"integer"}`) // NB: whatever is drawn, there is one of each
	check(t, `{"enum":["x",1]}`, `{"type":"string"}`)
	rapid.Check(t, func(rt *rapid.T) { check(rt, schema.Draw(rt, "sent"), schema.Draw(rt, "taken")) })
	assert.True(t, all != 0 && some != 0, "%d had no value in common and %d some: the test tested nothing", all, some)
}
