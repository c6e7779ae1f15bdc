package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"troupe/actors"
	"troupe/actors/formportal"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/template"
	"troupe/actors/workflow"
	"troupe/gateway"
	"troupe/gateway/admin"
	"troupe/gateway/provider"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

func newServe() *cobra.Command {
	c := newConfigFlags()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Run the server on a home folder. A missing or empty folder is filled with a small\n" +
			"working example first. It is ready when GET /readyz answers 200; SIGTERM or\n" +
			"SIGINT answers every accepted request and ends it with exit code 0.",
		Example: "  troupe serve\n" +
			"  troupe serve --home /srv/troupe --listen :8080",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			// A second signal ends the process at once.
			context.AfterFunc(ctx, stop)
			return serve(ctx, c)
		},
	}
	cmd.Flags().AddFlagSet(c.flags)
	return cmd
}

// service is everything that runs, in the order in which it was started.
type service struct {
	config *config
	log    zerolog.Logger

	gateway    *gateway.Server
	store      *persistence.Store
	parser     *statemachine.Parser
	catalog    *workflow.Catalog
	templates  *formportal.Templates
	identities *identity.Service
	system     *actors.System
	router     *workflow.Router
	portal     *formportal.Portal
	files      files
	repository *repository.Service
	parameters *template.Service
	admin      *admin.Server
	operations *admin.Operations
	watcher    *home.Watcher
	provider   *provider.Client // nil without one

	reading sync.Mutex         // held while a set of text files is taken over
	rights  *repository.Rights // of that set; under reading
}

