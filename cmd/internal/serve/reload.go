package serve

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/audit"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/repository"
	"troupe/actors/retention"
	"troupe/cmd/internal/metric"
	"troupe/persistence"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

type reloads struct {
	access, definitions reload
	differs             atomic.Pointer[string] // differs says, in a cluster, that the text files are not what is published
}

func (r *reloads) definitionsReady() error {
	if err := r.definitions.ready(); err != nil {
		return err
	}
	if differs := r.differs.Load(); differs != nil && *differs != "" {
		return errors.New(*differs)
	}
	return nil
}

type reload struct {
	// pending is why the newest files are not in use, or not known to be durable; nil when they are both.
	pending        atomic.Pointer[string]
	faults         atomic.Int64 // of those files
	taken, untaken atomic.Uint64
	what           string // what the log calls the files

	inUse  home.Digest     // Of the goroutine that reads the set
	warned document.Faults // logged last
}

func (r *reload) ready() error {
	if reason := r.pending.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}

// Bounds of what a part of /readyz says about faults, so that the first of them can be read whole.
const (
	shownFaults     = 3
	shownFaultBytes = 140
)

// ended notes how a reading ended: d is in use, or err, which it logs unless it is as before. again: read again. news:
// worth a line.
func (r *reload) ended(log zerolog.Logger, d home.Digest, err error) (again, news bool) {
	if err == nil {
		r.taken.Add(1)
		r.faults.Store(0)
		waited := r.pending.Swap(nil) != nil
		news = waited || d != r.inUse
		r.inUse = d
		return false, news
	}
	r.untaken.Add(1)
	var faults document.Faults
	const before = "; the files accepted before stay in use"
	reason, said := "not in use yet, retrying: "+err.Error(), " cannot be used yet"+before
	switch {
	case errors.As(err, &faults):
		reason, said = "refused: "+shortFaults(faults), " have problems"+before
	case errors.Is(err, persistence.ErrOutcomeUnknown):
		reason, said = "in use, but not confirmed as durable yet, retrying: "+err.Error(), " are in use, but not confirmed as durable yet"
	}
	r.faults.Store(int64(len(faults)))
	if last := r.pending.Swap(&reason); last != nil && *last == reason {
		return true, false
	}
	for _, f := range faults {
		logFault(log.Error(), f).Msg("problem")
	}
	if len(faults) > 0 {
		log.Error().Int("faults", len(faults)).Msg(r.what + said)
	} else {
		log.Error().Err(err).Msg(r.what + said)
	}
	return true, false
}

func (r *reload) warn(log zerolog.Logger, warnings document.Faults) {
	if slices.Equal(warnings, r.warned) {
		return
	}
	r.warned = warnings
	for _, w := range warnings {
		logFault(log.Warn(), w).Msg("warning")
	}
}

func logFault(line *zerolog.Event, f document.Fault) *zerolog.Event {
	line = line.Str("file", f.File).Int("line", f.Line).Str("reason", f.Reason)
	if f.Suggestion != "" {
		line = line.Str("suggestion", f.Suggestion)
	}
	return line
}

func shortFaults(faults document.Faults) string {
	var shown []string
	for _, f := range faults[:min(len(faults), shownFaults)] {
		shown = append(shown, data.Clip(f.Error(), shownFaultBytes))
	}
	if more := len(faults) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return strings.Join(shown, "; ")
}

func (r *reload) metrics() metric.Reload {
	return metric.Reload{Used: r.taken.Load(), Refused: r.untaken.Load(), Pending: r.pending.Load() != nil, Errors: r.faults.Load()}
}

func (r *reloads) metrics() map[string]metric.Reload {
	return map[string]metric.Reload{"access": r.access.metrics(), "definitions": r.definitions.metrics()}
}

