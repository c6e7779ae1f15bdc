package formportal

import (
	_ "embed"
	"fmt"

	"troupe/actors/catalog"
	"troupe/statemachine"
)

// PlainWorkflow is the workflow of forms and checklists that have none of their own, as fullPath shows it
// (gateway/INTERFACE.md, "Fields of a form").
const PlainWorkflow = "-"

const plainSubmit = "submit"

//go:embed plain.yaml
var plainText []byte

// AddPlainWorkflow makes PlainWorkflow known to the catalog. It must be called before the catalog is used.
func AddPlainWorkflow(catalog *catalog.Catalog, parser *statemachine.Parser) error {
	parsed, err := parser.Parse(statemachine.Source{File: "plain.yaml", Text: plainText})
	if err != nil {
		return fmt.Errorf("built-in workflow: %w", err)
	}
	catalog.AddBuiltin(PlainWorkflow, parsed.Definition)
	return nil
}
