package design

import (
	"context"

	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
)

// Presentations has how people see workflows and instances. Errors are those of package failure.
type Presentations interface {
	Summary(context.Context, *message.Load) (*presentation.Summary, error)
	// Lines returns some instances as people see them in a list; nil for those that the caller may not read.
	Lines(ctx context.Context, caller *identity.Principal, of []presentation.Name) ([]*presentation.Line, error)
	// Called returns what one of them is called; no text for those.
	Called(from *query.Reader, caller *identity.Principal, of presentation.Name) (statemachine.Text, error)
	// Trace returns where an instance stands and the way that it came.
	Trace(context.Context, *message.Load) (*presentation.Trace, error)
	// Presented returns a version of a workflow's definition, 0 being the newest, for who may read or create its instances.
	Presented(caller *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error)
	// Standing counts how many instances stand at each position, whoever may see them.
	Standing(ctx context.Context, caller *identity.Principal, workflowID string, at []statemachine.Position) ([]query.Standing, error)
}

// showPresentation answers GET workflow/api/v1/presentation/{workflowId}.
func (g *Group) showPresentation(x *kernel.Exchange) error {
	text, err := parse.Text(x.Query, "version")
	if err != nil {
		return err
	}
	version, ok := parse.Version(text)
	if text != "" && !ok {
		return parse.Malformed(`the query parameter "version" must be a number from 1 on`)
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	d, err := g.Presentations.Presented(x.Caller, x.Params.ByName("workflowId"), version)
	if err != nil {
		return err
	}
	languages := x.Languages()
	answer := api.Presentation{
		WorkflowID: string(d.ID), Name: d.Name, Version: d.Version, Titled: d.IsTitled(),
		Columns: []api.Column{}, StateMachines: []api.PresentedMachine{}, Nodes: []api.Status{}, Compounds: []api.Status{}, Events: []api.PresentedEvent{}, Sorts: []string{},
	}
	for _, c := range d.Columns {
		answer.Columns = append(answer.Columns, api.Column{Path: c.Path.String(), Label: c.Label.For(languages...)})
	}
	for _, r := range d.Regions() {
		answer.StateMachines = append(answer.StateMachines, api.PresentedMachine{StateMachineID: string(r.ID), Label: r.Label.For(languages...)})
	}
	for _, s := range d.StandingNodes() {
		answer.Nodes = append(answer.Nodes, show.Status(s.Position, s.NodeLabel, languages))
	}
	for _, s := range d.CompoundNodes() {
		answer.Compounds = append(answer.Compounds, show.Status(s.Position, s.NodeLabel, languages))
	}
	for _, name := range d.PresentedEvents() {
		answer.Events = append(answer.Events, show.Event(d, name, languages))
	}
	for _, path := range d.Indexes {
		if path[0] != "svcPrivate" || x.Caller.Has(identity.Workflows) {
			answer.Sorts = append(answer.Sorts, path.String())
		}
	}
	return x.AnswerJSON(answer)
}
