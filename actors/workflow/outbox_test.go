package workflow_test

import (
	"context"

	"troupe/actors/outbox"
	"troupe/actors/workflow/workflowtest"
)

// receiver is the other side of all webhooks.
type receiver struct{}

func (receiver) URL(outbox.Attempt) string { return "" }

func (receiver) Send(context.Context, outbox.Attempt) outbox.Answer {
	return outbox.Answer{Status: 200, Body: workflowtest.Value(`{"ok":true}`)}
}
