package client

import (
	"context"
	"encoding/json"

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
	created = &BulkCreated{}
	created.Raw, err = c.post(ctx, []string{"bulk"}, req, &created.BulkCreated)
	return unless(err, created)
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
	list.Raw, err = c.get(ctx, []string{"bulk"}, nil, &list.BulkList)
	return unless(err, list)
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
	job.Raw, err = c.get(ctx, []string{"bulk", id}, nil, &job.BulkJob)
	return unless(err, job)
}

// ChangeBulk pauses, resumes or cancels a job. It may be called again.
func (c *Client) ChangeBulk(ctx context.Context, id, action string) (err error) {
	defer asking(&err, "%s bulk job %s", action, id)
	return c.operate(ctx, []string{"bulk", id}, api.OperationRequest{Action: action})
}
