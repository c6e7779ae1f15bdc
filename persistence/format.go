package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// formatVersion counts the on-disk format of the whole directory: keys, WAL stamps, integrity
// checkpoint and this file. It began with version 0.1.0 of the program. Every later program reads
// all formats up to its own; what each of them brought is listed here.
//
//	1  0.1.0
const formatVersion = 1

// formatName is the file that makes a directory a store. It is written last at creation, and
// again when the shards get replicas, before a program that knows none could write. Text, so that
// a person can read it:
//
//	troupe store
//	released format 1
//	shards 16
//	replicas false
//	crc 1c291ca3
//
// Builds before 0.1.0 wrote "format" and numbers of their own; they read none of these either.
const formatName = "FORMAT"

type format struct {
	version  int
	shards   int
	replicas bool // each shard has its group of replicas
}

func (f format) encode() []byte {
	return file.Seal(fmt.Appendf(nil, "troupe store\nreleased format %d\nshards %d\nreplicas %t\n", f.version, f.shards, f.replicas))
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
	if strings.HasPrefix(lines[1], "format ") {
		return format{}, ErrUnreleased
	}
	if _, err := fmt.Sscanf(lines[1], "released format %d", &f.version); err != nil || f.version < 1 {
		return format{}, errors.New("it has no version")
	}
	if f.version > formatVersion {
		return f, fmt.Errorf("%w: format %d, this program reads up to %d; install the newer program again",
			ErrNewer, f.version, formatVersion)
	}
	if len(lines) != 5 || lines[4] != "" {
		return format{}, errors.New("it has other lines than expected")
	}
	if _, err := fmt.Sscanf(lines[2], "shards %d", &f.shards); err != nil || f.shards < 1 || f.shards > shardsMax {
		return format{}, errors.New("it has no usable number of shards")
	}
	f.replicas = lines[3] == "replicas true"
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
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrUnreleased) {
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

// keepReplicated notes that the shards have replicas: from then on nobody opens the store alone.
func (s *Store) keepReplicated() error {
	if s.replicated {
		return nil
	}
	f := format{version: formatVersion, shards: s.shards, replicas: true}
	if err := file.Replace(s.fs, s.dir, formatName, f.encode()); err != nil {
		return fmt.Errorf("note that the store has replicas: %w", err)
	}
	s.log.Info().Msg("the store is one of a cluster's from now on")
	s.replicated = true
	return nil
}
