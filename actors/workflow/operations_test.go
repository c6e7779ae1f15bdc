package workflow_test

import (
	"context"

	"troupe/actors/message"
	"troupe/actors/pending"
)

func (h *harness) incidents() (out []pending.Incident) {
	h.t.Helper()
	for cursor := ""; ; {
		page, err := h.Waiting.Incidents(context.Background(), &pending.IncidentList{Caller: boss, Cursor: cursor, Limit: 2})
		h.Must(err)
		out = append(out, page.Incidents...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

func (h *harness) pending(workflowID, id string) *message.Pending {
	h.t.Helper()
	out, err := h.Pending(&message.Load{Caller: boss, WorkflowID: workflowID, InstanceID: id})
	h.Must(err)
	return out
}
