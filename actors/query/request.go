package query

import "troupe/actors/identity"

// Request asks for the instances of a workflow that match a filter.
type Request struct {
	Caller         *identity.Principal
	WorkflowID     string
	Filter         string   // the text of the filter parameter; empty matches all
	Limit          int      // the most instances that the page may have, 1 to 1,000; 0 means all of them and no page
	Cursor         string   // End.Next of the page before; empty is the first page
	Sort           string   // "_id", an indexed path, or either behind "-"; empty is "_id"
	Fields         []string // what entries have besides the usual: "svcHistory", "svcRedirect", "svcPrivate", "title"
	Languages      []string // those of the reader, the preferred one first, for the title
	Count, Explain bool     // Count asks for the number of all matches, Explain for how they were found
	Version        uint64   // Version has only instances of that version of the definition; 0 has all
	// Everyones has all instances, for who runs the service. A filter on more than ids and states finds only what the
	// caller may see.
	Everyones bool
}

// End is what there is to say when all instances have been given.
type End struct {
	Next    string   // the cursor of the next page; empty when there is none
	Count   int64    // the number of all matches that the caller may see, when asked
	Explain *Explain // nil unless asked
}

// Explain says how a query found its instances.
type Explain struct {
	// Index is the path whose index gave the candidates; for a union those of all branches, joined by " | "; nil for
	// "ids" and "scan".
	Index *string
	// Plan is "ids", "index", "union", "sorted index" or "scan"; empty when it is not told, and so is everything but
	// Matched and the names in Considered.
	Plan         string
	KeysRead     int64 // KeysRead counts index rows, RecordsRead instances, Matched those given
	RecordsRead  int64
	Matched      int64
	Milliseconds float64
	Considered   []Considered // the indexes that could have been used
}

// Considered is an index that the planner looked at.
type Considered struct {
	Index string
	// Keys is how many rows it would read. AtLeast: counting stopped there.
	Keys    int64
	AtLeast bool
}
