package operate

import (
	"net/http"

	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes show what happens by itself, and change it.
func (g *Group) Routes() []kernel.Route {
	row := func(name, method, path string, handle func(*kernel.Exchange) error, query ...string) kernel.Route {
		return kernel.Route{
			Name: name, Method: method, Path: path, Group: kernel.GroupWorkflow,
			Access: kernel.SignedIn(identity.Token | identity.Session), Privilege: identity.Workflows, Query: query, Handle: handle,
		}
	}
	pending := row("pending", http.MethodGet, kernel.WorkflowPath+"/instance/:workflowId/:instanceId/pending", g.listPending)
	pending.Privilege = ""
	return []kernel.Route{
		pending,
		row("outbox", http.MethodGet, kernel.WorkflowPath+"/outbox", g.listDeliveries, "state", "limit", "cursor"),
		row("change-delivery", http.MethodPost, kernel.WorkflowPath+"/outbox/:id", g.changeDelivery),
		row("incidents", http.MethodGet, kernel.WorkflowPath+"/incidents", g.listIncidents, "limit", "cursor"),
		row("change-incident", http.MethodPost, kernel.WorkflowPath+"/incidents/:id", g.changeIncident),
		row("stop", http.MethodPost, kernel.WorkflowPath+"/instance/:workflowId/:instanceId/stop", g.stopInstance),
		row("timers", http.MethodGet, kernel.WorkflowPath+"/timers", g.listTimers, "workflowId", "limit", "cursor"),
		row("schedules", http.MethodGet, kernel.WorkflowPath+"/schedules", g.listSchedules),
		row("migrate", http.MethodPost, kernel.WorkflowPath+"/instances/:workflowId/migrate", g.migrateInstances),
		row("change-schedule", http.MethodPost, kernel.WorkflowPath+"/schedules/:workflowId/:name", g.changeSchedule),
	}
}

// ProbeRoutes are health for machines.
func (g *Group) ProbeRoutes() []kernel.Route {
	return []kernel.Route{
		{Name: "livez", Method: http.MethodGet, Path: "/livez", Access: kernel.Probed, Handle: answerLive},
		{Name: "readyz", Method: http.MethodGet, Path: "/readyz", Access: kernel.Probed, Handle: g.answerReady},
	}
}

// AdminRoutes are for those who run the service.
func (g *Group) AdminRoutes() []kernel.Route {
	return []kernel.Route{
		{
			Name: "health", Method: http.MethodGet, Path: kernel.AdminPath + "/health",
			Access: kernel.SignedIn(identity.Token | identity.Session), Privilege: identity.Workflows, OrPrivilege: identity.Admin, Handle: g.showHealth,
		},
		{
			Name: "publish-home", Method: http.MethodPut, Path: kernel.AdminPath + "/home",
			Access: kernel.SignedIn(identity.Token | identity.Session), Privilege: identity.Admin,
			Query: []string{"dryRun"}, Content: "application/x-tar", ContentBytesMax: home.MaxPackedBytes, Handle: g.publishHome,
		},
	}
}
