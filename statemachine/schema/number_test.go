package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/data"
	"troupe/statemachine/schema"
)

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
