package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
	"troupe/statemachine/cputest"
	"troupe/statemachine/internal/schemacost"
	"troupe/statemachine/schema"
)

func compile(tb testing.TB, text string) *jsonschema.Schema {
	tb.Helper()
	var p schemacost.Patterns
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(p.Compile)
	require.NoError(tb, c.AddResource("file:///-", read(tb, text)))
	s, err := c.Compile("file:///-")
	require.NoError(tb, err, text)
	return s
}

func read(tb testing.TB, text string) any {
	tb.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(tb, err, text)
	return v
}

// levels is a schema whose definitions refer to the next one twice each.
func levels(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"l%d":{"allOf":[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"l%d":{"type":"object"}}}`, n)
	return b.String()
}

func TestReferencesAreUnfolded(t *testing.T) {
	one := schemacost.Of(&jsonschema.Schema{}, math.MaxUint64).Once()
	small, large := schemacost.Of(compile(t, levels(3)), math.MaxUint64).Once(), schemacost.Of(compile(t, levels(4)), math.MaxUint64).Once()
	assert.True(t, large >= 2*small-one && large <= 3*small, "one more level makes %d of %d, want about twice as much", large, small)
	const most = 1_000_000
	s := compile(t, levels(25))
	once := schemacost.Of(s, most).Once()
	assert.True(t, once > most && once <= 2*most, "25 levels: got %d, want the end of the walk just above %d", once, most)
	assert.Equal(t, uint64(math.MaxUint64), schemacost.Of(s, most).Bound(2), "25 levels: got the bound")
	cost, within := schemacost.Within(s, map[string]any{}, most)
	assert.True(t, !within && cost == most, "25 levels with {}: got %d, %v, want %d and refused", cost, within, most)
}

func TestOnlyTheValueSaysWhatARecursiveSchemaCosts(t *testing.T) {
	s := compile(t, `{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`)
	e := schemacost.Of(s, 1_000_000)
	if e.Once() > 1000 || e.Bound(2) != math.MaxUint64 {
		t.Errorf("got %d once and the bound %d, want few and none", e.Once(), e.Bound(2))
	}
	for depth, want := range map[int]bool{3: true, 30: false} {
		v := read(t, strings.Repeat("[", depth)+strings.Repeat("]", depth))
		cost, within := schemacost.Within(s, v, 1_000_000)
		assert.Equal(t, want, within, "depth %d: got %d", depth, cost)
	}
	circle := compile(t, `{"anyOf":[{"$ref":"#"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#"}}}`)
	cost, within := schemacost.Within(circle, true, 1000)
	assert.True(t, within, "a circle: got %d", cost)
}

func TestTheTextOfASchemaIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		`{"items":{"items":[1,{}]}}`: "", `{"maximum":1e2000,"const":0.` + strings.Repeat("0", 900) + `}`: "",
		`{"maximum":1e2001}`: "exponent beyond 2000", `{"enum":[[-1e-99999999999]]}`: "exponent beyond 2000", `{"const":1` + strings.Repeat("0", 1000) + `}`: "digits",
		`{"items":[` + strings.Repeat("{},", schemacost.ObjectsMax) + `{}]}`:                                  "more than 3000",
		`{"$defs":{"a":{"$dynamicAnchor":"x"},"b":{"$dynamicAnchor":"x"}}}`:                                   "two schemas",
		`{"$defs":{"a":{"$dynamicAnchor":"x"},"b":{"$dynamicAnchor":"y"}}}`:                                   "",
		`{"$recursiveAnchor":true,"items":{"$id":"b","$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}}`: "two schemas",
	} {
		var d schemacost.Documents
		err := d.Add(read(t, text))
		assert.True(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%.60s: got %v, want %q", text, err, want)
	}
	assert.True(t, schemacost.Of(compile(t, `{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`), 1_000_000).Foreign)
}

// schemaOf draws a schema that may refer to the definitions a to c behind it, and values for it.
func schemaOf(t *rapid.T, depth int, refs string) map[string]any {
	s := map[string]any{}
	below := func(label string) any {
		if depth == 0 || rapid.IntRange(0, 5).Draw(t, label) == 0 {
			return rapid.SampledFrom([]any{true, false, map[string]any{"type": "number"}}).Draw(t, label)
		}
		return schemaOf(t, depth-1, refs)
	}
	for range rapid.IntRange(0, 3).Draw(t, "keywords") {
		switch word := rapid.SampledFrom([]string{
			"type", "enum", "const", "pattern", "minimum", "multipleOf", "uniqueItems", "required", "allOf", "anyOf", "oneOf", "not", "if", "$ref",
			"properties", "patternProperties", "additionalProperties", "propertyNames", "dependentSchemas", "dependentRequired", "unevaluatedProperties",
			"items", "prefixItems", "contains", "unevaluatedItems", "minLength",
		}).Draw(t, "word"); word {
		case "type":
			s[word] = rapid.SampledFrom([]any{"object", "array", "string", "number", []any{"object", "array", "number"}}).Draw(t, word)
		case "enum":
			s[word] = []any{json.Number("1"), "a", []any{json.Number("1.0")}, map[string]any{"a": json.Number("2")}}
		case "const":
			s[word] = rapid.SampledFrom([]any{json.Number("1"), []any{json.Number("1.0"), json.Number("2")}}).Draw(t, word)
		case "pattern":
			s[word] = rapid.SampledFrom([]string{"a", "^(a|b)*(c{0,9})$"}).Draw(t, word)
		case "minimum", "multipleOf", "minLength":
			s[word] = json.Number("3")
		case "uniqueItems":
			s[word] = true
		case "required":
			s[word] = []any{"a", "b"}
		case "dependentRequired":
			s[word] = map[string]any{"a": []any{"b", "c"}}
		case "$ref":
			if refs != "" {
				s[word] = "#/$defs/" + rapid.SampledFrom(strings.Split(refs, "")).Draw(t, word)
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			s[word] = []any{below(word), below(word)}
		case "properties", "dependentSchemas":
			s[word] = map[string]any{"a": below(word), "b": below(word)}
		case "patternProperties":
			s[word] = map[string]any{"a": below(word), "^(a|b)*(c{0,9})$": below(word)}
		case "if":
			s[word], s["then"], s["else"] = below(word), below(word), below(word)
		default:
			s[word] = below(word)
		}
	}
	return s
}

func valueOf(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0, 1:
		if depth == 0 {
			return map[string]any{}
		}
		o := map[string]any{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "abc", ""}), 0, 4).Draw(t, "names") {
			o[name] = valueOf(t, depth-1)
		}
		return o
	case 2, 3:
		if depth == 0 {
			return []any{}
		}
		l := []any{}
		for range rapid.IntRange(0, 25).Draw(t, "elements") {
			l = append(l, valueOf(t, depth-1))
		}
		return l
	case 4:
		return rapid.SampledFrom([]any{json.Number("1"), json.Number("-2.50"), json.Number("1e400"), json.Number(strings.Repeat("9", 50))}).Draw(t, "number")
	case 5:
		return rapid.SampledFrom([]any{"", "a", "abcabcabc"}).Draw(t, "text")
	}
	return rapid.SampledFrom([]any{nil, true}).Draw(t, "rest")
}

// TestTheBoundIsAboveTheCount: without a count a check is made because of the bound, so it must never be below.
func TestTheBoundIsAboveTheCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		defs := map[string]any{"a": schemaOf(t, 2, "bc"), "b": schemaOf(t, 2, "c"), "c": schemaOf(t, 2, "")}
		whole := schemaOf(t, 3, "abc")
		whole["$defs"] = defs
		c := jsonschema.NewCompiler()
		c.UseRegexpEngine((&schemacost.Patterns{}).Compile)
		require.NoError(t, c.AddResource("file:///-", whole))
		s, err := c.Compile("file:///-")
		if err != nil {
			t.Skip(err)
		}
		v := valueOf(t, 3)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		bound := schemacost.Of(s, math.MaxUint64).Bound(len(text))
		if cost, within := schemacost.Within(s, v, math.MaxUint64); !within || cost > bound {
			written, _ := json.Marshal(whole)
			t.Fatalf("schema %s\nvalue %s: counted %d, bound %d", written, text, cost, bound)
		}
	})
}

