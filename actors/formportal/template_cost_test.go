package formportal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/form"
	"troupe/statemachine/document"
)

func TestAFormThatCostsTooMuchToCheckIsAFault(t *testing.T) {
	var unfolding strings.Builder // a schema of 2 KB that is visited 2^25 times
	unfolding.WriteString(`{type: object, $ref: '#/$defs/l0', $defs: {`)
	for i := range 25 {
		fmt.Fprintf(&unfolding, `l%d: {allOf: [{$ref: '#/$defs/l%d'}, {$ref: '#/$defs/l%[2]d'}]}, `, i, i+1)
	}
	unfolding.WriteString(`l25: {type: object}}}`)
	for _, c := range []struct {
		schema       string
		line, column int
		want         string
	}{
		{unfolding.String(), 3, 9, "JSON Schema: too expensive: a check costs more than 1000000"},
		{"\n  type: object\n  properties: {a: {pattern: '^(" + strings.Repeat("(a?){900}", 300) + ")*$'}}", 5, 29, "instructions, the limit is 2000"},
	} {
		_, err := ParseTemplate(TemplateText{Kind: form.KindForm, File: "t.yaml", Text: []byte("id: f\naccess: {roles: [clerk]}\nschema: " + c.schema + "\n")}, Known{})
		var faults document.Faults
		require.True(t, errors.As(err, &faults) && len(faults) == 1, "%.40s: got %v", c.schema, err)
		f := faults[0]
		assert.True(t, f.Line == c.line && f.Column == c.column && strings.Contains(f.Reason, c.want), "%.40s: got %v, want line %d: %s", c.schema, f, c.line, c.want)
	}
}
