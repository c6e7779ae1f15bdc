// Package export gives targets outside what instances went through: a row for each history entry, at least once, those of
// an instance in their order. Each export follows the feed of changes (package changefeed) on every node, in the shards that
// the node leads; how far it is stands in a row of each shard, so it goes on there after a restart and at the next leader.
//
//	feed of changes ─► gather rows, bounded ─► Target.Write ─► confirmed ─► positions of the shards
//	                        ▲                       │ failed: the same rows again, after a pause
//	                        └───────────────────────┘
//
// A position moves only when the target has confirmed everything before it. Rows that the feed has removed before they were
// exported leave a gap: it is logged and counted, and a row of the event GapEvent says where. Instances that were removed
// are left out. Reading takes a quarter of one processor at most. DESIGN.md has the reasons.
package export

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/changefeed"
	"troupe/actors/fanout"
	"troupe/actors/guard"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Export is where rows go.
type Export struct {
	Name      string
	Workflows []string // those of these workflows; empty: all
	Target    Target
}

// Target takes rows. Only one call at a time uses it.
type Target interface {
	// Write returns nil when the target has all rows, in their order. After an error any of them may have arrived, and they
	// are given again.
	Write(ctx context.Context, rows []Row) error
	// Gathers says how many rows are wanted at once.
	Gathers() Gathers
	// String is what the target is called in lists and logs: it has no secret.
	String() string
	// Close ends its connections.
	Close() error
}

// Gathers says when rows are given to a target: when they have so many bytes, or the first of them has waited so long.
type Gathers struct {
	Bytes int
	For   time.Duration
}

// Options configures a Service. Store, Changes and Log are required.
type Options struct {
	Store   *persistence.Store
	Changes *changefeed.Service
	Exports []Export
	// Held says that nothing is exported now, since the store is a restored copy. Nil: it never is.
	Held func() bool
	// Fanout asks the other nodes how far they are. Nil: this node has all shards.
	Fanout *fanout.Service
	Log    zerolog.Logger
}

// Service runs the exports of a node.
type Service struct {
	exporters []*exporter
	statuses  *fanout.Kind[struct{}, Status, struct{}] // nil without Options.Fanout
	stop      context.CancelFunc
	running   sync.WaitGroup
	closed    bool // the targets are
}

// Start begins. Stop ends it, before the store is closed; it closes the targets.
func Start(o Options) *Service {
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{stop: stop}
	for _, e := range o.Exports {
		s.exporters = append(s.exporters, newExporter(ctx, &o, e))
	}
	if o.Fanout != nil {
		s.statuses = fanout.NewKind(o.Fanout, "exports", s.readStatuses)
	}
	for _, x := range s.exporters {
		s.running.Go(func() { guard.Loop(ctx.Done(), o.Log, "export "+x.of.Name, x.run) })
	}
	return s
}

// Stop ends all exports, in the middle of what they write. It can be called again.
func (s *Service) Stop(context.Context) error {
	s.stop()
	s.running.Wait()
	var faults []error
	for _, x := range s.exporters {
		if !s.closed {
			faults = append(faults, x.of.Target.Close())
		}
	}
	s.closed = true
	return errors.Join(faults...)
}

// Status is how far an export is.
type Status struct {
	Name      string   `json:"name"`
	Target    string   `json:"target"`
	Workflows []string `json:"workflows"` // empty: all
	// Position is when the newest entry was committed that the target has confirmed; zero: none since the start.
	Position   time.Time `json:"position,omitzero"`
	LagSeconds float64   `json:"lagSeconds"` // how long the oldest entry waits that was not confirmed
	// Rows and Gaps are counted since the start.
	Rows  int64  `json:"rows"`
	Gaps  int64  `json:"gaps"`
	Error string `json:"error,omitempty"` // why the latest attempt failed; empty: it did not
}

// Statuses returns how far the exports are, in the order of the settings, in a cluster on all nodes that lead shards.
func (s *Service) Statuses(ctx context.Context) (list []Status, err error) {
	take := func(of Status) error {
		i := slices.IndexFunc(list, func(known Status) bool { return known.Name == of.Name })
		if i < 0 {
			list = append(list, of)
			return nil
		}
		known := &list[i]
		if known.Position.Before(of.Position) {
			known.Position = of.Position
		}
		known.LagSeconds = max(known.LagSeconds, of.LagSeconds)
		known.Rows, known.Gaps, known.Error = known.Rows+of.Rows, known.Gaps+of.Gaps, cmp.Or(known.Error, of.Error)
		return nil
	}
	list = []Status{}
	if s.statuses == nil {
		_, err = s.readStatuses(ctx, nil, nil, take)
	} else {
		_, err = s.statuses.Merge(ctx, &struct{}{}, fanout.Merging[Status]{Order: func(Status, Status) int { return 0 }, Ahead: len(s.exporters)}, take)
	}
	return list, err
}

func (s *Service) readStatuses(_ context.Context, _ []key.Shard, _ *struct{}, yield func(Status) error) (end struct{}, err error) {
	for _, x := range s.exporters {
		if err := yield(x.status()); err != nil {
			return end, err
		}
	}
	return end, nil
}

// failingMax is how long an export may fail before it counts as one that does not work.
const failingMax = time.Minute

// Ready returns why an export does not work.
func (s *Service) Ready() error {
	var faults []error
	for _, x := range s.exporters {
		faults = append(faults, x.stuck())
	}
	return errors.Join(faults...)
}

// Metrics is a snapshot of an export's counters on this node, since the start.
type Metrics struct {
	Name string
	// Rows were confirmed, Failures are attempts that are made again, and Gaps is how often the feed no longer had what followed.
	Rows, Failures, Gaps int64
	LagSeconds           float64 // now, that of Status
	Position             float64 // that of Status, in Unix seconds; 0: none
}

// Metrics returns the counters as they are now, in the order of the settings.
func (s *Service) Metrics() (all []Metrics) {
	for _, x := range s.exporters {
		of := x.status()
		m := Metrics{Name: of.Name, Rows: of.Rows, Failures: x.failures.Load(), Gaps: of.Gaps, LagSeconds: of.LagSeconds}
		if !of.Position.IsZero() {
			m.Position = float64(of.Position.UnixMilli()) / 1000
		}
		all = append(all, m)
	}
	return all
}
