package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/cluster"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/presentation"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/admin"
	"troupe/gateway/login"
	"troupe/gateway/provider"
	"troupe/persistence"
	"troupe/statemachine"
)

func newServe() *cobra.Command {
	c := newConfig()
	demo := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Run the server on a home folder. A missing or empty folder is filled with a small\n" +
			"working example first, and links are printed that sign you in to it. It is ready when\n" +
			"GET /readyz answers 200, and prints its address then; SIGTERM, SIGINT or SIGHUP answers\n" +
			"every accepted request and ends it with exit code 0.",
		Example: "  troupe serve\n" +
			"  troupe serve --demo\n" +
			"  troupe serve --home /srv/troupe --listen :8080",
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
			defer stop()
			// A second signal ends the process at once.
			context.AfterFunc(ctx, stop)
			return serve(ctx, c, demo, cmd.OutOrStdout())
		},
	}
	cmd.Flags().SetNormalizeFunc(dotted)
	cmd.Flags().AddFlagSet(c.flags)
	cmd.Flags().BoolVar(&demo, "demo", false, "fill the example home with a few dozen requests, and print links that sign you in")
	return cmd
}

// service is everything that runs.
type service struct {
	config *config
	log    zerolog.Logger
	links  *login.Links // nil when there are none
	demo   bool         // the store is filled with requests of the example
	made   int          // how many of them were made

	started stack // what stop has to stop

	gateway            *gateway.Server
	store              *persistence.Store
	parser             *statemachine.Parser // gives up when the server has to stop
	queue              *home.Queue
	catalog            *catalog.Catalog
	formTemplates      *formportal.Templates
	identities         identity.Identities
	node               *cluster.Node // nil on a server that stands alone
	system             *actors.System
	router             *workflow.Router
	migrations         *migration.Service
	portal             *formportal.Portal
	files              files
	repository         *repository.Service
	templateParameters *template.Service
	admin              *admin.Server
	operations         *admin.Operations
	watcher            *home.Watcher
	published          *home.Published  // nil on a node that stands alone
	provider           *provider.Client // nil without one
	sender             outbox.Senders

	rights  *repository.Rights // as they were at the start
	reloads reloads
}

// serve runs the server until ctx ends or something fails for good. It says on out where it can
// be reached, and nothing else but what a person reads at a first start.
func serve(ctx context.Context, c *config, demo bool, out io.Writer) (err error) {
	paceCollector()
	if err := aloneAt(ctx, c.home); err != nil {
		return err
	}
	filled, err := ensureHome(c.home)
	if err != nil {
		if c.wasNode() {
			err = c.adviceForNode(fmt.Errorf("%s is the home of a node of a cluster, and %s, which says which one, is gone", c.home, nodeFolder(c.home)))
		}
		return err
	}
	if filled { // there are settings now
		if err := c.load(); err != nil {
			return err
		}
	}
	log, started := c.serverLogger()
	s := &service{config: c, log: log, demo: demo}
	if demo || filled {
		s.links = login.NewLinks(nil)
	}
	if err := home.RefreshSchemas(c.home); err != nil { // a home may be read-only
		s.log.Info().Err(err).Msg("schemas for editors are not brought up to date")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel() // NB: what is being checked need not be awaited
		err = errors.Join(err, s.stop())
	}()
	if err := s.start(ctx); err != nil {
		if errors.Is(err, errStopped) || errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil
		}
		return err
	}
	s.log.Info().Str("home", c.home).Int("workflows", s.catalog.Len()).Int("templates", s.formTemplates.Len()).Msg("ready")
	started()
	if err := s.greet(out); err != nil {
		s.log.Warn().Err(err).Msg("standard output cannot be written")
	}
	select {
	case <-ctx.Done():
		s.log.Info().Msg("stopping: accepted requests are answered first")
		return nil
	case err := <-s.gateway.Failed():
		return err
	case err := <-s.nodeFailed():
		return err
	}
}

// nodeFailed tells when a node must end; never on a server that stands alone.
func (s *service) nodeFailed() <-chan error {
	if s.node == nil {
		return nil
	}
	return s.node.Failed()
}

