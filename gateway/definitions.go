package gateway

import (
	"math"
	"strconv"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/gateway/api"
)

// Definitions is what showing definitions needs. Errors are those of package failure.
type Definitions interface {
	List() ([]catalog.Listed, error)
	// Text returns a version of a workflow; 0 is the current one.
	Text(workflow string, version uint64) (catalog.Text, error)
}

// listDefinitions answers GET workflow/api/v1/definitions.
func listDefinitions(x *exchange) error {
	if x.services.Definitions == nil {
		return failure.ErrNotFound
	}
	all, err := x.services.Definitions.List()
	if err != nil {
		return err
	}
	answer := api.DefinitionList{Definitions: make([]api.PublishedWorkflow, 0, len(all))}
	for _, w := range all {
		answer.Definitions = append(answer.Definitions, api.PublishedWorkflow(w))
	}
	return x.answerJSON(answer)
}

// showDefinition answers GET workflow/api/v1/definitions/{workflowId} and …/{version}.
func showDefinition(x *exchange) error {
	id, text := x.params.ByName("workflowId"), x.params.ByName("version")
	number := uint64(0)
	if text != "" {
		var err error
		if number, err = strconv.ParseUint(text, 10, 64); err != nil || number == 0 || number > math.MaxInt64 || strconv.FormatUint(number, 10) != text {
			return failure.ErrNotFound
		}
	}
	if x.services.Definitions == nil {
		return failure.ErrNotFound
	}
	d, err := x.services.Definitions.Text(id, number)
	if err != nil {
		return err
	}
	return x.answerJSON(api.Definition{ID: id, Version: d.Version, Current: d.Current, File: d.File, Text: d.Text, Refs: d.Refs})
}
