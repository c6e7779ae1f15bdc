package api

import "encoding/json"

// RoleInfo answers GET form-portal/role-info: the caller's roles with which forms and checklists can be made.
type RoleInfo struct {
	Forms      []Role `json:"formRoles"`
	Checklists []Role `json:"checklistRoles"`
}

// Role is a role of the caller.
type Role struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// TemplateSummary is an element of what GET form-portal/{forms,checklists}/role/… answers.
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
	Form        Form            `json:"form"`
	Category    string          `json:"category"`
	Template    *Template       `json:"template"` // nil when it is gone
	Data        json.RawMessage `json:"data"`
	Draft       *Draft          `json:"draft"`       // the caller's; nil when there is none
	States      json.RawMessage `json:"states"`      // of type Position
	SubmittedAt int64           `json:"submittedAt"` // Unix milliseconds, 0 before
	Editable    bool            `json:"editable"`
}

// TaskForm answers GET form-runtime/api/v1/task/….
type TaskForm struct {
	Task Task `json:"task"`
	// Events are the names of those of Task.Events that are sent with the form's data; the others are sent without.
	Events   []string        `json:"events"`
	Template *Template       `json:"template"` // The others are those of FormView
	Data     json.RawMessage `json:"data"`
	Draft    *Draft          `json:"draft"`
	States   json.RawMessage `json:"states"`
	Editable bool            `json:"editable"`
}

// DraftSaved answers PUT form-runtime/api/v1/draft/….
type DraftSaved struct {
	Revision uint64 `json:"revision"`
	SavedAt  int64  `json:"savedAt"` // Unix milliseconds
}

// Draft is a draft of a form.
type Draft struct {
	DraftSaved
	Data json.RawMessage `json:"data"`
	// Template is the Digest of the template that the draft was written for; empty when that is not known.
	Template        string   `json:"template"`
	TemplateChanged bool     `json:"templateChanged"` // the template is another now
	Misfits         []Misfit `json:"misfits"`         // what does not fit it then
}

// Misfit is a place in a draft that does not fit the template.
type Misfit struct {
	Path   string `json:"path"` // RFC 6901
	Reason string `json:"reason"`
}

// FormPage answers GET form-runtime/api/v1/forms.
type FormPage struct {
	Forms []PagedForm `json:"forms"`
	Next  *string     `json:"next"`
	Count *FormCount  `json:"count,omitempty"` // nil when it was not asked
}

// RequestPage answers GET workflow/api/v1/requests.
type RequestPage struct {
	Forms []Request  `json:"forms"`
	Next  *string    `json:"next"`
	Count *FormCount `json:"count,omitempty"` // nil when it was not asked
}

// Request is something that the caller has created. Of an instance that is not a form, the members of templates are empty, and Name is that
// of the workflow.
type Request struct {
	PagedForm
	WorkflowID string `json:"workflowId"` // "-" for a form without a workflow
	Category   string `json:"category"`
}

// PagedForm is a form of a page, with how people see its instance. How they see it is nil for a form without a workflow, and where the caller
// may not read the instance any more.
type PagedForm struct {
	Form
	Title   *string       `json:"title"`
	States  []Status      `json:"states"` // its positions
	Columns []ColumnValue `json:"columns"`
}

// FormCount is a number of forms, or null when counting would take long.
type FormCount struct{ N *int64 }

// MarshalJSON writes the number.
func (c FormCount) MarshalJSON() ([]byte, error) { return json.Marshal(c.N) }

// Template is what a page needs to show a form.
type Template struct {
	FormID      string          `json:"formId"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	UI          json.RawMessage `json:"ui,omitempty"`
	Items       []Item          `json:"items,omitempty"`
	Submit      string          `json:"submit,omitempty"` // the event that submits the form; empty: none does
	Digest      string          `json:"digest"`           // another one when what the form asks is
}

// Item is one line of a checklist.
type Item struct {
	ID       string `json:"id"`
	Label    string `json:"label"`
	Help     string `json:"help"`
	Required bool   `json:"required"`
}

// TemplatePage answers GET form-runtime/api/v1/template/…: what a page asks before it makes a form.
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