// TestEverySchemaInASchemaCounts finds the fields of the library's type that hold schemas, so that a later version cannot have
// one more.
func TestEverySchemaInASchemaCounts(t *testing.T) {
	inner := &jsonschema.Schema{}
	re, err := (&schemacost.Patterns{}).Compile("a")
	require.NoError(t, err)
	held := map[reflect.Type]any{
		reflect.TypeFor[*jsonschema.Schema]():                       inner,
		reflect.TypeFor[[]*jsonschema.Schema]():                     []*jsonschema.Schema{inner},
		reflect.TypeFor[map[string]*jsonschema.Schema]():            map[string]*jsonschema.Schema{"a": inner},
		reflect.TypeFor[map[jsonschema.Regexp]*jsonschema.Schema](): map[jsonschema.Regexp]*jsonschema.Schema{re: inner},
		reflect.TypeFor[*jsonschema.DynamicRef]():                   &jsonschema.DynamicRef{Ref: inner},
		reflect.TypeFor[any]():                                      inner,
		reflect.TypeFor[map[string]any]():                           map[string]any{"a": inner},
	}
	found, two := 0, 2*schemacost.Of(inner, math.MaxUint64).Bound(0)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[jsonschema.Schema]()) {
		value := held[field.Type]
		if value == nil || !field.IsExported() {
			continue
		}
		found++
		s := &jsonschema.Schema{}
		reflect.ValueOf(s).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
		visits := schemacost.Of(s, math.MaxUint64).Bound(0)
		if field.Name == "ContentSchema" { // of content that is never looked into
			assert.Less(t, visits, two, "the estimate counts the schema of content")
			continue
		}
		assert.GreaterOrEqual(t, visits, two, "the estimate does not see %s", field.Name)
		object, _ := schemacost.Within(s, map[string]any{"a": true}, math.MaxUint64)
		list, _ := schemacost.Within(s, []any{true}, math.MaxUint64)
		assert.False(t, max(object, list) < two && field.Name != "AdditionalItems", "the count does not see %s", field.Name)
	}
	assert.Equal(t, 24, found, "found")
}

