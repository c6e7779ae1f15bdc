package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"troupe/persistence"
)

// SweepOptions bound a run of [Sweep].
type SweepOptions struct {
	// Seed makes a run repeatable. Zero: 1.
	Seed uint64
	// Flips is the number of random single-bit flips in each file; the other kinds
	// of damage grow with it. Zero: 12.
	Flips int
	// Time ends the sweep early. Zero: no limit.
	Time time.Duration
	// Closed sweeps the files of a store that was closed. Otherwise the process
	// was killed right after its last acknowledgement.
	Closed bool
	// HoldTables keeps the second half of the load in logs that are closed but not
	// in tables yet. Not together with Closed.
	HoldTables bool
	// First ends the sweep at the first silent case.
	First bool
}

// Outcome counts what became of damages.
type Outcome struct {
	Cases    int
	Refused  int // did not open
	OnRead   int // opened; a read of the damaged part returned ErrCorrupt
	Harmless int // opened, with everything that was acknowledged
	// Limit counts what one node cannot tell from a crash: only events of the last
	// group commit are missing, or the whole newest log was replaced by an older
	// copy of itself or by another log, or the block with its last records was
	// zeroed, and the checkpoint, which is old here on purpose, knows of nothing that
	// was in it.
	Limit  int
	Silent int // opened, with something else missing or wrong
}

// SweepReport says what a sweep found.
type SweepReport struct {
	Outcome
	ByType  map[string]*Outcome // by type of file and kind of damage
	Changed int                 // refused, and yet a file was changed
	First   string              // the first silent case
}

func (r SweepReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-22s %6s %8s %8s %9s %6s %7s\n",
		"file, damage", "cases", "refused", "on read", "harmless", "limit", "SILENT")
	line := func(name string, o Outcome) {
		fmt.Fprintf(&b, "%-22s %6d %8d %8d %9d %6d %7d\n",
			name, o.Cases, o.Refused, o.OnRead, o.Harmless, o.Limit, o.Silent)
	}
	var names []string
	for name := range r.ByType {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		line(name, *r.ByType[name])
	}
	line("all", r.Outcome)
	fmt.Fprintf(&b, "refused and changed: %d", r.Changed)
	if r.First != "" {
		fmt.Fprintf(&b, "\nfirst silent: %s", r.First)
	}
	return b.String()
}

// Sweep damages every file of a store that has tables, several logs and a used
// MANIFEST, one damage at a time, and opens it. A journal must refuse it or lose
// nothing.
//
// What cannot be told from a crash is counted by itself, see [Outcome].
func Sweep(open Opener, o SweepOptions) (SweepReport, error) {
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Flips == 0 {
		o.Flips = 12
	}
	r := SweepReport{ByType: map[string]*Outcome{}}
	s := &sweep{open: open, load: newWorkload(4, 160)}
	if o.HoldTables {
		s.load.events = 100 // half of it must fit into the memtables
	}
	if err := s.build(o); err != nil {
		return r, err
	}
	all, err := damages(s.image, s.older, o.Flips, rand.New(rand.NewPCG(o.Seed, 0)))
	if err != nil {
		return r, err
	}
	rand.New(rand.NewPCG(o.Seed, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	start := time.Now()
	for _, d := range all {
		if o.Time > 0 && time.Since(start) > o.Time {
			break
		}
		if err := s.try(d, &r); err != nil {
			return r, err
		}
		if o.First && r.Silent > 0 {
			break
		}
	}
	return r, nil
}

type sweep struct {
	open Opener
	load *workload

	image   *vfs.MemFS // the undamaged files
	older   *vfs.MemFS // the same files in the middle of the load
	acked   ledger
	covered ledger
}

// build runs the load and copies its files.
func (s *sweep) build(o SweepOptions) error {
	base, err := emptyJournal(s.open)
	if err != nil {
		return err
	}
	mem := copyOf(base)
	tables := tableGate()
	j, err := s.open(errorfs.Wrap(mem, tables))
	if err != nil {
		return err
	}
	all := s.load.events
	s.load.events = all / 2
	s.load.run(j, func() bool { return true })
	s.older = copyOf(mem)
	if o.HoldTables {
		// NB: opening writes the tables of the first half. Those that still waited would
		// fill the memtables up together with the second, and the load would never end.
		if err := j.Close(); err != nil {
			return err
		}
		if j, err = s.open(errorfs.Wrap(mem, tables)); err != nil {
			return err
		}
		tables.hold()
	}
	s.load.from, s.load.events = all/2, all
	s.load.run(j, func() bool { return true })
	s.acked, s.covered = s.load.acked(), s.load.covered()
	if !o.Closed {
		s.image = copyOf(mem)
	}
	tables.release()
	if err := j.Close(); err != nil {
		return err
	}
	if o.Closed {
		s.image = copyOf(mem)
		s.covered = s.acked
	}
	// The image itself must be whole, or every case below would mean nothing.
	c := crash{open: s.open, load: s.load}
	return c.check(copyOf(s.image), s.acked)
}

// try does one damage to a copy of the image and opens it.
func (s *sweep) try(d damage, r *SweepReport) error {
	fs := copyOf(s.image)
	if err := d.do(fs); err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	before, err := fingerprint(fs)
	if err != nil {
		return err
	}
	name := fileType(d.file) + ", " + d.kind
	o := r.ByType[name]
	if o == nil {
		o = &Outcome{}
		r.ByType[name] = o
	}
	verdict, detail := s.judge(fs, d)
	for _, o := range []*Outcome{o, &r.Outcome} {
		o.Cases++
		*verdict(o)++
	}
	if verdict(o) == &o.Silent && r.First == "" {
		r.First = fmt.Sprintf("%s: %v", d, detail)
	}
	if verdict(o) == &o.Refused {
		after, err := fingerprint(fs)
		if err != nil {
			return err
		}
		if before != after {
			r.Changed++
		}
	}
	return nil
}

// judge opens the files and picks the counter.
func (s *sweep) judge(fs *vfs.MemFS, d damage) (verdict func(*Outcome) *int, detail error) {
	refused := func(o *Outcome) *int { return &o.Refused }
	onRead := func(o *Outcome) *int { return &o.OnRead }
	j, err := s.open(fs)
	if err != nil {
		return refused, err
	}
	defer func() {
		if cerr := j.Close(); cerr != nil && errors.Is(cerr, persistence.ErrCorrupt) {
			verdict = onRead
		}
	}()
	missing, err := check(j, s.acked, s.load.instances, s.load.padding)
	switch {
	case err == nil:
		return func(o *Outcome) *int { return &o.Harmless }, nil
	case errors.Is(err, persistence.ErrCorrupt):
		return onRead, err
	case missing > 0:
		replaced := fileType(d.file) == "log" && (d.kind == "stale" || d.kind == "swap" || d.erasesEnd)
		fewer, _ := check(j, s.covered, s.load.instances, s.load.padding)
		if fewer == 0 || replaced {
			return func(o *Outcome) *int { return &o.Limit }, err
		}
	}
	return func(o *Outcome) *int { return &o.Silent }, err
}
