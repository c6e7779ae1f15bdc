package design

import (
	"net/http"

	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway/internal/kernel"
)

// Routes show and publish definitions, and how people see them and their instances.
func (g *Group) Routes() []kernel.Route {
	return append(g.definitionRoutes(), g.presentationRoutes()...)
}

// definitionRoutes are those of definitions, in group B.
func (g *Group) definitionRoutes() []kernel.Route {
	workflowAccess := kernel.SignedIn(identity.Token | identity.Session)
	return []kernel.Route{
		{
			Name: "definitions", Method: http.MethodGet, Path: kernel.WorkflowPath + "/definitions",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows, Handle: g.listDefinitions,
		},
		{
			Name: "definition", Method: http.MethodGet, Path: kernel.WorkflowPath + "/definitions/:workflowId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows, Handle: g.showDefinition,
		},
		{
			Name: "definition-version", Method: http.MethodGet, Path: kernel.WorkflowPath + "/definitions/:workflowId/:version",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows, Handle: g.showDefinition,
		},
		{
			Name: "publish-definition", Method: http.MethodPut, Path: kernel.WorkflowPath + "/definitions/:workflowId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows,
			Query: []string{"dryRun"}, TakesYAML: true, ContentBytesMax: home.MaxFileBytes, Handle: g.publishDefinition,
		},
		{
			Name: "publish-definition-version", Method: http.MethodPut, Path: kernel.WorkflowPath + "/definitions/:workflowId/:version",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows,
			Query: []string{"dryRun"}, TakesYAML: true, ContentBytesMax: home.MaxFileBytes, Handle: g.publishDefinition,
		},
		{
			Name: "retire-definition", Method: http.MethodDelete, Path: kernel.WorkflowPath + "/definitions/:workflowId",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows, Handle: g.retireDefinition,
		},
		{
			Name: "retire-definition-version", Method: http.MethodDelete, Path: kernel.WorkflowPath + "/definitions/:workflowId/:version",
			Group: kernel.GroupWorkflow, Access: workflowAccess, Privilege: identity.Workflows, Handle: g.retireDefinition,
		},
	}
}

// presentationRoutes show how people see workflows and instances.
func (g *Group) presentationRoutes() []kernel.Route {
	row := func(name, path string, handle func(*kernel.Exchange) error, query ...string) kernel.Route {
		return kernel.Route{
			Name: name, Method: http.MethodGet, Path: path, Group: kernel.GroupWorkflow,
			Access: kernel.SignedIn(identity.Token | identity.Session), Query: query, Handle: func(x *kernel.Exchange) error {
				if g.Presentations == nil {
					return failure.ErrNotFound
				}
				return handle(x)
			},
		}
	}
	ofDefinition := row("definition-diagram", kernel.WorkflowPath+"/definitions/:workflowId/:version/diagram", g.drawDefinition, "counts")
	ofDefinition.Privilege = identity.Workflows
	return []kernel.Route{
		row("presentation", kernel.WorkflowPath+"/presentation/:workflowId", g.showPresentation, "version"),
		row("summary", kernel.WorkflowPath+"/instance/:workflowId/:instanceId/summary", g.showSummary),
		row("instance-diagram", kernel.WorkflowPath+"/instance/:workflowId/:instanceId/diagram", g.drawInstance),
		ofDefinition,
	}
}
