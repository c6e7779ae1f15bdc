package persistence

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/bell"
	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Store is one open store. All methods are safe for concurrent use.
type Store struct {
	// db is exchanged once in the life of a store that was opened on a full disk; see reopen.
	db atomic.Pointer[engine.Generation]

	// Built by Open, then read only.

	dir      string
	options  Options // defaults filled in
	readOnly bool
	purpose  purpose
	folder   disk.Identity
	log      zerolog.Logger
	fs       vfs.FS
	shards   int
	numbered []key.Shard // the numbered shards; read only
	// replicated: its shards have replicas.
	replicated bool
	crashed    bool // the last process did not close the store
	started    time.Time
	recorder   *integrity.Recorder

	// feedEnds are by numbered shard.
	feedEnds []feedEnd
	written  bell.Bell

	pool    sync.Pool // of *Batch with an empty batch
	commits *commit.Pipeline
	kept    disk.Kept
	// freshLogs is that of disk.Files; Compact sets it.
	freshLogs atomic.Bool
	metrics   counters

	// replicas is nil in a standalone store.
	replicas *replicas

	space space // of the space loop's goroutine; of Open and Close outside its life

	// undo holds what Close has to do, in the order of Open. Open and Close own it.
	undo      []func() error
	stop      chan struct{} // closed to end the space poll
	spaceDone chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// purpose is what a store is opened for beside being used.
type purpose struct {
	createOnly bool // create, or fail
	recovers   bool // its groups are founded again, so it may be open without them
}

// ShardOf returns the shard that an instance belongs to, forever.
func (s *Store) ShardOf(id key.ID) key.Shard { return id.Shard(s.shards) }

// OpenedAfterCrash says whether the last process ended without Close.
func (s *Store) OpenedAfterCrash() bool { return s.crashed }

// Backlog is how many bytes were appended that are not durable yet.
func (s *Store) Backlog() int64 { return s.commits.Backlog.Load() }

// Accepting returns nil while new writes are taken, else why not: it wraps ErrStalled, ErrDiskFull, ErrReadOnly or
// ErrClosed. It costs one atomic load, so it can be asked before every request.
func (s *Store) Accepting() error { return s.commits.Gate.Refusal() }

// mutant is empty in every program that serves. A program that is linked with
//
//	-ldflags "-X troupe/persistence.mutant=nosync"
//
// has a bug on purpose: it acknowledges writes before they are durable. Harnesses that look for lost writes are run against it and must find some.
var mutant string

// ackBeforeSync says whether this program has that bug.
var ackBeforeSync = mutant == "nosync"

// applier is the store as the commit path sees it: a commit.Applier.
type applier struct{ *Store }

func (s applier) Apply(db *engine.Generation, batch engine.Batch, synced bool) (log uint64, err error) {
	log = s.recorder.NewestLog()
	s.recorder.Stamp(batch.Repr())
	if synced && !ackBeforeSync {
		return log, db.ApplySynced(batch)
	}
	return log, db.ApplyUnsynced(batch)
}

func (s applier) Sync(batch engine.Batch, log uint64) error {
	if ackBeforeSync {
		return nil
	}
	if err := batch.SyncWait(); err != nil {
		return err
	}
	s.recorder.Durable(log, uint64(batch.SeqNum())+uint64(batch.Count()))
	return nil
}

func (s applier) Answered() {
	if s.replicas == nil {
		s.written.Ring()
	}
}

// feedEnd is the last row of a shard's feed. In a standalone store it is the applier's; with replicas it is under the lock of the shard's group.
type feedEnd struct {
	known   bool
	epoch   uint64 // in which it was read; 0 in a standalone store
	place   key.FeedPlace
	ordinal uint64
}

// Written returns a channel that is closed when more has become durable in the numbered shards
// of this node. It may be closed for nothing; who waits looks again.
func (s *Store) Written() <-chan struct{} { return s.written.Await() }

// read counts the caller in as a reader of the present generation; the caller must call leave. It returns nil once the store is closed.
func (s *Store) read() *engine.Generation {
	for {
		g := s.db.Load()
		if g.Enter() {
			return g
		}
		if g == s.db.Load() {
			return nil
		}
	}
}

// counters are the store's own; anybody adds to them.
type counters struct {
	barriers, writeStalls, backgroundErrors, slowDisk, corruptReads, corruptBlocks atomic.Uint64

	freeBytes atomic.Int64
}

// readFault wraps an error of a read with its key. Damage becomes ErrCorrupt and is counted.
func (s *Store) readFault(op string, key []byte, err error) error {
	if !errors.Is(err, ErrCorrupt) && !pebble.IsCorruptionError(err) {
		return fmt.Errorf("%s %x: %w", op, key, err)
	}
	s.metrics.corruptReads.Add(1)
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return fmt.Errorf("%s %x: %w: file %s: %w", op, key, ErrCorrupt, info.Path, info.Details)
	}
	return fmt.Errorf("%s %x: %w: %w", op, key, ErrCorrupt, err)
}

// alone is the epoch of all shards of a store without replicas.
const alone uint64 = 1

// Groups are the replicas that this node has, each with the first shard of its group.
func (s *Store) Groups() iter.Seq2[key.Shard, *replica.Group] {
	if s.replicas == nil {
		return func(func(key.Shard, *replica.Group) bool) {}
	}
	return s.replicas.All()
}

// Shards is how many numbered shards the store has.
func (s *Store) Shards() uint16 { return uint16(s.shards) }

// Numbered are the numbered shards. The slice is read only.
func (s *Store) Numbered() []key.Shard { return s.numbered }

// AllShards are the numbered shards and Meta.
func (s *Store) AllShards() iter.Seq[key.Shard] {
	return func(yield func(key.Shard) bool) {
		for sh := range key.Shard(s.shards) {
			if !yield(sh) {
				return
			}
		}
		yield(key.Meta)
	}
}

// Replica returns this node's replica of a shard, nil when it has none or the store is standalone.
func (s *Store) Replica(sh key.Shard) *replica.Group {
	if s.replicas == nil {
		return nil
	}
	return s.replicas.At(sh).Load()
}

// Epoch returns the epoch in which this node may read and write a shard, 0 when it does not lead it. A standalone store has one epoch, for good.
func (s *Store) Epoch(sh key.Shard) uint64 {
	if s.replicas == nil {
		return alone
	}
	for place := s.replicas.At(sh); ; {
		g := place.Load()
		if g == nil {
			return 0
		}
		if epoch := g.Epoch(); place.Load() == g { // NB: else the group was divided, and this epoch is not the shard's
			return epoch
		}
	}
}

// Standalone says whether the store has no replicas: what is read in it needs no confirmation by other nodes.
func (s *Store) Standalone() bool { return s.replicas == nil }

// space is what the space loop knows.
type space struct {
	// waiting says that the store is open read-only, until there is room for openBytes.
	waiting   bool
	openBytes int64
	old       *engine.Generation // the one that was open to read, until its readers have left
	// flushed is how many sets of writes had been applied when a full disk made the store write its memory into tables.
	flushed uint64
}
