package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

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
	a, err := c.get(ctx, []string{"instance", workflowID, instanceID, "pending"}, nil, &pending.Pending)
	if err != nil {
		return nil, err
	}
	pending.Raw = a.body
	return pending, nil
}

// OutboxRequest asks for a part of the outbox.
type OutboxRequest struct {
	State string // "pending" or "dead"; empty is both
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // OutboxPage.Next of the page before; empty is the first page
}

// OutboxPage is a part of the outbox.
type OutboxPage struct {
	api.DeliveryList
	Raw json.RawMessage // the whole answer as it came
}

// Outbox returns one page of what has not been delivered. It may be empty and not the last.
func (c *Client) Outbox(ctx context.Context, r OutboxRequest) (page *OutboxPage, err error) {
	defer asking(&err, "list the outbox")
	page = &OutboxPage{}
	page.Raw, err = c.list(ctx, "outbox", "state", r.State, r.Limit, r.Cursor, &page.DeliveryList)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// OutboxPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) OutboxPages(ctx context.Context, r OutboxRequest) iter.Seq2[*OutboxPage, error] {
	return pages(r.Cursor, func(cursor string) (*OutboxPage, error) {
		r.Cursor = cursor
		return c.Outbox(ctx, r)
	})
}

func (p *OutboxPage) next() string { return p.Next }

// IncidentsRequest asks for a part of the incidents.
type IncidentsRequest struct {
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // IncidentsPage.Next of the page before; empty is the first page
}

// IncidentsPage is a part of the incidents.
type IncidentsPage struct {
	api.IncidentList
	Raw json.RawMessage // the whole answer as it came
}

// Incidents returns one page of the events that came by themselves and failed. It may be empty and not the last.
func (c *Client) Incidents(ctx context.Context, r IncidentsRequest) (page *IncidentsPage, err error) {
	defer asking(&err, "list incidents")
	page = &IncidentsPage{}
	page.Raw, err = c.list(ctx, "incidents", "state", "", r.Limit, r.Cursor, &page.IncidentList)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// IncidentsPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) IncidentsPages(ctx context.Context, r IncidentsRequest) iter.Seq2[*IncidentsPage, error] {
	return pages(r.Cursor, func(cursor string) (*IncidentsPage, error) {
		r.Cursor = cursor
		return c.Incidents(ctx, r)
	})
}

func (p *IncidentsPage) next() string { return p.Next }

// TimersRequest asks for a part of the timers that are running.
type TimersRequest struct {
	WorkflowID string // whose instances' timers are listed; empty: all
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // TimersPage.Next of the page before; empty is the first page
}

// TimersPage is a part of the timers.
type TimersPage struct {
	api.TimerList
	Raw json.RawMessage // the whole answer as it came
}

// Timers returns one page of the timers that are running, those that are due next first. It may be empty and not the last.
func (c *Client) Timers(ctx context.Context, r TimersRequest) (page *TimersPage, err error) {
	defer asking(&err, "list timers")
	page = &TimersPage{}
	page.Raw, err = c.list(ctx, "timers", "workflowId", r.WorkflowID, r.Limit, r.Cursor, &page.TimerList)
	if err != nil {
		return nil, err
	}
	return page, nil
}

// TimersPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) TimersPages(ctx context.Context, r TimersRequest) iter.Seq2[*TimersPage, error] {
	return pages(r.Cursor, func(cursor string) (*TimersPage, error) {
		r.Cursor = cursor
		return c.Timers(ctx, r)
	})
}

func (p *TimersPage) next() string { return p.Next }

// list reads a page of a list into a struct of package api. An empty value narrows nothing.
func (c *Client) list(ctx context.Context, path, name, value string, limit int, cursor string, to any) (raw json.RawMessage, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	q := url.Values{}
	setUnlessZero(q, name, value)
	setUnlessZero(q, "limit", limit)
	setUnlessZero(q, "cursor", cursor)
	a, err := c.get(ctx, []string{path}, q, to)
	if err != nil {
		return nil, err
	}
	return a.body, nil
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

func (c *Client) operate(ctx context.Context, path []string, body any) error {
	text, err := encode(body)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, &request{method: http.MethodPost, path: path, body: text})
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
	a, err := c.get(ctx, []string{"schedules"}, nil, &list.ScheduleList)
	if err != nil {
		return nil, err
	}
	list.Raw = a.body
	return list, nil
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
