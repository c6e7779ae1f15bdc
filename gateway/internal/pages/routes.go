package pages

import (
	"net/http"

	"troupe/gateway/internal/kernel"
)

// Routes are the pages and their files, and the description of the interface.
func (g *Group) Routes() []kernel.Route {
	return []kernel.Route{
		{Name: "portal", Method: http.MethodGet, Path: "/", Access: kernel.Public, IgnoresQuery: true, Handle: g.showPage},
		{
			Name: "form-page", Method: http.MethodGet, Path: "/form-runtime/:formId/:workflowId/:instanceId/index.html",
			Access: kernel.Public, IgnoresQuery: true, Handle: g.showPage,
		},
		{
			Name: "instance-page", Method: http.MethodGet, Path: "/instances/:workflowId/:instanceId",
			Access: kernel.Public, IgnoresQuery: true, Handle: g.showPage,
		},
		{Name: "operations-page", Method: http.MethodGet, Path: "/operations", Access: kernel.Public, IgnoresQuery: true, Handle: g.showPage},
		{Name: "asset", Method: http.MethodGet, Path: "/assets/:name", Access: kernel.Public, Handle: showAsset},
		{Name: "openapi-yaml", Method: http.MethodGet, Path: "/openapi.yaml", Access: kernel.Public, Handle: g.showInterfaceYAML},
		{Name: "openapi-json", Method: http.MethodGet, Path: "/openapi.json", Access: kernel.Public, Handle: g.showInterfaceJSON},
		{Name: "schema", Method: http.MethodGet, Path: "/schemas/:file", Access: kernel.Public, Handle: showSchema},
		{Name: "docs", Method: http.MethodGet, Path: "/docs", Access: kernel.Public, Handle: g.showInterface},
	}
}
