package workflow

import (
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
)

// historyUpTo returns the JSON of entries 1 to sequence, joined by commas. It
// reads them from the store when they are not in memory.
func (i *instance) historyUpTo(sequence uint64) ([]byte, error) {
	if i.hasHistory && sequence == i.state.Sequence {
		return i.history, nil
	}
	store, err := i.rows()
	if err != nil {
		return nil, err
	}
	joined, chain, err := history.Load(store, i.shard, i.id, sequence)
	if errors.Is(err, history.ErrDamaged) {
		return nil, i.damagedHistory(err)
	}
	if err != nil {
		return nil, err
	}
	if sequence != i.state.Sequence {
		return joined, nil
	}
	if chain != i.chain {
		return nil, i.damagedHistory(fmt.Errorf("%w: the chain ends elsewhere", history.ErrDamaged))
	}
	if len(joined) <= i.router.o.HistoryResidentBytes {
		i.history, i.hasHistory = joined, true
	}
	return joined, nil
}

func (i *instance) damagedHistory(err error) error {
	i.router.metrics.damaged.Add(1)
	i.router.log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("stored history cannot be read")
	return failure.Errorf(failure.ErrExecution, "%w", err)
}

// extendHistory adds one entry to the history and keeps the result in memory
// when it is kept there and not too long. Replies hold prefixes of what is kept:
// appending never changes what they see.
func (i *instance) extendHistory(before, entry []byte) []byte {
	if i.hasHistory && len(i.history)+len(entry)+1 <= i.router.o.HistoryResidentBytes {
		i.history = history.Join(i.history, entry)
		return i.history
	}
	i.history, i.hasHistory = nil, false
	return history.Join(before[:len(before):len(before)], entry)
}
