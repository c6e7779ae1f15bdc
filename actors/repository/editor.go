package repository

import _ "embed"

// rightsSchema is held against ParseRights by tests, both ways.
//
//go:embed rights.schema.json
var rightsSchema string

// RightsSchema returns the JSON Schema 2020-12 of rights.yaml, for editors and other tools.
// Whatever it refuses, ParseRights refuses.
func RightsSchema() string { return rightsSchema }
