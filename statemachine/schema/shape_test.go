package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
		"no schema":          {(*Schema)(nil).Shape().Fields(), ""},
	} {
		got := strings.Join(c.got, " ")
		assert.True(t, got == c.want && slices.IsSorted(c.got), "%s: got %q, want %q", what, got, c.want)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "maybe": true, "x-1": true, "z": false} {
		assert.Equal(t, want, top.Mentions(name), "mentions %s", name)
	}
	line := top.Field("list").Items()
	sub := line.Field("sub")
	assert.True(t, !sub.Within([]Shape{top, line}) && sub.Field("sub").Within([]Shape{top, line, sub}))
}
