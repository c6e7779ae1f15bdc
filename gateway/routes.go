package gateway

import (
	"context"
	_ "embed"
	"net"
	"slices"

	"troupe/actors/audit"
	"troupe/actors/export"
	"troupe/gateway/api"
	"troupe/gateway/internal/administration"
	"troupe/gateway/internal/design"
	"troupe/gateway/internal/files"
	"troupe/gateway/internal/forward"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/jobs"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/operate"
	"troupe/gateway/internal/pages"
	"troupe/gateway/internal/portal"
	"troupe/gateway/internal/session"
	"troupe/gateway/internal/tasks"
	"troupe/gateway/leader"
)

type groups struct {
	forwarder forward.Forwarder
	instances instances.Group
	design    *design.Group
	operate   operate.Group
	jobs      *jobs.Group
	tasks     tasks.Group
	portal    portal.Group
	session   session.Group
	pages     *pages.Group
	files     files.Group
	admin     administration.Group
}

// newGroups makes the groups of a server whose paths begin with basePath.
func newGroups(basePath string) *groups {
	return &groups{design: design.New(), jobs: jobs.New(), pages: pages.New(basePath, described)}
}

// routes is the table of operations, which gateway/openapi.yaml describes.
func (g *groups) routes() []kernel.Route {
	return slices.Concat(
		g.instances.Routes(), g.design.Routes(), g.operate.Routes(), g.jobs.Routes(), g.tasks.Routes(), g.portal.Routes(),
		g.session.Routes(), g.pages.Routes(), g.operate.ProbeRoutes(), g.files.Routes(), g.operate.AdminRoutes(), g.admin.Routes(),
	)
}

// open gives each group what it asks. No handler runs before the kernel is opened.
func (g *groups) open(s *Services, addr func() net.Addr) {
	g.forwarder.Peers = s.Peers
	g.instances.Workflows, g.instances.Forwarder = s.Workflows, &g.forwarder
	g.instances.Queries, g.instances.Watches, g.instances.Changes = s.Queries, s.Watches, s.Changes
	g.jobs.Jobs, g.jobs.Bodies = s.Jobs, &g.instances
	g.design.Definitions, g.design.Presentations, g.design.Users = s.Definitions, s.Presentations, s.Users
	g.operate.Workflows, g.operate.Waiting, g.operate.Migrations, g.operate.Homes = s.Workflows, s.Waiting, s.Migrations, s.Homes
	g.operate.BulkJobs = s.BulkJobs
	g.operate.Cluster, g.operate.Vitals, g.operate.Parts = s.Cluster, s.Vitals, s.Parts
	g.operate.Load, g.operate.Backups, g.operate.Exports = s.Load, s.Backups, s.Exports
	g.tasks.Workflows, g.tasks.Worklists, g.tasks.Watches, g.tasks.Users = s.Workflows, s.Worklists, s.TaskWatches, s.Users
	g.portal.Portal, g.portal.Presentations, g.portal.Users = s.Portal, s.Presentations, s.Users
	g.session.Sessions, g.session.Links, g.session.Provider, g.session.Addr = s.Sessions, s.Links, s.Provider, addr
	g.admin.Identities, g.admin.Workflows, g.admin.Audit = s.Identities, s.Workflows, s.Audit
	g.files.Repository, g.files.Templates = s.Repository, s.Templates
}

// openapiYAML is the whole interface, for machines and for people. Tests hold it
// against the table of routes, and every exchange of theirs against it.
//
//go:embed openapi.yaml
var openapiYAML []byte

// described is what all servers of the process answer.
var described = pages.NewDescription(openapiYAML)

// Workflows is what the routes about instances, tasks and operations need. Replies belong to the callee and are
// only read. Errors are those of package failure.
type Workflows interface {
	instances.Workflows
	operate.Operations
	tasks.Tasks
	administration.Workflows
	// StopWatching ends all watches, and refuses new ones. Calls of Changes wait no more.
	StopWatching()
}

// Services is what the handlers call. The server does not change it.
type Services struct {
	Workflows Workflows
	// The services beside the instances, which are asked directly.
	Queries     instances.Queries
	Watches     instances.Watches
	Changes     instances.Changes
	Worklists   tasks.Worklists
	TaskWatches tasks.Watches
	Waiting     operate.Waiting

	Credentials kernel.Credentials
	// Identities has users, tokens and sessions, for those who manage them.
	Identities administration.Identities
	Audit      *audit.Log // who did what; nil: nothing is recorded
	// Presentations has how people see workflows and instances.
	Presentations design.Presentations
	Portal        portal.Portal
	// Sessions signs people in and out.
	Sessions session.Sessions
	// Links signs people in who have a link. Nil: there are none.
	Links session.Links
	// Provider signs people in through an identity provider. Nil: there is none, and the routes for it answer 404.
	Provider session.Provider
	// Users says who there is. Nil: users have no names but their login names.
	Users kernel.Users
	// Repository lists files.
	Repository files.Repository
	// Templates lists the parameters that templates declare.
	Templates files.Templates
	// Definitions shows what was published.
	Definitions design.Definitions
	// Migrations gives running instances other versions.
	Migrations operate.Migrations
	// BulkJobs does one thing to many instances.
	BulkJobs operate.BulkJobs
	// Jobs gives work of instances to programs.
	Jobs jobs.Jobs
	// Homes publishes homes. Nil: the node is standalone, and the route for it answers 409.
	Homes operate.Homes
	// Peers reaches the other nodes of a cluster. Nil: the node is standalone.
	Peers forward.Peers
	// Locate says which node leads an instance, as this one knows it, and false when it does not. Nil: the node is
	// standalone.
	Locate func(instance string) (leader.Place, bool)
	// Cluster is the cluster as this node knows it, for "verbose" of /readyz: something that is
	// JSON, and that everybody may see who can reach the server. Nil: the node is standalone.
	Cluster func() any
	// Vitals is what the node holds and has done. It is asked once a second at most. Nil: nobody counts.
	Vitals func() api.Vitals
	// Load is what all nodes did in the last minutes. Nil: nobody counts.
	Load func(context.Context) api.Load
	// Backups says where the node backs up the home to. Nil: nowhere.
	Backups func(context.Context) []api.Backup
	// Exports says how far the exports are, on all nodes. Nil: there are none.
	Exports func(context.Context) ([]export.Status, error)
	Parts   []operate.Part // asked by /readyz; they do not decide whether a request is taken
}
