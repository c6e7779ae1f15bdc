package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
)

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         bool
	}{
		{"nothing said", `{}`, false},
		{"everything", `true`, false},
		{"nothing", `false`, true},
		{"a property", `{"properties":{"a":{}}}`, false},
		{"a property that cannot be", `{"properties":{"a":false}}`, true},
		{"others only", `{"properties":{"b":{}},"additionalProperties":false}`, true},
		{"a property, and no others", `{"properties":{"a":{}},"additionalProperties":false}`, false},
		{"a pattern, and no others", `{"patternProperties":{"^a":{}},"additionalProperties":false}`, false},
		{"a pattern that cannot be", `{"patternProperties":{"^a":false}}`, true},
		{"others by a schema", `{"additionalProperties":{"type":"string"}}`, false},
		{"no property at all", `{"maxProperties":0}`, true},
		{"nothing unevaluated", `{"properties":{"b":{}},"unevaluatedProperties":false}`, true},
		{"nothing unevaluated, but evaluated beside it", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, false},
		{"nothing unevaluated, but perhaps evaluated", `{"anyOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, false},
		{"by a reference", `{"$ref":"#/$defs/x","$defs":{"x":{"additionalProperties":false}}}`, true},
		{"by a file", `{"$ref":"x.json"}`, false},
		{"by one of all", `{"allOf":[{},{"additionalProperties":false}]}`, true},
		{"by itself", `{"$ref":"#"}`, false},
		{"by an alternative", `{"oneOf":[{"additionalProperties":false},true]}`, false},
	} {
		assert.Equal(t, c.want, compiled(t, c.schema).Refuses("a"), c.name)
	}
	var none *Schema
	assert.True(t, !none.Refuses("a") && none.Mismatches(compiled(t, `false`)) == nil && compiled(t, `true`).Mismatches(none) == nil, "no schema refuses something")
}

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

func TestMisfits(t *testing.T) {
	const closed = `"additionalProperties":false`
	for _, c := range []struct{ name, sent, taken, want string }{
		{"the same", `{"properties":{"a":{},"b":{}}}`, `{"properties":{"a":{},"b":{}},"required":["a"],` + closed + `}`, "?a"},
		{"one too many", `{"properties":{"a":{},"b":{},"c":{}}}`, `{"properties":{"a":{}},` + closed + `}`, "b c"},
		{"one that is missing", `{"properties":{"a":{}}}`, `{"required":["a","c","b"]}`, "?a -b -c"},
		{"one that is there, but not required", `{"properties":{"a":{}}}`, `{"required":["a"]}`, "?a"},
		{"one that is required as well", `{"properties":{"a":{}},"allOf":[{"required":["a"]}]}`, `{"required":["a"]}`, ""},
		{"one that is filled in beforehand", `{"properties":{"a":{"default":1}}}`, `{"required":["a"]}`, ""},
		{"one that is there in a case", `{"oneOf":[{"properties":{"a":{}}},{}]}`, `{"required":["a"]}`, "?a"},
		{"one of a pattern", `{"patternProperties":{"^a$":{}}}`, `{"required":["a"]}`, "?a"},
		{"no field at all", `{"type":"object"}`, `{"required":["a"]}`, "-a"},
		{"a field of a file", `{"properties":{"b":{}}}`, `{"$ref":"x.json"}`, "b -a"},
		{
			"deeper", `{"properties":{"p":{"properties":{"a":{},"b":{}}},"q":{}}}`,
			`{"properties":{"p":{"properties":{"a":{}},"required":["c"],` + closed + `},"q":{"required":["z"]}}}`, "p.b -p.c",
		},
		{
			"in a list", `{"properties":{"l":{"items":{"properties":{"a":{}}}}}}`,
			`{"properties":{"l":{"items":{"properties":{"b":{}},"required":["b"],` + closed + `}}}}`, "l.a -l.b",
		},
		{"a name that no member may have", `{"properties":{"A":{},"b":{}}}`, `{"propertyNames":{"pattern":"^[a-z]"}}`, "A"},
		{"types that have nothing in common", `{"properties":{"a":{"type":"string"},"b":{"type":["integer","null"]},"c":{"type":"array"}}}`, `{"properties":{"a":{"type":"number"},"b":{"type":["boolean","string"]},"c":{"type":["array","null"]}}}`, "a:string>number b:integer or null>string or boolean"},
		{"a whole number is a number", `{"properties":{"a":{"type":"integer"},"b":{"type":"number"}}}`, `{"properties":{"a":{"type":"number"},"b":{"type":"integer"}}}`, ""},
		{"the type of all other fields", `{"properties":{"a":{"type":"string"}}}`, `{"additionalProperties":{"type":"integer"}}`, "a:string>integer"},
		{"the type of a pattern", `{"properties":{"a":{"type":"string"}}}`, `{"patternProperties":{"^a":{"type":"integer"}}}`, "a:string>integer"},
		{"types behind references", `{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}`, `{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"}]}},"$defs":{"n":{"type":"boolean"}}}`, "a:string>boolean"},
		{"a type in an alternative", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}}`, ""},
		{"elements of another type", `{"properties":{"l":{"items":{"type":"string"}}}}`, `{"properties":{"l":{"items":{"type":"integer"}}}}`, "l:string>integer"},
		{"some choices", `{"properties":{"a":{"enum":["x","y",3]}}}`, `{"properties":{"a":{"enum":["x"]}}}`, `a:some"y",3`},
		{"no choice", `{"properties":{"a":{"enum":["x","y"]}}}`, `{"properties":{"a":{"enum":["z"]}}}`, `a:all"x","y"`},
		{"choices with names", `{"properties":{"a":{"oneOf":[{"const":"x","title":"X"},{"const":"y"}]}}}`, `{"properties":{"a":{"const":"x"}}}`, `a:some"y"`},
		{"a choice that is too long", `{"properties":{"a":{"enum":["x","yyy"]}}}`, `{"properties":{"a":{"type":"string","maxLength":2}}}`, `a:some"yyy"`},
		{"a choice that the form refuses itself", `{"properties":{"a":{"enum":["x","yyy"],"maxLength":2}}}`, `{"properties":{"a":{"enum":["x"]}}}`, ""},
		{"a text for a choice", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"enum":["x"]}}}`, ""},
		{"a number beyond all bounds", `{"properties":{"a":{"enum":[1e1999]}}}`, `{"properties":{"a":{"enum":[1]}}}`, ""},
		{"one that refers to itself", `{"properties":{"a":{"$ref":"#"}}}`, `{"properties":{"a":{"$ref":"#"}},"required":["a"],` + closed + `}`, "?a.a ?a"},
	} {
		assert.Equal(t, c.want, pathsOf(compiled(t, c.sent).Mismatches(compiled(t, c.taken))), c.name)
	}
}

// pathsOf returns the paths of mismatches: -a is missing, ?a may be left out.
func pathsOf(mismatches []Mismatch) string {
	var all []string
	for _, m := range mismatches {
		name := strings.Join(m.Path, ".")
		if m.Missing {
			name = "-" + name
		}
		if m.Optional {
			name = "?" + name
		}
		if v := m.Values; v != nil && v.Sent != "" {
			name += ":" + v.Sent + ">" + v.Taken
		} else if v != nil {
			name += map[bool]string{true: ":all", false: ":some"}[v.All] + strings.Join(v.Refused, ",")
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// TestEachPartIsAskedOnce: of a schema whose alternatives lead to the same parts
// again and again there are more ways than could be gone.
func TestEachPartIsAskedOnce(t *testing.T) {
	const deep = 40
	var defs strings.Builder
	for i := range deep {
		fmt.Fprintf(&defs, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	s := compiled(t, fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{%s"d%d":{}}}`, &defs, deep))
	asked := 0
	somewhere(s.compiled, map[*jsonschema.Schema]bool{}, func(*jsonschema.Schema) bool {
		asked++
		return false
	})
	want := 1 + 3*deep + 1
	assert.Equal(t, want, asked, "parts were asked")
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
