package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"troupe/persistence/integrity"
	"troupe/persistence/internal/file"
)

// FormatVersion counts the on-disk format of the whole directory: keys, WAL stamps, integrity
// checkpoint and this file. It began with version 0.1.0 of the program. Every later program reads
// all formats up to its own; what each of them brought is listed here.
//
//	1  0.1.0
const FormatVersion = 1

// FormatName is the file that makes a directory a store. It is written last at creation, and again when the shards get
// replicas, before a program that knows none could write. Text, so that a person can read it:
//
//	troupe store
//	released format 1
//	shards 16
//	replicas false
//	crc 1c291ca3
//
// Builds before 0.1.0 wrote "format" and numbers of their own; they read none of these either.
const FormatName = "FORMAT"

// Format is what the file says.
type Format struct {
	Version  int
	Shards   int
	Replicas bool // each shard has its group of replicas
}

// ShardsMax is the most shards that a store has.
const ShardsMax = 4096

var (
	// ErrUnreleased: a build before the first release wrote the store.
	ErrUnreleased = errors.New("a build before 0.1.0 wrote the store, and no release opens it: begin with another folder")

	// ErrNewer: a newer program than this one wrote the store.
	ErrNewer = errors.New("store was written by a newer version")
)

func (f Format) encode() []byte {
	return file.Seal(fmt.Appendf(nil, "troupe store\nreleased format %d\nshards %d\nreplicas %t\n", f.Version, f.Shards, f.Replicas))
}

// parseFormat reads the file. The version is looked at before the rest: a newer format may have other lines.
func parseFormat(data []byte) (Format, error) {
	text, ok := file.Unseal(data)
	if !ok {
		return Format{}, errors.New("its checksum does not fit")
	}
	var f Format
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 || lines[0] != "troupe store" {
		return Format{}, errors.New("it is not the FORMAT file of a store")
	}
	if strings.HasPrefix(lines[1], "format ") {
		return Format{}, ErrUnreleased
	}
	if _, err := fmt.Sscanf(lines[1], "released format %d", &f.Version); err != nil || f.Version < 1 {
		return Format{}, errors.New("it has no version")
	}
	if f.Version > FormatVersion {
		return f, fmt.Errorf("%w: format %d, this program reads up to %d; install the newer program again",
			ErrNewer, f.Version, FormatVersion)
	}
	if len(lines) != 5 || lines[4] != "" {
		return Format{}, errors.New("it has other lines than expected")
	}
	if _, err := fmt.Sscanf(lines[2], "shards %d", &f.Shards); err != nil || f.Shards < 1 || f.Shards > ShardsMax {
		return Format{}, errors.New("it has no usable number of shards")
	}
	f.Replicas = lines[3] == "replicas true"
	if string(f.encode()) != string(data) { // NB: Sscanf passes over what follows a number
		return Format{}, errors.New("it is not written as this program writes it")
	}
	return f, nil
}

// Format reads and checks the FORMAT file.
func (f Folder) Format() (Format, error) {
	data, err := file.Read(f.FS, f.FS.PathJoin(f.Dir, FormatName))
	if errors.Is(err, fs.ErrNotExist) {
		return Format{}, integrity.Damaged(FormatName, "it is missing")
	}
	if err != nil {
		return Format{}, err
	}
	format, err := parseFormat(data)
	if err != nil && !errors.Is(err, ErrNewer) && !errors.Is(err, ErrUnreleased) {
		err = integrity.Damaged(FormatName, err.Error())
	}
	return format, err
}

// SetFormat makes the folder a whole store of so many shards, with replicas or without.
func (f Folder) SetFormat(shards int, replicas bool) error {
	return file.Replace(f.FS, f.Dir, FormatName, Format{FormatVersion, shards, replicas}.encode())
}
