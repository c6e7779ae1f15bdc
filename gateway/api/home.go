package api

// AdminPath is in front of every path for admins, behind the service's own base path.
const AdminPath = "/admin/api/v1"

// PublishedHome answers PUT home: what is in use now, or would be.
type PublishedHome struct {
	Workflows int `json:"workflows"`
	Templates int `json:"templates"`
	Users     int `json:"users"`
	// Warnings are what the author of a file should look at although it is allowed.
	Warnings []FileFault `json:"warnings"`
}

// FileFault says what is wrong in a text file of a home.
type FileFault struct {
	File string `json:"file"`
	// Line and Column are from 1; 0 for the file as a whole.
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Reason string `json:"reason"`
	// Suggestion is what to write in its place; it may be empty.
	Suggestion string `json:"suggestion,omitempty"`
}

// NotANode is why nothing is published to a server that is not a node of a cluster.
const NotANode = "this server is not a node of a cluster: it takes over the files of its home by itself when they change, and nothing has to be published"
