package script

import _ "embed"

// fileSchema is held against the parser by a test.
//
//go:embed test.schema.json
var fileSchema string

// FileSchema returns the JSON Schema 2020-12 of files of tests, for editors and other tools. What it refuses, Parse refuses.
func FileSchema() string { return fileSchema }
