package workflow

import (
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/statemachine/data"
)

// Retry identifies a request that may be repeated. The zero value means that
// the caller gave no key.
type Retry struct {
	// Key is the Idempotency-Key or event.id: 1 to 255 visible ASCII characters.
	Key string
	// Fingerprint is a hash of what was asked; the same key with another
	// fingerprint is failure.ErrKeyReused.
	Fingerprint [32]byte
}

// CreateRequest asks for a new instance.
type CreateRequest struct {
	Caller     *identity.Principal
	WorkflowID string
	// Public and Private are the objects of the body's data; absent when it had
	// none. They are checked and compact.
	Public, Private data.Value
	// Form makes the instance a form; nil: it is none.
	Form  *form.Form
	Retry Retry
	// Refusal is what a request that repeats none is answered with; nil: it is
	// done. Whoever asked already, and still has the right to the workflow, gets the
	// first answer.
	Refusal error
	// NoQuota: quotas do not apply. It is for people at forms (group A).
	NoQuota bool
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
	IfMatch []uint64
	// MustBeTaken refuses an event that nothing takes with failure.ErrNotAllowed,
	// whatever the definition says about it.
	MustBeTaken bool
	// DropDraft removes the caller's draft in the same commit.
	DropDraft bool
	// Refusal and NoQuota are those of CreateRequest.
	Refusal     error
	NoQuota     bool
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
	// Limit is the most instances that the page may have, 1 to 1,000; 0 means
	// all of them and no page.
	Limit int
	// Cursor is QueryEnd.Next of the page before; empty is the first page.
	Cursor string
	// Sort is "_id", an indexed path, or either behind "-"; empty is "_id".
	Sort string
	// Fields are what entries have besides the usual: "svcHistory",
	// "svcRedirect", "svcPrivate".
	Fields []string
	// Count asks for the number of all matches, Explain for how they were found.
	Count, Explain bool
}

// QueryEnd is what there is to say when all instances have been given.
type QueryEnd struct {
	// Next is the cursor of the next page; empty when there is none.
	Next string
	// Count is the number of all matches that the caller may see, when asked.
	Count int64
	// Explain is nil unless asked.
	Explain *Explain
}

// Explain says how a query found its instances.
type Explain struct {
	// Index is the path whose index gave the candidates; nil for a scan.
	Index *string `json:"index"`
	// Plan is "ids", "index", "sorted index" or "scan".
	Plan string `json:"plan"`
	// KeysRead counts index rows, RecordsRead instances, Matched those given.
	KeysRead     int64   `json:"keysRead"`
	RecordsRead  int64   `json:"recordsRead"`
	Matched      int64   `json:"matched"`
	Milliseconds float64 `json:"milliseconds"`
	// Considered are the indexes that could have been used.
	Considered []Considered `json:"considered"`
}

// Considered is an index that the planner looked at.
type Considered struct {
	Index string `json:"index"`
	// Keys is how many rows it would read. AtLeast: counting stopped there.
	Keys    int64 `json:"keys"`
	AtLeast bool  `json:"atLeast"`
}

// EventsReply is what a caller may send to an instance now.
type EventsReply struct {
	Sequence uint64
	// Events is a JSON array.
	Events []byte
}

// HistoryRequest asks for a part of an instance's history.
type HistoryRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Limit is the most entries that the page may have, 1 to 1,000.
	Limit int
	// Cursor is HistoryPage.Next of the page before; empty is the first page.
	Cursor string
}

// HistoryPage is a part of a history, oldest entry first.
type HistoryPage struct {
	// Entries is the JSON of the entries, joined by commas.
	Entries []byte
	// Next is the cursor of the next page; empty when there is none.
	Next string
}

// WatchRequest asks for what is committed from now on.
type WatchRequest struct {
	Caller *identity.Principal
	// Again returns the caller as of now, or an error that ends the watch. It is
	// called before each event; nil: the caller stays as it is.
	Again      func() (*identity.Principal, error)
	WorkflowID string
	// InstanceID is the one instance to watch; empty: all that the caller may
	// see.
	InstanceID string
	// Filter is the text of the filter parameter; empty matches all. It looks
	// at the instance as the entry left it.
	Filter string
	// LastEventID is the place after which to go on; empty: the present.
	LastEventID string
}

// WatchEvent is one thing that a watcher is told.
type WatchEvent struct {
	Kind WatchKind
	// ID is the place in the stream, which resumes it; empty for WatchBeat.
	ID string
	// Data is a JSON object, valid during the call; nil for WatchOpen and
	// WatchBeat.
	Data []byte
}

// WatchKind is what a WatchEvent says.
type WatchKind uint8

const (
	// WatchOpen comes first: the request is accepted.
	WatchOpen WatchKind = iota
	// WatchEntry is one history entry with the positions that it led to.
	WatchEntry
	// WatchLost says that entries are missing here.
	WatchLost
	// WatchBeat says that nothing happened for a while.
	WatchBeat
)

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

// AppendRecord appends the instance record (gateway/INTERFACE.md, "The record") as
// JSON to dst.
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
