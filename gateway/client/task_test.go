package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/servertest"
)

// TestTasks lists a task, claims it, comments, and decides it.
func TestTasks(t *testing.T) {
	s := servertest.Start(t)
	c := connect(t, s.URL, Options{Token: s.Token})
	var ids []string
	for range 3 {
		i, err := c.Create(t.Context(), CreateRequest{WorkflowID: servertest.Workflow})
		require.NoError(t, err)
		_, err = c.Send(t.Context(), SendRequest{WorkflowID: servertest.Workflow, InstanceID: i.ID, Event: "submit"})
		require.NoError(t, err)
		ids = append(ids, i.ID)
	}
	var tasks []string
	for page, err := range c.TasksPages(t.Context(), TasksRequest{Scope: "open", Sort: "created", WorkflowID: servertest.Workflow, Query: "look", Filter: `{"status":"open"}`, Limit: 2, Count: true}) {
		require.NoError(t, err)
		assert.True(t, page.Count != nil && *page.Count == 3, "got the number %v", page.Count)
		for _, task := range page.Items {
			tasks = append(tasks, task.TaskID)
			assert.True(t, task.Title == "Look at it" && task.RequesterName != nil && *task.RequesterName == "John Doe" && len(task.Events) != 0 && task.Due != nil, task)
		}
	}
	require.Len(t, tasks, 3)
	if task, err := c.ChangeTask(t.Context(), tasks[0], ClaimTask, ""); err != nil || task.Status != "claimed" || len(task.Raw) == 0 {
		t.Errorf("got %+v, %v", task, err)
	}
	if task, err := c.ChangeTask(t.Context(), tasks[0], AssignTask, servertest.User); err != nil || task.Assignee == nil {
		t.Errorf("got %+v, %v", task, err)
	}
	if comment, err := c.Comment(t.Context(), servertest.Workflow, ids[0], "hello"); err != nil || comment.Text != "hello" || comment.UserName != "John Doe" {
		t.Errorf("got %+v, %v", comment, err)
	}
	if task, err := c.Task(t.Context(), tasks[0]); err != nil || task.InstanceID != ids[0] {
		t.Errorf("got %+v, %v", task, err)
	}
	var kinds []string
	for page, err := range c.ActivityPages(t.Context(), ActivityRequest{WorkflowID: servertest.Workflow, InstanceID: ids[0], OldestFirst: true, Limit: 2}) {
		require.NoError(t, err)
		for _, a := range page.Items {
			kinds = append(kinds, a.Kind)
		}
	}
	assert.True(t, len(kinds) == 4 && kinds[0] == "history" && kinds[2] == "task" && kinds[3] == "comment", "got %q", kinds)
	_, err := c.ChangeTask(t.Context(), ids[0]+"-9-9", ReleaseTask, "")
	wantStatus(t, err, 404, "NotFound")
	_, err = c.Tasks(t.Context(), TasksRequest{Limit: 1001})
	assert.Error(t, err, "a limit of 1001 is taken")
}