// start starts the parts from the bottom up and puts each onto the stack, from
// which stop takes them:
//
//	node of a cluster            leaderships are handed over
//	gateway                      drains: accepted requests are answered while
//	                             everything below still works
//	identity provider            connections are closed
//	watcher of the home          no more changed files are taken over
//	operations, admin socket     commands that were accepted are answered
//	portal, template parameters, list of files
//	router                       instances go to sleep
//	actor system
//	identities                   last uses are written
//	node of a cluster            ends what it does by itself
//	store                        everything appended is durable
//	cluster port
//	files of the repository
//
// A part that stop must reach earlier than its place says is put on top again: the
// port opens first, so that /livez and /readyz answer while the store is being
// opened, and the watcher sees changes from before the home is read.
func (s *service) start(ctx context.Context) error {
	for _, step := range []func() error{
		s.checkDemo,
		s.listen,
		func() error { return s.claimNode(ctx) },
		func() error { return s.open(ctx) },
		s.readHome,
		func() error { return s.seed(ctx) },
		s.run, s.takeCommands,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	s.watcher.Start()
	s.started.push(s.watcher)
	if s.published != nil {
		s.followPublished()
	}
	s.serveRequests()
	return nil
}

// listen opens the port. Before, it makes what can fail over its settings.
func (s *service) listen() (err error) {
	c := s.config
	if s.gateway, err = c.newGateway(s.log); err != nil {
		return err
	}
	if s.provider, err = c.newProvider(s.flowKey(), s.log); err != nil {
		return err
	}
	if s.sender, err = c.newSender(func() *identity.Directory { return s.identities.Directory() }); err != nil {
		return err
	}
	files, err := c.newFiles(s.log)
	if err != nil {
		return err
	}
	s.files = files // NB: not before, since a nil pointer in an interface is not nil
	s.started.push(closing{files})
	if err := s.gateway.Start(); err != nil {
		return explainAddress(err, "listen")
	}
	s.started.push(s.gateway)
	return nil
}

// open opens the store and what is in it.
func (s *service) open(ctx context.Context) (err error) {
	c := s.config
	if s.node != nil {
		s.store, err = s.openReplica()
	} else {
		s.store, err = openStore(c, s.log)
	}
	if err != nil {
		return err
	}
	s.started.push(closing{s.store})
	if s.node != nil {
		if err := s.joinNode(ctx); err != nil {
			return err
		}
	}
	if err := ignoreStoreID(c.home); err != nil {
		s.log.Warn().Err(err).Msg("the store's id cannot be kept out of git")
	}
	return s.openDefinitions(ctx)
}

// openDefinitions opens what the store holds of definitions.
func (s *service) openDefinitions(ctx context.Context) (err error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return err
	}
	s.parser, s.queue = parser.Until(ctx.Err), home.NewQueue(ctx)
	o := catalog.Options{Store: s.store, Parser: parser, Current: s.current, Log: s.log}
	if s.node != nil {
		o.Level, o.Vacate = s.node.Level, s.vacate
	}
	if s.catalog, err = catalog.Open(o); err != nil {
		return err
	}
	if err = formportal.AddPlainWorkflow(s.catalog, parser); err != nil {
		return err
	}
	s.formTemplates, err = formportal.OpenTemplates(s.store, s.log)
	return err
}

// run starts what works on requests.
func (s *service) run() (err error) {
	c := s.config
	s.system = actors.NewSystem(s.log)
	s.started.push(s.system)
	workflows := c.workflow
	workflows.Store, workflows.System, workflows.Catalog, workflows.Log = s.store, s.system, s.catalog, s.log
	if s.node != nil {
		workflows.Current, workflows.Elsewhere, workflows.Level = s.node.Current, s.tellElsewhere, s.node.Level
		workflows.PutElsewhere = s.putElsewhere
	}
	workflows.Sender = s.sender
	workflows.Principal = func(user identity.UserID) *identity.Principal { return s.identities.Directory().Principal(user) }
	workflows.ReplyWaitMax = c.store.CommitWaitMax + 5*time.Second
	if s.router, err = workflow.Start(workflows); err != nil {
		return err
	}
	s.started.push(s.router)
	s.migrations = s.newMigrations()
	if s.node != nil {
		cluster.Handle(s.node, pathInside, s.takeInside)
		cluster.Handle(s.node, pathIncidents, s.takeIncidents)
		cluster.Handle(s.node, pathMigrate, s.takeMigration)
		cluster.Handle(s.node, pathVacate, s.takeVacancy)
	}
	s.repository = repository.Start(repository.Options{System: s.system, Source: s.files, Rights: s.rights, Log: s.log})
	s.started.push(s.repository)
	s.templateParameters = template.Start(template.Options{System: s.system, Files: s.repository, Log: s.log})
	s.started.push(s.templateParameters)
	portal := c.portal
	portal.System, portal.Workflows, portal.Templates, portal.Directory, portal.Log = s.system, s.router, s.formTemplates, s.identities.Directory, s.log
	portal.ArchiveAfter = max(portal.ArchiveAfter, 1) // NB: 0 is at once, not the default
	s.portal = formportal.Start(portal)
	s.started.push(s.portal)
	return nil
}

