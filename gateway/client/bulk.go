package client

import (
	"context"
	"encoding/json"
	"net/http"

	"troupe/gateway/api"
)

// BulkCreated is a job that has begun.
type BulkCreated struct {
	api.BulkCreated
	Raw json.RawMessage // the whole answer as it came
}

// StartBulk begins to do one thing to many instances. After an error of the network it may have begun: BulkJobs shows it.
func (c *Client) StartBulk(ctx context.Context, req *api.BulkRequest) (created *BulkCreated, err error) {
	defer asking(&err, "start a bulk job for %s", req.WorkflowID)
	text, err := encode(req)
	if err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"bulk"}, body: text})
	if err != nil {
		return nil, err
	}
	created = &BulkCreated{Raw: a.body}
	return created, decode(a.body, &created.BulkCreated)
}

// BulkList has the jobs of all users.
type BulkList struct {
	api.BulkList
	Raw json.RawMessage // the whole answer as it came
}

// BulkJobs lists the last jobs of all users, the newest first.
func (c *Client) BulkJobs(ctx context.Context) (list *BulkList, err error) {
	defer asking(&err, "list bulk jobs")
	list = &BulkList{}
	a, err := c.get(ctx, []string{"bulk"}, nil, &list.BulkList)
	if err != nil {
		return nil, err
	}
	list.Raw = a.body
	return list, nil
}

// BulkJob is a job with its progress.
type BulkJob struct {
	api.BulkJob
	Raw json.RawMessage // the whole answer as it came
}

// BulkJob shows a job.
func (c *Client) BulkJob(ctx context.Context, id string) (job *BulkJob, err error) {
	defer asking(&err, "show bulk job %s", id)
	job = &BulkJob{}
	a, err := c.get(ctx, []string{"bulk", id}, nil, &job.BulkJob)
	if err != nil {
		return nil, err
	}
	job.Raw = a.body
	return job, nil
}

// ChangeBulk pauses, resumes or cancels a job. It may be called again.
func (c *Client) ChangeBulk(ctx context.Context, id, action string) (err error) {
	defer asking(&err, "%s bulk job %s", action, id)
	return c.operate(ctx, []string{"bulk", id}, api.OperationRequest{Action: action})
}
