package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/internal/disk"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Options of a store. The zero value is a working configuration.
type Options struct {
	// FS is where the files are. Nil: the operating system's, with a check for slow disk operations around it.
	FS vfs.FS

	// Shards is the number of numbered shards, fixed when the store is created. Zero: 16 at creation, afterwards
	// whatever the store has. A number other than the store's makes Open fail.
	Shards int

	// CacheBytes is the size of the block cache. Zero: 128 MiB. Raise it when sleeping instances are often woken from a store larger than memory.
	CacheBytes int64

	// MemTableBytes is how much is gathered in memory before it is written out as a table, and about the size of one log file. Zero: 32 MiB. Up to
	// four of them exist under load. Smaller makes a restart after a crash faster, larger writes less often.
	MemTableBytes int64

	// CommitWaitMax is how long a commit may take before its waiter is told that the outcome is unknown; with replicas
	// it bounds the writes of their logs, and not the commits of writers. Zero: 10 s. A store whose oldest commit is
	// older than a quarter of it accepts no new writes until that has changed.
	CommitWaitMax time.Duration

	// FreeBytesMin is the free space below which no writes are accepted. It must leave room for what is already in
	// memory and for a compaction. Zero: 512 MiB. Negative: no limit, for tests.
	FreeBytesMin int64

	// VerifyBytesMax bounds the table bytes whose checksums are read while opening; newest tables first. Zero: 64 MiB.
	// Negative: none. Everything is checked by Verify.
	VerifyBytesMax int64

	// CheckpointInterval bounds how far the integrity checkpoint, which shows damage at the next Open, may be behind the commits. Zero: 1 s.
	CheckpointInterval time.Duration

	// ReadOnly opens without changing a byte: for inspection. Appends are refused.
	ReadOnly bool

	// IDFile is the path of a file outside the store's directory. It has the id of the store that belongs in the directory.
	//
	// When the file exists, Open opens the store with that id and no other; when that store is missing, as on a disk
	// that is not mounted, Open fails and makes no new one. When the file does not exist, Open opens the store that is
	// there, or creates one, and writes the file. When the file cannot be written, Open logs a warning and succeeds.
	//
	// The folder of the file is locked as long as the store is open. Empty: no file is read or written.
	IDFile string

	// Replication makes the store one of several that share the shards. Nil: it is standalone.
	Replication *Replication

	// Log gets what a person should know. The zero Logger is silent.
	Log zerolog.Logger

	// Fatal ends the process when it cannot go on without risking a write: an fsync that failed must never be repeated,
	// because the kernel may have dropped the data. It must not return. Nil: logs and os.Exit(1).
	Fatal func(reason string)
}

const (
	defaultShards         = 16
	defaultCacheBytes     = 128 << 20
	defaultMemTableBytes  = 32 << 20
	defaultCommitWaitMax  = 10 * time.Second
	defaultFreeBytesMin   = 512 << 20
	defaultVerifyBytesMax = 64 << 20

	defaultCheckpointInterval = time.Second

	shardsMax        = disk.ShardsMax
	logBytesMax      = 64 << 20
	memTableBytesMin = 64 << 10
	memTableBytesMax = 1 << 30
)

// EnsureDefaults returns o with its zero fields filled in. Shards stays zero: only the store knows.
func (o Options) EnsureDefaults() Options {
	o.CacheBytes = cmp.Or(o.CacheBytes, defaultCacheBytes)
	o.MemTableBytes = cmp.Or(o.MemTableBytes, defaultMemTableBytes)
	o.CommitWaitMax = cmp.Or(o.CommitWaitMax, defaultCommitWaitMax)
	o.FreeBytesMin = cmp.Or(o.FreeBytesMin, defaultFreeBytesMin)
	o.VerifyBytesMax = cmp.Or(o.VerifyBytesMax, defaultVerifyBytesMax)
	o.CheckpointInterval = cmp.Or(o.CheckpointInterval, defaultCheckpointInterval)
	if o.Fatal == nil {
		log := o.Log
		o.Fatal = func(reason string) {
			log.Error().Str("reason", reason).Msg("store cannot go on, ending the process")
			os.Exit(1)
		}
	}
	return o
}

// logBytes is the size that each log is given in advance.
func (o Options) logBytes() int64 { return min(o.MemTableBytes, logBytesMax) }

// Validate reports every field that cannot be used, all at once. Call it on the result of EnsureDefaults.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Shards < 0 || o.Shards > shardsMax {
		fault("shards is %d, must be 1 to %d", o.Shards, shardsMax)
	}
	if o.CacheBytes < 0 {
		fault("cache is %d bytes, must not be negative", o.CacheBytes)
	}
	if o.MemTableBytes < memTableBytesMin || o.MemTableBytes > memTableBytesMax {
		fault("memtable is %d bytes, must be %d to %d", o.MemTableBytes, memTableBytesMin, memTableBytesMax)
	}
	if o.CommitWaitMax < 0 {
		fault("commit wait is %s, must not be negative", o.CommitWaitMax)
	}
	if o.CheckpointInterval < 0 {
		fault("checkpoint interval is %s, must not be negative", o.CheckpointInterval)
	}
	return errors.Join(faults...)
}

// Replication says how the shards of a store are kept on several nodes.
type Replication struct {
	// Node is the id of this node.
	Node string
	// Alone: there is no other node that an empty store could get its shards from.
	Alone bool
	// Streams returns the streams between nodes for key.Messages and key.Copies.
	Streams func(key.Shard) replica.Streams
	// Tick and Lost are those of [replica.HostOptions], LogBytesMax that of [replica.Options].
	Tick        time.Duration
	Lost        func(node string)
	LogBytesMax int64
}
