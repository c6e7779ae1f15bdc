// Package history is the stored form of an instance's history. An entry is
// format(1) chain(16) JSON; the chain is a hash over all entries up to this one, so
// that a missing or foreign entry shows. One that keeps what its event brought, or that is an attempt, is
// format(2) chain(16) JSON brought kind(1) and the length of the JSON(4).
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
	format     = 1
	withFormat = 2
	// HeadBytes is what stands before the JSON.
	HeadBytes = 1 + len(statemachine.Chain{})
	// tailBytes is what stands behind what the event brought.
	tailBytes = 1 + 4
	// DataBytesMax is the most that is kept of what an event brought.
	DataBytesMax = 16 << 10
)

// The kinds of what is kept of what an event brought; 0: nothing.
const (
	wholeKind  byte = iota + 1
	digestKind      // {"sha256", "bytes"}
	// attemptBit is set beside them: nothing took the event (statemachine.Entry.Attempt).
	attemptBit byte = 1 << 7
)

// ErrDamaged: what is stored is no history, or lacks a part of one.
var ErrDamaged = errors.New("stored history cannot be read")

// Keep appends to an entry, whose JSON stands behind HeadBytes that are free, what its event brought, nil for nothing, and whether
// it is an attempt. It comes before Seal.
func Keep(entry []byte, brought data.Value, attempt bool) []byte {
	end, kind := len(entry)-HeadBytes, byte(0)
	switch {
	case len(brought) > DataBytesMax:
		sum := sha256.Sum256(brought)
		brought = fmt.Appendf(nil, `{"sha256":"%x","bytes":%d}`, sum, len(brought))
		kind = digestKind
	case len(brought) > 0:
		kind = wholeKind
	}
	if attempt {
		kind |= attemptBit
	}
	entry[0] = withFormat
	entry = append(append(entry, brought...), kind)
	return binary.BigEndian.AppendUint32(entry, uint32(end)) //nolint:gosec // of an entry
}

// Seal completes a stored entry, whose JSON stands behind HeadBytes that are free.
// before is the chain up to the entry; Seal returns the one with it.
func Seal(stored []byte, before statemachine.Chain) statemachine.Chain {
	chain := link(before, stored[HeadBytes:])
	if stored[0] != withFormat {
		stored[0] = format
	}
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
	entry, _, _, ok := split(stored)
	return entry, ok
}

// split takes a stored entry apart: its JSON, what is kept of what the event brought, and the kind of that, 0 for nothing, with attemptBit.
func split(stored []byte) (entry, brought data.Value, kind byte, ok bool) {
	if len(stored) < HeadBytes {
		return nil, nil, 0, false
	}
	rest := stored[HeadBytes:]
	switch stored[0] {
	case format:
		return data.Value(rest), nil, 0, true
	case withFormat:
		if len(rest) < tailBytes {
			return nil, nil, 0, false
		}
		at := len(rest) - tailBytes
		end := binary.BigEndian.Uint32(rest[at+1:])
		if kind = rest[at]; uint64(end) > uint64(at) || kind == 0 || kind&^attemptBit > digestKind {
			return nil, nil, 0, false
		}
		return data.Value(rest[:end]), data.Value(rest[end:at]), kind, true
	}
	return nil, nil, 0, false
}

// appendWith appends an entry with what its event brought as the member data, or dataDigest when that was too long to be kept, and
// with the member attempt when it is one.
func appendWith(dst []byte, entry, brought data.Value, kind byte) []byte {
	if kind == 0 || len(entry) == 0 {
		return append(dst, entry...)
	}
	dst = append(dst, entry[:len(entry)-1]...)
	switch kind &^ attemptBit {
	case digestKind:
		dst = append(append(dst, `,"data":null,"dataDigest":`...), brought...)
	case wholeKind:
		dst = append(append(dst, `,"data":`...), brought...)
	}
	if kind&attemptBit != 0 {
		dst = append(dst, `,"attempt":true`...)
	}
	return append(dst, '}')
}

// pageBytesMax ends a page early, so that it fits into memory.
const pageBytesMax = 8 << 20

// Page returns the JSON of the entries from first to last, joined by commas, and the number of the last one in
// it, which is another one when the page would be too large. last may be below first: then they come newest first.
// With withData it has what the events brought, and which entries are attempts. A missing entry is persistence.ErrCorrupt.
func Page(store *persistence.Store, sh persistence.Shard, id persistence.ID, first, last uint64, withData bool) (page []byte, end uint64, err error) {
	for end = first; ; end = next(end, last) {
		value, err := store.Load(persistence.EntryKey(nil, sh, id, end))
		entry, brought, kind, ok := split(value)
		if err == nil && !ok || errors.Is(err, persistence.ErrNotFound) {
			err = persistence.ErrCorrupt
		}
		if err != nil {
			return nil, 0, fmt.Errorf("history entry %d: %w", end, err)
		}
		if !withData {
			kind = 0
		}
		if len(page) > 0 {
			page = append(page, ',')
		}
		page = appendWith(page, entry, brought, kind)
		if end == last || len(page) >= pageBytesMax {
			return page, end, nil
		}
	}
}

// next is the number behind n on the way to last.
func next(n, last uint64) uint64 {
	if last < n {
		return n - 1
	}
	return n + 1
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
		if chain = link(chain, stored[HeadBytes:]); chain != statemachine.Chain(stored[1:HeadBytes]) {
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
