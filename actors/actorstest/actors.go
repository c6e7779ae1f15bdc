// Package actorstest runs everything below the gateway in a test: the identities and the actors of all groups, on a
// store in memory and on the text files of a home. StartCluster runs several of them as the nodes of one cluster. Only
// tests import it.
package actorstest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/audit"
	"troupe/actors/catalog"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/migration"
	"troupe/actors/presentation"
	"troupe/actors/repository"
	"troupe/actors/repository/disk"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// Options of Start.
type Options struct {
	// Files are those of the home, identity.yaml among them, and those of the repository below repository/, by their
	// path.
	Files    map[string]string
	Workflow workflow.Options // Workflow, Portal and Identity have limits; what Start makes itself is overwritten
	Portal   formportal.Options
	Identity identity.Options
	Clock    func() time.Time // the time of all of them; nil: time.Now
	Disk     *storetest.Disk  // what the store stands on; nil: a new one. A cluster has its own
	Log      zerolog.Logger
	// InBubble leaves out Repository and Parameters, whose watch of a folder keeps the clock of testing/synctest from going on.
	InBubble bool
}

// Actors is what runs until the end of the test.
type Actors struct {
	Dir           string          // the home folder
	Disk          *storetest.Disk // what the store stands on
	Store         *persistence.Store
	Node          *cluster.Node // nil where it is standalone
	Identities    identity.Identities
	Audit         *audit.Log
	Workflows     *workflow.Router
	Presentations *presentation.Service // how people see workflows and instances
	Migrations    *migration.Service    // Migrations has no other nodes
	Portal        *formportal.Portal
	Repository    *repository.Service
	Parameters    *template.Service

	t         testing.TB
	parser    *statemachine.Parser
	catalog   *catalog.Catalog
	templates *formportal.Templates
	published *home.Published // nil where it is standalone
	took      atomic.Uint64   // how often what is published was taken over
	nodes     []*Actors       // of the cluster, this one included; built once
}

// Start starts all of it.
func Start(t testing.TB, o Options) *Actors {
	t.Helper()
	a := &Actors{t: t, Dir: t.TempDir(), Disk: o.Disk}
	if a.Disk == nil {
		a.Disk = storetest.NewDisk()
	}
	a.nodes = []*Actors{a}
	for name, text := range o.Files {
		a.put(name, text)
	}
	var err error
	a.Store, err = a.Disk.Open(persistence.Options{Shards: 2})
	a.must(err)
	t.Cleanup(func() { a.must(a.Store.Close()) })
	a.openDefinitions(o.Log)
	a.must(formportal.AddPlainWorkflow(a.catalog, a.parser))
	set := a.publish()

	o.Identity.Store, o.Identity.Directory, o.Identity.Clock, o.Identity.Log = a.Store, set.Directory, o.Clock, o.Log
	identities, err := identity.Start(o.Identity)
	a.must(err)
	a.stopAtEnd(identities)
	a.startAudit(o, nil)
	a.Identities = &audit.Identities{Identities: identities, Log: a.Audit}
	a.run(o, set.Rights)
	return a
}

func (a *Actors) openDefinitions(log zerolog.Logger) {
	a.t.Helper()
	var err error
	a.parser, err = statemachine.NewParser(statemachine.ParserOptions{})
	a.must(err)
	definitions := catalog.Options{Store: a.Store, Parser: a.parser, Log: log}
	if a.Node != nil {
		definitions.Current = a.current
	}
	a.catalog, err = catalog.Open(definitions)
	a.must(err)
	a.templates, err = formportal.OpenTemplates(a.Store, log)
	a.must(err)
}

func (a *Actors) startAudit(o Options, current func(context.Context) error) {
	of := audit.Options{Store: a.Store, Current: current, Clock: o.Clock, Log: o.Log}
	if a.Node != nil {
		take := func(ctx context.Context, _ peer.NodeID, e audit.Entry) (struct{}, error) {
			return struct{}{}, a.Audit.Here(ctx, e)
		}
		of.Lead = func(ctx context.Context, e audit.Entry) error {
			_, err := cluster.Ask(ctx, a.Node, "/cluster/audit", take, e)
			return err
		}
		cluster.Handle(a.Node, "/cluster/audit", take)
	}
	a.Audit = audit.Start(of)
	a.stopAtEnd(a.Audit)
}