// serve runs the server until ctx ends or something fails for good.
func serve(ctx context.Context, c *config) (err error) {
	s := &service{config: c, log: c.logger()}
	filled, err := ensureHome(c.home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(); err != nil {
		return err
	}
	s.log.Info().Str("home", c.home).Int("workflows", s.catalog.Len()).Int("templates", s.templates.Len()).Msg("ready")
	if filled {
		s.showTour()
	}
	select {
	case <-ctx.Done():
		s.log.Info().Msg("stopping: accepted requests are answered first")
		return nil
	case err := <-s.gateway.Failed():
		return err
	}
}

// start opens everything from the bottom up. The port comes first, so that
// /livez and /readyz answer while the store is being opened.
func (s *service) start() (err error) {
	c := s.config
	if s.gateway, err = c.newGateway(s.log); err != nil {
		return err
	}
	if s.provider, err = c.newProvider(s.log); err != nil {
		return err
	}
	files, err := c.newFiles(s.log)
	if err != nil {
		return err
	}
	s.files = files // NB: not before, since a nil pointer in an interface is not nil
	if err := s.gateway.Start(); err != nil {
		return err
	}
	if s.store, err = openStore(c, s.log); err != nil {
		return err
	}
	if s.parser, err = statemachine.NewParser(statemachine.ParserOptions{}); err != nil {
		return err
	}
	if s.catalog, err = workflow.OpenCatalog(s.store, s.parser, s.log); err != nil {
		return err
	}
	if err = formportal.AddPlainWorkflow(s.catalog, s.parser); err != nil {
		return err
	}
	if s.templates, err = formportal.OpenTemplates(s.store, s.log); err != nil {
		return err
	}
	if err := s.readHome(); err != nil {
		return err
	}
	s.system = actors.NewSystem(s.log)
	if s.router, err = workflow.Start(workflow.Options{
		Store: s.store, System: s.system, Catalog: s.catalog, Log: s.log,
		IdleAfter: c.idleAfter, AwakeBytesMax: c.awakeBytesMax, InFlightMax: c.inFlightMax, InstanceInFlightMax: c.instanceInFlightMax,
		QueriesMax: c.queriesMax, QueryTimeMax: c.queryTimeMax, ReplyWaitMax: c.commitWaitMax + 5*time.Second,
	}); err != nil {
		return err
	}
	s.portal = formportal.Start(formportal.Options{
		System: s.system, Workflows: s.router, Templates: s.templates, Directory: s.identities.Directory,
		ArchiveAfter: max(c.archiveAfter, 1), Log: s.log, // NB: 0 is at once, not the default of 30 days
	})
	s.startRepository()
	if s.admin, err = admin.Start(admin.Options{
		Path: filepath.Join(c.home, adminSocket), Identities: s.identities, Log: s.log,
	}); err != nil {
		return err
	}
	if err := s.startOperations(); err != nil {
		return err
	}
	services := gateway.Services{
		Workflows:   s.router,
		Portal:      s.portal,
		Credentials: s.identities,
		Sessions:    s.identities,
		Repository:  s.repository,
		Templates:   s.parameters,
		Parts: []gateway.Part{
			{Name: "store", Ready: s.store.Accepting},
			{Name: "repository", Ready: s.repository.Ready, Optional: true},
		},
	}
	if s.provider != nil { // NB: a nil client in the interface would not be nil
		services.Provider = s.provider
	}
	s.gateway.Open(services)
	return nil
}

// startRepository begins to index the files, with the rights of the newest set.
func (s *service) startRepository() {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.repository = repository.Start(repository.Options{System: s.system, Source: s.files, Rights: s.rights, Log: s.log})
	s.parameters = template.Start(template.Options{System: s.system, Files: s.repository, Log: s.log})
}

// startOperations opens the second listener, when one is wanted.
func (s *service) startOperations() (err error) {
	if s.config.admin == "" {
		return nil
	}
	s.operations, err = admin.StartOperations(admin.OperationsOptions{
		Addr: s.config.admin,
		Sources: []admin.Source{
			{Name: "gateway", Metrics: func() any { return s.gateway.Metrics() }},
			{Name: "formportal", Metrics: func() any { return s.portal.Metrics() }},
			{Name: "workflow", Metrics: func() any { return s.router.Metrics() }},
			{Name: "template", Metrics: func() any { return s.parameters.Metrics() }},
			{Name: "repository", Metrics: func() any { return s.repository.Metrics() }},
			{Name: "identity", Metrics: func() any { return s.identities.Metrics() }},
			{Name: "store", Metrics: func() any { return s.store.Metrics() }},
		},
		Log: s.log,
	})
	return err
}

// stop ends what was started, from the top down. It waits for every accepted
// request, and closes the store last.
func (s *service) stop() error {
	if s.gateway != nil {
		s.gateway.Stop()
	}
	if s.provider != nil {
		s.provider.Close()
	}
	if s.watcher != nil {
		s.watcher.Stop()
	}
	if s.operations != nil {
		s.operations.Stop()
	}
	if s.admin != nil {
		s.admin.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.drainMax)
	defer cancel()
	var err error
	if s.portal != nil {
		err = s.portal.Stop(ctx)
	}
	if s.parameters != nil {
		err = errors.Join(err, s.parameters.Stop(ctx))
	}
	if s.repository != nil {
		err = errors.Join(err, s.repository.Stop(ctx))
	}
	if s.files != nil {
		err = errors.Join(err, s.files.Close())
	}
	if s.router != nil {
		err = errors.Join(err, s.router.Stop(ctx))
	}
	if s.system != nil {
		s.system.Stop()
	}
	if s.identities != nil {
		s.identities.Stop()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	s.log.Info().Msg("stopped")
	return err
}

func openStore(c *config, log zerolog.Logger) (*persistence.Store, error) {
	return persistence.Open(filepath.Join(c.home, dataFolder), persistence.Options{
		Shards: c.shards, CacheBytes: c.cacheBytes, MemTableBytes: c.memTableBytes,
		FreeBytesMin: c.freeBytesMin, CommitWaitMax: c.commitWaitMax, Log: log,
	})
}

// readHome takes the text files over and starts the service of identities, which
// is made of one of them. The watcher runs before they are read: a change in
// between is not missed.
func (s *service) readHome() (err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.watcher, err = home.Watch(home.WatchOptions{Dir: s.config.home, Changed: s.reload, Log: s.log})
	if err != nil {
		return err
	}
	directory, err := s.firstSet()
	if err != nil {
		return err
	}
	s.identities, err = identity.Start(identity.Options{
		Store: s.store, Directory: directory, Log: s.log,
		SessionIdle: s.config.sessionIdle, SessionMax: s.config.sessionMax,
	})
	return err
}

// firstSet reads the text files at the start. Faulty definitions and templates do
// not keep the server from starting when an earlier set was accepted: that one
// goes on.
func (s *service) firstSet() (*identity.Directory, error) {
	set, err := home.Load(s.config.home, s.parser)
	if err == nil {
		err = s.publish(set)
	}
	var faults document.Faults
	if errors.As(err, &faults) && set.Directory != nil && s.catalog.Len()+s.templates.Len() > 0 {
		s.logFaults(faults, "workflows, templates or rights have faults; the set accepted before stays in use")
		if s.rights = set.Rights; s.rights == nil {
			// NB: rights are not kept, so there are none from before.
			s.rights = repository.Closed()
			s.log.Error().Str("file", home.RightsFile).Msg("until it is corrected, only holders of mod-repository-admin read files of the repository")
		}
		return set.Directory, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s:\n%w", s.config.home, err)
	}
	s.rights = set.Rights
	return set.Directory, nil
}

// publish offers a checked set, as a whole or not at all. That a definition has
// instances and other content is found only by the catalog, which therefore comes
// first; of templates everything has been checked when they were read.
func (s *service) publish(set *home.Set) error {
	if err := s.catalog.Publish(set.Workflows); err != nil {
		return err
	}
	return s.templates.Publish(set.Templates)
}

// reload takes a changed set of text files over, as a whole or not at all.
func (s *service) reload() {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.identities == nil {
		return // the start failed and is being undone
	}
	set, err := home.Load(s.config.home, s.parser)
	if err == nil {
		err = s.publish(set)
	}
	var faults document.Faults
	switch {
	case errors.As(err, &faults):
		s.logFaults(faults, "changed files have faults; the set accepted before stays in use")
	case err != nil:
		s.log.Error().Err(err).Msg("changed files cannot be read; the set accepted before stays in use")
	default:
		s.identities.SetDirectory(set.Directory)
		if s.rights = set.Rights; s.repository != nil {
			s.repository.SetRights(s.rights)
		}
		s.log.Info().Int("workflows", s.catalog.Len()).Int("templates", s.templates.Len()).Msg("changed files are in use")
	}
}

func (s *service) logFaults(faults document.Faults, what string) {
	for _, f := range faults {
		s.log.Error().Str("file", f.File).Int("line", f.Line).Str("reason", f.Reason).Str("suggestion", f.Suggestion).Msg("fault")
	}
	s.log.Error().Int("faults", len(faults)).Msg(what)
}

// showTour logs what to try next on the example home.
func (s *service) showTour() {
	self := "go run ./cmd/troupe"
	if exe, err := os.Executable(); err == nil && filepath.Base(filepath.Dir(exe)) != "exe" {
		self = exe
	}
	base := "http://" + s.gateway.Addr().String() + s.config.basePath
	for _, line := range []string{
		fmt.Sprintf("TOKEN=$(%s token create --home %s --user john.doe)", self, s.config.home),
		fmt.Sprintf(`curl -s -H "Authorization: svc.token $TOKEN" %s/workflow/api/v1/choices`, base),
		fmt.Sprintf(`curl -s -H "Authorization: svc.token $TOKEN" -H "Content-Type: application/json" -d '{"workflowId":"leave-request"}' %s/workflow/api/v1/create`, base),
		fmt.Sprintf(`ID=$(curl -s -H "Authorization: svc.token $TOKEN" %s/workflow/api/v1/instances/leave-request | grep -o '"_id":"[^"]*' | head -1 | cut -d'"' -f4)`, base),
		fmt.Sprintf(`curl -s -H "Authorization: svc.token $TOKEN" -H "Content-Type: application/json" -d '{"workflowId":"leave-request","instanceId":"'$ID'","event":{"name":"submit","data":{"days":5}}}' %s/workflow/api/v1/event`, base),
		fmt.Sprintf(`curl -s -H "Authorization: svc.token $TOKEN" %s/workflow/api/v1/instance/leave-request/$ID`, base),
		fmt.Sprintf("echo 'a password' | %s password set --home %s --user john.doe # then sign in at %s/login", self, s.config.home, base),
	} {
		s.log.Info().Msg("try next: " + line)
	}
}
