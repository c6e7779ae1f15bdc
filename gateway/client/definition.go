package client

import (
	"context"
	"net/http"
	"strconv"

	"troupe/gateway/api"
)

// Definitions lists the workflows with their versions, by id. It needs mod-workflows.
func (c *Client) Definitions(ctx context.Context) (all []api.PublishedWorkflow, err error) {
	defer asking(&err, "list definitions")
	var list api.DefinitionList
	if _, err := c.get(ctx, []string{"definitions"}, nil, &list); err != nil {
		return nil, err
	}
	return list.Definitions, nil
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
	a, err := c.call(ctx, &request{method: http.MethodDelete, path: path})
	if err != nil {
		return nil, err
	}
	gone = &api.RetiredDefinition{}
	return gone, decode(a.body, gone)
}