// takeCommands opens the socket of the command line and, when one is wanted, the
// listener of those who run the service.
func (s *service) takeCommands() (err error) {
	commands := admin.Options{
		Path: filepath.Join(s.config.home, adminSocket), Identities: s.identities, Check: s.checkDefinitions,
		Operator: s.gateway.OperatorHandler(), Log: s.log,
	}
	if s.published != nil { // NB: a nil pointer in the interface would not be nil
		commands.Homes = s.homes()
	}
	if s.node != nil {
		commands.Cluster, commands.Leader = members{s.node}, s.passToLeader
	}
	if s.admin, err = admin.Start(commands); err != nil {
		return err
	}
	s.started.push(s.admin)
	if s.config.admin == "" {
		return nil
	}
	sources := []admin.MetricsSource{
		{Name: "gateway", Metrics: func() any { return s.gateway.Metrics() }},
		{Name: "formportal", Metrics: func() any { return s.portal.Metrics() }},
		{Name: "workflow", Metrics: func() any { return s.router.Metrics() }},
		{Name: "template", Metrics: func() any { return s.templateParameters.Metrics() }},
		{Name: "repository", Metrics: func() any { return s.repository.Metrics() }},
		{Name: "identity", Metrics: func() any { return s.identities.Metrics() }},
		{Name: "store", Metrics: func() any { return s.store.Metrics() }},
		{Name: "reload", Metrics: s.reloads.metrics},
	}
	if s.node != nil {
		sources = append(sources, admin.MetricsSource{Name: "cluster", Metrics: func() any { return s.node.Metrics() }})
	}
	if s.operations, err = admin.StartOperations(admin.OperationsOptions{
		Addr: s.config.admin, Sources: sources,
		Log: s.log,
	}); err != nil {
		return explainAddress(err, "admin")
	}
	s.started.push(s.operations)
	return nil
}

// explainAddress adds to an address that something else has, or that is another machine's, which
// setting chooses another.
func explainAddress(err error, setting string) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --%s, or with %[2]s: in troupe.yaml", err, setting)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine does not have it; give one that it has with --%s, or with %[2]s: in troupe.yaml", err, setting)
	}
	return err
}

// serveRequests begins to answer requests.
func (s *service) serveRequests() {
	services := gateway.Services{
		Workflows: s.router, Presentations: presentation.New(presentation.Options{Instances: s.router, Catalog: s.catalog, Store: s.store}),
		Definitions: s.definitions(), Migrations: s.migrations,
		Portal:      s.portal,
		Credentials: s.identities,
		Sessions:    s.identities,
		Users:       s.identities,
		Repository:  s.repository,
		Templates:   s.templateParameters,
		Vitals:      s.vitals,
		Parts: []gateway.Part{
			{Name: "store", Ready: s.router.Accepting},
			{Name: "repository", Ready: s.repository.Ready, Optional: true},
			{Name: "access", Ready: s.reloads.access.ready, Optional: true},
			{Name: "definitions", Ready: s.reloads.definitionsReady, Optional: true},
			{Name: "stored definitions", Ready: s.catalog.Readable, Optional: true},
		},
	}
	if s.published != nil {
		services.Homes = s.homes()
	}
	if s.provider != nil { // NB: a nil client in the interface would not be nil
		services.Provider = s.provider
		s.started.push(closing{s.provider})
	}
	if s.links != nil { // NB: likewise
		services.Links = s.links
	}
	if s.node != nil {
		services.Peers = peers{s.node}
		services.Cluster = func() any { return publicStatus(s.node.Status()) }
		services.Parts = append(services.Parts, gateway.Part{Name: "cluster", Ready: s.node.Ready})
	}
	s.gateway.Open(services)
	s.started.push(s.gateway)
	if s.node != nil {
		s.serveNode()
		s.started.push(&stopping{func(ctx context.Context) error { s.node.HandOver(ctx); return nil }})
	}
}

// stop stops what was started, in the order that start shows.
func (s *service) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.stopMax())
	defer cancel()
	err := s.started.stop(ctx)
	s.log.Info().Msg("stopped")
	return err
}

// stopMax bounds stop: the gateway has DrainDelay and DrainMax for the accepted
// requests, the parts below have DrainMax again for what is left of those that did
// not end in time, and all have stopMargin for what is quick when all is well.
func (c *config) stopMax() time.Duration {
	return c.gateway.DrainDelay + 2*c.gateway.DrainMax + stopMargin
}

// stopMargin is more than the gateway and the admin socket take to close their
// connections, which is two seconds and five.
const stopMargin = 10 * time.Second
