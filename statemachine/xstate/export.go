package xstate

import (
	"troupe/statemachine"
	"troupe/statemachine/document"
	"troupe/statemachine/xstate/internal/export"
)

// Export writes a definition as the JSON configuration of an XState v5 machine, which createMachine takes as it is. What
// guards and actions do stands in maps at its top. What XState has no key for is kept under meta.troupe, where Import
// finds it, and the warnings name it with its line in the definition. The error is document.Faults when the definition
// itself has faults, or is one of SCXML.
func Export(src statemachine.Source) (machine []byte, warnings document.Faults, err error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, nil, err
	}
	return export.Machine(parser, src)
}
