package instances

import (
	"net/http"

	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes is group B.
func (g *Group) Routes() []kernel.Route {
	workflowAccess := kernel.SignedIn(identity.Token | identity.Session)
	return []kernel.Route{
		{
			Name: "create", Method: http.MethodPost, Path: kernel.WorkflowPath + "/create",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Handle: g.createInstance,
		},
		{
			Name: "event", Method: http.MethodPost, Path: kernel.WorkflowPath + "/event",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Handle: g.sendEvent,
		},
		{
			Name: "batch", Method: http.MethodPost, Path: kernel.WorkflowPath + "/events",
			Group: kernel.GroupWorkflow, Access: workflowAccess, ReadsBody: true, Handle: g.sendBatch,
		},
		{
			Name: "instance", Method: http.MethodGet, Path: kernel.WorkflowPath + "/instance/:workflowId/:instanceId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Handle: g.loadInstance,
		},
		{
			Name: "instances", Method: http.MethodGet, Path: kernel.WorkflowPath + "/instances/:workflowId",
			Group: kernel.GroupWorkflow, Access: workflowAccess,
			Query: []string{"filter", "limit", "cursor", "sort", "fields", "count", "explain"}, Handle: g.queryInstances,
		},
		{
			Name: "choices", Method: http.MethodGet, Path: kernel.WorkflowPath + "/choices",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Handle: g.listChoices,
		},
		{
			Name: "events", Method: http.MethodGet, Path: kernel.WorkflowPath + "/instance/:workflowId/:instanceId/events",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Handle: g.listEvents,
		},
		{
			Name: "history", Method: http.MethodGet, Path: kernel.WorkflowPath + "/instance/:workflowId/:instanceId/history",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Query: []string{"limit", "cursor", "fields", "order"}, Handle: g.listHistory,
		},
		{
			Name: "changes", Method: http.MethodGet, Path: kernel.WorkflowPath + "/changes",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Strict: true,
			Query: []string{"since", "workflowId", "limit", "wait"}, Handle: g.listChanges,
		},
		{
			Name: "watch", Method: http.MethodGet, Path: kernel.WorkflowPath + "/watch/:workflowId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Strict: true, Query: []string{"filter"}, Handle: g.watchInstances,
		},
		{
			Name: "watch-instance", Method: http.MethodGet, Path: kernel.WorkflowPath + "/watch/:workflowId/:instanceId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Strict: true, Query: []string{"filter"}, Handle: g.watchInstances,
		},
	}
}
