package instance

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/incident"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/outbox"
	"troupe/actors/pace"
	"troupe/actors/quota"
	"troupe/actors/task"
	"troupe/actors/timer"
	"troupe/actors/watch"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// Env is what the instances of a node need of it. It is set before the first actor starts, and not changed.
type Env struct {
	Limits

	Store   *persistence.Store
	System  *actors.System
	Catalog *catalog.Catalog
	Clock   func() time.Time
	Log     zerolog.Logger
	// Indexes is the catalog's IndexesIn, but in tests.
	Indexes func(key.Shard, uint64, string) ([]*catalog.Index, error)
	IDs     *instanceid.Generator

	// Who is told of what a commit has.
	Incidents *incident.Service
	Watches   *watch.Service
	Changes   *changefeed.Service
	Timers    *timer.Service
	Jobs      *job.Service
	Outbox    *outbox.Service // nil: nothing leaves
	Tasks     *task.Feed

	Steps *pace.Steps // that instances cause themselves
	Work  *pace.Work  // that workflows do on their own

	Counts Counts
}

// Limits bound what one instance takes.
type Limits struct {
	Quotas               quota.Limits
	InstanceInFlightMax  int
	HistoryResidentBytes int
	KeysKept             int
	KeysKeptFor          time.Duration
}

// Counts are those of all instances of a node.
type Counts struct {
	// InFlight are the calls that were admitted and not answered, and Bytes is about what awake instances take beyond
	// InstanceBytes of each.
	InFlight, Bytes atomic.Int64
	// The rest is counted since the start.
	Slept, Panics, Damaged, Events, Creates, OverQuota, Incidents atomic.Int64
}

// CountRefusal counts the refusals of quotas among errors.
func (e *Env) CountRefusal(err error) error {
	if err != nil {
		e.Counts.OverQuota.Add(1)
	}
	return err
}

// NotePanic counts and logs a panic that was caught.
func (e *Env) NotePanic(p any, workflow, instance string) {
	e.Counts.Panics.Add(1)
	e.Log.Error().Str("workflow", workflow).Str("instance", instance).
		Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("request panicked; its instance is read again")
}

// Load reads an instance's record from the store.
func (e *Env) Load(workflowID string, id key.ID) ([]byte, error) {
	stored, err := e.Store.Load(key.Record(nil, e.Store.ShardOf(id), workflowID, id))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	}
	return stored, failure.OfStore(err)
}

// ForgetBefore is the time, in Unix milliseconds, before which idempotency keys are forgotten.
func (e *Env) ForgetBefore() int64 {
	return e.Clock().Add(-e.KeysKeptFor).UnixMilli()
}

// storedDocument returns what indexes see of an instance in the store; nil when it was deleted, and when it cannot be
// read: a query that meets it says so, and the others must go on.
func (e *Env) storedDocument(sh key.Shard, workflow string, id key.ID) (*filter.Document, error) {
	stored, err := e.Store.Load(key.Record(nil, sh, workflow, id))
	var record statemachine.Record
	if err == nil {
		record, err = statemachine.ParseRecord(stored)
	}
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return nil, nil
	case errors.Is(err, statemachine.ErrRecord), errors.Is(err, persistence.ErrCorrupt):
		e.Counts.Damaged.Add(1)
		e.Log.Error().Err(err).Str("workflow", workflow).Str("instance", instanceid.Text(id)).
			Msg("stored instance cannot be read and is in no index")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("instance %s: %w", instanceid.Text(id), err)
	}
	return &filter.Document{Key: record.Key, States: record.States, Public: record.Public, Private: record.Private}, nil
}
