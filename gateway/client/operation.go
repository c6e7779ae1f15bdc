package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"troupe/gateway/api"
)

// Pending is what an instance waits for.
type Pending struct {
	api.Pending
	Raw json.RawMessage // the whole answer as it came
}

// Pending lists what an instance waits for.
func (c *Client) Pending(ctx context.Context, workflowID, instanceID string) (pending *Pending, err error) {
	defer asking(&err, "pending of %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	pending = &Pending{}
	pending.Raw, err = c.get(ctx, []string{"instance", workflowID, instanceID, "pending"}, nil, &pending.Pending)
	return unless(err, pending)
}

// OutboxRequest asks for a part of the outbox.
type OutboxRequest struct {
	State string // "pending" or "dead"; empty is both
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Outbox returns one page of what has not been delivered. It may be empty and not the last.
func (c *Client) Outbox(ctx context.Context, r OutboxRequest) (page *Page[api.Delivery], err error) {
	defer asking(&err, "list the outbox")
	q := url.Values{}
	setUnlessZero(q, "state", r.State)
	var list api.DeliveryList
	raw, err := c.list(ctx, []string{"outbox"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Outbox, list.Next, nil, raw, err)
}

// OutboxPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) OutboxPages(ctx context.Context, r OutboxRequest) iter.Seq2[*Page[api.Delivery], error] {
	return pages(&r.Cursor, func() (*Page[api.Delivery], error) { return c.Outbox(ctx, r) })
}

// IncidentsRequest asks for a part of the incidents.
type IncidentsRequest struct {
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Incidents returns one page of the events that came on their own and failed. It may be empty and not the last.
func (c *Client) Incidents(ctx context.Context, r IncidentsRequest) (page *Page[api.Incident], err error) {
	defer asking(&err, "list incidents")
	q := url.Values{}
	var list api.IncidentList
	raw, err := c.list(ctx, []string{"incidents"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Incidents, list.Next, nil, raw, err)
}

// IncidentsPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) IncidentsPages(ctx context.Context, r IncidentsRequest) iter.Seq2[*Page[api.Incident], error] {
	return pages(&r.Cursor, func() (*Page[api.Incident], error) { return c.Incidents(ctx, r) })
}

// TimersRequest asks for a part of the timers that are running.
type TimersRequest struct {
	WorkflowID string // whose instances' timers are listed; empty: all
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Timers returns one page of the timers that are running, those that are due next first. It may be empty and not the last.
func (c *Client) Timers(ctx context.Context, r TimersRequest) (page *Page[api.RunningTimer], err error) {
	defer asking(&err, "list timers")
	q := url.Values{}
	setUnlessZero(q, "workflowId", r.WorkflowID)
	var list api.TimerList
	raw, err := c.list(ctx, []string{"timers"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Timers, list.Next, nil, raw, err)
}

// TimersPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) TimersPages(ctx context.Context, r TimersRequest) iter.Seq2[*Page[api.RunningTimer], error] {
	return pages(&r.Cursor, func() (*Page[api.RunningTimer], error) { return c.Timers(ctx, r) })
}

// What can be done with a delivery or an incident.
const (
	Retry = "retry"
	Drop  = "drop"
)

// ChangeDelivery retries or drops a delivery. After an error of the network it may have been done.
func (c *Client) ChangeDelivery(ctx context.Context, id, action string) (err error) {
	defer asking(&err, "%s delivery %s", action, id)
	return c.operate(ctx, []string{"outbox", id}, api.OperationRequest{Action: action})
}

// ChangeIncident retries or drops an incident. After an error of the network it may have been done.
func (c *Client) ChangeIncident(ctx context.Context, id, action string) (err error) {
	defer asking(&err, "%s incident %s", action, id)
	return c.operate(ctx, []string{"incidents", id}, api.OperationRequest{Action: action})
}

// StopTree ends an instance that no other one has invoked, and all that it has invoked. It may be called again.
func (c *Client) StopTree(ctx context.Context, workflowID, instanceID string) (err error) {
	defer asking(&err, "stop %s/%s", workflowID, instanceID)
	return c.operate(ctx, []string{"instance", workflowID, instanceID, "stop"}, api.StopRequest{Tree: true})
}

// ResetRequest asks to have an instance become what it was after entry To of its history.
type ResetRequest struct {
	WorkflowID, InstanceID string
	To                     uint64
	Reason                 string // 1 to 1,000 characters
	IfMatch                uint64 // IfMatch is as in SendRequest
	Key                    string // Key and Minimal are as in CreateRequest
	Minimal                bool
}

// Reset resets an instance; that is durable when Reset returns. Errors are those of Create.
func (c *Client) Reset(ctx context.Context, r ResetRequest) (reset *Instance, err error) {
	defer asking(&err, "reset %s/%s", r.WorkflowID, r.InstanceID)
	if err = checkInstance(r.WorkflowID, r.InstanceID); err != nil {
		return nil, err
	}
	of := &request{path: []string{"instance", r.WorkflowID, r.InstanceID, "reset"}, key: r.Key, ifMatch: r.IfMatch, minimal: r.Minimal, instance: r.InstanceID}
	return c.change(ctx, of, api.ResetRequest{To: r.To, Reason: r.Reason})
}

// DeleteInstance deletes an instance with everything that is stored of it; with cascade, everything that it has invoked
// goes before it. After an error of the network it may have been done, and is 404 then.
func (c *Client) DeleteInstance(ctx context.Context, workflowID, instanceID string, cascade bool) (err error) {
	defer asking(&err, "delete %s/%s", workflowID, instanceID)
	var query url.Values
	if cascade {
		query = url.Values{"cascade": {"true"}}
	}
	_, err = c.call(ctx, &request{method: http.MethodDelete, path: []string{"instance", workflowID, instanceID}, query: query})
	return err
}

func (c *Client) operate(ctx context.Context, path []string, body any) error {
	_, err := c.post(ctx, path, body, &struct{}{})
	return err
}

// Schedules are those of all workflows.
type Schedules struct {
	api.ScheduleList
	Raw json.RawMessage // the whole answer as it came
}

// Schedules lists the schedules of all workflows.
func (c *Client) Schedules(ctx context.Context) (list *Schedules, err error) {
	defer asking(&err, "list schedules")
	list = &Schedules{}
	list.Raw, err = c.get(ctx, []string{"schedules"}, nil, &list.ScheduleList)
	return unless(err, list)
}

// What can be done with a schedule.
const (
	Pause  = "pause"
	Resume = "resume"
	Run    = "run"
)

// ChangeSchedule pauses, resumes or runs a schedule. After an error of the network it may have been done.
func (c *Client) ChangeSchedule(ctx context.Context, workflowID, name, action string) (err error) {
	defer asking(&err, "%s schedule %s/%s", action, workflowID, name)
	return c.operate(ctx, []string{"schedules", workflowID, name}, api.OperationRequest{Action: action})
}

// ResumeOutbox lets a restored store send what it holds back.
func (c *Client) ResumeOutbox(ctx context.Context) (err error) {
	defer asking(&err, "resume the outbox")
	return c.operate(ctx, []string{"outbox"}, api.OperationRequest{Action: Resume})
}

// ResumeSchedules lets a restored store run its schedules.
func (c *Client) ResumeSchedules(ctx context.Context) (err error) {
	defer asking(&err, "resume schedules")
	return c.operate(ctx, []string{"schedules"}, api.OperationRequest{Action: Resume})
}

// ResumeJobs lets a restored store give jobs to programs.
func (c *Client) ResumeJobs(ctx context.Context) (err error) {
	defer asking(&err, "resume jobs")
	return c.operate(ctx, []string{"jobs"}, api.OperationRequest{Action: Resume})
}

// Definitions lists the workflows with their versions, by id. It needs mod-workflows.
func (c *Client) Definitions(ctx context.Context) (all []api.PublishedWorkflow, err error) {
	defer asking(&err, "list definitions")
	var list api.DefinitionList
	_, err = c.get(ctx, []string{"definitions"}, nil, &list)
	return list.Definitions, err
}

// Definition returns a version of a definition as it was published; version 0 is the current one. It needs
// mod-workflows.
func (c *Client) Definition(ctx context.Context, workflowID string, version uint64) (found *api.Definition, err error) {
	defer asking(&err, "load definition %s", workflowID)
	if err := checkWorkflow(workflowID); err != nil {
		return nil, err
	}
	path := []string{"definitions", workflowID}
	if version > 0 {
		path = append(path, strconv.FormatUint(version, 10))
	}
	found = &api.Definition{}
	_, err = c.get(ctx, path, nil, found)
	return found, err
}

// Simulated is what there is after each step of a simulation.
type Simulated struct {
	api.Simulation
	Raw json.RawMessage // the whole answer as it came
}

// Simulate has steps happen to instances of a definition that are not kept. An *Error has the faults of the definition and the steps. It
// needs mod-workflows.
func (c *Client) Simulate(ctx context.Context, r *api.SimulationRequest) (seen *Simulated, err error) {
	defer asking(&err, "simulate")
	seen = &Simulated{}
	seen.Raw, err = c.post(ctx, []string{"definitions", "simulate"}, r, &seen.Simulation)
	return unless(err, seen)
}

// Retire removes a version of a workflow, or all of them when version is 0, and returns which. It needs mod-workflows, and a caller who
// may publish the next version.
func (c *Client) Retire(ctx context.Context, workflowID string, version uint64) (gone *api.RetiredDefinition, err error) {
	defer asking(&err, "retire definition %s", workflowID)
	if err := checkWorkflow(workflowID); err != nil {
		return nil, err
	}
	path := []string{"definitions", workflowID}
	if version > 0 {
		path = append(path, strconv.FormatUint(version, 10))
	}
	gone = &api.RetiredDefinition{}
	_, err = c.ask(ctx, &request{method: http.MethodDelete, path: path}, gone)
	return unless(err, gone)
}

// PublishHome makes a home, a tar archive of its text files, what is in use in the cluster; with dryRun it is only
// checked. Errors wrap *Error, which has the faults of a home that was refused, ErrProtocol, or the context's. After
// one of the network it may have been published: publishing it again does no harm.
func (c *Client) PublishHome(ctx context.Context, archive []byte, dryRun bool) (published api.PublishedHome, err error) {
	defer asking(&err, "publish a home")
	r := &request{method: http.MethodPut, base: api.AdminPath, path: []string{"home"}, body: archive, content: "application/x-tar"}
	if dryRun {
		r.query = url.Values{"dryRun": {"true"}}
	}
	_, err = c.ask(ctx, r, &published)
	return published, err
}

// Migrated says what happened to the instances of one request.
type Migrated struct {
	api.MigrationAnswer
	Raw json.RawMessage // the whole answer as it came
}

// Migrate gives instances of a workflow another version, at most of one page. An *Error has the faults of a plan. After an error
// of the network some may have been migrated: the same request goes on with the others.
func (c *Client) Migrate(ctx context.Context, workflowID string, r *api.MigrationRequest) (done *Migrated, err error) {
	defer asking(&err, "migrate %s", workflowID)
	done = &Migrated{}
	done.Raw, err = c.post(ctx, []string{"instances", workflowID, "migrate"}, r, &done.MigrationAnswer)
	return unless(err, done)
}

// Presentation returns how people see a workflow, in the first of Options.Languages that its texts are in. Version 0 is the newest.
func (c *Client) Presentation(ctx context.Context, workflowID string, version uint64) (seen *api.Presentation, err error) {
	defer asking(&err, "show how people see %s", workflowID)
	if err := checkWorkflow(workflowID); err != nil {
		return nil, err
	}
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.FormatUint(version, 10))
	}
	seen = &api.Presentation{}
	_, err = c.get(ctx, []string{"presentation", workflowID}, query, seen)
	return unless(err, seen)
}

// Summary returns an instance as people see it.
func (c *Client) Summary(ctx context.Context, workflowID, instanceID string) (seen *api.Summary, err error) {
	defer asking(&err, "show the summary of %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	seen = &api.Summary{}
	_, err = c.get(ctx, []string{"instance", workflowID, instanceID, "summary"}, nil, seen)
	return unless(err, seen)
}
