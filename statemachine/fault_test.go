package statemachine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/statemachine"
	"troupe/statemachine/cputest"
)

var options = statemachine.ParserOptions{
	HasRole:      func(name string) bool { return name == "manager" || name == "employee" },
	Roles:        []string{"manager", "employee"},
	HasPrivilege: func(name string) bool { return name == "mod-form" },
	Privileges:   []string{"mod-form"},
	HasZone:      func(name string) bool { return name == "Europe/Berlin" },
}

// TestFault plays testdata/fault: each definition and the faults that loading it reports, with file, line, column and advice
// (statemachine/DEFINITION.md, "Faults").
func TestFault(t *testing.T) {
	parser, err := statemachine.NewParser(options)
	require.NoError(t, err)
	files := map[string]string{
		"amount.schema.json": `{"type": "object", "properties": {"amount": {"type": "number"}}}`,
		"broken.schema.json": `{"type": "obj"}`,
		"outside.json":       `{"$ref": "http://example.org/schema.json"}`,
	}
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, errors.New("file is not there")
		}
		return []byte(text), nil
	}
	datadriven.Walk(t, "testdata/fault", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string {
			if cmd.Cmd == "plan" {
				_, err := parser.ParsePlan("plan.yaml", []byte(cmd.Input), twoVersions(t, parser))
				return fmt.Sprintln(err)
			}
			_, err := parser.Parse(statemachine.Source{File: "w." + cmd.Cmd, Text: []byte(cmd.Input), Read: read})
			return written(err)
		})
	})
}

// TestWarnings plays testdata/warning: what is told to authors, and no fault (statemachine/DEFINITION.md, "Warnings").
func TestWarnings(t *testing.T) {
	parser, err := statemachine.NewParser(options)
	require.NoError(t, err)
	datadriven.RunTest(t, "testdata/warning/warning.txt", func(_ *testing.T, cmd *datadriven.TestData) string {
		took := cputest.Watch()
		parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(statemachine.Expand(cmd.Input))})
		assert.LessOrEqual(t, took(), mostToParse, cmd.Pos)
		if err == nil && len(parsed.Warnings) > 0 {
			err = parsed.Warnings
		}
		lines := strings.SplitAfter(written(err), "\n")
		if cut := len(lines) - 3; cut > 20 {
			lines = slices.Replace(lines, 2, 2+cut-1, fmt.Sprintf("… %d lines …\n", cut-1))
		}
		return strings.Join(lines, "")
	})
}

// mostToParse is far more than any file of the scripts takes, and far less than some would take without a bound.
const mostToParse = 20 * time.Second

// TestWhatWasAcceptedStaysReadable plays testdata/stored: a stored text is read although it has what an author is told, and
// is refused for what cannot run; by parsers that were made for it and, unless it is long, by others.
func TestWhatWasAcceptedStaysReadable(t *testing.T) {
	parser, err := statemachine.NewParser(options)
	require.NoError(t, err)
	stored, err := statemachine.NewParser(statemachine.ParserOptions{Stored: true})
	require.NoError(t, err)
	datadriven.RunTest(t, "testdata/stored/stored.txt", func(t *testing.T, cmd *datadriven.TestData) string {
		src := statemachine.Source{File: "w.yaml", Text: []byte(statemachine.Expand(cmd.Input))}
		took := cputest.Watch()
		_, err := parser.Parse(src)
		assert.LessOrEqual(t, took(), mostToParse, cmd.Pos)
		_, read := parser.With(statemachine.ParserOptions{Stored: true}).Parse(src)
		if len(src.Text) < 10_000 {
			_, asNew := stored.With(options).Parse(src)
			_, asStored := stored.Parse(src)
			assert.True(t, written(asNew) == written(err) && written(read) == written(asStored), "%s: the parsers differ", cmd.Pos)
		}
		return "new: " + written(err) + "stored: " + written(read)
	})
}

func written(err error) string {
	if err == nil {
		return "ok\n"
	}
	return err.Error() + "\n"
}

func twoVersions(t *testing.T, parser *statemachine.Parser) func(uint64) (*statemachine.Definition, error) {
	all := map[uint64]*statemachine.Definition{}
	for number, machines := range map[uint64]string{
		1: "{main: {initial: a, states: {a: {on: {x: b}}, b: {initial: c, states: {c: {on: {y: a}}}}}}, old: {initial: o, states: {o: {type: final}}}}",
		2: "{main: {initial: review, states: {review: {on: {x: group}}, group: {initial: inner, states: {h: {type: history}, inner: {on: {y: review, z: h}}}}}}}",
	} {
		text := fmt.Sprintf("id: w\nversion: %d\nstateMachines: %s\n", number, machines)
		parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		require.NoError(t, err)
		all[number] = parsed.Definition
	}
	return func(number uint64) (*statemachine.Definition, error) {
		if d := all[number]; d != nil {
			return d, nil
		}
		return nil, errors.New("not found")
	}
}

// TestNamesThatAreNoIdentifiers holds the forms of identifiers.
func TestNamesThatAreNoIdentifiers(t *testing.T) {
	long := strings.Repeat("a", 128)
	for name, want := range map[string]bool{
		"a": true, "leave-request": true, "A.b_c~d-1": true, "0": true, long: true,
		"": false, ".": false, "..": false, "-a": false, "_a": false, "a b": false, "a/b": false, "a\x00": false,
		"ä": false, long + "a": false, "a\n": false, "%2e": false,
	} {
		assert.Equal(t, want, statemachine.IsIdentifier(name), "IsIdentifier(%q)", name)
	}
}
