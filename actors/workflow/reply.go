package workflow

import (
	"slices"

	"troupe/actors/internal/retry"
	"troupe/statemachine/data"
)

// Reply is what an instance answers. Its bytes belong to the reader, but may be
// shared with other readers: they must not be changed.
type Reply struct {
	WorkflowID string
	InstanceID string
	// Sequence is the number of history entries: the entity tag.
	Sequence uint64
	// Public and Private are svcPublic and svcPrivate, States is the JSON array of
	// states, and Redirect is svcRedirect; "" when it is not set.
	Public, Private, States data.Value
	Redirect                string
	// History is the JSON of the entries, separated by commas, without
	// brackets. It is meant only when the request asked WithHistory.
	History []byte
	// WithHistory repeats what was asked.
	WithHistory bool
}

// AppendRecord appends the instance record (gateway/INTERFACE.md, "The record") as
// JSON to dst.
func (r *Reply) AppendRecord(dst []byte) []byte {
	size := len(r.Public) + len(r.Private) + len(r.States) + len(r.WorkflowID) + len(r.Redirect) + 192
	if r.WithHistory {
		size += len(r.History)
	}
	dst = append(slices.Grow(dst, size), '{')
	dst = r.appendHead(dst)
	if r.WithHistory {
		dst = append(dst, `,"svcHistory":[`...)
		dst = append(dst, r.History...)
		dst = append(dst, ']')
	}
	dst = append(dst, ',')
	dst = r.appendTail(dst)
	return append(dst, '}')
}

// appendHead appends the record's members before svcHistory, without a trailing comma.
func (r *Reply) appendHead(dst []byte) []byte {
	dst = append(dst, `"_id":"`...)
	dst = append(dst, r.InstanceID...)
	dst = append(dst, `","workflowId":"`...)
	dst = append(dst, r.WorkflowID...)
	dst = append(dst, `","svcPublic":`...)
	dst = append(dst, r.Public...)
	dst = append(dst, `,"svcPrivate":`...)
	return append(dst, r.Private...)
}

// appendTail appends the members behind it.
func (r *Reply) appendTail(dst []byte) []byte {
	dst = append(dst, `"states":`...)
	dst = append(dst, r.States...)
	if r.Redirect != "" {
		dst = append(dst, `,"svcRedirect":`...)
		dst = data.AppendString(dst, r.Redirect)
	}
	return dst
}

// reply is the answer that shows the instance as it is.
func (i *instance) reply(withHistory bool) (*Reply, error) {
	r := i.shown(withHistory)
	var err error
	if withHistory {
		r.History, err = i.historyUpTo(r.Sequence)
	}
	return r, err
}

// shown is reply without the history.
func (i *instance) shown(withHistory bool) *Reply {
	return &Reply{
		WorkflowID: i.workflowID, InstanceID: i.name, Sequence: i.state.Sequence, WithHistory: withHistory,
		Public: i.state.Public, Private: i.state.Private, States: i.of.States(&i.state), Redirect: i.state.Redirect,
	}
}

// repeated is the first answer to a request.
func (i *instance) repeated(first *retry.First, withHistory bool) (r *Reply, err error) {
	r = &Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: first.Sequence, WithHistory: withHistory}
	r.Public, r.Private, r.States, r.Redirect = first.Shown()
	if withHistory {
		r.History, err = i.historyUpTo(first.Sequence)
	}
	return r, err
}
