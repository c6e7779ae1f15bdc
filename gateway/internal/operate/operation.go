package operate

import (
	"troupe/actors/audit"
	"troupe/actors/failure"
	"troupe/actors/hold"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/gateway/internal/show"
	"troupe/statemachine/data"
)

// Routes show background work, and change it.
func (g *Group) Routes() []kernel.Route {
	base := kernel.Route{
		Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.WorkflowPath, Privilege: identity.Workflows,
	}
	row := base.Row
	base.Privilege = ""
	return []kernel.Route{
		base.Row("pending", "GET", "/instance/:workflowId/:instanceId/pending", g.listPending),
		row("outbox", "GET", "/outbox", g.listDeliveries, "state", "limit", "cursor"),
		row("resume-outbox", "POST", "/outbox", g.resume(hold.Outbox)),
		row("change-delivery", "POST", "/outbox/:id", g.changeDelivery),
		row("incidents", "GET", "/incidents", g.listIncidents, "limit", "cursor"),
		row("change-incident", "POST", "/incidents/:id", g.changeIncident),
		row("stop", "POST", "/instance/:workflowId/:instanceId/stop", g.stopInstance),
		row("reset", "POST", "/instance/:workflowId/:instanceId/reset", g.resetInstance),
		row("delete-instance", "DELETE", "/instance/:workflowId/:instanceId", g.deleteInstance, "cascade"),
		row("timers", "GET", "/timers", g.listTimers, "workflowId", "limit", "cursor"),
		row("schedules", "GET", "/schedules", g.listSchedules),
		row("migrate", "POST", "/instances/:workflowId/migrate", g.migrateInstances),
		row("resume-schedules", "POST", "/schedules", g.resume(hold.Schedules)),
		row("resume-jobs", "POST", "/jobs", g.resume(hold.Jobs)),
		row("create-bulk", "POST", "/bulk", g.createBulk),
		row("bulk-jobs", "GET", "/bulk", g.listBulk),
		row("bulk-job", "GET", "/bulk/:id", g.showBulk),
		row("change-bulk", "POST", "/bulk/:id", g.changeBulk),
		row("change-schedule", "POST", "/schedules/:workflowId/:name", g.changeSchedule),
	}
}

// ProbeRoutes are health for machines.
func (g *Group) ProbeRoutes() []kernel.Route {
	row := kernel.Route{Access: kernel.Probed}.Row
	return []kernel.Route{row("livez", "GET", "/livez", answerLive), row("readyz", "GET", "/readyz", g.answerReady)}
}

// AdminRoutes are for those who run the service.
func (g *Group) AdminRoutes() []kernel.Route {
	base := kernel.Route{Access: kernel.SignedIn(identity.Token | identity.Session), Path: kernel.AdminPath}
	watch := base
	watch.Privilege, watch.OrPrivilege = identity.Workflows, identity.Admin
	base.Privilege, base.Content, base.ContentBytesMax = identity.Admin, "application/x-tar", home.MaxPackedBytes
	return []kernel.Route{
		watch.Row("health", "GET", "/health", g.showHealth),
		watch.Row("load", "GET", "/load", g.showLoad),
		watch.Row("backups", "GET", "/backups", g.listBackups),
		watch.Row("exports", "GET", "/exports", g.listExports),
		base.Row("publish-home", "PUT", "/home", g.publishHome, "dryRun"),
	}
}

func (g *Group) listPending(x *kernel.Exchange) error {
	of := message.Load{
		Caller: x.Caller, WorkflowID: x.Params.ByName("workflowId"), InstanceID: x.Params.ByName("instanceId"),
	}
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	pending, err := g.Workflows.Pending(&of)
	if err != nil {
		return err
	}
	x.NoteInstance(&of)
	answer := api.Pending{Timers: []api.Timer{}, Jobs: []api.ListedJob{}, Deliveries: []api.PendingDelivery{}, Children: []api.Child{}, Version: pending.Version}
	answer.Ended = show.Ended(pending.IsDone, pending.IsEnded)
	for _, c := range pending.Children {
		answer.Children = append(answer.Children, api.Child{WorkflowID: c.WorkflowID, InstanceID: c.InstanceID, Status: c.Status.String()})
	}
	for i := range pending.Timers {
		answer.Timers = append(answer.Timers, show.Timer(pending.Timers[i].ID, &pending.Timers[i].Timer))
	}
	for i := range pending.Jobs {
		answer.Jobs = append(answer.Jobs, show.Job(&pending.Jobs[i]))
	}
	for i := range pending.Deliveries {
		answer.Deliveries = append(answer.Deliveries, show.PendingDelivery(&pending.Deliveries[i], x.Caller.Has(identity.Workflows)))
	}
	return x.AnswerJSON(answer)
}

