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
	// Owners may publish the next version while this is the newest. Publisher has published this one through the interface; nil:
	// nobody did, or it is not known who.
	Owners    Owners  `json:"owners"`
	Publisher *string `json:"publisher"`
}

// PublishedDefinition answers PUT definitions/{workflowId} and …/{version}.
type PublishedDefinition struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
	// Current: new instances get it.
	Current  bool        `json:"current"`
	Warnings []FileFault `json:"warnings"`
}

// RetiredDefinition answers DELETE definitions/{workflowId} and …/{version}.
type RetiredDefinition struct {
	ID string `json:"id"`
	// Versions are those that are gone, ascending.
	Versions []uint64 `json:"versions"`
}
