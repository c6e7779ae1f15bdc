// Package compaction writes all tables of a store again, so that what was deleted is in none of its files any more
// (persistence.Store.Compact). Pebble rewrites a table only when something above it overlaps it, keeps what a snapshot
// sees, and keeps old logs to write over them. So: logs are made new from now on, every table gets marks above it, the
// snapshots from before end, the tables are merged to the bottom, and the old logs are emptied.
package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/disk"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Options say what is written again, and how.
type Options struct {
	Of  *engine.Generation
	FS  vfs.FS
	Dir string
	// Groups are the replicas of a node of a cluster, whose logs are emptied too.
	Groups iter.Seq2[key.Shard, *replica.Group]
	// Fresh is that of disk.Files. It is set as long as a Run lasts.
	Fresh *atomic.Bool
	// Apply writes a set of writes durably.
	Apply func(repr []byte) error
	// EmptyLogs empties the logs that nobody needs.
	EmptyLogs func() error
	// Say is told what begins; it must not block.
	Say func(step string)
}

// ErrCompacting: another Run is under way.
var ErrCompacting = errors.New("the store is being compacted already")

// Report says what was done.
type Report struct {
	TablesBefore, TablesAfter int
	BytesBefore, BytesAfter   int64 // of tables
	// Manifests are the files that still name the first and last keys of former tables. The second opening of the store
	// from now removes the last of them.
	Manifests []string
}

const (
	// roundsMax bounds the tries: a table that a merge of Pebble's own moved out of the way is left for the next one.
	roundsMax = 5
	pollEvery = 20 * time.Millisecond
	markBytes = 17 // longer than an id: no key has as many of 0xFF at its end
)

// Run rewrites all tables. What is written meanwhile is not affected.
func Run(ctx context.Context, o *Options) (Report, error) {
	if !o.Fresh.CompareAndSwap(false, true) {
		return Report{}, ErrCompacting
	}
	defer o.Fresh.Store(false)
	o.Say("emptying the logs of replicas")
	for _, g := range o.Groups {
		done := make(chan struct{})
		g.DropLog(done)
		select {
		case <-done:
		case <-ctx.Done():
			return Report{}, ctx.Err()
		}
	}
	db := engine.Pebble(o.Of)
	before, err := integrity.Tables(db)
	if err != nil {
		return Report{}, err
	}
	r := Report{TablesBefore: len(before), BytesBefore: sum(before)}
	if free := disk.FreeBytes(o.FS, o.Dir); free >= 0 && free < r.BytesBefore {
		return r, fmt.Errorf("writing the tables again takes up to %d MiB, and %d MiB are free: make room first", r.BytesBefore>>20, free>>20)
	}
	old, err := o.rewrite(ctx)
	if err != nil {
		return r, err
	}
	o.Say("waiting until nobody reads the old tables")
	if err := o.await(ctx, func() (bool, error) {
		there, err := o.FS.List(o.Dir)
		return !slices.ContainsFunc(there, func(name string) bool { return old[name] }), err
	}); err != nil {
		return r, fmt.Errorf("old tables are still read: %w", err)
	}
	o.Say("emptying old logs")
	if err := o.EmptyLogs(); err != nil {
		return r, err
	}
	after, err := integrity.Tables(db)
	r.TablesAfter, r.BytesAfter = len(after), sum(after)
	if err == nil {
		r.Manifests, err = o.manifests()
	}
	return r, err
}

// rewrite returns when no table of the present version was there before, and which files were.
func (o *Options) rewrite(ctx context.Context) (old map[string]bool, err error) {
	db := engine.Pebble(o.Of)
	if err := db.Flush(); err != nil {
		return nil, err
	}
	o.Say("waiting for reads that began before")
	if err := o.awaitSnapshots(ctx); err != nil {
		return nil, err
	}
	for round := 1; ; round++ {
		now, err := integrity.Tables(db)
		if err != nil {
			return nil, err
		}
		if round == 1 {
			old = names(now)
		}
		left := slices.DeleteFunc(now, func(t integrity.Table) bool { return !old[t.Name()] })
		switch {
		case len(left) == 0:
			return old, nil
		case round > roundsMax:
			return nil, fmt.Errorf("%s was not rewritten: try again", left[0].Name())
		}
		o.Say(fmt.Sprintf("rewriting %d tables", len(left)))
		if err := o.mark(left); err != nil {
			return nil, err
		}
		if err := db.Compact(ctx, []byte{0}, bytes.Repeat([]byte{0xFF}, markBytes), false); err != nil {
			return nil, err
		}
	}
}

// mark deletes keys that are not there, between the first and the last key of each table and around them, so that what
// has them overlaps it.
func (o *Options) mark(tables []integrity.Table) error {
	var marks pebble.Batch
	for _, t := range tables {
		first, last := t.Bounds()
		for _, k := range [][]byte{before(first), behind(first), behind(last)} {
			if err := marks.Delete(k, nil); err != nil {
				return err
			}
		}
	}
	return o.Apply(marks.Repr())
}

func behind(k []byte) []byte {
	return append(slices.Clone(k), bytes.Repeat([]byte{0xFF}, markBytes)...)
}

func before(k []byte) []byte {
	b := slices.Clone(k)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] > 0 {
			b[i]--
			return behind(b[:i+1])
		}
	}
	return b
}

// awaitSnapshots returns when no snapshot is open that is older than the tables, and no merge runs that may have begun
// while one was: merges keep what a snapshot sees.
func (o *Options) awaitSnapshots(ctx context.Context) error {
	db := engine.Pebble(o.Of)
	levels, err := db.SSTables()
	if err != nil {
		return err
	}
	newest := pebble.SeqNum(0)
	for _, level := range levels {
		for _, t := range level {
			newest = max(newest, t.LargestSeqNum)
		}
	}
	err = o.await(ctx, func() (bool, error) {
		open := db.Metrics().Snapshots
		return open.Count == 0 || open.EarliestSeqNum > newest, nil
	})
	if err == nil {
		err = o.await(ctx, func() (bool, error) { return db.Metrics().Compact.NumInProgress == 0, nil })
	}
	if err != nil {
		return fmt.Errorf("a long read is under way: %w", err)
	}
	return nil
}

func (o *Options) await(ctx context.Context, holds func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// manifests lists those but a present one that is as new as the tables.
func (o *Options) manifests() (old []string, err error) {
	desc, err := pebble.Peek(o.Dir, o.FS)
	there, lerr := o.FS.List(o.Dir)
	if err = errors.Join(err, lerr); err != nil {
		return nil, err
	}
	for _, name := range there {
		if strings.HasPrefix(name, "MANIFEST-") && name != o.FS.PathBase(desc.ManifestFilename) {
			old = append(old, name)
		}
	}
	return append(old, o.FS.PathBase(desc.ManifestFilename)), nil
}

func names(tables []integrity.Table) map[string]bool {
	all := map[string]bool{}
	for _, t := range tables {
		all[t.Name()] = true
	}
	return all
}

func sum(tables []integrity.Table) (bytes int64) {
	for _, t := range tables {
		bytes += t.Bytes
	}
	return bytes
}
