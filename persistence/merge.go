package persistence

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// counterBytes is the size of a stored counter and of each change to it: an
// int64, big-endian.
const counterBytes = 8

// sumMerger adds the changes of a counter together, so that a change is a blind
// write: no read, no lock, and any number of writers. Its name is in the files;
// a store written with another operator is refused by Pebble.
var sumMerger = &pebble.Merger{
	Name: "troupe.sum",
	Merge: func(key, value []byte) (pebble.ValueMerger, error) {
		s := new(sum)
		return s, s.MergeNewer(value)
	},
}

// sum is one running addition. The order of the changes does not matter.
type sum struct{ total int64 }

func (s *sum) MergeNewer(value []byte) error {
	n, err := parseCounter(value)
	s.total += n
	return err
}

func (s *sum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *sum) Finish(bool) ([]byte, io.Closer, error) {
	return appendCounter(nil, s.total), nil, nil
}

func appendCounter(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

func parseCounter(value []byte) (int64, error) {
	if len(value) != counterBytes {
		return 0, fmt.Errorf("counter of %d bytes, want %d: %w", len(value), counterBytes, ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
