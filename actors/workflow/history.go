package workflow

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine"
)

// A stored history entry is format(1) chain(16) JSON. The chain hashes all
// entries up to this one, so that a missing or foreign entry shows.
const (
	entryFormat = 1
	entryHead   = 1 + len(statemachine.Chain{})
)

// link extends the chain by one entry.
func link(chain statemachine.Chain, entry []byte) statemachine.Chain {
	h := sha256.New()
	h.Write(chain[:])
	h.Write(entry)
	var sum [sha256.Size]byte
	return statemachine.Chain(h.Sum(sum[:0])[:16])
}

// errEnough ends a scan early; it never leaves the package.
var errEnough = errors.New("seen enough")

// historyUpTo returns the JSON of entries 1 to sequence, joined by commas. It
// reads them from the store when they are not in memory.
func (i *instance) historyUpTo(sequence uint64) ([]byte, error) {
	if i.hasHistory && sequence == i.state.Sequence {
		return i.history, nil
	}
	joined, chain, err := i.loadHistory(sequence)
	if err != nil {
		return nil, err
	}
	if sequence != i.state.Sequence {
		return joined, nil
	}
	if chain != i.chain {
		return nil, i.damagedHistory("the chain ends elsewhere")
	}
	if len(joined) <= i.router.o.HistoryResidentBytes {
		i.history, i.hasHistory = joined, true
	}
	return joined, nil
}

// loadHistory reads entries 1 to sequence and checks that none is missing.
func (i *instance) loadHistory(sequence uint64) ([]byte, statemachine.Chain, error) {
	var (
		joined []byte
		chain  statemachine.Chain
		seen   uint64
	)
	prefix := persistence.EntryPrefix(nil, i.shard, i.id)
	err := i.router.store.Scan(prefix, func(key, value []byte) error {
		if seen == sequence {
			return errEnough
		}
		seen++
		if len(value) < entryHead || value[0] != entryFormat ||
			binary.BigEndian.Uint64(key[len(key)-8:]) != seen {
			return i.damagedHistory(fmt.Sprintf("entry %d", seen))
		}
		entry := value[entryHead:]
		if chain = link(chain, entry); chain != statemachine.Chain(value[1:entryHead]) {
			return i.damagedHistory(fmt.Sprintf("entry %d", seen))
		}
		joined = appendEntry(joined, entry)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return nil, chain, err
	case seen != sequence:
		return nil, chain, i.damagedHistory(fmt.Sprintf("entry %d is missing", seen+1))
	}
	return joined, chain, nil
}

func (i *instance) damagedHistory(what string) error {
	i.router.metrics.damaged.Add(1)
	i.router.log.Error().Str("workflow", i.workflowID).Str("instance", i.name).Str("what", what).Msg("stored history cannot be read")
	return fmt.Errorf("%w: history: %s", failure.ErrExecution, what)
}

// extendHistory adds one entry to the history and keeps the result in memory
// when it is kept there and not too long. Replies hold prefixes of what is kept:
// appending never changes what they see.
func (i *instance) extendHistory(before, entry []byte) []byte {
	if i.hasHistory && len(i.history)+len(entry)+1 <= i.router.o.HistoryResidentBytes {
		i.history = appendEntry(i.history, entry)
		return i.history
	}
	i.history, i.hasHistory = nil, false
	return appendEntry(before[:len(before):len(before)], entry)
}

func appendEntry(joined, entry []byte) []byte {
	if len(joined) > 0 {
		joined = append(joined, ',')
	}
	return append(joined, entry...)
}
