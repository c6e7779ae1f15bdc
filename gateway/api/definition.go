package api

import "encoding/json"

// DefinitionList answers GET definitions.
type DefinitionList struct {
	Definitions []PublishedWorkflow `json:"definitions"`
}

// PublishedWorkflow is a workflow with all its versions.
type PublishedWorkflow struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"` // empty when the current version cannot be read
	Current   uint64   `json:"current"`
	Creatable bool     `json:"creatable"`
	Versions  []uint64 `json:"versions"`
	// Owners may publish the next version, beside holders of mod-admin; all lists are empty where nobody else may.
	Owners Owners `json:"owners"`
	// Publisher first published the workflow through the interface; nil: nobody did, or it is not known who.
	Publisher *string `json:"publisher"`
}

// Owners are those whom one of the lists names.
type Owners struct {
	Roles      []string `json:"roles"`
	Privileges []string `json:"privileges"`
	Users      []string `json:"users"`
}

// Definition answers GET definitions/{workflowId} and …/{version}: a version as it was published.
type Definition struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	Current bool   `json:"current"`
	File    string `json:"file"`
	Text    string `json:"text"`
	// Refs are the texts of the files that it refers to, by name.
	Refs map[string]string `json:"refs,omitempty"`
	// Owners may publish the next version while this is the newest. Publisher has published this one through the interface; nil:
	// nobody did, or it is not known who.
	Owners    Owners  `json:"owners"`
	Publisher *string `json:"publisher"`
}

// PublishedDefinition answers PUT definitions/{workflowId} and …/{version}.
type PublishedDefinition struct {
	ID       string      `json:"id"`
	Version  uint64      `json:"version"`
	Current  bool        `json:"current"` // new instances get it
	Warnings []FileFault `json:"warnings"`
}

// SimulationRequest is the body of POST definitions/simulate. It has a definition, a JSON string or object, or a workflow's id.
type SimulationRequest struct {
	Definition json.RawMessage   `json:"definition,omitempty"`
	WorkflowID string            `json:"workflowId,omitempty"`
	As         string            `json:"as,omitempty"` // who does steps that do not say so; empty: the caller
	Steps      []json.RawMessage `json:"steps"`
}

// Simulation answers POST definitions/simulate.
type Simulation struct {
	Steps []SimulatedStep `json:"steps"`
}

// SimulatedStep is what there is after a step. It has nothing but Error while there is no instance.
type SimulatedStep struct {
	State *Instance `json:"state,omitempty"`
	// Tasks, Timers, Jobs and Sent are as tests of a workflow see them.
	Tasks  []json.RawMessage   `json:"tasks,omitempty"`
	Events map[string][]string `json:"events,omitempty"` // by user, those that the user can send
	Timers []json.RawMessage   `json:"timers,omitempty"`
	Jobs   []json.RawMessage   `json:"jobs,omitempty"`
	Sent   []json.RawMessage   `json:"sent,omitempty"`
	Error  *RefusedStep        `json:"error,omitempty"` // nil: it was done
}

// RefusedStep says why a step was refused.
type RefusedStep struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// RetiredDefinition answers DELETE definitions/{workflowId} and …/{version}.
type RetiredDefinition struct {
	ID       string   `json:"id"`
	Versions []uint64 `json:"versions"` // those that are gone, ascending
}

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
	File   string `json:"file"`
	Line   int    `json:"line"` // Line and Column are from 1; 0 for the file as a whole
	Column int    `json:"column"`
	Reason string `json:"reason"`
	// Suggestion is what to write in its place; it may be empty.
	Suggestion string `json:"suggestion,omitempty"`
}

// NotANode is why nothing is published to a server that is not a node of a cluster.
const NotANode = "this server is not a node of a cluster: it applies changed files of its home automatically, so nothing has to be published"
