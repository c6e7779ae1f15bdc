package formportal

import (
	_ "embed"

	"troupe/actors/form"
)

// Tests hold the schemas against ParseTemplate, both ways.
var (
	//go:embed form.schema.json
	formFileSchema string
	//go:embed checklist.schema.json
	checklistFileSchema string
)

// FileSchema returns the JSON Schema 2020-12 of template files of a kind, for editors and other
// tools. Whatever it refuses, ParseTemplate refuses.
func FileSchema(kind form.Kind) string {
	if kind == form.KindChecklist {
		return checklistFileSchema
	}
	return formFileSchema
}
