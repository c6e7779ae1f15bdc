// Package history is the stored form of an instance's history. An entry is
// format(1) chain(16) JSON; the chain is a hash over all entries up to this one, so
// that a missing or foreign entry shows.
package history

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const (
	format = 1
	// HeadBytes is what stands before the JSON.
	HeadBytes = 1 + len(statemachine.Chain{})
)

// ErrDamaged: what is stored is no history, or lacks a part of one.
var ErrDamaged = errors.New("stored history cannot be read")

// Seal completes a stored entry, whose JSON stands behind HeadBytes that are free.
// before is the chain up to the entry; Seal returns the one with it.
func Seal(stored []byte, before statemachine.Chain) statemachine.Chain {
	chain := link(before, stored[HeadBytes:])
	stored[0] = format
	copy(stored[1:], chain[:])
	return chain
}

// link extends the chain by one entry.
func link(chain statemachine.Chain, entry []byte) statemachine.Chain {
	h := sha256.New()
	h.Write(chain[:])
	h.Write(entry)
	var sum [sha256.Size]byte
	return statemachine.Chain(h.Sum(sum[:0])[:16])
}

// Entry returns the JSON of a stored entry, which it aliases. It is false when the bytes
// are no entry. It does not check the chain.
func Entry(stored []byte) (data.Value, bool) {
	if len(stored) < HeadBytes || stored[0] != format {
		return nil, false
	}
	return data.Value(stored[HeadBytes:]), true
}

// pageBytesMax ends a page early, so that it fits into memory.
const pageBytesMax = 8 << 20

// Page returns the JSON of the entries after seen up to last, joined by commas, and the
// number of the last one in it, which is less than last when the page would be too large.
// A missing entry is persistence.ErrCorrupt.
func Page(store *persistence.Store, sh persistence.Shard, id persistence.ID, seen, last uint64) (page []byte, end uint64, err error) {
	for end = seen; end < last && len(page) < pageBytesMax; {
		end++
		value, err := store.Load(persistence.EntryKey(nil, sh, id, end))
		entry, ok := Entry(value)
		if err == nil && !ok || errors.Is(err, persistence.ErrNotFound) {
			err = persistence.ErrCorrupt
		}
		if err != nil {
			return nil, 0, fmt.Errorf("history entry %d: %w", end, err)
		}
		page = Join(page, entry)
	}
	return page, end, nil
}

// Join appends an entry to entries that are joined by commas.
func Join(joined, entry []byte) []byte {
	if len(joined) > 0 {
		joined = append(joined, ',')
	}
	return append(joined, entry...)
}

// errEnough ends a scan early.
var errEnough = errors.New("seen enough")

// Load reads the entries 1 to sequence of an instance, joined by commas, and their
// chain. ErrDamaged: one is missing or not what was stored.
func Load(store *persistence.Store, sh persistence.Shard, id persistence.ID, sequence uint64) (joined []byte, chain statemachine.Chain, err error) {
	var seen uint64
	err = store.Scan(persistence.EntryPrefix(nil, sh, id), func(key, stored []byte) error {
		if seen == sequence {
			return errEnough
		}
		seen++
		entry, ok := Entry(stored)
		if !ok || binary.BigEndian.Uint64(key[len(key)-8:]) != seen {
			return fmt.Errorf("%w: entry %d", ErrDamaged, seen)
		}
		if chain = link(chain, entry); chain != statemachine.Chain(stored[1:HeadBytes]) {
			return fmt.Errorf("%w: entry %d", ErrDamaged, seen)
		}
		joined = Join(joined, entry)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return nil, chain, err
	case seen != sequence:
		return nil, chain, fmt.Errorf("%w: entry %d is missing", ErrDamaged, seen+1)
	}
	return joined, chain, nil
}
