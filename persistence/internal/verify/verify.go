// Package verify reads all of a store (persistence.Store.Verify).
package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// faultsMax bounds how many faults are listed.
const faultsMax = 20

// Report says what was read.
type Report struct {
	Tables     int
	TableBytes int64
	Keys       map[string]int64 // how many of each kind, as in Key.Table
	Counters   map[string]int64 // sum over the shards, by "workflow/version"
}

type reading struct {
	Report
	of     *engine.Generation
	fault  func(what string, err error) error // says of an error of a read what it means
	pace   func(context.Context, int) error
	faults []error // the first ones
	spoilt bool    // some table is damaged, so what fails behind that is known
	more   int
}

// Read reads the tables in a folder, opened with the options, and all keys of the generation. A table that is gone
// meanwhile is passed over if the store is in use. fault says of an error of a read what it means, and pace unless nil is
// called with how many bytes were read, and may wait.
func Read(ctx context.Context, g *engine.Generation, files vfs.FS, dir string, o *pebble.Options, inUse bool, pace func(context.Context, int) error, fault func(what string, err error) error) (Report, error) {
	r := &reading{Report: Report{Keys: map[string]int64{}, Counters: map[string]int64{}}, of: g, fault: fault, pace: pace}
	if r.pace == nil {
		r.pace = func(ctx context.Context, _ int) error { return ctx.Err() }
	}
	for _, err := range integrity.CheckFiles(files, dir) {
		r.add(err)
	}
	before := len(r.faults)
	if err := readTables(ctx, r, files, dir, o, inUse); err != nil {
		return r.Report, err
	}
	r.spoilt = len(r.faults) > before
	// Each reads everything, on a processor of its own: together they are most of the time that a restore takes.
	levels := make(chan error, 1)
	go func() { levels <- engine.Pebble(g).CheckLevels(nil) }()
	err := r.keys(ctx)
	if err := <-levels; err != nil && !r.spoilt {
		r.add(fault("check levels at", err))
	}
	if err != nil {
		return r.Report, err
	}
	if r.more > 0 {
		r.faults = append(r.faults, fmt.Errorf("and %d more", r.more))
	}
	return r.Report, errors.Join(r.faults...)
}

func readTables(ctx context.Context, r *reading, files vfs.FS, dir string, o *pebble.Options, inUse bool) error {
	tables, err := integrity.Tables(engine.Pebble(r.of))
	if err != nil {
		return err
	}
	o.EnsureDefaults()
	for _, t := range tables {
		if err := r.pace(ctx, int(t.Bytes)); err != nil {
			return err
		}
		err := integrity.CheckTable(t, files, dir, o.MakeReaderOptions())
		if errors.Is(err, fs.ErrNotExist) && inUse {
			continue // compacted away since the list was made
		}
		r.add(err)
		r.Tables++
		r.TableBytes += t.Bytes
	}
	return nil
}

func (r *reading) keys(ctx context.Context) error {
	it, err := r.of.Iter(nil, nil)
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		if err := r.pace(ctx, len(it.Key())); err != nil {
			return errors.Join(err, it.Close())
		}
		k, ok := key.Parse(it.Key())
		if !ok {
			r.add(fmt.Errorf("%w: key %x has an unknown form", integrity.ErrCorrupt, it.Key()))
			continue
		}
		r.Keys[k.Table]++
		if k.Table != "count" {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			break // Close returns it
		}
		count, err := engine.ParseCounter(value)
		if err != nil {
			r.add(fmt.Errorf("%s: %w", k, err))
		}
		r.Counters[fmt.Sprintf("%s/%d", k.Workflow, k.Number)] += count
	}
	if err := it.Close(); err != nil && !r.spoilt {
		r.add(r.fault("scan", err))
	}
	return nil
}

func (r *reading) add(err error) {
	switch {
	case err == nil:
	case len(r.faults) < faultsMax:
		r.faults = append(r.faults, err)
	default:
		r.more++
	}
}
