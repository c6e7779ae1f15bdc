package tasks

import (
	"net/http"

	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes are worklists, and what happens beside histories.
func (g *Group) Routes() []kernel.Route {
	row := func(name, method, path string, handle func(*kernel.Exchange) error, query ...string) kernel.Route {
		return kernel.Route{
			Name: name, Method: method, Path: path, Group: kernel.GroupWorkflow, Access: kernel.SignedIn(identity.Token | identity.Session), Query: query, Handle: handle,
		}
	}
	watch := row("watch-tasks", http.MethodGet, kernel.WorkflowPath+"/tasks/watch", g.watchTasks)
	watch.Strict = true
	return []kernel.Route{
		row("tasks", http.MethodGet, kernel.WorkflowPath+"/tasks", g.listTasks, "scope", "workflowId", "filter", "q", "sort", "limit", "cursor", "count"),
		row("task", http.MethodGet, kernel.WorkflowPath+"/task/:taskId", g.showTask),
		row("change-task", http.MethodPost, kernel.WorkflowPath+"/task", g.changeTask),
		watch,
		row("comment", http.MethodPost, kernel.WorkflowPath+"/instance/:workflowId/:instanceId/comments", g.addComment),
		row("activity", http.MethodGet, kernel.WorkflowPath+"/instance/:workflowId/:instanceId/activity", g.listActivity, "order", "limit", "cursor"),
	}
}
