package engine

import (
	"bytes"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Load returns the value under a key, in storage of the caller's own, or pebble.ErrNotFound. A rare key is mostly not there: a
// filter answers that without a block of data, at every level.
func Load(v View, key []byte, rare bool) (value []byte, err error) {
	if !rare {
		value, closer, err := v.Get(key)
		if err != nil {
			return nil, err
		}
		own := make([]byte, len(value))
		copy(own, value)
		return own, closer.Close()
	}
	it, err := v.RareIter()
	if err != nil {
		return nil, err
	}
	found := it.SeekPrefixGE(key) && bytes.Equal(it.Key(), key)
	if found {
		value, err = it.ValueAndErr()
		value = append(make([]byte, 0, len(value)), value...)
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	if err == nil && !found {
		err = pebble.ErrNotFound
	}
	return value, err
}

// Last returns the last row between two keys, nil without one.
func Last(v View, lower, upper []byte) (key, value []byte, err error) {
	it, err := v.Iter(lower, upper)
	if err != nil {
		return nil, nil, err
	}
	if it.Last() {
		value, err = it.ValueAndErr()
		key, value = slices.Clone(it.Key()), slices.Clone(value)
	}
	if cerr := it.Close(); err == nil {
		err = cerr
	}
	return key, value, err
}
