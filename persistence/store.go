package persistence

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// Store is one open store. All methods are safe for concurrent use.
type Store struct {
	// db is exchanged once in the life of a store that was opened on a full disk;
	// see reopen.
	db atomic.Pointer[engine.Generation]

	// Built by Open, then read only.

	dir      string
	options  Options // defaults filled in
	readOnly bool
	purpose  purpose
	ids      ids
	log      zerolog.Logger
	fs       vfs.FS
	shards   int
	// replicated: its shards have replicas.
	replicated bool
	crashed    bool // the last process did not close the store
	started    time.Time
	recorder   *integrity.Recorder

	// feedEnds are by numbered shard.
	feedEnds []feedEnd
	written  bell

	pool    sync.Pool // of *Writes with an empty batch
	commits *commit.Pipeline
	kept    disk.Kept
	metrics counters

	// replicas is nil in a store that stands alone.
	replicas *replicas

	space space // of the space loop's goroutine; of Open and Close outside its life

	// undo holds what Close has to do, in the order of Open. Open and Close own it.
	undo      []func() error
	stop      chan struct{} // closed to end the space poll
	spaceDone chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the store in dir, creating it when dir is absent or empty and
// Options.IDFile demands none. Before anything is changed, the files are checked
// against each other and against the integrity checkpoint that an earlier process
// left; see the package comment for what that finds.
//
// On a full disk the store is opened to be read, and takes writes as soon as there
// is room. With replicas it is not opened then: ErrDiskFull.
//
// It returns ErrLocked, ErrMissing, ErrOtherStore, ErrIncomplete, ErrDamaged,
// ErrUnreleased or ErrNewer, wrapped with what to do, ErrReplicated, ErrReplicaDamaged, or the file
// system's own error.
func Open(dir string, o Options) (*Store, error) { return newStore(dir, o, purpose{}) }

// Create makes a new store in dir, which must be absent or empty, and closes it.
// From then on it is the one that Options.IDFile demands. It returns ErrExists
// when there is a store, and the errors of Open.
func Create(dir string, o Options) error {
	s, err := newStore(dir, o, purpose{createOnly: true})
	if err != nil {
		return err
	}
	return s.Close()
}

// purpose is what a store is opened for beside being used.
type purpose struct {
	createOnly bool // create, or fail
	recovers   bool // its groups are founded again, so it may be open without them
}

func newStore(dir string, o Options, p purpose) (*Store, error) {
	o = o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s := &Store{
		dir: dir, options: o, readOnly: o.ReadOnly, purpose: p, log: o.Log, started: time.Now(),
		stop: make(chan struct{}), spaceDone: make(chan struct{}),
	}
	s.metrics.freeBytes.Store(-1)
	s.commits = commit.New(commit.Options{Applier: applier{s}, DB: &s.db, WaitMax: o.CommitWaitMax, Log: o.Log, Fatal: o.Fatal})
	if err := s.open(); err != nil {
		for i := len(s.undo) - 1; i >= 0; i-- {
			err = errors.Join(err, s.undo[i]())
		}
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	return s, nil
}

// open runs the steps of Open in order. What each step must take back is in
// s.undo as soon as it succeeded.
func (s *Store) open() error {
	s.wrapFS()
	lock, err := prepareDir(s)
	if err != nil {
		return err
	}
	present, found, err := check(s, lock)
	if err != nil {
		return err
	}
	s.shards, s.replicated, s.crashed = present.Shards, present.Replicas, found.Crashed
	s.feedEnds = make([]feedEnd, s.shards)
	if s.replicated && s.options.Replication == nil && !s.readOnly && !s.purpose.recovers {
		return ErrReplicated
	}
	if !s.readOnly {
		s.recordID()
	}
	s.recorder = s.newRecorder()
	if err := s.roomToOpen(found); err != nil {
		return err
	}
	readOnly := s.readOnly || s.space.waiting
	err = s.openDB(readOnly)
	if errors.Is(err, syscall.ENOSPC) && !readOnly {
		// What opening writes by itself, merges of tables among it, has taken the room.
		s.awaitRoom()
		err = s.openDB(true)
	}
	if err != nil {
		return err
	}
	s.undo = append(s.undo, s.closeDB)
	if s.readOnly {
		s.commits.Gate.SetReadOnly()
	}
	s.start()
	if err := s.startReplicas(); err != nil {
		s.stopReplicas()
		return errors.Join(err, s.endLoops())
	}
	s.log.Info().Str("dir", s.dir).Int("shards", s.shards).Bool("after_crash", s.crashed).
		Dur("tookMs", time.Since(s.started)).Msg("store is open")
	return nil
}

// openDB opens the files, which were checked before. Unless they are only read, it begins to
// record what is durable.
func (s *Store) openDB(readOnly bool) error {
	o := pebbleOptions(s, nil)
	o.ReadOnly = readOnly
	o.EventListener = listener(s)
	o.Logger = pebbleLog{log: s.log, die: s.commits.Die}
	o.ErrorIfNotExists = true
	g, err := engine.Open(s.fs, s.dir, o)
	if err != nil {
		return err
	}
	if !readOnly {
		if err := s.recorder.Start(func() ([]integrity.Table, error) { return integrity.Tables(engine.Pebble(g)) }); err != nil {
			return errors.Join(err, g.Close())
		}
	}
	s.db.Store(g)
	return nil
}

// check looks at the files before any of them is changed.
func check(s *Store, lock *pebble.Lock) (present disk.Format, found integrity.Found, err error) {
	if present, err = s.readFormat(); err != nil {
		return disk.Format{}, integrity.Found{}, err
	}
	o := pebbleOptions(s, lock)
	o.Logger = pebbleLog{log: s.log, die: func(reason string) { panic(reason) }}
	found, err = integrity.Check(integrity.CheckOptions{FS: s.fs, Dir: s.dir, Open: o, TableBytesMax: s.options.VerifyBytesMax})
	return present, found, err
}

// newRecorder returns what keeps the integrity checkpoint.
func (s *Store) newRecorder() *integrity.Recorder {
	return integrity.Record(integrity.RecordOptions{
		FS: s.fs, Dir: s.dir, Interval: s.options.CheckpointInterval, LogBytes: s.options.logBytes(), SpareBytes: 2 * disk.LogAhead,
		Opened: s.started, Log: s.log, Fatal: s.commits.Die,
	})
}

// start begins the store's own goroutines. Close ends them.
func (s *Store) start() {
	s.commits.Start()
	if s.readOnly {
		close(s.spaceDone)
		return
	}
	s.pollSpace()
	go s.spaceLoop()
}

// pebbleOptions are the options that every opening of the files shares.
func pebbleOptions(s *Store, lock *pebble.Lock) *pebble.Options {
	o := &pebble.Options{
		FS:                          s.fs,
		Lock:                        lock,
		ReadOnly:                    s.readOnly,
		FormatMajorVersion:          pebble.FormatNewest,
		Merger:                      engine.SumMerger,
		CacheSize:                   s.options.CacheBytes,
		MemTableSize:                uint64(s.options.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		// Eight flushes are merged into the next level at once; DESIGN.md has a row about it.
		L0CompactionThreshold:      16,
		L0StopWritesThreshold:      64,
		MaxManifestFileSize:        16 << 20,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 2 },
	}
	for i := range o.Levels {
		// Most lookups of an idempotency key find nothing; ten bits per key let 99
		// of 100 of them end without reading a block.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Close takes no more writes, waits until everything appended is answered and
// every reader has left, and notes that the store was closed. Readers are
// waited for, and so is a stuck disk, for Options.CommitWaitMax; after that it
// returns an error with the files still open, and the process should end.
// Further calls return the same.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.stopReplicas()
	if err := s.endLoops(); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	if !s.awaitReaders() {
		return fmt.Errorf("close store %s: readers or snapshots are still open", s.dir)
	}
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	s.log.Info().Str("dir", s.dir).Msg("store is closed")
	return nil
}

// endLoops takes no more writes, and ends what start began once everything appended is
// answered.
func (s *Store) endLoops() error {
	if err := s.commits.Close(); err != nil {
		return err
	}
	close(s.stop)
	<-s.spaceDone
	return nil
}

// awaitReaders lets no more readers in and waits for those inside, but not longer
// than Options.CommitWaitMax. It says whether all are gone.
func (s *Store) awaitReaders() bool {
	now := s.db.Load()
	now.Shut()
	timer := time.NewTimer(s.options.CommitWaitMax)
	defer timer.Stop()
	for _, g := range []*engine.Generation{now, s.space.old} {
		if g == nil {
			continue
		}
		select {
		case <-g.Gone():
		case <-timer.C:
			return false
		}
	}
	return true
}

// closeDB closes the database and, when that went well, says so in the integrity
// checkpoint.
func (s *Store) closeDB() error {
	s.recorder.Stop()
	if err := errors.Join(s.closeOld(), s.db.Load().Close()); err != nil {
		return err
	}
	if s.readOnly || s.space.waiting {
		return nil
	}
	return s.recorder.Close()
}

// ShardOf returns the shard that an instance belongs to, forever.
func (s *Store) ShardOf(id key.ID) key.Shard { return id.Shard(s.shards) }

// OpenedAfterCrash says whether the last process ended without Close.
func (s *Store) OpenedAfterCrash() bool { return s.crashed }
