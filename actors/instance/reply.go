package instance

import (
	"errors"
	"fmt"

	"troupe/actors/failure"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

func (i *Actor) reply(withHistory bool) (*message.Reply, error) {
	r := i.shown(withHistory)
	var err error
	if withHistory {
		err = i.putHistory(r)
	}
	return r, err
}

// shown is reply without the history.
func (i *Actor) shown(withHistory bool) *message.Reply {
	return Shown(i.workflowID, i.of, &i.state, withHistory)
}

// Shown is the reply that an instance is, without the history.
func Shown(workflowID string, of *statemachine.Definition, in *statemachine.Instance, withHistory bool) *message.Reply {
	return &message.Reply{
		WorkflowID: workflowID, InstanceID: in.ID, Sequence: in.Sequence, WithHistory: withHistory,
		Public: in.Public, Private: in.Private, States: of.States(in), Redirect: in.Redirect,
		Key: in.Key(), IsEnded: in.IsEnded(),
	}
}

// Repeated is the first answer to the create of an instance, which is durable and needs no actor.
func Repeated(env *Env, workflowID string, first *retry.First, withHistory bool) (*message.Reply, error) {
	i := &Actor{env: env, id: first.Instance, name: instanceid.Text(first.Instance), workflowID: workflowID, shard: env.Store.ShardOf(first.Instance)}
	return i.repeated(first, withHistory)
}

func (i *Actor) repeated(first *retry.First, withHistory bool) (r *message.Reply, err error) {
	r = &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: first.Sequence, WithHistory: withHistory, Created: first.Created}
	r.Public, r.Private, r.States, r.Redirect, r.Key = first.Shown()
	if withHistory {
		err = i.putHistory(r)
	}
	return r, err
}

func (i *Actor) putHistory(r *message.Reply) error {
	joined, err := i.historyUpTo(r.Sequence)
	r.History, r.HistoryFrom = joined.Text, joined.From
	return err
}

// Idempotency rows are remembered for at least KeysKeptFor and at least the last KeysKept of an instance
// (gateway/INTERFACE.md, "Retries"). Those of events go with a commit of their instance; those of creates have no
// instance, and the router forgets them.

// forgetKeys removes old idempotency rows of the instance in the same batch, at a cost that is small over many events:
// it looks at the first event with a key after each waking, and then when the number of rows has doubled since it last
// looked.
func (i *Actor) forgetKeys(w *persistence.Batch) {
	if i.keyRows++; i.keyRows < i.keyRowsNext {
		return
	}
	var rows []retry.Row
	store, err := i.rows()
	if err == nil {
		rows, err = retry.Rows(store, key.ReplyPrefix(nil, i.shard, i.id))
	}
	if err != nil {
		i.env.Log.Warn().Err(err).Str("workflow", i.workflowID).Str("instance", i.name).Msg("idempotency keys cannot be read")
		i.keyRowsNext = 2 * i.keyRows
		return
	}
	gone := retry.Forgettable(rows, i.env.KeysKept, i.env.ForgetBefore())
	for _, key := range gone {
		w.Delete(key)
	}
	i.keyRows = int32(len(rows) - len(gone) + 1)
	i.keyRowsNext = 2 * max(i.keyRows, int32(i.env.KeysKept))
}

// historyUpTo returns the JSON of entries 1 to sequence, as far as an answer has them. It reads them from the store
// when they are not in memory.
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

// extendHistory adds one entry to the history and keeps the result in memory when it is kept there and not too long.
// Replies hold prefixes of what is kept: appending never changes what they see. The result is empty when it is neither
// kept nor wanted.
func (i *Actor) extendHistory(before history.Joined, entry []byte, wanted bool) history.Joined {
	if i.hasHistory && len(i.history)+len(entry)+1 <= i.env.HistoryResidentBytes {
		joined := history.Joined{Text: i.history, From: 1}.With(entry)
		i.history = joined.Text
		return joined
	}
	i.history, i.hasHistory = nil, false
	if !wanted {
		return history.Joined{}
	}
	before.Text = before.Text[:len(before.Text):len(before.Text)]
	return before.With(entry)
}
