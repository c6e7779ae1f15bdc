package persistence_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/storetest"
)

// staleCheckpoint never renews its integrity checkpoint by the clock: the worst moment for a
// crash. All of memtableBytes fits into one log.
func staleCheckpoint(memtableBytes int64) persistence.Options {
	o := smallOptions
	o.MemTableBytes, o.CheckpointInterval = memtableBytes, time.Hour
	return o
}

// TestNoDamageIsSilent holds persistence/PROMISES.md, "P5". In the case
// "one long log" everything is in the first log of a new store, which Pebble alone
// would not protect (persistence/PROMISES.md, "F1").
func TestNoDamageIsSilent(t *testing.T) {
	unchecked := staleCheckpoint(64 << 10)
	unchecked.VerifyBytesMax = -1
	for name, c := range map[string]struct {
		store persistence.Options
		sweep sweep
	}{
		"killed":                   {staleCheckpoint(64 << 10), sweep{flips: 12}},
		"killed, one long log":     {staleCheckpoint(1 << 20), sweep{flips: 60}},
		"killed, several logs":     {staleCheckpoint(64 << 10), sweep{holdTables: true, flips: 30}},
		"closed":                   {staleCheckpoint(64 << 10), sweep{closed: true, flips: 12}},
		"closed, tables unchecked": {unchecked, sweep{closed: true, flips: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			c.sweep.store.options = c.store
			c.sweep.run(t, ended(60))
			assert.Empty(t, c.sweep.silent, "see the seed")
			assert.Empty(t, c.sweep.changed, "refused, and yet changed")
			assert.False(t, c.sweep.closed && c.sweep.all["limit"] > 0, "a closed store lost something: %v", c.sweep.all)
		})
	}
}

// TestTheSweepFindsAStoreThatStartsOver is the control: one of all damages of a kind shows it, in whatever
// time that takes.
func TestTheSweepFindsAStoreThatStartsOver(t *testing.T) {
	s := sweep{store: opener{staleCheckpoint(64 << 10), startOver}, flips: 1}
	s.run(t, func() bool { return s.silent != nil })
	assert.NotEmpty(t, s.silent, "%v damages found nothing", s.all)
}

// sweep damages every file of a store that has tables, several logs and a used
// MANIFEST, one damage at a time, and opens it. A journal must refuse it or lose
// nothing.
type sweep struct {
	store opener
	// flips is the number of random single-bit flips in each file; the other kinds
	// of damage grow with it.
	flips int
	// closed sweeps the files of a store that was closed. Otherwise the process
	// was killed right after its last acknowledgement.
	closed bool
	// holdTables keeps the second half of the load in logs that are closed but not
	// in tables yet. Not together with closed.
	holdTables bool

	load    *workload
	image   *vfs.MemFS // the undamaged files
	older   *vfs.MemFS // the same files in the middle of the load
	acked   ledger
	covered ledger

	all             map[verdict]int
	silent, changed []string // which damages were silent, and which stores were refused and yet changed
}

// verdict is what became of a damage.
type verdict string

const (
	refused  verdict = "refused"  // it did not open
	onRead   verdict = "on read"  // opened; a read of the damaged part returned ErrCorrupt
	harmless verdict = "harmless" // opened, with everything that was acknowledged
	// limit is what one node cannot tell from a crash: only events of the last
	// group commit are missing, or the whole newest log was replaced by an older
	// copy of itself or by another log, or the block with its last records was
	// zeroed, and the checkpoint, which is old here on purpose, knows of nothing that
	// was in it.
	limit  verdict = "limit"
	silent verdict = "silent" // opened, with something else missing or wrong
)

// run does one damage after the other, in random order, until it is enough.
func (s *sweep) run(t *testing.T, enough func() bool) {
	s.load, s.all = newWorkload(4, 160), map[verdict]int{}
	if s.holdTables {
		s.load.events = 100 // half of it must fit into the memtables
	}
	require.NoError(t, s.build())
	all := damages(s.image, s.older, s.flips, rand.New(rand.NewPCG(*seed, 0)))
	rand.New(rand.NewPCG(*seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, d := range all {
		if enough() {
			break
		}
		s.try(d)
	}
	t.Logf("seed %d: %v of %d damages", *seed, s.all, len(all))
}

// build runs the load and copies its files.
func (s *sweep) build() error {
	base, err := emptyStore(s.store)
	if err != nil {
		return err
	}
	mem := copyOf(base)
	var held atomic.Pointer[chan struct{}] // what new tables wait for, so that logs stay live
	tables := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if wait := held.Load(); wait != nil && op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			<-*wait
		}
		return nil
	})
	release := make(chan struct{})
	j, err := s.store.open(storetest.Faults(mem, tables))
	if err != nil {
		return err
	}
	all := s.load.events
	s.load.events = all / 2
	s.load.run(j, func() bool { return true })
	s.older = copyOf(mem)
	if s.holdTables {
		// NB: opening writes the tables of the first half. Those that still waited would
		// fill the memtables up together with the second, and the load would never end.
		if err := j.Close(); err != nil {
			return err
		}
		if j, err = s.store.open(storetest.Faults(mem, tables)); err != nil {
			return err
		}
		held.Store(&release)
	}
	s.load.from, s.load.events = all/2, all
	s.load.run(j, func() bool { return true })
	s.acked, s.covered = s.load.acked(), s.load.covered()
	if !s.closed {
		s.image = copyOf(mem)
	}
	close(release)
	if err := j.Close(); err != nil {
		return err
	}
	if s.closed {
		s.image = copyOf(mem)
		s.covered = s.acked
	}
	// The image itself must be whole, or every case below would mean nothing.
	c := crash{store: s.store, load: s.load}
	return c.check(copyOf(s.image), s.acked)
}

// try does one damage to a copy of the image and opens it.
func (s *sweep) try(d damage) {
	fs := copyOf(s.image)
	d.do(fs)
	before := fingerprint(fs)
	found, detail := s.judge(fs, d)
	s.all[found]++
	if found == silent {
		s.silent = append(s.silent, fmt.Sprintf("%s: %v", d, detail))
	}
	if found == refused && fingerprint(fs) != before {
		s.changed = append(s.changed, d.String())
	}
}

// judge opens the files and says what became of the damage.
func (s *sweep) judge(fs *vfs.MemFS, d damage) (found verdict, detail error) {
	j, err := s.store.open(fs)
	if err != nil {
		return refused, err
	}
	defer func() {
		if cerr := j.Close(); cerr != nil && errors.Is(cerr, persistence.ErrCorrupt) {
			found = onRead
		}
	}()
	missing, err := check(j, s.acked, s.load.instances, s.load.padding)
	switch {
	case err == nil:
		return harmless, nil
	case errors.Is(err, persistence.ErrCorrupt):
		return onRead, err
	case missing > 0:
		replaced := fileType(d.file) == "log" && (d.kind == "stale" || d.kind == "swap" || d.erasesEnd)
		fewer, _ := check(j, s.covered, s.load.instances, s.load.padding)
		if fewer == 0 || replaced {
			return limit, err
		}
	}
	return silent, err
}