func (a *Actors) run(o Options, rights *repository.Rights) {
	a.t.Helper()
	system := actors.NewSystem(o.Log)
	a.stopAtEnd(system)
	o.Workflow.Store, o.Workflow.System, o.Workflow.Catalog, o.Workflow.Clock, o.Workflow.Log = a.Store, system, a.catalog, o.Clock, o.Log
	o.Workflow.NameOf = func(user string) string { return cmp.Or(a.Identities.Directory().Name(identity.UserID(user)), user) }
	o.Workflow.Principal = func(user identity.UserID) *identity.Principal { return a.Identities.Directory().Principal(user) }
	o.Workflow.AuditRead = a.Audit.ReadList
	if a.Node != nil {
		o.Workflow.Current, o.Workflow.Peers = a.Node.Current, cluster.Questions{Node: a.Node}
		o.Workflow.Elsewhere, o.Workflow.PutElsewhere = a.tellElsewhere, a.putElsewhere
	}
	var err error
	a.Workflows, err = workflow.Start(o.Workflow)
	a.must(err)
	if a.Node != nil {
		a.Node.HandleQuestions(a.Workflows.Fanout.Answer)
	}
	a.stopAtEnd(a.Workflows)
	a.Presentations = presentation.New(presentation.Options{Instances: a.Workflows, Queries: a.Workflows.Queries, Catalog: a.catalog, Store: a.Store, Clock: o.Clock})
	a.Migrations = migration.New(migration.Options{Instances: a.Workflows, Queries: a.Workflows.Queries, Parser: a.parser, Newest: a.catalog.Newest, Pin: a.catalog.PinVersion, MayAssign: a.catalog.MayAssign, Log: o.Log})
	a.Workflows.Bulk.UseMigrations(a.Migrations)
	if !o.InBubble {
		a.openRepository(o, system, rights)
	}
	o.Portal.System, o.Portal.Workflows, o.Portal.Templates, o.Portal.Directory = system, a.Workflows, a.templates, a.Identities.Directory
	o.Portal.Clock, o.Portal.Log = o.Clock, o.Log
	a.Portal = formportal.Start(o.Portal)
	a.stopAtEnd(a.Portal)
}

func (a *Actors) openRepository(o Options, system *actors.System, rights *repository.Rights) {
	a.t.Helper()
	files, err := disk.Open(disk.Options{Dir: filepath.Join(a.Dir, home.RepositoryFolder), Log: o.Log})
	a.must(err)
	a.t.Cleanup(func() { a.must(files.Close()) })
	a.Repository = repository.Start(repository.Options{System: system, Source: files, Rights: rights, Log: o.Log})
	a.stopAtEnd(a.Repository)
	a.Parameters = template.Start(template.Options{System: system, Files: a.Repository, Log: o.Log})
	a.stopAtEnd(a.Parameters)
}

// Nodes are those of the cluster, this one included; alone it is the only one.
func (a *Actors) Nodes() []*Actors { return a.nodes }

// Catalog returns the definitions in use.
func (a *Actors) Catalog() *catalog.Catalog { return a.catalog }

// Simulator returns one of what is in use, whose clock stands still.
func (a *Actors) Simulator() *home.Simulator {
	return &home.Simulator{
		Parser: a.parser, Queue: home.NewQueue(a.t.Context()), Catalog: a.catalog, Users: a.Identities.Directory,
		Clock: func() time.Time { return time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC) },
	}
}

// Write puts a file in place of another one, or none for "", and takes all files over as the service does.
func (a *Actors) Write(name, text string) {
	a.t.Helper()
	a.put(name, text)
	if a.Node != nil {
		a.publishToAll()
		return
	}
	set := a.publish()
	a.Identities.SetDirectory(set.Directory)
	a.Repository.SetRights(set.Rights)
}

// Token returns a new token of a user.
func (a *Actors) Token(user identity.UserID) string {
	a.t.Helper()
	return a.create(identity.Token, user)
}

// Session returns a new session of a user.
func (a *Actors) Session(user identity.UserID) string {
	a.t.Helper()
	return a.create(identity.Session, user)
}

func (a *Actors) create(kind identity.Kind, user identity.UserID) (secret string) {
	a.t.Helper()
	a.ChangeIdentities(func(i identity.Identities) (err error) {
		secret, _, err = i.Create(context.Background(), kind, identity.CreateCredential{User: user})
		return err
	})
	return secret
}

// ChangeIdentities does something with the identities where they can be changed.
func (a *Actors) ChangeIdentities(do func(identity.Identities) error) {
	a.t.Helper()
	a.await("a node that leads the identities", func() bool {
		for _, n := range a.nodes {
			if err := do(n.Identities); !errors.Is(err, failure.ErrNotLeader) {
				a.must(err)
				return true
			}
		}
		return false
	})
	a.AwaitCurrent()
}

// AwaitCurrent returns when every node knows what any of them has acknowledged of users, credentials and definitions.
func (a *Actors) AwaitCurrent() {
	a.t.Helper()
	for _, n := range a.nodes {
		if n.Node != nil {
			a.must(n.current(context.Background()))
		}
	}
}

// await fails the test after a minute, which only a broken service needs.
func (a *Actors) await(what string, met func() bool) {
	a.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !met() {
		select {
		case <-tick.C:
		case <-late:
			a.t.Fatalf("actorstest: there is not: %s", what)
		}
	}
}

func (a *Actors) put(name, text string) {
	a.t.Helper()
	path := filepath.Join(a.Dir, name)
	if text == "" {
		a.must(os.Remove(path))
		return
	}
	a.must(os.MkdirAll(filepath.Dir(path), 0o755))
	a.must(os.WriteFile(path, []byte(text), 0o644))
}

func (a *Actors) load() *home.Set {
	a.t.Helper()
	set, err := home.Load(os.DirFS(a.Dir), a.parser)
	a.must(err)
	return set
}

func (a *Actors) publish() *home.Set {
	a.t.Helper()
	set := a.load()
	templates, err := a.templates.Prepare(set.Templates)
	a.must(err)
	a.must(a.catalog.Publish(set.Workflows, templates))
	return set
}

func (a *Actors) must(err error) {
	if err != nil {
		a.t.Helper()
		a.t.Fatalf("actorstest: %v", err)
	}
}

func (a *Actors) stopAtEnd(part interface {
	Stop(ctx context.Context) error
},
) {
	a.t.Cleanup(func() { a.must(part.Stop(context.Background())) })
}
