package persistence

import (
	"errors"
	"fmt"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/compaction"
	"troupe/persistence/internal/disk"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

var (
	// ErrNotFound is returned by Load when no value is stored under the key.
	ErrNotFound = errors.New("not found")

	// ErrCorrupt is wrapped by every read that met bytes which are not what was written: a block whose checksum is
	// wrong, a counter of the wrong size. The text names the key and the file. Only that read fails; the caller stops
	// what depends on the value and a person restores from a backup.
	ErrCorrupt = integrity.ErrCorrupt

	// ErrClosed is given to the waiter of an Append, and returned by reads, after Close was called; by AwaitDurable
	// too, while Close waits for commits. Nothing was applied.
	ErrClosed = commit.ErrClosed

	// ErrReadOnly is given to the waiter of an Append on a store opened read-only. Nothing was applied.
	ErrReadOnly = commit.ErrReadOnly

	// ErrOutcomeUnknown is given to a waiter whose commit was not confirmed within Options.CommitWaitMax, in a store
	// that is standalone. The writes may still become durable: the caller keeps what it holds in memory, shows nothing
	// of it until a Barrier succeeds, and lets its own caller repeat with the same idempotency key.
	ErrOutcomeUnknown = commit.ErrOutcomeUnknown

	// ErrNotLed is given to the waiter of an Append, and returned by reads, when another node leads the shard, or the
	// epoch of the writes is over. Nothing was applied; who holds in memory what it read in that epoch drops it.
	ErrNotLed = replica.ErrNotLed

	// ErrLost is given to a waiter when this node lost the leadership of the shard before a majority had confirmed the writes. They may still be
	// applied: the caller drops what it holds in memory, and lets its own caller repeat with the same idempotency key.
	ErrLost = replica.ErrLost

	// ErrReplicaDamaged is returned by Open and Join when a replica's log or state is not what
	// it was. This node has lost something that others may count on.
	ErrReplicaDamaged = replica.ErrDamaged

	// ErrReplicated is returned by Open for a store whose shards have replicas, when Options.Replication is nil:
	// whatever this node wrote alone would divide them. Nothing was changed on disk.
	ErrReplicated = errors.New("the store is one of a cluster's")

	// ErrStandalone is returned by Open with Options.Replication, and by Recover, for a store with rows
	// that Bootstrap has not made one of a cluster, or not wholly. Nothing of it was changed.
	ErrStandalone = errors.New("the store is standalone")

	// ErrCompacting is returned by Compact while another one is running.
	ErrCompacting = compaction.ErrCompacting

	// ErrStalled is returned by Accepting and given to the waiter of an Append while commits do not get through: the
	// disk hangs, or flushing cannot keep up. Nothing was applied; the caller answers 503 and retries later.
	ErrStalled = commit.ErrStalled

	// ErrDiskFull is returned by Accepting and given to the waiter of an Append while free space is below Options.FreeBytesMin, or while a store that
	// was opened on a full disk can only be read. Nothing was applied; it heals when space returns.
	ErrDiskFull = commit.ErrDiskFull

	// ErrDamaged is returned by Open when the files are not those of a store that was closed or that crashed: something acknowledged is missing or
	// altered. The text names the file and the offset. Nothing was changed on disk. The caller stops; a person restores from a backup.
	ErrDamaged = integrity.ErrDamaged

	// ErrIncomplete is returned by Open when the directory is neither empty nor a whole store. Nothing was changed on disk.
	ErrIncomplete = disk.ErrIncomplete

	// ErrMissing is returned by Open when Options.IDFile requires a store and there
	// is none. Nothing was changed. A person mounts the disk or restores a backup.
	ErrMissing = disk.ErrMissing

	// ErrOtherStore is returned by Open when Options.IDFile requires another store than the one that is there. Nothing was changed.
	ErrOtherStore = disk.ErrOtherStore

	// ErrExists is returned by Create when there is a store. Nothing was changed.
	ErrExists = errors.New("there is a store already")

	// ErrLocked is returned by Open when another process has the store open.
	ErrLocked = disk.ErrLocked

	// ErrUnreleased is returned by Open when a build before the first release wrote the store. Nothing was changed on disk.
	ErrUnreleased = disk.ErrUnreleased

	// ErrNewer is returned by Open when the store was written by a newer program than this one. Nothing was changed on disk.
	ErrNewer = disk.ErrNewer
)

// ShardError says of which shard an ErrNotLed or ErrLost is.
type ShardError struct {
	Shard key.Shard
	Err   error
}

func (e *ShardError) Error() string { return fmt.Sprintf("shard %d: %v", e.Shard, e.Err) }

func (e *ShardError) Unwrap() error { return e.Err }

// ofShard says of which shard an error of its group is.
func ofShard(sh key.Shard, err error) error {
	if errors.Is(err, ErrNotLed) || errors.Is(err, ErrLost) {
		return &ShardError{sh, err}
	}
	return err
}

// NotLed is the error of a request that needs a shard which another node leads.
func NotLed(sh key.Shard) error { return &ShardError{sh, ErrNotLed} }
