package api

import "encoding/json"

// RoleInfo answers GET form-portal/role-info: the caller's roles with which forms and
// checklists can be made.
type RoleInfo struct {
	Forms      []Role `json:"formRoles"`
	Checklists []Role `json:"checklistRoles"`
}

// Role is a role of the caller.
type Role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// TemplateSummary is an element of what GET form-portal/{forms,checklists}/role/…
// answers.
type TemplateSummary struct {
	FormID       string `json:"formId"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	LastModified int64  `json:"lastModified"` // Unix milliseconds
}

// Form is a form as the lists show it (gateway/INTERFACE.md, "Fields of a form").
type Form struct {
	ID           string `json:"id"`
	FormType     string `json:"formType"`
	FormID       string `json:"formId"`
	SubmissionID string `json:"submissionId"`
	Name         string `json:"name"`
	FullPath     string `json:"fullPath"`
	By           string `json:"by"`
	When         int64  `json:"when"` // Unix milliseconds
	Status       string `json:"status"`
	Role         string `json:"role"`
}

// FormView answers GET form-runtime/api/v1/form/….
type FormView struct {
	Form     Form   `json:"form"`
	Category string `json:"category"`
	// Template is nil when it is gone.
	Template *Template       `json:"template"`
	Data     json.RawMessage `json:"data"`
	// Draft is the caller's; nil when there is none.
	Draft *Draft `json:"draft"`
	// States are of type Position.
	States      json.RawMessage `json:"states"`
	SubmittedAt int64           `json:"submittedAt"` // Unix milliseconds, 0 before
	Editable    bool            `json:"editable"`
}

// Draft is a draft of a form, and without Data the answer to PUT
// form-runtime/api/v1/draft/….
type Draft struct {
	Revision uint64          `json:"revision"`
	SavedAt  int64           `json:"savedAt"` // Unix milliseconds
	Data     json.RawMessage `json:"data,omitempty"`
}

// Template is what a page needs to show a form.
type Template struct {
	FormID      string          `json:"formId"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	UI          json.RawMessage `json:"ui,omitempty"`
	Items       []Item          `json:"items,omitempty"`
	// Submit is the event that submits the form; empty: none does.
	Submit string `json:"submit,omitempty"`
}

// Item is one line of a checklist.
type Item struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	Help     string `json:"help"`
	Required bool   `json:"required"`
}

// TemplatePage answers GET form-runtime/api/v1/template/…: what a page asks before it
// makes a form.
type TemplatePage struct {
	Template      *Template `json:"template"`
	Workflows     []Choice  `json:"workflows"`
	NeedsWorkflow bool      `json:"needsWorkflow"`
}

// Parameter is a parameter of a report or document template.
type Parameter struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"defaultValue"`
}
