package serve

import "troupe/gateway/api"

// vitals is what the process holds and has done, for those who run the service.
func (s *service) vitals() api.Vitals {
	store, work := s.store.Metrics(), s.router.Metrics()
	return api.Vitals{
		Store: api.StoreVitals{
			DiskBytes: store.DiskBytes, FreeBytes: store.FreeBytes, Waiting: store.Waiting,
			Committed: store.Committed, Syncs: store.Syncs, SyncMicroseconds: store.SyncMean.Microseconds(),
			Stalls: store.Stalls, Faults: store.BackgroundErrors + store.CorruptReads + store.CorruptBlocks,
		},
		Work: api.WorkVitals{
			Awake: work.Awake, Creates: work.Creates, Events: work.Events, Incidents: work.Incidents,
			Fired: work.Timers.Fired, LateMilliseconds: work.Timers.LateMilliseconds,
			Delivered: work.Outbox.Delivered, Dead: work.Outbox.Dead,
		},
	}
}
