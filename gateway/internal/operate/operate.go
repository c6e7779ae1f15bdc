// Package operate has the routes of those who run the service: background work, migrations, homes and health.
package operate

import (
	"context"
	"sync"
	"time"

	"troupe/actors/export"
	"troupe/actors/hold"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/outbox"
	"troupe/actors/pending"
	"troupe/actors/schedule"
	"troupe/gateway/api"
)

// Part is something whose state /readyz shows. A part that is not Optional turns it
// to 503 while it is not ready; no part decides whether a request is taken.
type Part struct {
	Name string // shown to everybody who can reach the server, like the text of what Ready returns
	// Ready returns nil, or why the part takes nothing now. It is called for
	// every request of /readyz and must not block.
	Ready func() error
	// Optional parts do not keep the service from being ready: what needs them
	// waits, and all else goes on. They are shown with "verbose".
	Optional bool
}

// vitalsEvery bounds how often Services.Vitals is asked: it takes locks of the store.
const vitalsEvery = time.Second

// vitalsReading is the last answer of Services.Vitals. It is safe for concurrent use.
type vitalsReading struct {
	mu   sync.Mutex
	at   time.Time
	last *api.Vitals
}

func (v *vitalsReading) read(ask func() api.Vitals) *api.Vitals {
	if ask == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); v.last == nil || now.Sub(v.at) >= vitalsEvery {
		vitals := ask()
		v.at, v.last = now, &vitals
	}
	return v.last
}

// Group answers the routes. Its fields are set before the kernel is opened.
type Group struct {
	Workflows Operations
	Waiting   Waiting
	// Migrations gives running instances other versions.
	Migrations Migrations
	BulkJobs   BulkJobs // does one thing to many instances
	// Homes publishes homes. Nil: the node is standalone, and the route for it answers 409.
	Homes Homes
	// Cluster is the cluster as this node knows it. Nil: the node is standalone.
	Cluster func() any
	// Vitals is what the node holds and has done. Nil: nobody counts.
	Vitals func() api.Vitals
	Parts  []Part // asked by /readyz
	// Load is what all nodes did in the last minutes. Nil: nobody counts.
	Load func(context.Context) api.Load
	// Backups says where the node backs up the home to. Nil: nowhere.
	Backups func(context.Context) []api.Backup
	// Exports says how far the exports are, on all nodes. Nil: there are none.
	Exports func(context.Context) ([]export.Status, error)

	vitals vitalsReading
}

// Operations has what happens on its own, as those who run the service see it. Errors are those of package failure.
type Operations interface {
	// Pending lists what an instance waits for.
	Pending(*message.Load) (*message.Pending, error)
	// ChangeDelivery returns when it is durable.
	ChangeDelivery(ctx context.Context, id string, action outbox.Action) error
	Schedules(context.Context) ([]schedule.State, error)
	// ChangeSchedule returns when it is durable.
	ChangeSchedule(ctx context.Context, workflowID, name string, action schedule.Action) error
	// Resume lets a restored store do what it holds back. It returns when that is durable.
	Resume(what hold.What) error
	// ChangeIncident gives the instance its event once more, or drops the incident.
	ChangeIncident(ctx context.Context, caller *identity.Principal, id string, drop bool) error
	// StopTree ends an instance and all that it has invoked.
	StopTree(ctx context.Context, workflowID, instanceID, user string) error
	// Reset has an instance become what it was. It returns when that is durable.
	Reset(context.Context, *message.Reset) (*message.Reply, error)
	// Delete deletes an instance with all that is stored of it; with cascade, what it has invoked goes before it.
	Delete(ctx context.Context, user, workflowID, instanceID string, cascade bool) error
}

// Waiting lists what waits in the whole store.
type Waiting interface {
	Deliveries(context.Context, *pending.DeliveryList) (*pending.DeliveryPage, error)
	Incidents(context.Context, *pending.IncidentList) (*pending.IncidentPage, error)
	Timers(context.Context, *pending.TimerList) (*pending.TimerPage, error)
}

// Homes publishes homes. Errors are those of package failure; that of a home with errors is failure.ErrInvalid and wraps
// document.Faults.
type Homes interface {
	// PublishHome checks a packed home as one set and makes it what is in use in the whole
	// cluster. dryRun only checks it.
	PublishHome(ctx context.Context, caller *identity.Principal, archive []byte, dryRun bool) (api.PublishedHome, error)
}

// Migrations gives running instances other versions. The error of a plan with faults is failure.ErrInvalid and wraps document.Faults.
type Migrations interface {
	Migrate(context.Context, *migration.Request) (*migration.Answer, error)
}
