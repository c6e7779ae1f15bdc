package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"troupe/gateway/api"
)

// Job is work of an instance that its worker has until Deadline.
type Job struct {
	api.Job
	// lasts is how long the lease does from now on, as far as the clock of the service is known.
	lasts time.Duration
}

// ActivateRequest asks for jobs.
type ActivateRequest struct {
	Types  []string
	Worker string // a name for lists
	Max    int    // the most that come, up to 1000. 0: 1
	// Lease is how long each lasts. 0: as long as its type allows, which bounds it in any case.
	Lease time.Duration
	Wait  time.Duration // how long the service waits for the first, up to a minute
}

// Activate takes jobs. After an error of the network some may have been leased, and come back when their leases
// have ended.
func (c *Client) Activate(ctx context.Context, r ActivateRequest) (jobs []*Job, err error) {
	jobs, _, err = c.activate(ctx, r)
	return jobs, err
}

// activate also returns why there are none at present.
func (c *Client) activate(ctx context.Context, r ActivateRequest) (jobs []*Job, paused string, err error) {
	defer asking(&err, "activate %s", strings.Join(r.Types, ", "))
	body, err := encode(api.JobActivation{Types: r.Types, Worker: r.Worker, Max: r.Max, Lease: isoOf(r.Lease), Wait: isoOf(r.Wait)})
	if err != nil {
		return nil, "", err
	}
	var activated api.ActivatedJobs
	a, err := c.ask(ctx, &request{method: http.MethodPost, path: []string{"jobs", "activate"}, body: body}, &activated)
	if err != nil {
		return nil, "", err
	}
	now, err := http.ParseTime(a.header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	for _, j := range activated.Jobs {
		deadline, err := time.Parse(time.RFC3339, j.Deadline)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		jobs = append(jobs, &Job{Job: j, lasts: deadline.Sub(now) - time.Second}) // NB: Date has whole seconds
	}
	return jobs, activated.Paused, nil
}

// isoOf is a duration as ISO 8601 has it, empty for none.
func isoOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "PT" + strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
}

// Completion says that a job is done.
type Completion struct {
	JobID, Lease string
	Output       json.RawMessage // nil: none
}

// Complete says that jobs are done, up to 1000 of them. It has one error for each, in order: nil, or an *Error. It may be
// called again: the same lease is answered like the first time.
func (c *Client) Complete(ctx context.Context, jobs []Completion) (errs []error, err error) {
	return c.changeJobs(ctx, "complete", actionsOf(jobs, func(j *Completion) api.JobAction {
		return api.JobAction{JobID: j.JobID, Lease: j.Lease, Output: j.Output}
	}))
}

// JobFailure says that an attempt has failed.
type JobFailure struct {
	JobID, Lease, Message string
	RetryIn               time.Duration // when the next attempt may begin. 0: as its type says
	Final                 bool          // there are no more attempts
	Later                 bool          // the attempt does not count; it excludes the two before
}

// Fail says that attempts have failed. Its results are those of Complete.
func (c *Client) Fail(ctx context.Context, jobs []JobFailure) (errs []error, err error) {
	return c.changeJobs(ctx, "fail", actionsOf(jobs, func(j *JobFailure) api.JobAction {
		return api.JobAction{JobID: j.JobID, Lease: j.Lease, Message: j.Message, RetryIn: isoOf(j.RetryIn), Final: j.Final, Later: j.Later}
	}))
}

// Extension asks for a longer lease.
type Extension struct {
	JobID, Lease string
	By           time.Duration // from now on, at least a second
}

// Extend makes leases longer. Its results are those of Complete.
func (c *Client) Extend(ctx context.Context, jobs []Extension) (errs []error, err error) {
	return c.changeJobs(ctx, "extend", actionsOf(jobs, func(j *Extension) api.JobAction {
		return api.JobAction{JobID: j.JobID, Lease: j.Lease, By: isoOf(j.By)}
	}))
}

