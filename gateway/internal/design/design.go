// Package design has the routes of definitions: which there are, how people see them and their instances,
// and their diagrams.
package design

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"troupe/actors/audit"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine"
	"troupe/statemachine/diagram"
)

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	// Definitions shows what was published.
	Definitions Definitions
	// Presentations has how people see workflows and instances.
	Presentations Presentations
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users

	Drawing chan struct{} // has an element for each picture that is being drawn
}

// New returns a group that has nothing yet.
func New() *Group { return &Group{Drawing: make(chan struct{}, DrawnAtOnce)} }

// Routes show and publish definitions, and how people see them and their instances.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath}
	row := base.Row
	base.Privilege = identity.Workflows
	manage := base.Row
	base.ContentBytesMax = simulationBytesMax
	simulate := base.Row("simulate", "POST", "/definitions/simulate", g.simulate)
	base.TakesYAML, base.ContentBytesMax = true, home.MaxFileBytes
	publish := base.Row
	return []kernel.Route{
		manage("definitions", "GET", "/definitions", g.listDefinitions),
		manage("definition", "GET", "/definitions/:workflowId", g.showDefinition),
		manage("definition-version", "GET", "/definitions/:workflowId/:version", g.showDefinition),
		publish("publish-definition", "PUT", "/definitions/:workflowId", g.publishDefinition, "dryRun"),
		publish("publish-definition-version", "PUT", "/definitions/:workflowId/:version", g.publishDefinition, "dryRun"),
		manage("retire-definition", "DELETE", "/definitions/:workflowId", g.retireDefinition),
		manage("retire-definition-version", "DELETE", "/definitions/:workflowId/:version", g.retireDefinition),
		simulate,
		row("presentation", "GET", "/presentation/:workflowId", g.showPresentation, "version"),
		row("summary", "GET", "/instance/:workflowId/:instanceId/summary", g.showSummary),
		row("instance-diagram", "GET", "/instance/:workflowId/:instanceId/diagram", g.drawInstance, "at"),
		manage("definition-diagram", "GET", "/definitions/:workflowId/:version/diagram", g.drawDefinition, "counts"),
	}
}

// Definitions is what showing and publishing definitions needs. Errors are those of package failure.
type Definitions interface {
	List() ([]catalog.Listed, error)
	// Text returns a version of a workflow; 0 is the current one.
	Text(workflow string, version uint64) (catalog.Text, error)
	// PublishDefinition checks a definition and makes it what new instances get. The error of one
	// with faults is failure.ErrInvalid and wraps document.Faults.
	PublishDefinition(ctx context.Context, r *DefinitionRequest) (api.PublishedDefinition, error)
	// Retire removes a version of a workflow, or all of them when version is 0, and returns which.
	Retire(ctx context.Context, workflow string, version uint64, by *identity.Principal) ([]uint64, error)
	// Simulate returns the JSON of an api.Simulation. The error of a definition or steps with faults is failure.ErrInvalid and wraps
	// document.Faults.
	Simulate(ctx context.Context, r *home.Simulation) (json.RawMessage, error)
}

// DefinitionRequest is a definition that somebody publishes.
type DefinitionRequest struct {
	Caller *identity.Principal
	// WorkflowID and Version are what the path says, which the text must say too. Nobody has
	// looked at them. Version is empty when the path has none.
	WorkflowID, Version string
	File                string // the name to read the text under: its extension says YAML or JSON
	Text                []byte
	DryRun              bool // only check it
}

