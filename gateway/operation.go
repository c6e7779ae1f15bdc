package gateway

import (
	"context"
	"net/http"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
	"troupe/statemachine"
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

// operationRoutes show what happens by itself, and change it.
func operationRoutes() []route {
	const path = "/workflow/api/v1"
	row := func(name, method, path string, handle func(*exchange) error, query ...string) route {
		return route{
			name: name, method: method, path: path, group: groupWorkflow,
			access: signedIn(identity.Token | identity.Session), privilege: identity.Workflows, query: query, handle: handle,
		}
	}
	pending := row("pending", http.MethodGet, path+"/instance/:workflowId/:instanceId/pending", listPending)
	pending.privilege = ""
	return []route{
		pending,
		row("outbox", http.MethodGet, path+"/outbox", listDeliveries, "state", "limit", "cursor"),
		row("change-delivery", http.MethodPost, path+"/outbox/:id", changeDelivery),
		row("incidents", http.MethodGet, path+"/incidents", listIncidents, "limit", "cursor"),
		row("change-incident", http.MethodPost, path+"/incidents/:id", changeIncident),
		row("stop", http.MethodPost, path+"/instance/:workflowId/:instanceId/stop", stopInstance),
		row("timers", http.MethodGet, path+"/timers", listTimers, "workflowId", "limit", "cursor"),
		row("schedules", http.MethodGet, path+"/schedules", listSchedules),
		row("migrate", http.MethodPost, path+"/instances/:workflowId/migrate", migrateInstances),
		row("change-schedule", http.MethodPost, path+"/schedules/:workflowId/:name", changeSchedule),
	}
}

// listPending answers GET workflow/api/v1/instance/{workflowId}/{instanceId}/pending.
func listPending(x *exchange) error {
	of := message.Load{
		Caller: x.caller, WorkflowID: x.params.ByName("workflowId"), InstanceID: x.params.ByName("instanceId"),
	}
	if err := x.checkIdentifiers(); err != nil {
		return err
	}
	pending, err := x.services.Workflows.Pending(x.r.Context(), &of)
	if err != nil {
		return err
	}
	answer := api.Pending{Timers: []api.Timer{}, Deliveries: []api.PendingDelivery{}, Children: []api.Child{}, Version: pending.Version}
	answer.Ended = endedText(pending.IsDone, pending.IsEnded)
	for _, c := range pending.Children {
		answer.Children = append(answer.Children, api.Child{WorkflowID: c.WorkflowID, InstanceID: c.InstanceID, Status: c.Status.String()})
	}
	for i := range pending.Timers {
		answer.Timers = append(answer.Timers, timerOf(pending.Timers[i].ID, &pending.Timers[i].Timer))
	}
	for i := range pending.Deliveries {
		answer.Deliveries = append(answer.Deliveries, x.pendingDelivery(&pending.Deliveries[i]))
	}
	return x.answerJSON(answer)
}

// pendingDelivery is what an instance has sent out, as the caller may see it.
func (x *exchange) pendingDelivery(of *pending.Delivery) api.PendingDelivery {
	d := deliveryOf(of)
	shown := api.PendingDelivery{ID: d.ID, Kind: d.Kind, Name: d.Name, State: d.State, Attempts: d.Attempts, NextAttempt: d.NextAttempt}
	if x.caller.Has(identity.Workflows) {
		shown.URL, shown.LastStatus, shown.LastError = of.URL, d.LastStatus, d.LastError
	}
	return shown
}

func timerOf(id string, t *statemachine.Timer) api.Timer {
	out := api.Timer{ID: id, Event: string(t.Event), Due: timeText(t.Due), Incident: t.Failed}
	if t.At != (statemachine.Position{}) {
		machine, node := string(t.At.Machine), string(t.At.Node)
		out.StateMachineID, out.NodeID = &machine, &node
	}
	out.TargetID = string(t.Effect.Target)
	if t.Effect.Mails {
		out.Sends = append(out.Sends, "mail")
	}
	if t.Effect.Calls {
		out.Sends = append(out.Sends, "webhook")
	}
	return out
}

func timeText(at time.Time) string { return at.UTC().Format(statemachine.TimeLayout) }

func deliveryOf(d *pending.Delivery) api.Delivery {
	out := api.Delivery{
		ID: d.ID, Kind: d.Kind, WorkflowID: d.Workflow, InstanceID: d.InstanceID, Name: d.Name, State: string(d.State),
		Attempts: d.Attempts, Created: timeText(d.Created), LastStatus: d.LastStatus, LastError: d.LastError,
	}
	if d.State == outbox.Pending {
		next := timeText(d.Next)
		out.NextAttempt = &next
	}
	return out
}

// operationsPageDefault is the page of the lists of those who run the service.
const operationsPageDefault = 100

// listDeliveries answers GET workflow/api/v1/outbox.
func listDeliveries(x *exchange) (err error) {
	list := pending.DeliveryList{Caller: x.caller}
	if list.State, err = parse.Choice(x.query, "state", outbox.Pending, outbox.Dead); err != nil {
		return err
	}
	if list.Limit, err = parse.Limit(x.query, operationsPageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	page, err := x.services.Workflows.Deliveries(x.r.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Outbox []api.Delivery `json:"outbox"`
		Next   *string        `json:"next"`
	}{[]api.Delivery{}, x.linkNext(page.Next)}
	for i := range page.Deliveries {
		answer.Outbox = append(answer.Outbox, deliveryOf(&page.Deliveries[i]))
	}
	return x.answerJSON(answer)
}

// listIncidents answers GET workflow/api/v1/incidents.
func listIncidents(x *exchange) (err error) {
	list := pending.IncidentList{Caller: x.caller}
	if list.Limit, err = parse.Limit(x.query, operationsPageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	page, err := x.services.Workflows.Incidents(x.r.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Incidents []api.Incident `json:"incidents"`
		Next      *string        `json:"next"`
	}{[]api.Incident{}, x.linkNext(page.Next)}
	for _, in := range page.Incidents {
		answer.Incidents = append(answer.Incidents, incidentOf(&in))
	}
	return x.answerJSON(answer)
}

func incidentOf(in *pending.Incident) api.Incident {
	out := api.Incident{ID: in.ID, WorkflowID: in.Workflow, InstanceID: in.InstanceID, Event: in.Event, Error: in.Error, TS: timeText(in.At)}
	r := in.Row
	if r == nil {
		out.Version, out.File, out.Line, out.Expression, out.First, out.Count = in.Version, in.File, in.Line, in.Expression, out.TS, 1
		return out
	}
	out.Kind, out.Version, out.File, out.Line, out.Expression = string(r.Kind), r.Version, r.File, r.Line, r.Expression
	out.User, out.First, out.Count = r.User, timeText(r.First), r.Count
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
func listTimers(x *exchange) (err error) {
	list := pending.TimerList{User: x.caller.ID}
	if list.Workflow, err = parse.Text(x.query, "workflowId"); err != nil {
		return err
	}
	if list.Limit, err = parse.Limit(x.query, operationsPageDefault); err != nil {
		return err
	}
	if list.Cursor, err = parse.Cursor(x.query); err != nil {
		return err
	}
	page, err := x.services.Workflows.Timers(x.r.Context(), &list)
	if err != nil {
		return err
	}
	answer := struct {
		Timers []api.RunningTimer `json:"timers"`
		Next   *string            `json:"next"`
	}{[]api.RunningTimer{}, x.linkNext(page.Next)}
	for i := range page.Timers {
		t := &page.Timers[i]
		answer.Timers = append(answer.Timers, api.RunningTimer{WorkflowID: t.Workflow, InstanceID: t.InstanceID, Timer: timerOf(t.ID, &t.Timer)})
	}
	return x.answerJSON(answer)
}

// linkNext sets the header of a page that is not the last one, and returns its member next.
func (x *exchange) linkNext(cursor string) *string {
	if cursor == "" {
		return nil
	}
	x.w.Header()["Link"] = []string{parse.NextLink(x.r.URL.Path, x.route.query, x.query, cursor)}
	return &cursor
}

// changeDelivery answers POST workflow/api/v1/outbox/{id}.
func changeDelivery(x *exchange) error {
	action, err := parse.Action(x.body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := x.services.Workflows.ChangeDelivery(x.r.Context(), x.params.ByName("id"), action); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// changeIncident answers POST workflow/api/v1/incidents/{id}.
func changeIncident(x *exchange) error {
	action, err := parse.Action(x.body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := x.services.Workflows.ChangeIncident(x.r.Context(), x.caller, x.params.ByName("id"), action == outbox.Drop); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// stopInstance answers POST workflow/api/v1/instance/{workflowId}/{instanceId}/stop.
func stopInstance(x *exchange) error {
	body, err := parse.Body(x.body)
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
	if err := x.services.Workflows.StopTree(x.r.Context(), x.params.ByName("workflowId"), x.params.ByName("instanceId"), string(x.caller.ID)); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}

// listSchedules answers GET workflow/api/v1/schedules.
func listSchedules(x *exchange) error {
	list, err := x.services.Workflows.Schedules(x.r.Context())
	if err != nil {
		return err
	}
	answer := api.ScheduleList{Schedules: []api.Schedule{}}
	for i := range list {
		s := &list[i]
		answer.Schedules = append(answer.Schedules, api.Schedule{
			WorkflowID: s.Workflow, Name: s.Name, Cron: s.Cron, Zone: s.Zone, Paused: s.Paused, Last: timeOrNil(s.Last), Next: timeOrNil(s.Next), LastError: s.LastError,
		})
	}
	return x.answerJSON(answer)
}

func timeOrNil(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	text := timeText(at)
	return &text
}

// changeSchedule answers POST workflow/api/v1/schedules/{workflowId}/{name}.
func changeSchedule(x *exchange) error {
	action, err := parse.Action(x.body, schedule.Pause, schedule.Resume, schedule.Run)
	if err != nil {
		return err
	}
	if err := x.services.Workflows.ChangeSchedule(x.r.Context(), x.params.ByName("workflowId"), x.params.ByName("name"), action); err != nil {
		return err
	}
	return x.answerJSON(struct{}{})
}
