package serve

import (
	"context"
	"time"

	"troupe/actors/cluster"
	"troupe/actors/cluster/peer"
	"troupe/cmd/internal/build"
	"troupe/cmd/internal/config"
	"troupe/cmd/internal/metric"
	"troupe/gateway/admin"
	"troupe/gateway/api"
)

// startOperations opens the listener for metrics. Only one that somebody asked for has profiles, and must open: several
// servers of one machine have the same default.
func (s *service) startOperations() error {
	counter := s.router.Waiting.NewCounter()
	s.readings = func() *metric.Readings {
		r := &metric.Readings{
			Version: build.This().Version,
			Gateway: s.gateway.Metrics(), Workflow: s.router.Metrics(), Jobs: s.router.Jobs.Metrics(), JobTypes: s.router.Jobs.Here(), Now: time.Now(), Portal: s.portal.Metrics(),
			Template: s.templateParameters.Metrics(), Repository: s.repository.Metrics(), Identity: s.identities.Metrics(),
			Store: s.store.Metrics(), BacklogBytes: s.store.Backlog(), Reloads: s.reloads.metrics(), Exports: s.exports.Metrics(),
		}
		r.Waiting, _ = counter.Counts() // NB: the store counts and logs what is damaged
		if s.node != nil {
			r.Node = new(s.node.Metrics())
		}
		return r
	}
	c := s.config
	if c.Admin == "" {
		return nil
	}
	asked := c.IsChosen("admin")
	operations, err := admin.StartOperations(admin.OperationsOptions{
		Addr: c.Admin, Metrics: metric.Handler(s.readings, s.latency, s.log), Profiles: asked, Log: s.log,
	})
	switch {
	case err == nil:
		s.started.push(operations)
	case asked:
		return config.ExplainAddress(err, "admin")
	default:
		s.log.Warn().Err(err).Msg("metrics are off: their default address cannot be used; choose another one with --admin, or none with --admin=")
	}
	return nil
}

func (s *service) startHour() {
	s.hour = metric.StartHour(s.readings, s.latency)
	s.started.push(s.hour)
	if s.node != nil {
		cluster.Handle(s.node, pathHour, s.takeHour)
	}
}

func (s *service) takeHour(context.Context, peer.NodeID, struct{}) ([]metric.Minute, error) {
	return s.hour.Minutes(), nil
}

// lastHour is what this node did, and in a cluster all others did that answer.
func (s *service) lastHour(ctx context.Context) api.Load {
	if s.node == nil {
		return metric.LoadOf(s.hour.Minutes())
	}
	nodes, missing := cluster.AskAll(ctx, s.node, pathHour, s.takeHour, struct{}{})
	load := metric.LoadOf(nodes...)
	load.Missing = missing
	return load
}

// vitals is what the process holds and has done, for those who run the service.
func (s *service) vitals() api.Vitals {
	store, work := s.store.Metrics(), s.router.Metrics()
	return api.Vitals{
		Store: api.StoreVitals{
			DiskBytes: store.DiskBytes, FreeBytes: store.FreeBytes, Waiting: store.Waiting,
			Committed: store.Committed, Syncs: store.Syncs.Count, SyncMicroseconds: store.Syncs.Mean().Microseconds(),
			Stalls: store.Stalls, Faults: store.BackgroundErrors + store.CorruptReads + store.CorruptBlocks,
		},
		Work: api.WorkVitals{
			Awake: work.Awake, Creates: work.Creates, Events: work.Events, Incidents: work.Incidents,
			Fired: work.Timers.Fired, LateMilliseconds: work.Timers.LateMilliseconds,
			Delivered: work.Outbox.Delivered, Dead: work.Outbox.Dead,
		},
	}
}
