package workflow_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/actors/workflow/workflowtest"
	"troupe/statemachine/document"
)

func TestAnIndexThatGoesFreesItsKeysAndItsNumberIsNotUsedAgain(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	h.Publish(workflowtest.Stock("stock", 1, "svcPublic.a", "svcPublic.t"), workflowtest.Stock("other", 1, "svcPublic.a"))
	h.Fill("stock", workflowtest.Publics(5, 100))
	h.Fill("other", workflowtest.Publics(6, 100))
	h.AwaitIndexes()
	row, _ := h.IndexRow("stock", "svcPublic.a")
	require.GreaterOrEqual(t, h.IndexRows(row.Number), 100, "the index")
	assert.Error(t, h.Catalog.Publish(h.Sources(workflowtest.Stock("stock", 1, "svcPublic.n"))))
	kept, _ := h.IndexRow("stock", "svcPublic.a")
	if _, ok := h.IndexRow("stock", "svcPublic.n"); ok || kept.State != workflowtest.Whole {
		t.Errorf("after a set that was refused the indexes are %+v", h.Indexes())
	}
	h.Publish(workflowtest.Stock("stock", 2, "svcPublic.t"), workflowtest.Stock("other", 1, "svcPublic.a"))
	h.AwaitIndexes()
	assert.Zero(t, h.IndexRows(row.Number), "an index that is gone")
	h.CheckIndexes()
	_, _, err := workflowtest.IDs(t, h.Queries.Query, query.Request{Caller: workflowtest.Boss, WorkflowID: "stock", Sort: "svcPublic.a"})
	assert.ErrorIs(t, err, failure.ErrInvalid, "sorted by an index that is gone")
	h.Restart()
	h.Publish(workflowtest.Stock("stock", 3, "svcPublic.a", "svcPublic.t"))
	h.AwaitIndexes()
	again, ok := h.IndexRow("stock", "svcPublic.a")
	assert.True(t, ok && again.Number > row.Number && again.Number > 3, "the index that came again is %+v, before it was %+v", again, row)
	kept, ok = h.IndexRow("other", "svcPublic.a")
	assert.True(t, ok && kept.State == workflowtest.Whole, "the index of a workflow whose file is gone is %+v, %v", kept, ok)
	h.CheckIndexes()
}

// TestAPathThatCannotBeIndexedIsAFault: it must not be stored, because a
// restart would meet it again.
func TestAPathThatCannotBeIndexedIsAFault(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	h.Publish(workflowtest.Order)
	for _, path := range []string{"svcPublic" + strings.Repeat(".a", 25), "svcPublic" + strings.Repeat(".0", 12)} {
		err := h.Catalog.Publish(h.Sources(workflowtest.Stock("stock", 1, path)))
		var faults document.Faults
		assert.ErrorAs(t, err, &faults, path)
	}
	h.Make(workflowtest.John, "order", "")
	h.Restart()
	h.Make(workflowtest.John, "order", "")
}

// TestARetirementLeavesTheIndexesOfWhatRulesThen: those of the version before, and none of a workflow that is gone.
func TestARetirementLeavesTheIndexesOfWhatRulesThen(t *testing.T) {
	h := workflowtest.Start(t, workflowtest.Options{})
	h.Publish(workflowtest.Stock("stock", 1, "svcPublic.a"))
	h.Fill("stock", workflowtest.Publics(5, 100))
	h.Publish(workflowtest.Stock("stock", 2, "svcPublic.t"), workflowtest.Stock("gone", 1, "svcPublic.a"))
	h.Publish() // the files are gone
	h.AwaitIndexes()
	retire := func(workflow string, version uint64) {
		t.Helper()
		_, err := h.Catalog.Retire(t.Context(), workflow, version, nil)
		require.NoError(t, err)
	}
	wants := func(when string, want ...string) {
		t.Helper()
		h.AwaitIndexes()
		var got []string
		for _, row := range h.Indexes() {
			got = append(got, row.Workflow+" "+row.Path+" "+string(row.State))
		}
		assert.True(t, slices.Equal(got, want), "%s the indexes are %v, want %v", when, got, want)
	}
	wants("before", "gone svcPublic.a whole", "stock svcPublic.t whole")
	h.Restart() // NB: so that the version before must be read
	retire("stock", 2)
	wants("after the newest was retired", "gone svcPublic.a whole", "stock svcPublic.a whole")
	h.CheckIndexes()
	_, _, err := workflowtest.IDs(t, h.Queries.Query, query.Request{Caller: workflowtest.Boss, WorkflowID: "stock", Sort: "svcPublic.a"})
	assert.NoError(t, err, "sorted by an index that is back")
	retire("gone", 0)
	wants("after a workflow was retired", "stock svcPublic.a whole")
	h.Restart()
	wants("after a restart", "stock svcPublic.a whole")
}
