package instance

import (
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
)

// historyUpTo returns the JSON of entries 1 to sequence, as far as an answer has them. It
// reads them from the store when they are not in memory.
func (i *Actor) historyUpTo(sequence uint64) (joined history.Joined, err error) {
	if i.hasHistory && sequence == i.state.Sequence {
		return history.Joined{Text: i.history, From: 1}, nil
	}
	store, err := i.rows()
	if err != nil {
		return joined, err
	}
	joined, chain, err := history.Load(store, i.shard, i.id, sequence)
	if errors.Is(err, history.ErrDamaged) {
		return joined, i.damagedHistory(err)
	}
	if err != nil || sequence != i.state.Sequence {
		return joined, err
	}
	if chain != i.chain {
		return joined, i.damagedHistory(fmt.Errorf("%w: the chain ends elsewhere", history.ErrDamaged))
	}
	if joined.From == 1 && len(joined.Text) <= i.env.HistoryResidentBytes {
		i.history, i.hasHistory = joined.Text, true
	}
	return joined, nil
}

func (i *Actor) damagedHistory(err error) error {
	i.env.Counts.Damaged.Add(1)
	i.env.Log.Error().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("stored history cannot be read")
	return failure.Errorf(failure.ErrExecution, "%w", err)
}

// extendHistory adds one entry to the history and keeps the result in memory
// when it is kept there and not too long. Replies hold prefixes of what is kept:
// appending never changes what they see.
func (i *Actor) extendHistory(before history.Joined, entry []byte) history.Joined {
	if i.hasHistory && len(i.history)+len(entry)+1 <= i.env.HistoryResidentBytes {
		joined := history.Joined{Text: i.history, From: 1}.With(entry)
		i.history = joined.Text
		return joined
	}
	i.history, i.hasHistory = nil, false
	before.Text = before.Text[:len(before.Text):len(before.Text)]
	return before.With(entry)
}
