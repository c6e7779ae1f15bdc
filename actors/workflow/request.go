package workflow

import (
	"troupe/actors/identity"
	"troupe/statemachine/data"
)

// Retry identifies a request that may be repeated. The zero value means that
// the caller gave no key.
type Retry struct {
	// Key is the Idempotency-Key or event.id: 1 to 255 visible ASCII characters.
	Key string
	// Fingerprint is a hash of what was asked; the same key with another
	// fingerprint is ErrKeyReused.
	Fingerprint [32]byte
}

// CreateRequest asks for a new instance.
type CreateRequest struct {
	Caller     *identity.Principal
	WorkflowID string
	// Public and Private are the objects of the body's data; absent when it had
	// none. They are checked and compact.
	Public, Private data.Value
	Retry           Retry
	// WithHistory says whether the reply carries svcHistory.
	WithHistory bool
}

// EventRequest asks to send one event to an instance.
type EventRequest struct {
	Caller     *identity.Principal
	WorkflowID string
	InstanceID string
	Name       string
	// ID is event.id as given; expressions can see it.
	ID string
	// Data is event.data: a checked, compact object; absent when there is none.
	Data  data.Value
	Retry Retry
	// IfMatch lists the sequence numbers that the instance may have now; nil
	// means any.
	IfMatch     []uint64
	WithHistory bool
}

// LoadRequest asks for one instance.
type LoadRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	WithHistory            bool
}

// QueryRequest asks for the instances of a workflow that match a filter.
type QueryRequest struct {
	Caller     *identity.Principal
	WorkflowID string
	// Filter is the text of the filter parameter; empty matches all.
	Filter string
}

// Reply is what an instance answers. Its bytes belong to the reader, but may be
// shared with other readers: they must not be changed.
type Reply struct {
	WorkflowID string
	InstanceID string
	// Sequence is the number of history entries: the entity tag.
	Sequence uint64
	// Head is the start of the instance record's JSON object, from its first
	// member to svcPrivate, without braces or a trailing comma. Tail is the
	// rest, from states on.
	Head, Tail []byte
	// History is the JSON of the entries, separated by commas, without
	// brackets. It is meant only when the request asked WithHistory.
	History []byte
	// WithHistory repeats what was asked.
	WithHistory bool
}

// Choice is a workflow that the caller may create.
type Choice struct{ ID, Name string }

// AppendRecord appends the instance record (interfaces: "Workflow instance
// record") as JSON to dst.
func (r *Reply) AppendRecord(dst []byte) []byte {
	dst = append(dst, '{')
	dst = append(dst, r.Head...)
	if r.WithHistory {
		dst = append(dst, `,"svcHistory":[`...)
		dst = append(dst, r.History...)
		dst = append(dst, ']')
	}
	dst = append(dst, ',')
	dst = append(dst, r.Tail...)
	return append(dst, '}')
}