func (g *Group) listDeliveries(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	list := pending.DeliveryList{
		Caller: x.Caller, State: parse.Choice(&q, "state", outbox.Pending, outbox.Dead), Limit: q.Limit(parse.PageDefault), Cursor: q.Cursor(),
	}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Waiting.Deliveries(x.Request.Context(), &list)
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

func (g *Group) listIncidents(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	list := pending.IncidentList{Caller: x.Caller, Limit: q.Limit(parse.PageDefault), Cursor: q.Cursor()}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Waiting.Incidents(x.Request.Context(), &list)
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
	out := api.Incident{
		ID: in.ID, WorkflowID: in.Workflow, InstanceID: in.InstanceID, Event: in.Event, Error: in.Error, TS: show.Time(in.Last), Kind: string(in.Kind), Version: in.Version,
		File: in.File, Line: in.Line, Expression: in.Expression, User: in.User, First: show.Time(in.First), Count: in.Count,
	}
	for _, read := range in.Read {
		v := api.IncidentValue{Path: read.Path}
		if read.Value != "" {
			v.Value = &read.Value
		}
		out.Values = append(out.Values, v)
	}
	return out
}

func (g *Group) listTimers(x *kernel.Exchange) error {
	q := parse.Parameters{Values: x.Query}
	list := pending.TimerList{User: x.Caller.ID, Workflow: q.Text("workflowId"), Limit: q.Limit(parse.PageDefault), Cursor: q.Cursor()}
	if q.Err != nil {
		return q.Err
	}
	page, err := g.Waiting.Timers(x.Request.Context(), &list)
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

func (g *Group) changeDelivery(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeDelivery(x.Request.Context(), x.Params.ByName("id"), action); err != nil {
		return err
	}
	x.Note("delivery."+audit.Action(action), x.Params.ByName("id"))
	return x.AnswerJSON(struct{}{})
}

func (g *Group) changeIncident(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, outbox.Retry, outbox.Drop)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeIncident(x.Request.Context(), x.Caller, x.Params.ByName("id"), action == outbox.Drop); err != nil {
		return err
	}
	x.Note("incident."+audit.Action(action), x.Params.ByName("id"))
	return x.AnswerJSON(struct{}{})
}

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
		return failure.Refuse(failure.ErrInvalid, "tree must be true: everything that the instance invoked is stopped with it")
	}
	if err := g.Workflows.StopTree(x.Request.Context(), x.Params.ByName("workflowId"), x.Params.ByName("instanceId"), string(x.Caller.ID)); err != nil {
		return err
	}
	x.Note(audit.InstanceStop, x.Params.ByName("workflowId")+"/"+x.Params.ByName("instanceId"))
	return x.AnswerJSON(struct{}{})
}

func (g *Group) deleteInstance(x *kernel.Exchange) error {
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	q := parse.Parameters{Values: x.Query}
	cascade := q.Flag("cascade")
	if q.Err != nil {
		return q.Err
	}
	err := g.Workflows.Delete(x.Request.Context(), string(x.Caller.ID), x.Params.ByName("workflowId"), x.Params.ByName("instanceId"), cascade)
	if err != nil {
		return err
	}
	return x.AnswerJSON(struct{}{})
}

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

func (g *Group) changeSchedule(x *kernel.Exchange) error {
	action, err := parse.Action(x.Body, schedule.Pause, schedule.Resume, schedule.Run)
	if err != nil {
		return err
	}
	if err := g.Workflows.ChangeSchedule(x.Request.Context(), x.Params.ByName("workflowId"), x.Params.ByName("name"), action); err != nil {
		return err
	}
	x.Note("schedule."+audit.Action(action), x.Params.ByName("workflowId")+"/"+x.Params.ByName("name"))
	return x.AnswerJSON(struct{}{})
}

