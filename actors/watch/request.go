package watch

import "troupe/actors/identity"

// Request asks for what is committed from now on.
type Request struct {
	Caller      *identity.Principal
	Reauthorize func() (*identity.Principal, error) // Reauthorize returns the caller as of now, or an error that ends the watch
	WorkflowID  string
	InstanceID  string // the one instance to watch; empty: all that the caller may see
	// Filter is the text of the filter parameter; empty matches all. It looks at the instance as the entry left it.
	Filter      string
	LastEventID string // the position after which to go on; empty: the present
}

// Event is one thing that a watcher is told.
type Event struct {
	Kind Kind
	ID   string // the position in the stream, which resumes it; empty for most of the Heartbeats
	Data []byte // a JSON object, valid during the call; nil for Opened and Heartbeat
}

// Kind is what an Event says.
type Kind uint8

const (
	Opened    Kind = iota // Opened comes first: the request is accepted
	Entry                 // one history entry with the positions that it led to
	Lost                  // Lost says that entries are missing here
	Heartbeat             // Heartbeat says that nothing happened for a while
)
