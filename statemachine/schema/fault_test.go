package schema

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/document"
)

// TestFaultsOfASchemaHaveTheirPlace: the innermost part that is wrong, in the words of this service.
func TestFaultsOfASchemaHaveTheirPlace(t *testing.T) {
	const kinds = "expected one of array, boolean, integer, null, number, object, string"
	load := func(name string) ([]byte, error) {
		text, ok := map[string]string{"bad.json": `{"properties": {"q": {"type": "objct"}}}`, "ok.json": "{}", "text.json": "abc"}[name]
		if !ok {
			return nil, errors.New("file is not there")
		}
		return []byte(text), nil
	}
	for _, c := range []struct {
		schema string
		column int
		want   string
	}{
		{"{type: strng}", 8, "at /type: " + kinds + `, found "strng": did you mean "string"?`},
		{"{type: object, properties: {a: {type: [strng]}}}", 40, "at /properties/a/type/0: " + kinds + `, found "strng": did you mean "string"?`},
		{"{properties: {a: {items: {type: 3}}}}", 33, "at /properties/a/items/type: " + kinds},
		{"{properties: {a: string}}", 18, "at /properties/a: expected a mapping, or true or false, found a text"},
		{"{required: a}", 12, "at /required: expected a list, found a text"},
		{"{properties: {a: {minLength: '3'}}}", 30, "at /properties/a/minLength: expected a whole number, found a text"},
		{"{properties: {a: {minLength: -1}, b: {required: [x, x]}}}", 30, "at /properties/a/minLength: the number is too small"},
		{"{properties: {b: {required: [x, x]}}}", 29, "at /properties/b/required: an element of the list is there twice"},
		{"{allOf: []}", 9, "at /allOf: the list is empty"},
		{"{if: true, then: {properties: []}}", 31, "at /then/properties: expected a mapping, found a list"},
		{"{$anchor: '1 2'}", 11, "at /$anchor: JSON Schema does not take this"},
		{"{$anchor: a, properties: {b: {$anchor: a}}}", 30, `at /properties/b: the anchor "a" is there twice`},
		{"{properties: {a: {pattern: '('}}}", 28, `the pattern "(": error parsing regexp: missing closing ): ` + "`(`"},
		{"[]", 1, "expected a mapping, or true or false, found a list"},
		{"{$ref: '#/no'}", 8, `the reference "#/no" leads to nothing`},
		{"{properties: {a: {$ref: '#x'}}}", 25, `the reference "#x" leads to nothing`},
		{"{properties: {a: {$ref: 'ok.json#/no'}}}", 25, `the reference "ok.json#/no" leads to nothing`},
		{"{properties: {a: {$ref: missing.json}}}", 25, `the file "missing.json": file is not there`},
		{"{properties: {a: {$ref: text.json}}}", 25, `the file "text.json": invalid JSON at byte 0: unexpected "a" instead of a value`},
		{"{properties: {a: {$ref: 'bad.json#/q'}}}", 25, `in the file "bad.json": at /properties/q/type: ` + kinds + `, found "objct": did you mean "object"?`},
		{"{items: {$ref: 'http://example.org/a.json'}}", 16, `the reference "http://example.org/a.json" leads outside the folder`},
		{"{$schema: foo}", 11, `the reference "foo" leads outside the folder`},
	} {
		n, err := document.Parse("t.yaml", []byte(c.schema))
		require.NoError(t, err)
		doc, err := n.Data()
		require.NoError(t, err)
		_, err = Compile(doc, load)
		if !assert.True(t, err != nil && err.Error() == c.want, "%s: got %v, want %s", c.schema, err, c.want) {
			continue
		}
		at := FaultAt(n, err)
		assert.True(t, at.Line == 1 && at.Column == c.column, "%s: got the place %d:%d, want column %d", c.schema, at.Line, at.Column, c.column)
	}
}
