package statemachine

import (
	_ "embed"
)

// definitionSchema is held against the parser by tests, both ways.
//
//go:embed definition.schema.json
var definitionSchema string

// DefinitionSchema returns the JSON Schema 2020-12 of definition files, for editors and other tools (statemachine/DEFINITION.md,
// "Editors"). Whatever it refuses, Parse refuses; Parse refuses more, because a schema sees neither targets nor expressions.
func DefinitionSchema() string { return definitionSchema }
