package script_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/actors/simulation/script"
	"troupe/statemachine"
)

// office is the home of testdata/home.
func office(t testing.TB) *script.Known {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", "home", name))
		require.NoError(t, err)
		return text
	}
	directory, err := identity.ParseDirectory("identity.yaml", read("identity.yaml"))
	require.NoError(t, err)
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	var definitions []*statemachine.Definition
	for _, name := range []string{"trip.yaml", "booking.yaml"} {
		parsed, err := parser.Parse(statemachine.Source{File: name, Text: read(name)})
		require.NoError(t, err)
		definitions = append(definitions, parsed.Definition)
	}
	return script.NewKnown(directory, definitions)
}

func parsed(t testing.TB, text string) *statemachine.Definition {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	read, err := parser.Parse(statemachine.Source{File: "definition.yaml", Text: []byte(text)})
	require.NoError(t, err)
	return read.Definition
}

// TestScripts runs files of tests: what passes, how what fails is told, and what is wrong with a file.
func TestScripts(t *testing.T) {
	known := office(t)
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			if d.Cmd == "steps" { // of one test
				text = "workflow: trip\ntests:\n  t:\n    steps:\n" + indented(text)
			}
			file, err := script.Parse("t.yaml", []byte(text), known)
			if err != nil {
				return err.Error()
			}
			var out strings.Builder
			for _, r := range script.RunAll(file.Tests, script.Options{Known: known}) {
				tell(&out, r)
			}
			return out.String()
		})
	})
}

func indented(text string) string {
	return "      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
}

func tell(out *strings.Builder, r *script.Result) {
	if r.Failure == nil {
		_, _ = fmt.Fprintf(out, "%s: passed\n", r.Name)
		return
	}
	_, _ = fmt.Fprintf(out, "%s: %d: step %d: %s\n", r.Name, r.Failure.Line, r.Failure.Step, r.Failure.Summary())
	for _, d := range r.Failure.Differences {
		_, _ = fmt.Fprintf(out, "  %d: %s\n", d.Line, d)
	}
	for _, line := range r.Failure.History {
		_, _ = fmt.Fprintf(out, "  | %s\n", line)
	}
}

// TestResultsStandInOrder, whichever test is ready first, and the same test has the same result each time.
func TestResultsStandInOrder(t *testing.T) {
	known := office(t)
	var text strings.Builder
	text.WriteString("workflow: trip\ntests:\n")
	for i := range 200 {
		_, _ = fmt.Fprintf(&text, "  t%d: {steps: [{as: ann, create: {}}, {as: ann, send: ask, data: {days: %d}}, {expect: {svcPublic: {days: %d}}}]}\n", i, i+1, i+1+i%3)
	}
	file, err := script.Parse("t.yaml", []byte(text.String()), known)
	require.NoError(t, err)
	for i, r := range script.RunAll(file.Tests, script.Options{Known: known}) {
		assert.Equal(t, fmt.Sprintf("t%d", i), r.Name)
		assert.Equal(t, i%3 == 0, r.Failure == nil, r.Name)
	}
}

func TestCoverage(t *testing.T) {
	known := office(t)
	file, err := script.Parse("t.yaml", []byte(`
workflow: trip
tests:
  a: {steps: [{as: ann, create: {}}, {as: ann, send: ask, data: {days: 1}}]}
  b: {steps: [{as: ann, create: {}}, {as: ann, send: ask, data: {days: 9}}, {as: bob, send: refuse}]}
`), known)
	require.NoError(t, err)
	results := func() []*script.Result { return script.RunAll(file.Tests, script.Options{Known: known, Covers: true}) }
	trip := script.Cover(results(), nil)
	require.Len(t, trip, 1)
	assert.Equal(t, "trip", trip[0].Workflow)
	assert.Equal(t, script.Share{Reached: 2, Of: 2}, trip[0].Guards)
	var missed []string
	for _, m := range trip[0].Missed {
		missed = append(missed, fmt.Sprintf("%s:%d %s %s %s", m.File, m.Line, m.Kind, m.NodeID, m.Text))
	}
	assert.Contains(t, strings.Join(missed, "\n"), "transition review approve → paying")
	assert.NotContains(t, strings.Join(missed, "\n"), "refuse")

	all := script.Cover(results(), known)
	require.Len(t, all, 2, "with the workflow that no test has used")
	assert.Equal(t, "booking", all[0].Workflow)
	assert.Zero(t, all[0].Percent())
	assert.Equal(t, trip[0].Percent(), all[1].Percent())
}
