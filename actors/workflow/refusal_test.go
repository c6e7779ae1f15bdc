package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
)

// TestARefusalSaysWhichRightIsMissing to whoever may read the instance, and of a workflow to everybody who names it.
func TestARefusalSaysWhichRightIsMissing(t *testing.T) {
	h := start(t, workflow.Options{})
	h.Publish(leave, order, strings.Replace(stock("stock", 1), "allow:", "allow:\n  send: {users: [boss]}", 1))
	id, stored := h.Make(john, "leave", ""), h.Make(boss, "stock", "")
	h.MustSend(john, "leave", id, "submit", "")
	for _, c := range []struct {
		name string
		got  error
		want string
	}{
		{"this transition", workflowtest.Second(h.Try(john, "leave", id, "approve", "", "")), `permission denied: you may not send "approve" in state review`},
		{"create", workflowtest.Second(h.Create(t.Context(), &message.Create{Caller: eve, WorkflowID: "leave"})), "permission denied: you may not create instances of leave (allow.create)"},
		{"send", workflowtest.Second(h.Try(member, "stock", stored, "set", "", "")), "permission denied: you may not send events to instances of stock (allow.send)"},
		{"read", workflowtest.Second(h.Look(eve, "stock", stored)), "permission denied: you may not read instances of stock (allow.read)"},
	} {
		got := failure.Of(c.got)
		assert.True(t, got.Kind == failure.ErrForbidden && got.Reason == c.want, "%s: got %v, %q, want %q", c.name, got.Kind, got.Reason, c.want)
	}
}
