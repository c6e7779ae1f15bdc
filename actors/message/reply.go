package message

import (
	"slices"
	"strconv"

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
	// HistoryFrom is the number of the first entry in it: above 1 it is too long for an answer, and has the newest part.
	HistoryFrom uint64
	// WithHistory repeats what was asked.
	WithHistory bool
	// IsEnded: it was stopped, or its parent has cancelled it.
	IsEnded bool
}

// AppendRecord appends the instance record (gateway/INTERFACE.md, "The record") as
// JSON to dst.
func (r *Reply) AppendRecord(dst []byte) []byte {
	size := len(r.Public) + len(r.Private) + len(r.States) + len(r.WorkflowID) + len(r.Redirect) + 192
	if r.WithHistory {
		size += len(r.History)
	}
	dst = append(slices.Grow(dst, size), '{')
	dst = r.AppendHead(dst)
	if r.WithHistory {
		dst = append(dst, `,"svcHistory":[`...)
		dst = append(dst, r.History...)
		dst = append(dst, ']')
		if r.HistoryFrom > 1 {
			dst = strconv.AppendUint(append(dst, `,"historyFrom":`...), r.HistoryFrom, 10)
		}
	}
	dst = append(dst, ',')
	dst = r.AppendTail(dst)
	return append(dst, '}')
}

// AppendHead appends the record's members before svcHistory, without a trailing comma.
func (r *Reply) AppendHead(dst []byte) []byte {
	dst = append(dst, `"_id":"`...)
	dst = append(dst, r.InstanceID...)
	dst = append(dst, `","workflowId":"`...)
	dst = append(dst, r.WorkflowID...)
	dst = append(dst, `","svcPublic":`...)
	dst = append(dst, r.Public...)
	dst = append(dst, `,"svcPrivate":`...)
	return append(dst, r.Private...)
}

// AppendTail appends the members behind it.
func (r *Reply) AppendTail(dst []byte) []byte {
	dst = append(dst, `"states":`...)
	dst = append(dst, r.States...)
	if r.Redirect != "" {
		dst = append(dst, `,"svcRedirect":`...)
		dst = data.AppendString(dst, r.Redirect)
	}
	if r.IsEnded {
		dst = append(dst, `,"cancelled":true`...)
	}
	return dst
}