// resume is for what a restored store holds back.
func (g *Group) resume(what hold.What) func(*kernel.Exchange) error {
	return func(x *kernel.Exchange) error {
		if _, err := parse.Action(x.Body, schedule.Resume); err != nil {
			return err
		}
		if err := g.Workflows.Resume(what); err != nil {
			return err
		}
		return x.AnswerJSON(struct{}{})
	}
}

func (g *Group) publishHome(x *kernel.Exchange) error {
	if g.Homes == nil {
		return failure.Refuse(failure.ErrConflict, "%s", api.NotANode)
	}
	q := parse.Parameters{Values: x.Query}
	dryRun := q.Flag("dryRun")
	if q.Err != nil {
		return q.Err
	}
	published, err := g.Homes.PublishHome(x.Request.Context(), x.Caller, x.Body, dryRun)
	if err != nil {
		return x.AnswerFaults(err)
	}
	if !dryRun {
		x.Note(audit.HomePublish, "")
	}
	return x.AnswerJSON(published)
}

func (g *Group) migrateInstances(x *kernel.Exchange) error {
	if err := x.CheckIdentifiers(); err != nil {
		return err
	}
	request, err := parseMigration(x.Body)
	if err != nil {
		return err
	}
	request.Caller, request.WorkflowID = x.Caller, x.Params.ByName("workflowId")
	answer, err := g.Migrations.Migrate(x.Request.Context(), request)
	if err != nil {
		return x.AnswerFaults(err)
	}
	if !request.DryRun {
		x.Note(audit.InstanceMigrate, request.WorkflowID)
	}
	shown := api.MigrationAnswer{Matched: answer.Matched, Migrated: answer.Migrated, Refused: []api.MigrationRefusal{}}
	for _, r := range answer.Refused {
		shown.Refused = append(shown.Refused, api.MigrationRefusal(r))
	}
	if answer.Next != "" {
		shown.Next = &answer.Next
	}
	return x.AnswerJSON(shown)
}

func parseMigration(body []byte) (*migration.Request, error) {
	value, err := parse.Body(body)
	if err != nil {
		return nil, err
	}
	request := &migration.Request{Limit: migration.PageMax}
	for key, v := range value.Members() {
		switch key {
		case "plan":
			if request.File, request.Plan, err = planOf(v, key); err != nil {
				return nil, err
			}
		case "filter":
			filter, err := parse.ObjectMember(v, key)
			if err != nil {
				return nil, err
			}
			request.Filter = string(filter)
		case "dryRun":
			if v.Kind() != data.Bool {
				return nil, parse.Malformed(`"dryRun" must be true or false, not %s`, parse.WithArticle(v.Kind()))
			}
			request.DryRun = string(v) == "true"
		case "limit":
			n, ok := v.Int64()
			if !ok || n < 1 || n > migration.PageMax {
				return nil, parse.Malformed(`"limit" must be a whole number from 1 to %d`, migration.PageMax)
			}
			request.Limit = int(n)
		case "cursor":
			if v.Kind() == data.Null {
				continue // "next" of an answer
			}
			if request.Cursor, err = parse.StringMember(v, key); err != nil {
				return nil, err
			}
		default:
			return nil, parse.UnknownMember("", key, "plan", "filter", "dryRun", "limit", "cursor")
		}
	}
	if request.Plan == nil {
		return nil, parse.Malformed(`the member "plan" is missing`)
	}
	return request, nil
}

// planOf returns the text of a plan, and its name in faults.
func planOf(v data.Value, member string) (file string, plan []byte, err error) {
	switch v.Kind() {
	case data.Object:
		return "plan.json", v, nil
	case data.String:
		return "plan.yaml", []byte(v.Text()), nil
	}
	return "", nil, parse.Malformed(`%q must be an object, or a string with YAML, not %s`, member, parse.WithArticle(v.Kind()))
}
