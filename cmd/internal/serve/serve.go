// Package serve is the server: it assembles the parts, starts them from the bottom up, takes over changed text files,
// and stops what it has started. Run is all of it, for the command and for other programs.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors"
	"troupe/actors/audit"
	"troupe/actors/catalog"
	"troupe/actors/cluster"
	"troupe/actors/export"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/migration"
	"troupe/actors/moment"
	"troupe/actors/outbox"
	"troupe/actors/presentation"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/cmd/internal/backup"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/homedir"
	"troupe/cmd/internal/metric"
	"troupe/cmd/internal/otlp"
	"troupe/cmd/internal/store"
	"troupe/gateway"
	"troupe/gateway/admin"
	"troupe/gateway/certificate"
	"troupe/gateway/login"
	"troupe/gateway/provider"
	"troupe/persistence"
	"troupe/statemachine"
)

// Command is troupe serve. The example fills an empty home.
func Command(example fs.FS) *cobra.Command {
	c := config.New()
	demo := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `A missing or empty home is first filled with a small example, and sign-in links are printed. The server is ready
when GET /readyz answers 200; it then prints its address. On SIGTERM, SIGINT or SIGHUP it answers all accepted
requests and exits with code 0.`,
		Example: "  troupe serve\n" +
			"  troupe serve --demo\n" +
			"  troupe serve --home /srv/troupe --listen :8080",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Load(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), cli.EndSignals()...)
			defer stop()
			// A second signal ends the process at once.
			context.AfterFunc(ctx, stop)
			return Run(ctx, &Options{Config: c, Example: example, Demo: demo, Out: cmd.OutOrStdout()})
		},
	}
	cmd.Flags().SetNormalizeFunc(config.Dotted)
	cmd.Flags().AddFlagSet(c.Flags)
	cmd.Flags().BoolVar(&demo, "demo", false, "fill the example home with a few dozen requests, and print sign-in links")
	return cmd
}

type service struct {
	config *config.Config
	log    zerolog.Logger
	links  *login.Links // nil when there are none
	demo   bool         // the store is filled with requests of the example
	made   int          // how many of them were made

	started stack // what stop has to stop

	certificates       *certificate.Files // nil without TLS
	gateway            *gateway.Server
	store              *persistence.Store
	parser             *statemachine.Parser // gives up when the server has to stop
	queue              *home.Queue
	simulator          *home.Simulator
	catalog            *catalog.Catalog
	formTemplates      *formportal.Templates
	audit              *audit.Log
	identities         identity.Identities
	node               *cluster.Node // nil on a standalone server
	system             *actors.System
	router             *workflow.Router
	migrations         *migration.Service
	portal             *formportal.Portal
	files              config.Files
	repository         *repository.Service
	templateParameters *template.Service
	admin              *admin.Server
	backups            *backup.Service // nil: the home is not backed up
	moments            *moment.Service // nil on a standalone server
	latency            *metric.Latency
	readings           func() *metric.Readings
	hour               *metric.Hour
	watcher            *home.Watcher
	published          *home.Published  // nil on a standalone node
	provider           *provider.Client // nil without one
	sender             outbox.Senders
	exportTo           []export.Export
	exports            *export.Service

	rights  *repository.Rights // as they were at the start
	reloads reloads
}

// Options says what is served.
type Options struct {
	Config  *config.Config // as it was loaded; a home that is filled first has more
	Example fs.FS          // fills a missing or empty home
	Demo    bool           // the example gets requests
	Out     io.Writer      // has where the service can be reached, and what a person reads at a first start
}

