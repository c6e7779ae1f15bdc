package gateway

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/presentation"
	"troupe/actors/query"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
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

// presentationRoutes show how people see workflows and instances.
func presentationRoutes() []route {
	const path = "/workflow/api/v1"
	row := func(name, path string, handle func(*exchange) error, query ...string) route {
		return route{
			name: name, method: http.MethodGet, path: path, group: groupWorkflow,
			access: signedIn(identity.Token | identity.Session), query: query, handle: func(x *exchange) error {
				if x.services.Presentations == nil {
					return failure.ErrNotFound
				}
				return handle(x)
			},
		}
	}
	ofDefinition := row("definition-diagram", path+"/definitions/:workflowId/:version/diagram", drawDefinition, "counts")
	ofDefinition.privilege = identity.Workflows
	return []route{
		row("presentation", path+"/presentation/:workflowId", showPresentation, "version"),
		row("summary", path+"/instance/:workflowId/:instanceId/summary", showSummary),
		row("instance-diagram", path+"/instance/:workflowId/:instanceId/diagram", drawInstance),
		ofDefinition,
	}
}

// parseVersion reads the number of a version, without signs and leading zeros.
func parseVersion(text string) (number uint64, ok bool) {
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && number > 0 && number <= math.MaxInt64 && strconv.FormatUint(number, 10) == text
}

// showPresentation answers GET workflow/api/v1/presentation/{workflowId}.
func showPresentation(x *exchange) error {
	text, err := parse.Text(x.query, "version")
	if err != nil {
		return err
	}
	version, ok := parseVersion(text)
	if text != "" && !ok {
		return parse.Malformed(`the query parameter "version" must be a number from 1 on`)
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	d, err := x.services.Presentations.Presented(x.caller, x.params.ByName("workflowId"), version)
	if err != nil {
		return err
	}
	languages := x.languages()
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
		answer.Nodes = append(answer.Nodes, statusOf(s.Position, s.NodeLabel, languages))
	}
	for _, s := range d.CompoundNodes() {
		answer.Compounds = append(answer.Compounds, statusOf(s.Position, s.NodeLabel, languages))
	}
	for _, name := range d.PresentedEvents() {
		answer.Events = append(answer.Events, presentedEvent(d, name, languages))
	}
	for _, path := range d.Indexes {
		if path[0] != "svcPrivate" || x.caller.Has(identity.Workflows) {
			answer.Sorts = append(answer.Sorts, path.String())
		}
	}
	return x.answerJSON(answer)
}

func statusOf(p statemachine.Position, l statemachine.NodeLabel, languages []string) api.Status {
	return api.Status{StateMachineID: string(p.Machine), NodeID: string(p.Node), Label: l.Label.For(languages...), Tone: l.Tone.String()}
}

func presentedEvent(d *statemachine.Definition, name statemachine.EventName, languages []string) api.PresentedEvent {
	e := d.EventLabel(name)
	out := api.PresentedEvent{Name: string(name), Label: e.Label.For(languages...), Style: e.Style.String()}
	if e.Done != nil {
		done := e.Done.For(languages...)
		out.Done = &done
	}
	return out
}

// showSummary answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/summary.
func showSummary(x *exchange) error {
	of, err := x.instanceRequest()
	if err != nil {
		return err
	}
	s, err := x.services.Presentations.Summary(x.r.Context(), of)
	if err != nil {
		return err
	}
	languages := x.languages()
	answer := api.Summary{
		WorkflowID: of.WorkflowID, InstanceID: of.InstanceID, WorkflowName: s.Of.Name, Version: s.Of.Version,
		Title: s.Called().For(languages...), Status: standingOf(&s.Line, languages), Columns: columnsOf(&s.Line, languages),
		CreatedAt: timeText(s.Created), UpdatedAt: timeText(s.Updated), Requester: s.Requester, RequesterName: x.nameOf(s.Requester),
		Done: s.IsDone, Ended: endedText(s.IsDone, s.IsEnded), Tasks: x.tasksIn(s.Tasks, languages),
	}
	if s.Form != nil {
		answer.Form = &api.SummaryForm{FormID: s.Form.TemplateID, Name: s.Form.Name, Kind: s.Form.Kind.String()}
	}
	x.w.Header()["Etag"] = []string{parse.EntityTag(s.Sequence)}
	return x.answerJSON(answer)
}

// standingOf are its positions.
func standingOf(l *presentation.Line, languages []string) []api.Status {
	out := []api.Status{}
	for _, p := range l.At {
		out = append(out, statusOf(p, l.Of.LabelOf(p), languages))
	}
	return out
}

// columnsOf are the columns of its definition with what it has there.
func columnsOf(l *presentation.Line, languages []string) []api.ColumnValue {
	out := []api.ColumnValue{}
	for k, c := range l.Of.Columns {
		out = append(out, api.ColumnValue{Path: c.Path.String(), Label: c.Label.For(languages...), Value: json.RawMessage(l.Values[k])})
	}
	return out
}

// endedText is the member ended: how an instance came to its end, nil while it goes on.
func endedText(isDone, isCancelled bool) *string {
	switch done, cancelled := "done", "cancelled"; {
	case isCancelled:
		return &cancelled
	case isDone:
		return &done
	}
	return nil
}

// instanceRequest is for the instance that the path names.
func (x *exchange) instanceRequest() (*message.Load, error) {
	of := &message.Load{Caller: x.caller, WorkflowID: x.params.ByName("workflowId"), InstanceID: x.params.ByName("instanceId")}
	return of, x.checkIdentifiers()
}

// presentEvents adds to events how people see them.
func presentEvents(events []api.Event, reply *message.Events, languages []string) {
	for i := range events {
		e := &events[i]
		seen := presentedEvent(reply.Of, statemachine.EventName(e.Name), languages)
		e.Label, e.Done, e.Style = seen.Label, seen.Done, seen.Style
		for k := range e.Transitions {
			t := &e.Transitions[k]
			from := statemachine.Position{Machine: statemachine.MachineID(t.StateMachineID)}
			t.TargetLabels = []string{}
			for _, target := range t.Targets {
				l := reply.Of.LabelOfTarget(from, statemachine.NodeID(target))
				t.TargetLabels = append(t.TargetLabels, l.Label.For(languages...))
			}
		}
	}
}
