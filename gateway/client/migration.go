package client

import (
	"context"
	"encoding/json"
	"net/http"

	"troupe/gateway/api"
)

// Migrated says what became of the instances of one request.
type Migrated struct {
	api.MigrationAnswer
	Raw json.RawMessage // the whole answer as it came
}

// Migrate gives instances of a workflow another version, at most of one page. An *Error has the faults of a plan. After an error
// of the network some may have been migrated: the same request goes on with the others.
func (c *Client) Migrate(ctx context.Context, workflowID string, r *api.MigrationRequest) (done *Migrated, err error) {
	defer asking(&err, "migrate %s", workflowID)
	text, err := encode(r)
	if err != nil {
		return nil, err
	}
	a, err := c.call(ctx, &request{method: http.MethodPost, path: []string{"instances", workflowID, "migrate"}, body: text})
	if err != nil {
		return nil, err
	}
	done = &Migrated{Raw: a.body}
	return done, decode(a.body, &done.MigrationAnswer)
}
