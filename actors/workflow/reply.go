package workflow

import (
	"troupe/actors/internal/retry"
	"troupe/actors/message"
)

// reply is the answer that shows the instance as it is.
func (i *instance) reply(withHistory bool) (*message.Reply, error) {
	r := i.shown(withHistory)
	var err error
	if withHistory {
		err = i.putHistory(r)
	}
	return r, err
}

// shown is reply without the history.
func (i *instance) shown(withHistory bool) *message.Reply {
	return &message.Reply{
		WorkflowID: i.workflowID, InstanceID: i.name, Sequence: i.state.Sequence, WithHistory: withHistory,
		Public: i.state.Public, Private: i.state.Private, States: i.of.States(&i.state), Redirect: i.state.Redirect,
		IsEnded: i.state.IsEnded(),
	}
}

// repeated is the first answer to a request.
func (i *instance) repeated(first *retry.First, withHistory bool) (r *message.Reply, err error) {
	r = &message.Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: first.Sequence, WithHistory: withHistory}
	r.Public, r.Private, r.States, r.Redirect = first.Shown()
	if withHistory {
		err = i.putHistory(r)
	}
	return r, err
}

func (i *instance) putHistory(r *message.Reply) error {
	joined, err := i.historyUpTo(r.Sequence)
	r.History, r.HistoryFrom = joined.Text, joined.From
	return err
}
