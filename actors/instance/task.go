package instance

import (
	"time"

	"troupe/actors/activity"
	"troupe/actors/failure"
	"troupe/actors/internal/retry"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// ChangeTask is the request of ChangeTask. Item is written before the answer.
type ChangeTask struct {
	*message.TaskChange
	ID   statemachine.ElementID
	Item *task.Item
}

func (req ChangeTask) run(i *Actor, c *Call) error {
	a, err := i.access(req.Caller, nil, nil)
	if err != nil {
		return err
	}
	caller, now, whole, blind := a.as, a.now, a.whole(), a.mayRead() != nil
	if blind && (!caller.OverridesClaims || req.Action == message.Claim) {
		return failure.ErrNotFound
	}
	t := task.Find(&i.state, req.ID)
	if t == nil {
		return failure.ErrNotFound
	}
	to, kind, err := req.Decide(whole, t, now)
	if err != nil {
		return err
	}
	store, err := i.rows()
	if err != nil {
		return err
	}
	requester, err := task.LoadRequester(store, i.shard, i.id)
	if err != nil {
		return err
	}
	next := i.state
	if to != t.Assignee {
		if next, err = i.of.Assign(&i.state, req.ID, to); err != nil {
			return failure.ErrNotFound
		}
	}
	whole.State = &next
	if blind {
		*req.Item = *whole.BlindItemOf(task.Find(&next, req.ID))
	} else {
		*req.Item = *whole.ItemOf(task.Find(&next, req.ID), caller, now, requester)
	}
	if to == t.Assignee {
		i.deliver(c, nil)
		return nil
	}
	row := activity.Row{Kind: kind, At: now, User: caller.ID, Task: t.ID, Node: t.At, To: to}
	return i.commitActivity(c, &change{outcome: outcome{next: next}, cause: cause{caller: caller.ID}}, &row)
}

// commitActivity commits a change with something that has happened beside the history.
func (i *Actor) commitActivity(c *Call, ch *change, row *activity.Row) error {
	number, err := i.nextActivity()
	if err != nil {
		return err
	}
	more := ch.writes
	ch.writes = func(w *persistence.Batch) {
		w.Set(key.Activity(nil, i.shard, i.id, i.state.Sequence, number), row.Append(nil))
		if more != nil {
			more(w)
		}
	}
	return i.commit(c, ch, false)
}

func (i *Actor) nextActivity() (uint32, error) {
	store, err := i.rows()
	if err != nil {
		return 0, err
	}
	return activity.Next(store, i.shard, i.id, i.state.Sequence)
}

// AddComment is the request of AddComment. Row is written before the answer.
type AddComment struct {
	*message.Comment
	Row *activity.Row
}

func (req AddComment) run(i *Actor, c *Call) error {
	if _, err := i.visible(&req.Load); err != nil {
		return err
	}
	row := activity.Row{Kind: activity.Comment, At: i.env.Clock(), User: string(req.Caller.ID), Text: req.Text}
	key := key.Reply(nil, i.shard, i.id, retry.DigestOf(row.User, req.Retry.Key))
	if req.Retry.Key != "" {
		store, err := i.rows()
		if err != nil {
			return err
		}
		first, err := retry.Load(store, key, req.Retry.Fingerprint)
		if err != nil {
			return err
		}
		if first != nil {
			row.At = time.UnixMilli(first.At).UTC()
			*req.Row = row
			i.deliver(c, nil)
			return nil
		}
	}
	*req.Row = row
	return i.commitActivity(c, &change{outcome: outcome{next: i.state}, cause: cause{caller: row.User}, writes: func(w *persistence.Batch) {
		if req.Retry.Key != "" {
			i.forgetKeys(w)
			first := retry.First{Fingerprint: req.Retry.Fingerprint, Instance: i.id, Sequence: i.state.Sequence, At: row.At.UnixMilli()}
			w.Set(key, first.Append(nil))
		}
	}}, &row)
}
