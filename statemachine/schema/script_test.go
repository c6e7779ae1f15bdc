package schema_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// TestSchemas plays testdata/schema:
//
//	compile      a schema as a file has it: the column of its fault, and why
//	refuses      whether a schema refuses a member of that name
//	mismatches   of what is sent, and what is taken
//	unreachable  of a schema, parts of a value
//	check        a schema and a value
func TestSchemas(t *testing.T) {
	datadriven.Walk(t, "testdata/schema", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			first, second, _ := strings.Cut(d.Input, "\n")
			var all []string
			switch d.Cmd {
			case "compile":
				return faultIn(t, d.Input)
			case "refuses":
				return map[bool]string{true: "yes", false: "no"}[compiled(t, d.Input).Refuses(d.CmdArgs[0].Key)]
			case "mismatches":
				for _, m := range compiled(t, first).Mismatches(compiled(t, second)) {
					all = append(all, written(m))
				}
				return cmp.Or(strings.Join(all, " "), "none")
			case "unreachable":
				for _, s := range compiled(t, first).Unreachable(data.Value(second)) {
					all = append(all, s.Pointer+" "+string(s.Reason))
				}
				return cmp.Or(strings.Join(all, "\n"), "none")
			}
			return fmt.Sprint(compiled(t, first).Check(data.Value(second)))
		})
	})
	var none *schema.Schema
	assert.True(t, !none.Refuses("a") && none.Mismatches(compiled(t, `false`)) == nil && compiled(t, `true`).Mismatches(none) == nil && none.Unreachable(data.Value(`{"a":1}`)) == nil,
		"no schema refuses something")
}

func faultIn(t *testing.T, text string) string {
	n, err := document.Parse("t.yaml", []byte(text))
	require.NoError(t, err)
	doc, err := n.Data()
	require.NoError(t, err)
	_, err = schema.Compile(doc, func(name string) ([]byte, error) {
		text, ok := map[string]string{"bad.json": `{"properties": {"q": {"type": "objct"}}}`, "ok.json": "{}", "text.json": "abc"}[name]
		if !ok {
			return nil, errors.New("file is not there")
		}
		return []byte(text), nil
	})
	require.Error(t, err, text)
	at := schema.FaultAt(n, err)
	return fmt.Sprintf("%d:%d: %s", at.Line, at.Column, err)
}

func written(m schema.Mismatch) string {
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
	return name
}
