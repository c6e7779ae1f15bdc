package client

import (
	"encoding/json"
	"errors"
	"testing"

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
	if err != nil || done.Matched != 2 || len(done.Refused) != 2 || done.Next == nil {
		t.Fatalf("got %+v, %v", done, err)
	}
	request.Plan = json.RawMessage(`{"from":1,"to":2,"nodes":{"main":{"review":"check"}}}`)
	request.Cursor = *done.Next
	if done, err = c.Migrate(t.Context(), servertest.Workflow, request); err != nil || done.MigrationAnswer.Migrated != 1 || done.Next != nil {
		t.Errorf("got %+v, %v", done, err)
	}
	request.Plan = json.RawMessage(`{"from":1,"to":3}`)
	_, err = c.Migrate(t.Context(), servertest.Workflow, request)
	if refused := (*Error)(nil); !errors.As(err, &refused) || len(refused.Faults) != 1 || refused.Faults[0].Line != 1 {
		t.Errorf("a version that is not there: got %v", err)
	}
	_, err = c.Migrate(t.Context(), "nothing", request)
	wantStatus(t, err, 404, "NotFound")
}
