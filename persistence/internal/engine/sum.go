package engine

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"troupe/persistence/integrity"
)

// CounterBytes is the size of a stored counter and of each change to it: an int64, big-endian.
const CounterBytes = 8

// SumMerger adds the changes of a counter together, so that a change is a blind write: no read, no lock, and any number
// of writers. Its name is in the files; a store written with another operator is refused by Pebble.
var SumMerger = &pebble.Merger{
	Name: "troupe.sum",
	Merge: func(key, value []byte) (pebble.ValueMerger, error) {
		s := new(sum)
		return s, s.MergeNewer(value)
	},
}

// sum is one running addition. The order of the changes does not matter.
type sum struct{ total int64 }

func (s *sum) MergeNewer(value []byte) error {
	n, err := ParseCounter(value)
	s.total += n
	return err
}

func (s *sum) MergeOlder(value []byte) error { return s.MergeNewer(value) }

func (s *sum) Finish(bool) ([]byte, io.Closer, error) {
	return AppendCounter(nil, s.total), nil, nil
}

// AppendCounter appends a counter as it is stored.
func AppendCounter(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// ParseCounter reads a counter as it is stored.
func ParseCounter(value []byte) (int64, error) {
	if len(value) != CounterBytes {
		return 0, fmt.Errorf("counter of %d bytes, want %d: %w", len(value), CounterBytes, integrity.ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