// TestPatternsOfASchemaAreReadWhileTheyAreFew: the library goes on after the first that is refused, and a file of a megabyte has room for
// hundreds.
func TestPatternsOfASchemaAreReadWhileTheyAreFew(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?i)` + strings.Repeat(`[B-𞥂]`, 500): "takes too long to read",
		`(?i)[B-𞥂][B-𞥂][B-𞥂]`:                 "more than 20000 instructions together",
		`^\pL{990}$`:                          "more than 20000 instructions together",
	} {
		properties := map[string]any{}
		for i := range 200 {
			properties[fmt.Sprint(i)] = map[string]any{"pattern": fmt.Sprintf("%s%d", pattern, i)}
		}
		text, err := json.Marshal(map[string]any{"properties": properties})
		require.NoError(t, err)
		took := cputest.Watch()
		_, err = schema.Compile(text, nil)
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "%.30s: got %v, want %q", pattern, err, want)
		if d := took(); d > 5*time.Second { // without a bound it is minutes
			t.Errorf("%.30s: it took %v of a processor", pattern, d)
		}
	}
}

// TestDataThatIsARegularExpressionIsCounted: schemas before 2019 check the format, and so read each text.
func TestDataThatIsARegularExpressionIsCounted(t *testing.T) {
	s, err := schema.Compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"format":"regex"}}`), nil)
	require.NoError(t, err)
	for text, want := range map[string]string{
		`"(?i)[B-𞥂]"`: "costs more than", `"a{1000}"`: "costs more than", `"abc"`: "", `"("`: "regex",
	} {
		list := "[" + strings.Repeat(text+",", 3000) + text + "]"
		err := s.Check([]byte(list))
		assert.True(t, (err == nil) == (want == "") && !(err != nil && (!errors.Is(err, schema.ErrInvalidData) || !strings.Contains(err.Error(), want))),
			"%s: got %v, want %q", text, err, want)
	}
}
