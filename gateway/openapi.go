package gateway

import _ "embed"

// openapiYAML is the whole interface, for machines and for people. Tests hold it
// against the table of routes, and every exchange of theirs against it.
//
//go:embed openapi.yaml
var openapiYAML []byte
