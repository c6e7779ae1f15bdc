package client

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/api"
	"troupe/gateway/servertest"
)

func TestMigrate(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	for range 3 {
		s.Create(`{}`, "submit")
	}
	s.Revise("review", "check")
	request := &api.MigrationRequest{Plan: json.RawMessage(`{"from":1,"to":2}`), Limit: 2}
	done, err := c.Migrate(t.Context(), servertest.Workflow, request)
	require.True(t, err == nil && done.Matched == 2 && len(done.Refused) == 2 && done.Next != nil, "got %+v, %v", done, err)
	request.Plan = json.RawMessage(`{"from":1,"to":2,"nodes":{"main":{"review":"check"}}}`)
	request.Cursor = *done.Next
	done, err = c.Migrate(t.Context(), servertest.Workflow, request)
	assert.True(t, err == nil && done.MigrationAnswer.Migrated == 1 && done.Next == nil, "got %+v, %v", done, err)
	request.Plan = json.RawMessage(`{"from":1,"to":3}`)
	_, err = c.Migrate(t.Context(), servertest.Workflow, request)
	refused := (*Error)(nil)
	assert.True(t, errors.As(err, &refused) && len(refused.Faults) == 1 && refused.Faults[0].Line == 1, "a version that is not there: got %v", err)
	_, err = c.Migrate(t.Context(), "nothing", request)
	wantStatus(t, err, 404, "NotFound")
}
