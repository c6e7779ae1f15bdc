package client

import (
	"context"
	"net/url"
	"strconv"

	"troupe/gateway/api"
)

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
	if _, err := c.get(ctx, []string{"presentation", workflowID}, query, seen); err != nil {
		return nil, err
	}
	return seen, nil
}

// Summary returns an instance as people see it.
func (c *Client) Summary(ctx context.Context, workflowID, instanceID string) (seen *api.Summary, err error) {
	defer asking(&err, "show the summary of %s/%s", workflowID, instanceID)
	if err := checkInstance(workflowID, instanceID); err != nil {
		return nil, err
	}
	seen = &api.Summary{}
	if _, err := c.get(ctx, []string{"instance", workflowID, instanceID, "summary"}, nil, seen); err != nil {
		return nil, err
	}
	return seen, nil
}
