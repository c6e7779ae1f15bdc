package persistence

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// fillsEnv is how often TestAFullDiskHealsAgainAndAgain fills the disk.
	fillsEnv    = "PERSISTENCE_TEST_FILLS"
	fillWriters = 4
	fillNames   = 500 // of settings that each of them writes again and again
)

// fillCommits of 4 KiB are acknowledged before each filling, so that logs and
// tables take more room over the rounds than the disk has.
var fillCommits int64 = 9000

// smallDisk mounts a file system in memory of so many MiB.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("a small file system cannot be mounted here, which takes root: %v", err)
	}
	t.Cleanup(func() {
		assert.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH), "unmount")
	})
	return dir
}

// fill takes all the room that is left.
func fill(t *testing.T, dir string) (remove func()) {
	t.Helper()
	f, err := os.CreateTemp(dir, "filler")
	must(t, err)
	piece := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(piece)
		if errors.Is(err, syscall.ENOSPC) && len(piece) > 4096 {
			piece, err = piece[:len(piece)/2], nil
		}
	}
	cerr := f.Close()
	require.True(t, errors.Is(err, syscall.ENOSPC) && cerr == nil, "fill the disk: %v, %v", err, cerr)
	return func() {
		must(t, os.Remove(f.Name()))
	}
}

// writeUntilFull commits with several writers until each is refused, and calls
// enough after the first fillCommits acknowledgements. An outcome may be unknown.
// The first answer of another kind is returned.
func writeUntilFull(s *Store, round int, acked *sync.Map, enough func()) error {
	var (
		writers sync.WaitGroup
		count   atomic.Int64
		once    sync.Once
		wrong   error
	)
	reached, ended := make(chan struct{}), make(chan struct{})
	for n := range fillWriters {
		writers.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(n), byte(round)})
			for i := 0; ; i++ {
				value := make([]byte, 4<<10)
				_, _ = random.Read(value) // never fails; does not compress
				name := fmt.Sprintf("%d/%d", n, i%fillNames)
				switch err := <-appendSetting(s, name, string(value)); {
				case err == nil:
					acked.Store(name, string(value))
				case errors.Is(err, ErrOutcomeUnknown):
					acked.Delete(name) // the disk was full before the log had room for it
				case errors.Is(err, ErrStalled) && count.Load() < fillCommits:
					<-time.After(time.Millisecond) // Pebble has to catch up: others have the processors
					continue
				case errors.Is(err, ErrDiskFull), errors.Is(err, ErrStalled):
					return
				default:
					once.Do(func() { wrong = err })
					return
				}
				if count.Add(1) == fillCommits {
					close(reached)
				}
			}
		})
	}
	go func() {
		writers.Wait()
		close(ended)
	}()
	select {
	case <-reached:
		enough()
		<-ended
		return wrong
	case <-ended:
		return errors.Join(wrong, fmt.Errorf("refused after %d commits, before the disk was filled", count.Load()))
	}
}

// TestAFullDiskHealsAgainAndAgain holds persistence/PROMISES.md, "P4": it fills a
// real file system under load, checks that reads go on, and makes room again; and it starts on
// a disk that is full.
func TestAFullDiskHealsAgainAndAgain(t *testing.T) {
	t.Parallel()
	rounds := 2
	if testing.Short() {
		rounds, fillCommits = 1, 2500
	}
	if text := os.Getenv(fillsEnv); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	disk := smallDisk(t, 160)
	dir := filepath.Join(disk, "data")
	o := Options{FreeBytesMin: 24 << 20, MemTableBytes: 16 << 20, Fatal: func(reason string) { panic(reason) }}
	s := mustOpen(t, dir, o)
	var acked sync.Map
	for round := range rounds {
		var remove func()
		if err := writeUntilFull(s, round, &acked, func() { remove = fill(t, disk) }); err != nil {
			t.Fatalf("round %d: %v (free: %d MiB)", round, err, s.Metrics().FreeBytes>>20)
		}
		acked.Range(func(name, value any) bool {
			wantSetting(t, s, name.(string), value.(string))
			return !t.Failed()
		})
		remove()
		eventually(t, fmt.Sprintf("writes are taken again in round %d", round), func() bool { return s.Accepting() == nil })
	}
	must(t, s.Close())
	remove := []func(){fill(t, disk)}
	s = mustOpen(t, dir, o) // to be read until there is room
	defer s.Close()
	eventually(t, "writes are refused", func() bool {
		remove = append(remove, fill(t, disk)) // the start makes room when it removes old logs, now or later
		return errors.Is(<-appendSetting(s, "b", "2"), ErrDiskFull)
	})
	n := 0
	acked.Range(func(name, value any) bool {
		n++
		wantSetting(t, s, name.(string), value.(string))
		return !t.Failed()
	})
	if n < fillWriters*(fillNames-1) { // each writer has one on the way at most
		t.Errorf("settings: got %d, want at least %d", n, fillWriters*(fillNames-1))
	}
	for _, one := range remove {
		one()
	}
	eventually(t, "writes are taken", func() bool { return s.Accepting() == nil })
	mustCommit(t, s, "c", "3")
	t.Logf("%d rounds", rounds)
}
