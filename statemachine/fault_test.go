package statemachine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

// TestFault plays testdata/fault: each definition and the faults that loading
// it reports.
func TestFault(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{
		HasRole:      func(name string) bool { return name == "manager" || name == "employee" },
		Roles:        []string{"manager", "employee"},
		HasPrivilege: func(name string) bool { return name == "mod-form" },
		Privileges:   []string{"mod-form"},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"amount.schema.json": `{"type": "object", "properties": {"amount": {"type": "number"}}}`,
		"broken.schema.json": `{"type": "obj"}`,
		"outside.json":       `{"$ref": "http://example.org/schema.json"}`,
	}
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, errMissing
		}
		return []byte(text), nil
	}
	datadriven.Walk(t, "testdata/fault", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, cmd *datadriven.TestData) string {
			file := "w." + cmd.Cmd
			_, err := parser.Parse(statemachine.Source{File: file, Text: []byte(cmd.Input), Read: read})
			if err != nil {
				return err.Error() + "\n"
			}
			return "ok\n"
		})
	})
}

// TestFaultsSayWhatToDo holds that faults have a file, a line and advice
// (statemachine/DEFINITION.md, "Faults").
func TestFaultsSayWhatToDo(t *testing.T) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{HasRole: func(string) bool { return false }, Roles: []string{"clerk"}})
	if err != nil {
		t.Fatal(err)
	}
	chart := func(states string) string {
		return "id: w\nstateMachines: {m: {initial: a, states: {" + states + "}}}\n"
	}
	for fault, text := range map[string]string{
		"unknown key":          "idd: w\n" + chart("a: {on: {x: a}}"),
		"unknown target":       chart("a: {on: {x: qqqqqq}}"),
		"unknown role":         "allow: {read: {roles: [qqqqqq]}}\n" + chart("a: {on: {x: a}}"),
		"unknown event":        chart("a: {on: {x: {actions: {raise: qqqqqq}}}}"),
		"duplicate node":       chart("a: {initial: b, states: {b: {on: {x: b}}, c: {initial: b, states: {b: {on: {x: b}}}}}}"),
		"duplicate key":        chart("a: {on: {x: a}}, a: {on: {x: a}}"),
		"unreachable":          chart("a: {on: {x: a}}, b: {on: {x: a}}"),
		"can never be taken":   chart("a: {on: {x: [a, a]}}"),
		"cycle of eventless":   chart("a: {always: b}, b: {always: a}"),
		"no exit":              chart("a: {on: {x: b}}, b: {}"),
		"a final node cannot":  chart("a: {on: {x: b}}, b: {type: final, on: {x: a}}"),
		"no matching overload": chart("a: {on: {x: {guard: '1 + \"b\" == 2', target: a}}}"),
		"undeclared reference": chart("a: {on: {x: {guard: 'qqqqqq', target: a}}}"),
		"the result must be":   chart("a: {on: {x: {guard: '1', target: a}}}"),
		"Syntax error":         chart("a: {on: {x: {guard: '1 +', target: a}}}"),
		"too expensive":        chart("a: {on: {x: {guard: 'svcPublic.a.all(x, svcPublic.b.all(y, svcPublic.c.all(z, x == y && y == z)))', target: a}}}"),
		"must lie inside":      chart("a: {initial: b, states: {c: {on: {x: c}}}}, b: {on: {x: a}}"),
		"is a history node":    chart("a: {initial: h, states: {b: {on: {x: b}}, h: {type: history, target: h}}}"),
		"cannot be active":     chart("a: {on: {x: {target: [a, b]}}}, b: {on: {x: a}}"),
	} {
		_, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(text)})
		var faults document.Faults
		if !errors.As(err, &faults) {
			t.Errorf("%s: got %v", fault, err)
			continue
		}
		found := false
		for _, f := range faults {
			found = found || strings.Contains(f.Reason, fault)
			if f.File != "w.yaml" || f.Line == 0 || f.Suggestion == "" {
				t.Errorf("%s: got %q in %s:%d and no advice", fault, f.Reason, f.File, f.Line)
			}
		}
		if !found {
			t.Errorf("%s: got %v", fault, err)
		}
	}
}

type missing struct{}

func (missing) Error() string { return "file is not there" }

var errMissing = missing{}

// TestNamesThatAreNoIdentifiers holds the forms of identifiers.
func TestNamesThatAreNoIdentifiers(t *testing.T) {
	long := strings.Repeat("a", 128)
	for name, want := range map[string]bool{
		"a": true, "leave-request": true, "A.b_c~d-1": true, "0": true, long: true,
		"": false, ".": false, "..": false, "-a": false, "_a": false, "a b": false, "a/b": false, "a\x00": false,
		"ä": false, long + "a": false, "a\n": false, "%2e": false,
	} {
		if got := statemachine.IsIdentifier(name); got != want {
			t.Errorf("IsIdentifier(%q): got %v, want %v", name, got, want)
		}
	}
}
