package persistence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/engine"
	"troupe/persistence/key"
)

// faultsMax bounds how many faults Verify lists.
const faultsMax = 20

// VerifyReport says what Verify read.
type VerifyReport struct {
	Tables     int
	TableBytes int64
	Keys       map[string]int64 // how many of each kind, as in Key.Table
	Counters   map[string]int64 // sum over the shards, by "workflow/version"
}

// Verify reads all of a store: the checksum of every block of every table, the first and last key of each against the
// MANIFEST, the order of keys within and between levels, and the form of every key and counter. What Open checks was
// checked by Open. It takes as long as reading the disk does; ctx ends it early.
//
// It works on a store in use, and then checks what is there at the moment; for a whole check the store is opened with
// Options.ReadOnly. The error wraps ErrCorrupt or ErrDamaged and lists the first faults.
func (s *Store) Verify(ctx context.Context) (VerifyReport, error) {
	r := VerifyReport{Keys: map[string]int64{}, Counters: map[string]int64{}}
	g := s.read()
	if g == nil {
		return r, ErrClosed
	}
	defer g.Leave()
	var faults faultList
	if err := s.verifyTables(ctx, g, &r, &faults); err != nil {
		return r, err
	}
	if err := engine.Pebble(g).CheckLevels(nil); err != nil {
		faults.add(s.readFault("check levels at", nil, err))
	}
	if err := s.verifyKeys(ctx, g, &r, &faults); err != nil {
		return r, err
	}
	return r, faults.err()
}

func (s *Store) verifyTables(ctx context.Context, g *engine.Generation, r *VerifyReport, faults *faultList) error {
	tables, err := integrity.Tables(engine.Pebble(g))
	if err != nil {
		return err
	}
	o := pebbleOptions(s, nil)
	o.EnsureDefaults()
	for _, t := range tables {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := integrity.CheckTable(t, s.fs, s.dir, o.MakeReaderOptions())
		if errors.Is(err, fs.ErrNotExist) && !s.readOnly {
			continue // compacted away since the list was made
		}
		faults.add(err)
		r.Tables++
		r.TableBytes += t.Bytes
	}
	return nil
}

func (s *Store) verifyKeys(ctx context.Context, g *engine.Generation, r *VerifyReport, faults *faultList) error {
	it, err := g.Iter(nil, nil)
	if err != nil {
		return err
	}
	n := 0
	for it.First(); it.Valid(); it.Next() {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return errors.Join(ctx.Err(), it.Close())
		}
		k, ok := key.Parse(it.Key())
		if !ok {
			faults.add(fmt.Errorf("%w: key %x has an unknown form", ErrCorrupt, it.Key()))
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
			faults.add(fmt.Errorf("%s: %w", k, err))
		}
		r.Counters[fmt.Sprintf("%s/%d", k.Workflow, k.Number)] += count
	}
	if err := it.Close(); err != nil {
		faults.add(s.readFault("scan", nil, err))
	}
	return nil
}

// faultList gathers faults, the first ones in full.
type faultList struct {
	errs []error
	more int
}

func (l *faultList) add(err error) {
	switch {
	case err == nil:
	case len(l.errs) < faultsMax:
		l.errs = append(l.errs, err)
	default:
		l.more++
	}
}

func (l *faultList) err() error {
	if l.more > 0 {
		return errors.Join(append(l.errs, fmt.Errorf("and %d more", l.more))...)
	}
	return errors.Join(l.errs...)
}
