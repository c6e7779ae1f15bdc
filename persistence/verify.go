package persistence

import (
	"context"

	"troupe/persistence/internal/verify"
)

// VerifyReport says what Verify read.
type VerifyReport = verify.Report

// Verify reads all of a store: the checksum of every block of every table, the first and last key of each against the
// MANIFEST, the order of keys within and between levels, the form of every key and counter, and the MANIFEST and the
// live logs against what was durable. It takes as long as reading the disk does; ctx ends it early.
//
// It works on a store in use, and then checks what is there at the moment; for a whole check the store is opened with
// Options.ReadOnly. The error wraps ErrCorrupt or ErrDamaged and lists the first faults.
func (s *Store) Verify(ctx context.Context) (VerifyReport, error) { return s.VerifySlowly(ctx, nil) }

// VerifySlowly is Verify, and calls pace with how many bytes it has read; pace may wait.
func (s *Store) VerifySlowly(ctx context.Context, pace func(context.Context, int) error) (VerifyReport, error) {
	g := s.read()
	if g == nil {
		return VerifyReport{}, ErrClosed
	}
	defer g.Leave()
	return verify.Read(ctx, g, s.fs, s.dir, pebbleOptions(s, nil), !s.readOnly, pace, func(what string, err error) error { return s.readFault(what, nil, err) })
}
