package persistence

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"troupe/persistence/internal/commit"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Recover makes the store in dir the only node of a new cluster, with what it has: what only other nodes have is lost, and they must never be started
// again. It returns the shards that this node had no copy of, or had only begun to copy; they are empty now. The states of indexes are removed, so
// that all are built again: Meta may have lost what declared them, and give their numbers again. The store must be in use by nobody.
func Recover(dir string, o Options, node string) (missing []key.Shard, err error) {
	s, err := newStore(dir, o, purpose{recovers: true})
	if err != nil {
		return nil, err
	}
	if err := s.beginReplicas(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	missing, err = s.recover(node)
	return missing, errors.Join(err, s.Close())
}

// recover founds all groups again. Shards that are in none get one for each part of them that is in a row.
func (s *Store) recover(node string) (missing []key.Shard, err error) {
	for sh := 0; sh <= s.shards; sh++ {
		first := key.Shard(sh)
		if sh == s.shards {
			first = key.Meta
		}
		last := first
		for first != key.Meta && int(last)+1 < s.shards {
			if begins, err := s.hasReplica(last + 1); err != nil {
				return nil, err
			} else if begins {
				break
			}
			last++
		}
		had, reach, err := replica.Recover(s.groupOptions(first, &Replication{}), node, uint16(last))
		for one := int(first); one <= int(reach) && err == nil; one++ {
			err = s.forgetIndexStates(key.Shard(one))
			if !had {
				missing = append(missing, key.Shard(one))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("found the group of shard %d again: %w", first, err)
		}
		sh += int(reach) - int(first)
	}
	return missing, nil
}

// Open opens the store in dir, creating it when dir is absent or empty and Options.IDFile requires none. Before anything is changed, the files are
// checked against each other and against the integrity checkpoint that an earlier process left; see the package comment for what that finds.
//
// On a full disk the store is opened to be read, and takes writes as soon as there is room. With replicas it is not opened then: ErrDiskFull.
//
// It returns ErrLocked, ErrMissing, ErrOtherStore, ErrIncomplete, ErrDamaged, ErrUnreleased or ErrNewer, wrapped with
// what to do, ErrReplicated, ErrReplicaDamaged, or the file system's own error.
func Open(dir string, o Options) (*Store, error) { return newStore(dir, o, purpose{}) }

// Create makes a new store in dir, which must be absent or empty, and closes it. From then on it is the one that
// Options.IDFile requires. It returns ErrExists when there is a store, and the errors of Open.
func Create(dir string, o Options) error {
	s, err := newStore(dir, o, purpose{createOnly: true})
	if err != nil {
		return err
	}
	return s.Close()
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

// open runs the steps of Open in order. What each step must take back is in s.undo as soon as it succeeded.
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
	for sh := range key.Shard(s.shards) { //nolint:gosec // at most key.EveryShard
		s.numbered = append(s.numbered, sh)
	}
	if s.replicated && s.options.Replication == nil && !s.readOnly && !s.purpose.recovers {
		return ErrReplicated
	}
	if !s.readOnly {
		s.folder.Demand(s.log)
	}
	s.recorder = s.newRecorder()
	if err := s.roomToOpen(found); err != nil {
		return err
	}
	readOnly := s.readOnly || s.space.waiting
	err = s.openDB(readOnly)
	if errors.Is(err, syscall.ENOSPC) && !readOnly {
		// What opening writes on its own, merges of tables among it, has taken the room.
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

// Close accepts no more writes, waits until everything appended is answered and every reader has left, and notes that the
// store was closed. Readers are waited for, and so is a stuck disk, for Options.CommitWaitMax; after that it returns an
// error with the files still open, and the process should end. Further calls return the same.
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

// endLoops accepts no more writes, and ends what start began once everything appended is answered.
func (s *Store) endLoops() error {
	if err := s.commits.Close(); err != nil {
		return err
	}
	close(s.stop)
	<-s.spaceDone
	return nil
}

// awaitReaders lets no more readers in and waits for those inside, but not longer than Options.CommitWaitMax. It says whether all are gone.
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
