package gateway

import (
	_ "embed"
	"net"
	"slices"

	"troupe/gateway/internal/design"
	"troupe/gateway/internal/files"
	"troupe/gateway/internal/forward"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/operate"
	"troupe/gateway/internal/pages"
	"troupe/gateway/internal/portal"
	"troupe/gateway/internal/session"
	"troupe/gateway/internal/tasks"
)

// groups are those who answer the routes.
type groups struct {
	forwarder forward.Forwarder
	instances instances.Group
	design    *design.Group
	operate   operate.Group
	tasks     tasks.Group
	portal    portal.Group
	session   session.Group
	pages     *pages.Group
	files     files.Group
}

// newGroups makes the groups of a server whose paths begin with basePath.
func newGroups(basePath string) *groups {
	return &groups{design: design.New(), pages: pages.New(basePath, described)}
}

// routes is the table of operations, which gateway/openapi.yaml describes.
func (g *groups) routes() []kernel.Route {
	return slices.Concat(
		g.instances.Routes(), g.design.Routes(), g.operate.Routes(), g.tasks.Routes(), g.portal.Routes(),
		g.session.Routes(), g.pages.Routes(), g.operate.ProbeRoutes(), g.files.Routes(), g.operate.AdminRoutes(),
	)
}

// open gives each group what it asks. No handler runs before the kernel is opened.
func (g *groups) open(s *Services, addr func() net.Addr) {
	g.forwarder.Peers = s.Peers
	g.instances.Workflows, g.instances.Forwarder = s.Workflows, &g.forwarder
	g.design.Definitions, g.design.Presentations, g.design.Users = s.Definitions, s.Presentations, s.Users
	g.operate.Workflows, g.operate.Migrations, g.operate.Homes = s.Workflows, s.Migrations, s.Homes
	g.operate.Cluster, g.operate.Vitals, g.operate.Parts = s.Cluster, s.Vitals, s.Parts
	g.tasks.Workflows, g.tasks.Users = s.Workflows, s.Users
	g.portal.Portal, g.portal.Presentations, g.portal.Users = s.Portal, s.Presentations, s.Users
	g.session.Sessions, g.session.Links, g.session.Provider, g.session.Addr = s.Sessions, s.Links, s.Provider, addr
	g.files.Repository, g.files.Templates = s.Repository, s.Templates
}

// openapiYAML is the whole interface, for machines and for people. Tests hold it
// against the table of routes, and every exchange of theirs against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// described is what all servers of the process answer.
var described = pages.NewDescription(openapiYAML)