func (g *Group) listDefinitions(x *kernel.Exchange) error {
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

func (g *Group) showDefinition(x *kernel.Exchange) error {
	id, text := x.Params.ByName("workflowId"), x.Params.ByName("version")
	number := uint64(0)
	if text != "" {
		var ok bool
		if number, ok = parse.Version(text); !ok {
			return failure.ErrNotFound
		}
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

func (g *Group) publishDefinition(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	dryRun := q.Flag("dryRun")
	if q.Err != nil {
		return q.Err
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
	if !dryRun {
		x.Note(audit.DefinitionPublish, published.ID+"/"+strconv.FormatUint(published.Version, 10))
	}
	return x.AnswerJSON(published)
}

func (g *Group) retireDefinition(x *kernel.Exchange) error {
	number, ok := uint64(0), true
	if text := x.Params.ByName("version"); text != "" {
		number, ok = parse.Version(text)
	}
	if !ok {
		return failure.ErrNotFound
	}
	id := x.Params.ByName("workflowId")
	retired, err := g.Definitions.Retire(x.Request.Context(), id, number, x.Caller)
	if err != nil {
		return err
	}
	x.Note(audit.DefinitionRetire, strings.TrimSuffix(id+"/"+x.Params.ByName("version"), "/"))
	return x.AnswerJSON(api.RetiredDefinition{ID: id, Versions: retired})
}

// Presentations has how people see workflows and instances. Errors are those of package failure.
type Presentations interface {
	Summary(context.Context, *message.Load) (*presentation.Summary, error)
	// Lines returns some instances as people see them in a list; nil for those that the caller may not read.
	Lines(ctx context.Context, caller *identity.Principal, of []presentation.Name) ([]*presentation.Line, error)
	// Called returns what one of them is called; no text for those.
	Called(from query.Loader, caller *identity.Principal, of presentation.Name) (statemachine.Text, error)
	// Trace returns where an instance stands and the way that it came; unless at is 0, as after that entry of its history.
	Trace(ctx context.Context, of *message.Load, at uint64) (*presentation.Trace, error)
	// Presented returns a version of a workflow's definition, 0 being the newest, for who may read or create its instances.
	Presented(caller *identity.Principal, workflowID string, version uint64) (*statemachine.Definition, error)
	// Standing counts how many instances stand at each position, no matter who may see them.
	Standing(ctx context.Context, caller *identity.Principal, workflowID string, at []statemachine.Position) ([]query.Standing, error)
}

func (g *Group) showPresentation(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	text := q.Text("version")
	version, ok := parse.Version(text)
	if text != "" && !ok {
		q.Refuse(`the query parameter "version" must be a number from 1 on`)
	}
	if q.Err != nil {
		return q.Err
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
	for _, s := range d.LeafNodes() {
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

func (g *Group) showSummary(x *kernel.Exchange) error {
	of, err := x.InstanceRequest()
	if err != nil {
		return err
	}
	s, err := g.Presentations.Summary(x.Request.Context(), of)
	if err != nil {
		return err
	}
	x.NoteInstance(of)
	languages := x.Languages()
	answer := api.Summary{
		WorkflowID: of.WorkflowID, InstanceID: of.InstanceID, WorkflowName: s.Of.Name, Version: s.Of.Version,
		Title: s.Called().For(languages...), Status: show.Statuses(&s.Line, languages), Columns: show.Columns(&s.Line, languages),
		CreatedAt: show.Time(s.Created), UpdatedAt: show.Time(s.Updated), Requester: s.Requester, RequesterName: show.Names{Users: g.Users}.Of(s.Requester),
		Done: s.IsDone, Ended: show.Ended(s.IsDone, s.IsEnded), Tasks: show.Tasks(s.Tasks, languages, show.Names{Users: g.Users}),
	}
	if s.Form != nil {
		answer.Form = &api.SummaryForm{FormID: s.Form.TemplateID, Name: s.Form.Name, Kind: s.Form.Kind.String()}
	}
	x.SetLeader(of.InstanceID)
	x.Writer.Header()["Etag"] = []string{parse.EntityTag(s.Sequence)}
	return x.AnswerJSON(answer)
}

const (
	// DrawnAtOnce bounds the pictures that are drawn at a time: one of the largest charts takes most of a second and 140 MB.
	DrawnAtOnce = 2
	// drawWaitMax is how long a picture waits for its turn.
	drawWaitMax = 5 * time.Second
	// StepWork bounds the search for the way that an instance came: steps times nodes of the chart.
	StepWork = 200_000
	StepsMin = 20
)

var (
	valueSVG = []string{"image/svg+xml"}
	// diagramPolicy lets the one style of the picture through, for who opens it on its own.
	diagramPolicy = []string{"default-src 'none'; style-src '" + diagram.StyleHash + "'"}
)

func (g *Group) drawInstance(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	at := q.Number("at")
	if q.Err != nil {
		return q.Err
	}
	of, err := x.InstanceRequest()
	if err != nil {
		return err
	}
	trace, err := g.Presentations.Trace(x.Request.Context(), of, at)
	if err != nil {
		return err
	}
	x.NoteInstance(of)
	x.SetLeader(of.InstanceID)
	if at == 0 { // NB: the tag is of the instance as it is
		x.Writer.Header()["Etag"] = []string{parse.EntityTag(trace.Sequence)}
	}
	picture := &diagram.Picture{Chart: trace.Of.Chart()}
	picture.Instance = WayOf(trace, of.InstanceID, len(picture.Chart.Nodes))
	return g.draw(x, picture)
}

// WayOf is the instance as it is drawn: the newest steps that differ, as many as the chart allows.
func WayOf(trace *presentation.Trace, id string, nodes int) *diagram.Instance {
	in := &diagram.Instance{ID: id, At: trace.At}
	most := max(StepsMin, StepWork/max(1, nodes))
	for _, s := range trace.Steps {
		if in.Steps() == most {
			break
		}
		in.Add(diagram.Step{Event: s.Event, Start: trace.Of.PositionsNamed(s.Start), End: trace.Of.PositionsNamed(s.End)})
	}
	return in
}

func (g *Group) drawDefinition(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	counted := q.Flag("counts")
	if q.Err != nil {
		return q.Err
	}
	version, ok := parse.Version(x.Params.ByName("version"))
	if !ok {
		return failure.ErrNotFound
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	id := x.Params.ByName("workflowId")
	d, err := g.Presentations.Presented(x.Caller, id, version)
	if err != nil {
		return err
	}
	picture := &diagram.Picture{Chart: d.Chart()}
	if counted {
		if picture.Counts, err = g.counts(x, d, picture.Chart, id); err != nil {
			return err
		}
	}
	return g.draw(x, picture)
}

// counts are how many instances stand at the nodes of a chart; nodes where none does have none.
func (g *Group) counts(x *kernel.Exchange, d *statemachine.Definition, c *statemachine.Chart, id string) (map[int]diagram.Count, error) {
	var at []statemachine.Position
	for _, s := range d.LeafNodes() {
		at = append(at, s.Position)
	}
	standing, err := g.Presentations.Standing(x.Request.Context(), x.Caller, id, at)
	if err != nil {
		return nil, err
	}
	counts := map[int]diagram.Count{}
	for _, s := range standing {
		if i, ok := c.Node(s.At); ok && s.Instances > 0 {
			counts[i] = diagram.Count{Instances: s.Instances, About: s.About, AtLeast: s.AtLeast}
		}
	}
	return counts, nil
}

func (g *Group) draw(x *kernel.Exchange, p *diagram.Picture) error {
	p.Languages = x.Languages()
	wait := time.NewTimer(drawWaitMax)
	defer wait.Stop()
	select {
	case g.Drawing <- struct{}{}:
	case <-wait.C:
		return x.RejectOverload()
	case <-x.Request.Context().Done():
		return x.RejectOverload()
	}
	x.Out = append(x.Out, g.drawn(x, p)...)
	x.ContentType = valueSVG
	x.Writer.Header()["Content-Security-Policy"] = diagramPolicy
	x.Send(http.StatusOK)
	return nil
}

// drawn draws a picture and frees its place. NB: before it is sent, because anyone who reads may be slow.
func (g *Group) drawn(x *kernel.Exchange, p *diagram.Picture) []byte {
	defer func() { <-g.Drawing }()
	return p.SVG()
}
