package workflow

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/child"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/outbox"
	"troupe/actors/quota"
	"troupe/actors/trace"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Options configures a Router. Zero values mean the defaults.
type Options struct {
	// Store keeps everything; required. The router does not close it.
	Store *persistence.Store
	// System spawns the instance actors; required.
	System *actors.System
	// Catalog holds the definitions; required.
	Catalog *catalog.Catalog
	// Tracer follows what deliveries cause. Nil: nobody collects traces.
	Tracer *trace.Tracer
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
	Log   zerolog.Logger
	// Current returns when this node's replica of a shard has everything that any node acknowledged before the call, or
	// an error, at the latest when ctx ends. Required for a store with replicas.
	Current func(context.Context, key.Shard) error

	// Peers reaches the nodes that lead other shards; each of them has its questions answered by Router.Fanout. Nil: this
	// node reads all shards itself.
	Peers fanout.Peers

	// Sender sends what instances send out. Nil: it waits in the store.
	Sender outbox.Sender
	// Principal returns a user with the rights of now, nil when there is none or the user is disabled. Nil: nobody can
	// be named by a schedule.
	Principal func(identity.UserID) *identity.Principal
	// NameOf returns what a user is called. Nil: nobody has a name.
	NameOf func(user string) string
	// Elsewhere has the node that leads a shard carry out a message between instances (Router.Inside). Nil: the store
	// is standalone.
	Elsewhere func(ctx context.Context, shard uint16, m *child.Message) (refused string, err error)

	// PutElsewhere has the node that leads a shard put incidents there (incident.Service.Put). Nil: the store is standalone.
	PutElsewhere func(ctx context.Context, shard uint16, rows []incident.Row) error

	// Audit is told who has deleted which instance (Delete), or created or changed which bulk job, when that is durable. Nil: nobody asks.
	Audit func(ctx context.Context, actor, action, target string) error
	// AuditRead is that of query.Options.
	AuditRead func(ctx context.Context, operator identity.UserID, workflow string) error

	// IdleAfter is how long an instance stays awake after its last request. Default 1 min. Shorter saves memory, longer
	// saves loads.
	IdleAfter time.Duration
	// InFlightMax bounds the requests that wait in mailboxes or for the journal, over all instances. Default 16,384.
	// Above it failure.ErrBusy.
	InFlightMax int
	// InstanceInFlightMax bounds them for one instance. Default 256. Above it failure.ErrInstanceBusy.
	InstanceInFlightMax int
	// TreeInstancesMax bounds the instances of one tree that run: one that nobody has invoked, and all below it.
	// Default 10,000. An invocation beyond fails.
	TreeInstancesMax int
	// ReplyWaitMax is how long a caller waits. It should be longer than the store's CommitWaitMax. Default 15 s, to the
	// second.
	ReplyWaitMax time.Duration
	// AwakeBytesMax is about how much memory awake instances may take; above it they are passivated before IdleAfter.
	// Default 1 GiB.
	AwakeBytesMax int64
	// HistoryResidentBytes is how much rendered history an awake instance keeps in memory; a longer one is read again
	// for each full reply. Default 1 MiB.
	HistoryResidentBytes int
	// QueriesMax is how many queries work at a time. Users share them fairly (actors/query/DESIGN.md, "Fairness").
	// Default 2.
	QueriesMax int
	// QueryWaitMax is how long a query waits for a slot. Default 2 s.
	QueryWaitMax time.Duration
	// QueryTimeMax is how long a query or list may take, what its caller takes to read included, and how long a list
	// waits for a slot. Default 60 s.
	QueryTimeMax time.Duration
	// Quotas bound rates and histories. Default: none.
	Quotas quota.Limits
	// ChangesKeptFor is how long the change feed keeps an entry, and ChangesMax how many a shard keeps. Defaults 7 days
	// and 1,048,576, about 60 MB a shard before compression.
	ChangesKeptFor time.Duration
	ChangesMax     int
	// KeysKeptFor is how long idempotency keys are remembered at least, and keysKept of each instance. Default 24 h
	// (gateway/INTERFACE.md, "Retries").
	KeysKeptFor time.Duration
}

const (
	keysKept = 64
	// listsMax is how many lists of forms work at a time. Twice as many have a snapshot, and 16 times Options.QueriesMax
	// of queries, those included whose callers do not read. One user has half of them at most.
	listsMax = 32
)

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	o.IdleAfter = cmp.Or(o.IdleAfter, time.Minute)
	o.InFlightMax = cmp.Or(o.InFlightMax, 16_384)
	o.InstanceInFlightMax = cmp.Or(o.InstanceInFlightMax, 256)
	o.TreeInstancesMax = cmp.Or(o.TreeInstancesMax, 10_000)
	o.ReplyWaitMax = cmp.Or(o.ReplyWaitMax, 15*time.Second)
	o.AwakeBytesMax = cmp.Or(o.AwakeBytesMax, 1<<30)
	o.HistoryResidentBytes = cmp.Or(o.HistoryResidentBytes, 1<<20)
	o.QueriesMax = cmp.Or(o.QueriesMax, 2)
	o.QueryWaitMax = cmp.Or(o.QueryWaitMax, 2*time.Second)
	o.QueryTimeMax = cmp.Or(o.QueryTimeMax, time.Minute)
	o.ChangesKeptFor = cmp.Or(o.ChangesKeptFor, 7*24*time.Hour)
	o.ChangesMax = cmp.Or(o.ChangesMax, 1<<20)
	o.KeysKeptFor = cmp.Or(o.KeysKeptFor, 24*time.Hour)
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Validate reports everything that is wrong at once.
func (o *Options) Validate() error {
	var faults []error
	require := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("workflow options: "+text))
		}
	}
	require(o.Store != nil, "Store is missing")
	require(o.Store == nil || o.Store.Standalone() || o.Current != nil, "Current is missing")
	require(o.System != nil, "System is missing")
	require(o.Catalog != nil, "Catalog is missing")
	require(o.IdleAfter > 0 && o.ReplyWaitMax > 0 && o.QueryTimeMax > 0, "durations must be positive")
	require(o.ChangesKeptFor > 0 && o.ChangesMax > 0, "what the feed of changes keeps must be positive")
	require(o.AwakeBytesMax > 0 && o.InFlightMax > 0 && o.InstanceInFlightMax > 0 && o.TreeInstancesMax > 0 && o.QueriesMax > 0, "limits must be positive")
	return errors.Join(append(faults, o.Quotas.Validate())...)
}
