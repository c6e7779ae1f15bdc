package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/message"
	"troupe/actors/workflow/workflowtest"
)

// TestMomentsBeforeAndBehindAMigration are those of their versions, with what the plan has assigned.
func TestMomentsBeforeAndBehindAMigration(t *testing.T) {
	h := startMigrations(t)
	john := workflowtest.John
	id := h.Make(john, "order", `{"n":1}`)
	var want []string
	keep := func() {
		reply := h.MustLook(john, "order", id)
		want = append(want, string(reply.AppendRecord(nil)))
		require.Len(t, want, int(reply.Sequence))
	}
	keep()
	h.MustSend(john, "order", id, "go", `{"n":2}`)
	keep()
	h.MustSend(john, "order", id, "go", "")
	keep()
	h.Publish(orderNext)
	total, _ := h.run(t, migrationBy(orderPlan))
	require.EqualValues(t, 1, total.Migrated)
	keep()
	h.MustSend(john, "order", id, "done", `{"n":3}`)
	keep()
	for n, then := range want {
		reply, err := h.Load(t.Context(), &message.Load{Caller: john, WorkflowID: "order", InstanceID: id, WithHistory: true, At: uint64(n + 1)})
		require.NoError(t, err)
		assert.Equal(t, then, string(reply.AppendRecord(nil)), "after entry %d", n+1)
	}
	assert.Contains(t, want[3], `"by":"mary"`)
}
