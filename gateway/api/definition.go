package api

// DefinitionList answers GET definitions.
type DefinitionList struct {
	Definitions []PublishedWorkflow `json:"definitions"`
}

// PublishedWorkflow is a workflow with all its versions.
type PublishedWorkflow struct {
	ID string `json:"id"`
	// Name is empty when the current version cannot be read.
	Name      string   `json:"name"`
	Current   uint64   `json:"current"`
	Creatable bool     `json:"creatable"`
	Versions  []uint64 `json:"versions"`
}

// Definition answers GET definitions/{workflowId} and …/{version}: a version as it was
// published.
type Definition struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	Current bool   `json:"current"`
	File    string `json:"file"`
	Text    string `json:"text"`
	// Refs are the texts of the files that it refers to, by name.
	Refs map[string]string `json:"refs,omitempty"`
}

// PublishedDefinition answers PUT definitions/{workflowId} and …/{version}.
type PublishedDefinition struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	// Current: new instances get it.
	Current  bool        `json:"current"`
	Warnings []FileFault `json:"warnings"`
}
