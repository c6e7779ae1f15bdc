package design

import (
	"context"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
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
func (g *Group) listDefinitions(x *kernel.Exchange) error {
	if g.Definitions == nil {
		return failure.ErrNotFound
	}
	all, err := g.Definitions.List()
	if err != nil {
		return err
	}
	answer := api.DefinitionList{Definitions: make([]api.PublishedWorkflow, 0, len(all))}
	for _, w := range all {
		answer.Definitions = append(answer.Definitions, api.PublishedWorkflow{
			ID: w.ID, Name: w.Name, Current: w.Current, Creatable: w.Creatable, Versions: w.Versions, Owners: ownersOf(w.Owners), Publisher: show.TextOrNil(w.Publisher),
		})
	}
	return x.AnswerJSON(answer)
}

// showDefinition answers GET workflow/api/v1/definitions/{workflowId} and …/{version}.
func (g *Group) showDefinition(x *kernel.Exchange) error {
	id, text := x.Params.ByName("workflowId"), x.Params.ByName("version")
	number := uint64(0)
	if text != "" {
		var ok bool
		if number, ok = parse.Version(text); !ok {
			return failure.ErrNotFound
		}
	}
	if g.Definitions == nil {
		return failure.ErrNotFound
	}
	d, err := g.Definitions.Text(id, number)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.Definition{
		ID: id, Version: d.Version, Current: d.Current, File: d.File, Text: d.Text, Refs: d.Refs, Owners: ownersOf(d.Owners), Publisher: show.TextOrNil(d.Publisher),
	})
}

func ownersOf(o *statemachine.Owners) api.Owners {
	if o == nil {
		o = &statemachine.Owners{}
	}
	return api.Owners{Roles: show.OrEmpty(o.Roles), Privileges: show.OrEmpty(o.Privileges), Users: show.OrEmpty(o.Users)}
}

// publishDefinition answers PUT workflow/api/v1/definitions/{workflowId} and …/{version}.
func (g *Group) publishDefinition(x *kernel.Exchange) error {
	dryRun, err := parse.Flag(x.Query, "dryRun")
	if err != nil {
		return err
	}
	if g.Definitions == nil {
		return failure.ErrNotFound
	}
	file := "body.yaml" // NB: without a type as well, since JSON is YAML
	if parse.HasType(x.Request.Header, "application/json") {
		file = "body.json"
	}
	published, err := g.Definitions.PublishDefinition(x.Request.Context(), &DefinitionRequest{
		Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), Version: x.Params.ByName("version"),
		File: file, Text: x.Body, DryRun: dryRun,
	})
	if err != nil {
		return x.AnswerFaults(err)
	}
	return x.AnswerJSON(published)
}

// retireDefinition answers DELETE workflow/api/v1/definitions/{workflowId} and …/{version}.
func (g *Group) retireDefinition(x *kernel.Exchange) error {
	number, ok := uint64(0), true
	if text := x.Params.ByName("version"); text != "" {
		number, ok = parse.Version(text)
	}
	if g.Definitions == nil || !ok {
		return failure.ErrNotFound
	}
	id := x.Params.ByName("workflowId")
	retired, err := g.Definitions.Retire(x.Request.Context(), id, number, x.Caller)
	if err != nil {
		return err
	}
	return x.AnswerJSON(api.RetiredDefinition{ID: id, Versions: retired})
}
