package schema_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

func TestASchemaOfItsOwn(t *testing.T) {
	load := func(name string) ([]byte, error) {
		if name != "days.json" {
			return nil, errors.New("file is not there")
		}
		return []byte(`{"type": "integer", "minimum": 1}`), nil
	}
	text := data.Value(`{"type":"object","properties":{"days":{"$ref":"days.json"}}}`)
	s, err := schema.Compile(text, load)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(s.Text()), "text")
	assert.NoError(t, s.Check(data.Value(`{"days":1}`)), "what fits")
	err = s.Check(data.Value(`{"days":0}`))
	assert.True(t, errors.Is(err, schema.ErrInvalidData) && strings.Contains(err.Error(), "/days"), "what does not fit: got %v, want ErrInvalidData with the place", err)
	for _, doc := range []string{`{"$ref":"other.json"}`, `{"$ref":"https://example.org/s.json"}`, `{"type":"obj"}`} {
		_, err := schema.Compile(data.Value(doc), load)
		assert.Error(t, err, "%s: got a schema", doc)
	}
	_, err = schema.Compile(text, nil)
	assert.Error(t, err, "without other files: got a schema that refers to one")
	var none *schema.Schema
	assert.True(t, none.Check(data.Value("1")) == nil && none.Text().Kind() == data.Absent, "no schema: got one that refuses or has a text")
}

// TestShape: fields that a schema has for certain, through $ref and allOf, and those that it can have.
func TestShape(t *testing.T) {
	s := compiled(t, `{
		"$ref": "#/$defs/base", "required": ["b", "a"], "properties": {"a": {"type": "string"}, "list": {"items": {"$ref": "#/$defs/line"}}},
		"allOf": [{"required": ["c", "a"], "properties": {"c": {}}}], "anyOf": [{"properties": {"maybe": {}}}], "patternProperties": {"^x-": {}},
		"$defs": {
			"base": {"properties": {"b": {}}},
			"line": {"properties": {"price": {"type": "number"}, "sub": {"$ref": "#/$defs/line"}}}
		}}`)
	top := s.Shape()
	for what, c := range map[string]struct {
		got  []string
		want string
	}{
		"fields":             {top.Fields(), "a b c list"},
		"required":           {top.Required(), "a b c"},
		"fields of elements": {top.Field("list").Items().Fields(), "price sub"},
		"fields of a text":   {top.Field("a").Fields(), ""},
		"no such field":      {top.Field("z").Items().Required(), ""},
		"no schema":          {(*schema.Schema)(nil).Shape().Fields(), ""},
	} {
		got := strings.Join(c.got, " ")
		assert.True(t, got == c.want && slices.IsSorted(c.got), "%s: got %q, want %q", what, got, c.want)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "maybe": true, "x-1": true, "z": false} {
		assert.Equal(t, want, top.Mentions(name), "mentions %s", name)
	}
	line := top.Field("list").Items()
	sub := line.Field("sub")
	assert.True(t, !sub.Within([]schema.Shape{top, line}) && sub.Field("sub").Within([]schema.Shape{top, line, sub}))
}

// TestWhatIsUnreachableNeverFits holds that a value with a place that does not fit its type or choices fails the schema.
func TestWhatIsUnreachableNeverFits(t *testing.T) {
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
	assert.NotZero(t, unreachable, "nothing was unreachable: the test tested nothing")
	const most = 200
	many := `{"a":1`
	for n := range 2 * most {
		many += fmt.Sprintf(`,"x%d":1`, n)
	}
	assert.Len(t, compiled(t, `{"properties":{"a":{}}}`).Unreachable(data.Value(many+"}")), most)
}

// everyNumber is a schema that looks at its numbers in every way there is.
const everyNumber = `{"type":"object","additionalProperties":{"$ref":"#/$defs/n"},"$defs":{"n":{"anyOf":[
	{"type":"integer","minimum":-1,"exclusiveMaximum":1e1400,"multipleOf":0.01},
	{"type":"number","minimum":-1,"multipleOf":0.01},
	{"type":"array","uniqueItems":true,"items":{"$ref":"#/$defs/n"}},
	{"type":"object","additionalProperties":{"$ref":"#/$defs/n"}},
	{"enum":[0.001]}]}}}`

// compileSchema compiles a schema without a bound on its checks, for which every other file is the same one.
func compiled(tb testing.TB, text string) *schema.Schema {
	tb.Helper()
	doc, err := data.Clean([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := schema.CompileUnbounded(doc, func(string) ([]byte, error) {
		return []byte(`{"properties":{"a":{}},"required":["a"],"additionalProperties":false}`), nil
	})
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestANumberBeyondTheBoundsFitsNoSchema(t *testing.T) {
	s := compiled(t, everyNumber)
	zeros := strings.Repeat("0", 1000)
	for _, n := range []string{
		"1e401", "1E+401", "-1e401", "1e-401", "1" + zeros, "-1." + zeros, "0." + zeros[:999] + "1", "1" + zeros + "e-1",
		"1e1000000", "1e10000000", "-1e10000000", "1e-10000000", "1e99999999999999999", "1.5e-99999999999999999",
	} {
		for given, place := range map[string]string{
			`{"b":` + n + `}`:                         "at /b: ",
			`{"a":[1,{"c":` + n + `,"d":` + n + `}]}`: "at /a/1/c: ",
			`{"z":` + n + `,"a":[` + n + `,1]}`:       "at /a/0: ",
		} {
			err := s.Check(data.Value(given))
			assert.True(t, errors.Is(err, schema.ErrInvalidData) && strings.Contains(err.Error(), place+"a number with more than 1000 digits or an exponent beyond 400"),
				"%.80s: got %v, want ErrInvalidData %s", given, err, place)
		}
	}
	for _, n := range []string{
		"0", "1e400", "1e0000000000000000000400", "5", "1" + zeros[:999], "9007199254740993",
		"1.7976931348623157e308", "-0.5", "0.00e-400",
	} {
		assert.NoError(t, s.Check(data.Value(`{"n":`+n+`}`)), n)
	}
}
