package identity

import _ "embed"

// fileSchema is held against ParseDirectory by tests, both ways.
//
//go:embed identity.schema.json
var fileSchema string

// FileSchema returns the JSON Schema 2020-12 of identity.yaml, for editors and other tools.
// Whatever it refuses, ParseDirectory refuses.
func FileSchema() string { return fileSchema }