// The watcher looks from before they are read: a change in between is not missed.
func (s *service) readHome() (err error) {
	if !s.store.Standalone() {
		return s.readPublished()
	}
	s.reloads.access.what, s.reloads.definitions.what = "users and rights", "workflows and templates"
	s.watcher, err = home.NewWatcher(home.WatchOptions{
		Dir: s.config.Home, Access: s.reloadAccess, Definitions: s.reloadDefinitions, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.started.push(s.watcher)
	again, err := s.firstSets()
	if err != nil {
		return fmt.Errorf("read %s:\n%w", s.config.Home, err)
	}
	if again {
		s.watcher.Retry()
	}
	return nil
}

// Without a usable identity.yaml the start fails. Other faults do not keep the server from starting when definitions were
// accepted earlier: those go on. again: something is to be tried again.
func (s *service) firstSets() (again bool, err error) {
	before := s.catalog.Len()+s.formTemplates.Len() > 0
	access, accessErr := home.LoadAccess(os.DirFS(s.config.Home))
	if access.Directory == nil || accessErr != nil && !before {
		return false, s.allFaults(accessErr)
	}
	identities, err := s.config.StartIdentities(s.store, access.Directory, s.log)
	if err != nil {
		return false, err
	}
	s.identities = &audit.Identities{Identities: identities, Log: s.audit}
	s.started.push(s.identities)
	if s.rights = access.Rights; s.rights == nil {
		// NB: rights are not kept, so there are none from before.
		s.rights = repository.Closed()
		s.log.Error().Str("file", home.RightsFile).Msg("until it is corrected, only holders of mod-repository-admin can read repository files")
	}
	s.reloads.access.warn(s.log, s.rights.Warnings())
	definitions, definitionsErr := s.takeDefinitions(access.Directory)
	if definitionsErr != nil && !before {
		return false, definitionsErr
	}
	again, _ = s.reloads.access.ended(s.log, access.Digest, accessErr)
	more, _ := s.reloads.definitions.ended(s.log, definitions, definitionsErr)
	s.recordTaken(audit.RightsChange)
	s.recordTaken(audit.HomeReload)
	return again || more, nil
}

// allFaults adds the faults of all other files to those that keep the server from starting.
func (s *service) allFaults(err error) error {
	_, all := home.Load(os.DirFS(s.config.Home), s.parser)
	if faults := (document.Faults{}); errors.As(err, &faults) && errors.As(all, &faults) {
		return all
	}
	return err
}

// takeDefinitions returns what is in use without an error.
func (s *service) takeDefinitions(directory *identity.Directory) (home.Digest, error) {
	set, err := home.LoadDefinitions(os.DirFS(s.config.Home), s.parser, directory)
	if err != nil {
		return home.Digest{}, err
	}
	s.reloads.definitions.warn(s.log, append(set.Warnings, s.config.WarnOfSending(set.Workflows)...))
	templates, err := s.formTemplates.Prepare(set.Templates)
	if err != nil {
		return home.Digest{}, err
	}
	if err := s.catalog.Publish(set.Workflows, templates); err != nil {
		return home.Digest{}, err
	}
	return set.Digest, nil
}

func (s *service) reloadAccess() (again bool) {
	access, err := home.LoadAccess(os.DirFS(s.config.Home))
	if access.Directory != nil {
		s.identities.SetDirectory(access.Directory)
	}
	if access.Directory != nil && access.Rights != nil {
		s.reloads.access.warn(s.log, access.Rights.Warnings())
		s.repository.SetRights(access.Rights)
	}
	again, news := s.reloads.access.ended(s.log, access.Digest, err)
	if news {
		s.recordTaken(audit.RightsChange)
		s.log.Info().Int("users", len(access.Directory.Users())).Msg("changed users and rights are in use")
	}
	return again
}

var errNoDirectory = errors.New("the definitions name roles, and " + home.IdentityFile + " cannot be used")

func (s *service) reloadDefinitions() (again bool) {
	// NB: it is read here as well, because the two sets do not wait for each other.
	directory, _ := home.LoadDirectory(os.DirFS(s.config.Home))
	var definitions home.Digest
	err := errNoDirectory
	if directory != nil {
		definitions, err = s.takeDefinitions(directory)
	}
	again, news := s.reloads.definitions.ended(s.log, definitions, err)
	if news {
		s.recordTaken(audit.HomeReload)
		s.log.Info().Int("workflows", s.catalog.Len()).Int("templates", s.formTemplates.Len()).Msg("changed workflows and templates are in use")
	}
	return again
}

// Faults that can be found without the store are not among them.
func (s *service) checkDefinitions() (refused, warnings document.Faults, err error) {
	if s.published != nil {
		return s.checkPublished()
	}
	set, err := home.Load(os.DirFS(s.config.Home), s.parser)
	var found document.Faults
	if err := found.Take(err); err != nil {
		return nil, nil, err
	}
	if err = refused.Take(s.catalog.Check(set.Workflows)); err == nil {
		warnings, err = retention.Warn(s.store, s.catalog.Retentions(), set.Workflows, time.Now())
	}
	return refused, warnings, err
}