// Run runs the server until ctx ends or something fails for good.
func Run(ctx context.Context, o *Options) (err error) {
	paceCollector()
	c := o.Config
	if err := homedir.AloneAt(ctx, c.Home); err != nil {
		return err
	}
	if err := errors.Join(c.CheckParts()...); err != nil { // NB: before anything is made that would stay
		return err
	}
	filled, err := homedir.Ensure(c.Home, o.Example)
	if err != nil {
		if c.WasNode() {
			err = c.AdviceForNode(fmt.Errorf("%s is the home of a node of a cluster, and %s, which says which one, is gone", c.Home, homedir.NodeFolder(c.Home)))
		}
		return err
	}
	if filled { // there are settings now
		if err := c.Load(); err != nil {
			return err
		}
	}
	log, started := c.ServerLogger()
	s := &service{config: c, log: log, demo: o.Demo}
	if filled {
		log.Info().Str("home", c.Home).Msg("the home was missing or empty: it has the example now")
	}
	if o.Demo || filled {
		s.links = login.NewLinks(nil)
	}
	if err := home.RefreshSchemas(c.Home); err != nil { // a home may be read-only
		s.log.Info().Err(err).Msg("schemas for editors could not be updated")
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
	s.log.Info().Str("home", c.Home).Int("workflows", s.catalog.Len()).Int("templates", s.formTemplates.Len()).Msg("ready")
	started()
	s.started.push(superviseBy(s.log))
	if err := s.greet(o.Out); err != nil {
		s.log.Warn().Err(err).Msg("standard output cannot be written")
	}
	select {
	case <-ctx.Done():
		s.log.Info().Msg("stopping after accepted requests are answered")
		return nil
	case err := <-s.gateway.Failed():
		return err
	case err := <-s.nodeFailed():
		return err
	}
}

func (s *service) nodeFailed() <-chan error {
	if s.node == nil {
		return nil
	}
	return s.node.Failed()
}

// start starts the parts from the bottom up and puts each onto the stack, from which stop takes them:
//
//	what systemd is told
//	node of a cluster            leaderships are handed over
//	gateway                      drains: accepted requests are answered while
//	                             everything below still works
//	identity provider            connections are closed
//	readings of the last hour
//	watcher of the home          no more changed files are taken over
//	backups                      one that is being written is given up
//	operations, admin socket     commands that were accepted are answered
//	portal, template parameters, list of files
//	exports                      a batch that is on its way is given again at the next start
//	router                       instances are passivated
//	actor system
//	identities                   last uses are written
//	audit log                    the last refusals are written
//	node of a cluster            ends what it does on its own
//	store                        everything appended is durable
//	cluster port
//	files of the repository, and of the certificate
//
// A part that stop must reach earlier than its place says is put on top again: the port opens first, so that /livez and
// /readyz answer while the store is being opened, and the watcher sees changes from before the home is read.
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

func (s *service) listen() (err error) {
	c := s.config
	s.latency = metric.NewLatency()
	c.Gateway.Latency = s.latency.Of
	traces, err := otlp.Open(context.Background(), build.This().Version, s.log)
	if err != nil {
		return err
	}
	if traces != nil {
		s.started.push(traces)
	}
	c.Gateway.Tracer, c.Workflow.Tracer = traces.Tracer(), traces.Tracer()
	if s.certificates, err = c.OpenCertificates(s.log); err != nil {
		return err
	}
	if s.certificates != nil {
		s.started.push(s.certificates)
	}
	if s.gateway, err = c.NewGateway(s.certificates, s.log); err != nil {
		return err
	}
	if s.provider, err = c.NewProvider(s.flowKey(), s.log); err != nil {
		return err
	}
	if s.sender, err = c.NewSender(func() *identity.Directory { return s.identities.Directory() }); err != nil {
		return err
	}
	if s.exportTo, err = c.NewExports(s.log); err != nil {
		return err
	}
	files, err := c.OpenFiles(s.log)
	if err != nil {
		return err
	}
	s.files = files // NB: not before, since a nil pointer in an interface is not nil
	s.started.push(closing{files})
	if err := s.gateway.Start(); err != nil {
		return config.ExplainAddress(err, "listen")
	}
	s.started.push(s.gateway)
	return nil
}

// storeWaitMax is for a command that ends, or a server that does. It also keeps systemd, which starts again and again, below its limit of starts.
const storeWaitMax = 10 * time.Second

func (s *service) open(ctx context.Context) (err error) {
	c := s.config
	waiting := func(err error) {
		s.log.Warn().Err(err).Float64("secondsMax", storeWaitMax.Seconds()).Msg("another process has the store: waiting for it")
	}
	err = homedir.AwaitStore(ctx, storeWaitMax, waiting, func() (err error) {
		if s.node != nil {
			s.store, err = s.openReplica(ctx)
		} else {
			s.store, err = c.OpenStore(s.log)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.started.push(closing{s.store})
	if s.node != nil {
		if err := s.joinNode(ctx); err != nil {
			return err
		}
	}
	s.startAudit()
	if err := ignoreStoreID(c.Home); err != nil {
		s.log.Warn().Err(err).Msg("the store's id cannot be added to .gitignore")
	}
	return s.openDefinitions(ctx)
}

func (s *service) openDefinitions(ctx context.Context) (err error) {
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return err
	}
	s.parser, s.queue = parser.Until(ctx.Err), home.NewQueue(ctx)
	o := catalog.Options{Store: s.store, Parser: parser, Current: s.current, Log: s.log}
	if s.node != nil {
		o.Vacate = s.vacate
	}
	if s.catalog, err = catalog.Open(o); err != nil {
		return err
	}
	if err = formportal.AddPlainWorkflow(s.catalog, parser); err != nil {
		return err
	}
	s.simulator = &home.Simulator{
		Parser: s.parser, Queue: home.NewQueue(ctx), Catalog: s.catalog, Clock: time.Now,
		Users: func() *identity.Directory { return s.identities.Directory() }, // NB: there are none yet
	}
	s.formTemplates, err = formportal.OpenTemplates(s.store, s.log)
	return err
}

func (s *service) run() (err error) {
	c := s.config
	s.system = actors.NewSystem(s.log)
	s.started.push(s.system)
	workflows := c.Workflow
	workflows.Store, workflows.System, workflows.Catalog, workflows.Log = s.store, s.system, s.catalog, s.log
	if s.node != nil {
		workflows.Current, workflows.Elsewhere = s.node.Current, s.tellElsewhere
		workflows.PutElsewhere, workflows.Peers = s.putElsewhere, cluster.Questions{Node: s.node}
	}
	workflows.Sender = s.sender
	workflows.Audit = func(ctx context.Context, actor, action, target string) error {
		return s.audit.Record(ctx, actor, audit.Action(action), target)
	}
	workflows.AuditRead = s.audit.ReadList
	workflows.Principal = func(user identity.UserID) *identity.Principal { return s.identities.Directory().Principal(user) }
	workflows.NameOf = func(user string) string { return cmp.Or(s.identities.Directory().Name(identity.UserID(user)), user) }
	workflows.ReplyWaitMax = c.Store.CommitWaitMax + 5*time.Second
	if s.router, err = workflow.Start(workflows); err != nil {
		return err
	}
	s.started.push(s.router)
	s.exports = export.Start(export.Options{
		Store: s.store, Changes: s.router.Changes, Exports: s.exportTo, Held: s.router.SendsNothing, Fanout: s.router.Fanout, Log: s.log,
	})
	s.started.push(s.exports)
	s.migrations = s.newMigrations()
	s.router.Bulk.UseMigrations(s.migrations)
	if s.node != nil {
		cluster.Handle(s.node, pathInside, s.takeInside)
		cluster.Handle(s.node, pathIncidents, s.takeIncidents)
		cluster.Handle(s.node, pathMigrate, s.takeMigration)
		cluster.Handle(s.node, pathVacate, s.takeVacancy)
		s.moments = moment.New(s.store, s.router.Fanout)
		s.node.HandleQuestions(s.router.Fanout.Answer)
	}
	s.repository = repository.Start(repository.Options{System: s.system, Source: s.files, Rights: s.rights, Log: s.log})
	s.started.push(s.repository)
	s.templateParameters = template.Start(template.Options{System: s.system, Files: s.repository, Log: s.log})
	s.started.push(s.templateParameters)
	portal := c.Portal
	portal.System, portal.Workflows, portal.Templates, portal.Directory, portal.Log = s.system, s.router, s.formTemplates, s.identities.Directory, s.log
	portal.ArchiveAfter = max(portal.ArchiveAfter, 1) // NB: 0 is at once, not the default
	s.portal = formportal.Start(portal)
	s.started.push(s.portal)
	return nil
}

func (s *service) takeCommands() (err error) {
	commands := admin.Options{
		Path: filepath.Join(s.config.Home, homedir.AdminSocket), Identities: s.identities, Check: s.checkDefinitions,
		Operator: s.gateway.OperatorHandler(), Actors: func() any { return s.system.Tree() }, Exports: s.exports.Statuses, Log: s.log,
		Checkpoint: s.checkpoint,
		Tools:      s.recorded((&store.Open{Store: s.store, Catalog: s.catalog, Running: s.router}).Tools()),
	}
	if s.published != nil { // NB: a nil pointer in the interface would not be nil
		commands.Homes = homes{s}
	}
	if s.node != nil {
		commands.Cluster, commands.Leader = members{s.node, s.audit}, s.passToLeader
	}
	if s.admin, err = admin.Start(commands); err != nil {
		return err
	}
	s.started.push(s.admin)
	if s.backups, err = backup.Start(s.config, s.copyStore, s.backsUp, s.log); err != nil {
		return err
	}
	if s.backups != nil {
		s.started.push(s.backups)
	}
	return s.startOperations()
}

func (s *service) serveRequests() {
	s.startHour()
	services := gateway.Services{
		Workflows: s.router, Queries: s.router.Queries, Watches: s.router.Watches, Changes: s.router.Changes,
		Worklists: s.router.Worklists, TaskWatches: s.router.TaskWatches, Waiting: s.router.Waiting,
		Presentations: presentation.New(presentation.Options{Instances: s.router, Queries: s.router.Queries, Catalog: s.catalog, Store: s.store}),
		Definitions:   s.definitions(), Migrations: s.migrations, BulkJobs: s.router.Bulk, Jobs: s.router.Jobs,
		Portal:      s.portal,
		Credentials: s.identities,
		Identities:  s.identities,
		Audit:       s.audit,
		Sessions:    s.identities,
		Users:       s.identities,
		Repository:  s.repository,
		Templates:   s.templateParameters,
		Vitals:      s.vitals,
		Load:        s.lastHour,
		Backups:     s.backups.Statuses,
		Exports:     s.exports.Statuses,
		Parts: []gateway.Part{
			{Name: "store", Ready: s.router.Accepting},
			{Name: "repository", Ready: s.repository.Ready, Optional: true},
			{Name: "access", Ready: s.reloads.access.ready, Optional: true},
			{Name: "definitions", Ready: s.reloads.definitionsReady, Optional: true},
			{Name: "restored store", Ready: s.router.Held, Optional: true},
			{Name: "stored definitions", Ready: s.catalog.Readable, Optional: true},
			{Name: "exports", Ready: s.exports.Ready, Optional: true},
		},
	}
	services.Parts = append(services.Parts, s.troubles()...)
	if s.certificates != nil {
		services.Parts = append(services.Parts, gateway.Part{Name: "certificate", Ready: s.certificates.Ready, Optional: true})
	}
	if s.published != nil {
		services.Homes = homes{s}
	}
	if s.backups != nil {
		services.Parts = append(services.Parts, gateway.Part{Name: "backup", Ready: s.backups.Ready, Optional: true})
	}
	if s.provider != nil { // NB: a nil client in the interface would not be nil
		services.Provider = s.provider
		s.started.push(closing{s.provider})
	}
	if s.links != nil { // NB: likewise
		services.Links = s.links
	}
	if s.node != nil {
		services.Peers, services.Locate = peers{s.node}, peers{s.node}.Locate
		services.Cluster = func() any { return s.node.Status().Public() }
		services.Parts = append(services.Parts, gateway.Part{Name: "cluster", Ready: s.node.Ready})
	}
	s.gateway.Open(services)
	s.started.push(s.gateway)
	if s.node != nil {
		s.serveNode()
		s.started.push(&stopping{func(ctx context.Context) error { s.node.HandOver(ctx); return nil }})
	}
}

func (s *service) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopMax(s.config))
	defer cancel()
	err := s.started.stop(ctx)
	s.log.Info().Msg("stopped")
	return err
}

// stopMax: the gateway has DrainDelay and DrainMax, the parts below DrainMax again, and all have stopMargin.
func stopMax(c *config.Config) time.Duration {
	return c.Gateway.DrainDelay + 2*c.Gateway.DrainMax + stopMargin
}

// stopMargin is more than the gateway and the admin socket take to close their connections.
const stopMargin = 10 * time.Second
