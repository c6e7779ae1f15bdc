package xstate

import (
	"slices"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/document"
)

func named(err error, file string) error {
	faults, ok := err.(document.Faults) //nolint:errorlint // document.Parse returns nothing else
	if !ok {
		return err
	}
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].File = file
	}
	return faults
}

// check parses a definition that was written. Its faults are named where the JSON has what they are about.
func check(name string, text []byte, w *document.Writer) error {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return err
	}
	if _, err = parser.Parse(statemachine.Source{File: "machine.yaml", Text: text}); err == nil {
		return nil
	}
	faults, ok := err.(document.Faults) //nolint:errorlint // Parse returns nothing else
	if !ok {
		return err
	}
	out := make(document.Faults, len(faults))
	for i, fault := range faults {
		fault.File = name
		if strings.Contains(fault.Reason, "undeclared reference to 'context'") {
			fault.Suggestion = "the members of the context are those of svcPublic here: svcPublic.count"
		}
		if from := w.SourceOf(fault.Line, fault.Column); from != nil {
			fault.Line, fault.Column = from.Line, from.Column
		} else {
			fault.Line, fault.Column = 0, 0
		}
		out[i] = fault
	}
	out.Sort()
	return out
}