// RetryJobs gives failed jobs all their attempts again, and lets those that wait for their next attempt begin. Its results
// are those of Complete.
func (c *Client) RetryJobs(ctx context.Context, ids ...string) (errs []error, err error) {
	return c.changeJobs(ctx, "retry", actionsOf(ids, func(id *string) api.JobAction { return api.JobAction{JobID: *id} }))
}

// CancelJobs ends jobs as failed for good. Its results are those of Complete.
func (c *Client) CancelJobs(ctx context.Context, ids ...string) (errs []error, err error) {
	return c.changeJobs(ctx, "cancel", actionsOf(ids, func(id *string) api.JobAction { return api.JobAction{JobID: *id} }))
}

func actionsOf[T any](jobs []T, of func(*T) api.JobAction) (actions []api.JobAction) {
	for i := range jobs {
		actions = append(actions, of(&jobs[i]))
	}
	return actions
}

func (c *Client) changeJobs(ctx context.Context, action string, jobs []api.JobAction) (errs []error, err error) {
	defer asking(&err, "%s jobs", action)
	body, err := encode(api.JobActions{Jobs: jobs})
	if err != nil {
		return nil, err
	}
	var answer api.JobResults
	if _, err := c.ask(ctx, &request{method: http.MethodPost, path: []string{"jobs", action}, body: body, repeatable: true}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(jobs) {
		return nil, fmt.Errorf("%w: %d results of %d jobs", ErrProtocol, len(answer.Results), len(jobs))
	}
	errs = make([]error, len(jobs))
	for i, r := range answer.Results {
		if r.Status != http.StatusOK {
			errs[i] = &Error{Status: r.Status, Code: r.Error, Message: r.Message}
		}
	}
	return errs, nil
}

// JobsRequest asks for a part of the jobs. Empty fields select all.
type JobsRequest struct {
	Type       string
	State      string // "waiting", "running" or "failed"
	WorkflowID string
	// Limit is the most that one page holds, 1 to 1000. 0: the service's 100.
	Limit  int
	Cursor string // Page.Next of the page before; empty is the first page
}

// Jobs returns one page of the jobs. It may be empty and not the last.
func (c *Client) Jobs(ctx context.Context, r JobsRequest) (page *Page[api.ListedJob], err error) {
	defer asking(&err, "list jobs")
	q := url.Values{}
	setUnlessZero(q, "type", r.Type)
	setUnlessZero(q, "state", r.State)
	setUnlessZero(q, "workflowId", r.WorkflowID)
	var list struct {
		Jobs []api.ListedJob `json:"jobs"`
		Next string          `json:"next"`
	}
	raw, err := c.list(ctx, []string{"jobs"}, q, r.Limit, r.Cursor, &list)
	return pageOf(list.Jobs, list.Next, nil, raw, err)
}

// JobsPages returns all pages from r.Cursor on, one call each. An error is the last thing it yields.
func (c *Client) JobsPages(ctx context.Context, r JobsRequest) iter.Seq2[*Page[api.ListedJob], error] {
	return pages(&r.Cursor, func() (*Page[api.ListedJob], error) { return c.Jobs(ctx, r) })
}

// ListedJob is a job as operators see it.
type ListedJob struct {
	api.ListedJob
	Raw json.RawMessage // the whole answer as it came
}

// Job shows a job, with its data for who may read its instance.
func (c *Client) Job(ctx context.Context, id string) (job *ListedJob, err error) {
	defer asking(&err, "show job %s", id)
	if !isIdentifier(id) {
		return nil, invalid("%.80q cannot be the id of a job", id)
	}
	job = &ListedJob{}
	job.Raw, err = c.get(ctx, []string{"job", id}, nil, &job.ListedJob)
	return unless(err, job)
}

// JobTypes counts the jobs of each type.
func (c *Client) JobTypes(ctx context.Context) (types []api.JobType, err error) {
	defer asking(&err, "count jobs")
	var answer api.JobTypes
	_, err = c.get(ctx, []string{"jobs", "types"}, nil, &answer)
	return answer.Types, err
}
