package gateway

import (
	"context"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
)

// Definitions is what showing and publishing definitions needs. Errors are those of package
// failure.
type Definitions interface {
	List() ([]catalog.Listed, error)
	// Text returns a version of a workflow; 0 is the current one.
	Text(workflow string, version uint64) (catalog.Text, error)
	// PublishDefinition checks a definition and makes it what new instances get. The error of one
	// with faults is failure.ErrInvalid and wraps document.Faults.
	PublishDefinition(ctx context.Context, r *DefinitionRequest) (api.PublishedDefinition, error)
	// Retire removes a version of a workflow, or all of them when version is 0, and returns which.
	Retire(ctx context.Context, workflow string, version uint64, by *identity.Principal) ([]uint64, error)
}

// DefinitionRequest is a definition that somebody publishes.
type DefinitionRequest struct {
	Caller *identity.Principal
	// WorkflowID and Version are what the path says, which the text must say too. Nobody has
	// looked at them. Version is empty when the path has none.
	WorkflowID, Version string
	// File is the name to read the text under: its extension says YAML or JSON.
	File   string
	Text   []byte
	DryRun bool // only check it
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
		answer.Definitions = append(answer.Definitions, api.PublishedWorkflow{
			ID: w.ID, Name: w.Name, Current: w.Current, Creatable: w.Creatable, Versions: w.Versions, Owners: ownersOf(w.Owners), Publisher: textOrNil(w.Publisher),
		})
	}
	return x.answerJSON(answer)
}

// showDefinition answers GET workflow/api/v1/definitions/{workflowId} and …/{version}.
func showDefinition(x *exchange) error {
	id, text := x.params.ByName("workflowId"), x.params.ByName("version")
	number := uint64(0)
	if text != "" {
		var ok bool
		if number, ok = parseVersion(text); !ok {
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
	return x.answerJSON(api.Definition{
		ID: id, Version: d.Version, Current: d.Current, File: d.File, Text: d.Text, Refs: d.Refs, Owners: ownersOf(d.Owners), Publisher: textOrNil(d.Publisher),
	})
}

func ownersOf(o *statemachine.Owners) api.Owners {
	if o == nil {
		o = &statemachine.Owners{}
	}
	return api.Owners{Roles: orEmpty(o.Roles), Privileges: orEmpty(o.Privileges), Users: orEmpty(o.Users)}
}

// publishDefinition answers PUT workflow/api/v1/definitions/{workflowId} and …/{version}.
func publishDefinition(x *exchange) error {
	dryRun, err := parse.Flag(x.query, "dryRun")
	if err != nil {
		return err
	}
	if x.services.Definitions == nil {
		return failure.ErrNotFound
	}
	file := "body.yaml" // NB: without a type as well, since JSON is YAML
	if parse.HasType(x.r.Header, "application/json") {
		file = "body.json"
	}
	published, err := x.services.Definitions.PublishDefinition(x.r.Context(), &DefinitionRequest{
		Caller: x.caller, WorkflowID: x.params.ByName("workflowId"), Version: x.params.ByName("version"),
		File: file, Text: x.body, DryRun: dryRun,
	})
	if err != nil {
		return x.answerFaults(err)
	}
	return x.answerJSON(published)
}

// retireDefinition answers DELETE workflow/api/v1/definitions/{workflowId} and …/{version}.
func retireDefinition(x *exchange) error {
	number, ok := uint64(0), true
	if text := x.params.ByName("version"); text != "" {
		number, ok = parseVersion(text)
	}
	if x.services.Definitions == nil || !ok {
		return failure.ErrNotFound
	}
	id := x.params.ByName("workflowId")
	retired, err := x.services.Definitions.Retire(x.r.Context(), id, number, x.caller)
	if err != nil {
		return err
	}
	return x.answerJSON(api.RetiredDefinition{ID: id, Versions: retired})
}
