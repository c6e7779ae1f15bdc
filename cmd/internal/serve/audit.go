package serve

import (
	"context"
	"fmt"

	"troupe/actors/audit"
	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/statemachine"
)

func (s *service) startAudit() {
	o := audit.Options{Store: s.store, Log: s.log}
	if s.node != nil {
		o.Current = s.current
		o.Lead = func(ctx context.Context, e audit.Entry) error {
			_, err := cluster.Ask(ctx, s.node, pathAudit, s.takeAudit, e)
			return err
		}
		cluster.Handle(s.node, pathAudit, s.takeAudit)
	}
	s.audit = audit.Start(o)
	s.started.push(s.audit)
}

func (s *service) takeAudit(ctx context.Context, _ peer.NodeID, e audit.Entry) (struct{}, error) {
	return struct{}{}, s.audit.Here(ctx, e)
}

// recordTaken records that text files of the home are in use, at a start and when they have changed.
func (s *service) recordTaken(action audit.Action) {
	digest := s.reloads.definitions.inUse
	if action == audit.RightsChange {
		digest = s.reloads.access.inUse
	}
	if err := s.audit.Record(context.Background(), statemachine.System, action, fmt.Sprintf("%x", digest[:8])); err != nil {
		s.log.Error().Err(err).Msg("files of the home are in use, and the audit log does not say so")
	}
}
