package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"troupe/actors/audit"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/actors/retention"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/homedir"
	"troupe/gateway"
	"troupe/gateway/api"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// In a cluster, the text files of a node's own home are not the source of anything: what is in use was published
// (troupe publish, PUT admin/api/v1/home), is in the store of every node, and is followed there.

// Changes are followed once followPublished was called.
func (s *service) readPublished() (err error) {
	s.reloads.access.what, s.reloads.definitions.what = "published users and rights", "published workflows and templates"
	s.published, err = home.OpenPublished(home.PublishedOptions{
		Log:   s.log,
		Store: s.store, Catalog: s.catalog, Templates: s.formTemplates, TookAccess: s.tookAccess, Took: s.tookPublished,
	})
	if err != nil {
		return fmt.Errorf("read what is published: %w", err)
	}
	access := s.published.Access()
	if s.identities, err = s.startReplicated(access.Directory); err != nil {
		return err
	}
	s.started.push(s.identities)
	s.rights = access.Rights
	s.reloads.access.ended(s.log, access.Digest, nil)
	s.reloads.definitions.ended(s.log, digestOf(s.published), nil)
	s.watcher, err = home.NewWatcher(home.WatchOptions{
		Dir: s.config.Home, Access: s.compareHome, Definitions: s.compareHome, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.started.push(s.watcher)
	s.compareHome()
	return nil
}

func (s *service) followPublished() {
	s.published.Start()
	s.started.push(s.published)
}

func digestOf(p *home.Published) (d home.Digest) {
	now, err := p.Publication()
	if text, bad := hex.DecodeString(now.Digest); err == nil && bad == nil {
		copy(d[:], text)
	}
	return d
}

func (s *service) tookAccess(access home.Access) {
	s.identities.SetDirectory(access.Directory)
	s.repository.SetRights(access.Rights)
}

func (s *service) tookPublished(err error) {
	if _, news := s.reloads.definitions.ended(s.log, digestOf(s.published), err); news {
		s.log.Info().Int("workflows", s.catalog.Len()).Int("templates", s.formTemplates.Len()).Msg("published files are in use")
	}
	s.compareHome()
}

// compareHome warns when the text files of this node's home are not those that are published: changing them does
// nothing.
func (s *service) compareHome() (again bool) {
	differs := ""
	if homedir.HasText(s.config.Home) {
		set, err := home.Load(os.DirFS(s.config.Home), s.parser)
		now, storeErr := s.published.Publication()
		if storeErr == nil && (err != nil || set.TextDigest() != now.Digest) {
			differs = ownFilesDiffer
		}
	}
	if before := s.reloads.differs.Swap(&differs); differs != "" && (before == nil || *before != differs) {
		s.log.Warn().Str("home", s.config.Home).Msg(differs)
	}
	return false
}

const ownFilesDiffer = "the text files of this home differ from what is published and are not in use; publish them with troupe publish"

// That its files are not what is published is a warning.
func (s *service) checkPublished() (faults, warnings document.Faults, err error) {
	if !homedir.HasText(s.config.Home) {
		return nil, nil, nil
	}
	set, err := home.Load(os.DirFS(s.config.Home), s.parser)
	var found document.Faults
	if err := found.Take(err); err != nil {
		return nil, nil, err
	}
	if err := faults.Take(s.catalog.Check(set.Workflows)); err != nil {
		return nil, nil, err
	}
	now, err := s.published.Publication()
	if err == nil && (len(found) > 0 || set.TextDigest() != now.Digest) {
		warnings = document.Faults{{File: s.config.Home, Reason: ownFilesDiffer}}
	}
	return faults, warnings, err
}

type homes struct{ *service }

// PublishHome implements gateway.Homes, which asks the leader on its own.
func (h homes) PublishHome(ctx context.Context, caller *identity.Principal, archive []byte, dryRun bool) (api.PublishedHome, error) {
	return h.publish(ctx, archive, string(caller.ID), dryRun)
}

// Publish implements admin.Homes for a node that leads the shard Meta.
func (h homes) Publish(ctx context.Context, archive []byte, dryRun bool) (api.PublishedHome, error) {
	published, err := h.publish(ctx, archive, homedir.AdminSocket, dryRun)
	if err == nil && !dryRun {
		err = h.audit.Record(ctx, statemachine.System, audit.HomePublish, "")
	}
	return published, err
}

func (h homes) publish(ctx context.Context, archive []byte, by string, dryRun bool) (api.PublishedHome, error) {
	if !dryRun && h.store.Epoch(key.Meta) == 0 {
		return api.PublishedHome{}, failure.Elsewhere(uint16(key.Meta))
	}
	files, err := home.Unpack(bytes.NewReader(archive))
	if err != nil {
		return api.PublishedHome{}, failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	var set *home.Set
	err = h.queue.Do(ctx, identity.UserID(by), h.parser, func(parser *statemachine.Parser) error {
		set, err = home.Load(files, parser)
		return err
	})
	if err != nil { // NB: it is in memory, so nothing but its content can be wrong
		return api.PublishedHome{}, refusedHome(err)
	}
	if dryRun {
		err = h.published.Check(set)
	} else {
		err = h.published.Publish(set, by)
	}
	if err != nil {
		return api.PublishedHome{}, failure.In("publish home", "", refusedHome(err))
	}
	workflows := map[statemachine.WorkflowID]bool{}
	for _, w := range set.Workflows {
		workflows[w.Parsed.ID] = true
	}
	return api.PublishedHome{
		Workflows: len(workflows), Templates: len(set.Templates), Users: len(set.Directory.Users()), Warnings: wireFaults(set.Warnings),
	}, nil
}

func wireFaults(warnings document.Faults) []api.FileFault {
	wire := make([]api.FileFault, 0, len(warnings))
	for _, w := range warnings {
		wire = append(wire, api.FileFault(w))
	}
	return wire
}

// refusedHome makes the faults of what is published failure.ErrInvalid.
func refusedHome(err error) error {
	var faults document.Faults
	switch {
	case errors.Is(err, os.ErrNotExist):
		return failure.Refuse(failure.ErrInvalid, "there is no %s", home.IdentityFile)
	case errors.As(err, &faults):
		return &failure.Error{Kind: failure.ErrInvalid, Reason: cli.Plural(len(faults), "problem") + "; nothing was published", Cause: faults}
	}
	return err
}

type definitions struct {
	*catalog.Catalog
	*service
}

func (s *service) definitions() *definitions { return &definitions{s.catalog, s} }

// PublishDefinition implements gateway.Definitions. A dry run too asks the leader, who has what was published last.
func (d *definitions) PublishDefinition(ctx context.Context, r *gateway.DefinitionRequest) (answer api.PublishedDefinition, err error) {
	if d.store.Epoch(key.Meta) == 0 {
		return answer, failure.Elsewhere(uint16(key.Meta))
	}
	var source catalog.Source
	var warnings document.Faults
	err = d.queue.Do(ctx, r.Caller.ID, d.parser, func(parser *statemachine.Parser) error {
		source, warnings, err = home.ParseDefinition(r.File, r.Text, parser, d.identities.Directory())
		if err != nil {
			return err
		}
		wrong, more := d.formTemplates.TaskForms().Check(source.File, source.Parsed)
		if faults := append(disagreements(r, &source), wrong...); len(faults) > 0 {
			return faults
		}
		warnings = append(warnings, more...)
		return nil
	})
	if err != nil {
		return answer, refusedHome(err)
	}
	id, version := string(source.Parsed.ID), source.Parsed.Version
	for _, s := range source.Parsed.Schedules {
		if s.As != "" && !r.Caller.Has(identity.Admin) {
			return answer, failure.Refuse(failure.ErrForbidden, "schedule %s creates instances as %s: this needs mod-admin", s.Name, s.As)
		}
	}
	if d.store.Standalone() {
		deleting, err := retention.Warn(d.store, d.Retentions(), []catalog.Source{source}, time.Now())
		if err != nil {
			return answer, err
		}
		warnings = append(warnings, deleting...)
	}
	publish := d.Catalog.PublishDefinition
	if r.DryRun {
		publish = d.CheckDefinition
	}
	current, err := publish(source, r.Caller)
	if err != nil {
		return answer, refusedHome(err)
	}
	if !r.DryRun {
		d.log.Info().Str("workflow", id).Uint64("version", version).Str("user", string(r.Caller.ID)).Msg("a definition was published")
	}
	return api.PublishedDefinition{ID: id, Version: version, Current: current, Warnings: wireFaults(warnings)}, nil
}

// Simulate implements gateway.Definitions.
func (d *definitions) Simulate(ctx context.Context, r *home.Simulation) (json.RawMessage, error) {
	return d.simulator.Simulate(ctx, r)
}

func disagreements(r *gateway.DefinitionRequest, s *catalog.Source) (faults document.Faults) {
	for _, of := range []struct{ key, said, asked string }{
		{"id", string(s.Parsed.ID), r.WorkflowID},
		{"version", strconv.FormatUint(s.Parsed.Version, 10), cmp.Or(r.Version, strconv.FormatUint(s.Parsed.Version, 10))},
	} {
		if of.said != of.asked {
			faults = append(faults, document.Fault{
				File: s.File, Line: s.Line(of.key), Reason: fmt.Sprintf("the %s is %s, but the path says %s", of.key, of.said, data.Quote(of.asked)),
			})
		}
	}
	return faults
}
