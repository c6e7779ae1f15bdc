package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// formatVersion counts the on-disk format of the whole directory: keys, WAL
// stamps, integrity checkpoint and this file. A program reads the versions up to its own.
//
//	1  2026-11-21  the first
//	2  2026-11-23  the lists of forms are in several tables (actors/form)
//	3  2026-11-24  that of a store whose shards have replicas
//	4  2026-11-26  timers, deliveries and incidents have tables
//	5  2026-11-26  4 with replicas. One that has 3 stays at it: the cluster's level says when such rows come
//	6  2026-11-26  commits have rows in a feed, which an earlier program would leave out
//	7  2026-11-26  6 with replicas. One that has 3 or 5 stays at it
//	8  2026-11-28  entries of histories name only the state machines that moved, and tasks stand by workflow
//	9  2026-11-28  8 with replicas. One that has 3, 5 or 7 stays at it
const formatVersion = 8

// replicatedVersion is the format of a store whose shards have replicas.
const replicatedVersion = 9

// hasReplicas reports whether the shards of a store of a format have replicas: those of odd
// formats have, but for the first.
func hasReplicas(version int) bool {
	return version > 1 && version%2 == 1
}

// formatName is the file that makes a directory a store. It is written last at
// creation, and again by the first program of a newer format that opens the store to
// write, before it writes anything else: earlier programs refuse it from then on.
// Text, so that a person can read it:
//
//	troupe store
//	format 2
//	shards 16
//	crc 1c291ca3
const formatName = "FORMAT"

type format struct {
	version int
	shards  int
}

func (f format) encode() []byte {
	return file.Seal(fmt.Appendf(nil, "troupe store\nformat %d\nshards %d\n", f.version, f.shards))
}

// parseFormat reads the file. The version is looked at before the rest: a newer
// format may have other lines.
func parseFormat(data []byte) (format, error) {
	text, ok := file.Unseal(data)
	if !ok {
		return format{}, errors.New("its checksum does not fit")
	}
	var f format
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 || lines[0] != "troupe store" {
		return format{}, errors.New("it is not the FORMAT file of a store")
	}
	if _, err := fmt.Sscanf(lines[1], "format %d", &f.version); err != nil || f.version < 1 {
		return format{}, errors.New("it has no version")
	}
	if f.version > replicatedVersion {
		return f, fmt.Errorf("%w: format %d, this program reads up to %d; install the newer program again",
			ErrNewer, f.version, replicatedVersion)
	}
	if len(lines) != 4 || lines[3] != "" {
		return format{}, errors.New("it has other lines than expected")
	}
	if _, err := fmt.Sscanf(lines[2], "shards %d", &f.shards); err != nil || f.shards < 1 || f.shards > shardsMax {
		return format{}, errors.New("it has no usable number of shards")
	}
	if string(f.encode()) != string(data) { // NB: Sscanf passes over what follows a number
		return format{}, errors.New("it is not written as this program writes it")
	}
	return f, nil
}

// readFormat reads and checks the FORMAT file against the options.
func (s *Store) readFormat() (format, error) {
	data, err := file.Read(s.fs, s.fs.PathJoin(s.dir, formatName))
	if errors.Is(err, fs.ErrNotExist) {
		return format{}, integrity.Damaged(formatName, "it is missing")
	}
	if err != nil {
		return format{}, err
	}
	f, err := parseFormat(data)
	if errors.Is(err, ErrNewer) {
		return f, err
	}
	if err != nil {
		return f, integrity.Damaged(formatName, err.Error())
	}
	if want := s.options.Shards; want != 0 && want != f.shards {
		return f, fmt.Errorf("the store has %d shards and the options ask for %d: "+
			"the number is fixed when a store is created", f.shards, want)
	}
	return f, nil
}

// raiseFormat makes the store one of this program's format, before anything is written
// that an earlier program would not understand.
func (s *Store) raiseFormat() error {
	if hasReplicas(s.found) {
		return nil
	}
	return s.setFormat(formatVersion)
}

// setFormat makes the format a version, unless it is that or a later one.
func (s *Store) setFormat(version int) error {
	if s.found >= version {
		return nil
	}
	if err := file.Replace(s.fs, s.dir, formatName, format{version: version, shards: s.shards}.encode()); err != nil {
		return fmt.Errorf("raise the format: %w", err)
	}
	s.log.Info().Int("was", s.found).Int("is", version).Msg("the store has a newer format; earlier programs do not open it any more")
	s.found = version
	return nil
}
