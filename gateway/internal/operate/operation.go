package operate

import (
	"context"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
)

// Operations has what happens by itself, as those who run the service see it. Errors are those of package failure.
type Operations interface {
	// Pending lists what an instance waits for.
	Pending(context.Context, *message.Load) (*message.Pending, error)
	Deliveries(context.Context, *pending.DeliveryList) (*pending.DeliveryPage, error)
	// ChangeDelivery returns when it is durable.
	ChangeDelivery(ctx context.Context, id string, action outbox.Action) error
	Incidents(context.Context, *pending.IncidentList) (*pending.IncidentPage, error)
	Timers(context.Context, *pending.TimerList) (*pending.TimerPage, error)
	Schedules(context.Context) ([]schedule.State, error)
	// ChangeSchedule returns when it is durable.
	ChangeSchedule(ctx context.Context, workflowID, name string, action schedule.Action) error
	// ChangeIncident gives the instance its event once more, or drops the incident.
	ChangeIncident(ctx context.Context, caller *identity.Principal, id string, drop bool) error
	// StopTree ends an instance and all that it has invoked.
	StopTree(ctx context.Context, workflowID, instanceID, user string) error
}

// listPending answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/pending.
func (g *Group) listPending(x *kernel.Exchange) error {
	of := message.Load{
		Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId"),
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	pending, err := g.Workflows.Pending(x.Request.Context(), &of)
	if err != nil {
		return err
	}
	answer := api.Pending{Timers: []api.Timer{}, Deliveries: []api.PendingDelivery{}, Children: []api.Child{}, Version: pending.Version}
	answer.Ended = show.Ended(pending.IsDone, pending.IsEnded)
	for _, c := range pending.Children {
		answer.Children = append(answer.Children, api.Child{WorkflowID: c.WorkflowID, InstanceID: c.InstanceID, Status: c.Status.String()})
	}
	for i := range pending.Timers {
		answer.Timers = append(answer.Timers, show.Timer(pending.Timers[i].ID, &pending.Timers[i].Timer))
	}
	for i := range pending.Deliveries {
		answer.Deliveries = append(answer.Deliveries, show.PendingDelivery(&pending.Deliveries[i], x.Caller.Has(identity.Workflows)))
	}
	return x.AnswerJSON(answer)
}

// listDeliveries answers GET workflow/api/v1/outbox.
func (g *Group) listDeliveries(x *kernel.Exchange) (err error) {
	list := pending.DeliveryList{Caller: x.Caller}
	if list.State, err = parse.Choice(x.Query, "state", outbox.Pending, outbox.Dead); err != nil {
		return err
	}
	if list.Limit, err = parse.Limit(x.Query, parse.PageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.Query); err != nil {
		return err
	}
	page, err := g.Workflows.Deliveries(x.Request.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Outbox []api.Delivery `json:"outbox"`
		Next   *string        `json:"next"`
	}{[]api.Delivery{}, x.LinkNext(page.Next)}
	for i := range page.Deliveries {
		answer.Outbox = append(answer.Outbox, show.Delivery(&page.Deliveries[i]))
	}
	return x.AnswerJSON(answer)
}

// listIncidents answers GET workflow/api/v1/incidents.
func (g *Group) listIncidents(x *kernel.Exchange) (err error) {
	list := pending.IncidentList{Caller: x.Caller}
	if list.Limit, err = parse.Limit(x.Query, parse.PageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.Query); err != nil {
		return err
	}
	page, err := g.Workflows.Incidents(x.Request.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Incidents []api.Incident `json:"incidents"`
		Next      *string        `json:"next"`
	}{[]api.Incident{}, x.LinkNext(page.Next)}
	for _, in := range page.Incidents {
		answer.Incidents = append(answer.Incidents, incidentOf(&in))
	}
	return x.AnswerJSON(answer)
}

func incidentOf(in *pending.Incident) api.Incident {
	out := api.Incident{ID: in.ID, WorkflowID: in.Workflow, InstanceID: in.InstanceID, Event: in.Event, Error: in.Error, TS: show.Time(in.At)}
	r := in.Row
	if r == nil {
		out.Version, out.File, out.Line, out.Expression, out.First, out.Count = in.Version, in.File, in.Line, in.Expression, out.TS, 1
		return out
	}
	out.Kind, out.Version, out.File, out.Line, out.Expression = string(r.Kind), r.Version, r.File, r.Line, r.Expression
	out.User, out.First, out.Count = r.User, show.Time(r.First), r.Count
	for _, read := range r.Read {
		v := api.IncidentValue{Path: read.Path}
		if read.Value != "" {
			v.Value = &read.Value
		}
		out.Values = append(out.Values, v)
	}
	return out
}

// listTimers answers GET workflow/api/v1/timers.
func (g *Group) listTimers(x *kernel.Exchange) (err error) {
	list := pending.TimerList{User: x.Caller.ID}
	if list.Workflow, err = parse.Text(x.Query, "workflowId"); err != nil {
		return err
	}
	if list.Limit, err = parse.Limit(x.Query, parse.PageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.Query); err != nil {
		return err
	}
	page, err := g.Workflows.Timers(x.Request.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Timers []api.RunningTimer `json:"timers"`
		Next   *string            `json:"next"`
	}{[]api.RunningTimer{}, x.LinkNext(page.Next)}
	for i := range page.Timers {
		t := &page.Timers[i]
		answer.Timers = append(answer.Timers, api.RunningTimer{WorkflowID: t.Workflow, InstanceID: t.InstanceID, Timer: show.Timer(t.ID, &t.Timer)})
	}
	return x.AnswerJSON(answer)
}

// changeDelivery answers POST workflow/api/v1/outbox/{id}.
func (g *Group) changeDelivery(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeDelivery(x.Request.Context(), x.Params.ByName("id"), action); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

// changeIncident answers POST workflow/api/v1/incidents/{id}.
func (g *Group) changeIncident(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeIncident(x.Request.Context(), x.Caller, x.Params.ByName("id"), action == outbox.Drop); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

// stopInstance answers POST workflow/api/v1/instance/{workflowId}/{instanceId}/stop.
func (g *Group) stopInstance(x *kernel.Exchange) error {
	body, err := parse.Body(x.Body)
	if err != nil {
		return err
	}
	tree := false
	for key, v := range body.Members() {
		if key != "tree" {
			return parse.UnknownMember("", key, "tree")
		}
		tree = string(v) == "true"
	}
	if !tree {
		return failure.Refuse(failure.ErrInvalid, "tree must be true: with an instance all that it has invoked ends")
	}
	if err := g.Workflows.StopTree(x.Request.Context(), x.Params.ByName("workflowId"), x.Params.ByName("instanceId"), string(x.Caller.ID)); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

// listSchedules answers GET workflow/api/v1/schedules.
func (g *Group) listSchedules(x *kernel.Exchange) error {
	list, err := g.Workflows.Schedules(x.Request.Context())
	if err != nil {
		return err
	}
	answer := api.ScheduleList{Schedules: []api.Schedule{}}
	for i := range list {
		s := &list[i]
		answer.Schedules = append(answer.Schedules, api.Schedule{
			WorkflowID: s.Workflow, Name: s.Name, Cron: s.Cron, Zone: s.Zone, Paused: s.Paused, Last: show.TimeOrNil(s.Last), Next: show.TimeOrNil(s.Next), LastError: s.LastError,
		})
	}
	return x.AnswerJSON(answer)
}

// changeSchedule answers POST workflow/api/v1/schedules/{workflowId}/{name}.
func (g *Group) changeSchedule(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, schedule.Pause, schedule.Resume, schedule.Run)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeSchedule(x.Request.Context(), x.Params.ByName("workflowId"), x.Params.ByName("name"), action); err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}
