package serve

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/home"
	"troupe/actors/identity"
	"troupe/gateway"
	"troupe/gateway/api"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

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
			return answer, failure.Refuse(failure.ErrForbidden, "schedule %s creates instances as %s: that is for holders of mod-admin", s.Name, s.As)
		}
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

func disagreements(r *gateway.DefinitionRequest, s *catalog.Source) (faults document.Faults) {
	for _, of := range []struct{ key, said, asked string }{
		{"id", string(s.Parsed.ID), r.WorkflowID},
		{"version", strconv.FormatUint(s.Parsed.Version, 10), cmp.Or(r.Version, strconv.FormatUint(s.Parsed.Version, 10))},
	} {
		if of.said != of.asked {
			faults = append(faults, document.Fault{
				File: s.File, Line: s.Line(of.key), Reason: fmt.Sprintf("the %s is %s, and the path says %s", of.key, of.said, data.Quote(of.asked)),
			})
		}
	}
	return faults
}
