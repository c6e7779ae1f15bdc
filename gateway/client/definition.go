package client

import (
	"context"

	"troupe/gateway/api"
)

// Definition returns the current version of a workflow as it was published (needs mod-workflows). Errors wrap *Error, ErrInvalid,
// ErrProtocol, or the context's.
func (c *Client) Definition(ctx context.Context, workflowID string) (d api.Definition, err error) {
	defer asking(&err, "definition of %s", workflowID)
	if err := checkWorkflow(workflowID); err != nil {
		return d, err
	}
	_, err = c.get(ctx, []string{"definitions", workflowID}, nil, &d)
	return d, err
}
