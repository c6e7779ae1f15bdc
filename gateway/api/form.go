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

// TaskForm answers GET form-runtime/api/v1/task/….
type TaskForm struct {
	Task Task `json:"task"`
	// Events are the names of those of Task.Events that are sent with the form's data; the others are sent without.
	Events []string `json:"events"`
	// The others are those of FormView.
	Template *Template       `json:"template"`
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
	Template string `json:"template"`
	// TemplateChanged: the template is another now.
	TemplateChanged bool `json:"templateChanged"`
	// Misfits are what does not fit it then.
	Misfits []Misfit `json:"misfits"`
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
	// Count is nil when it was not asked.
	Count *FormCount `json:"count,omitempty"`
}

// RequestPage answers GET workflow/api/v1/requests.
type RequestPage struct {
	Forms []Request `json:"forms"`
	Next  *string   `json:"next"`
	// Count is nil when it was not asked.
	Count *FormCount `json:"count,omitempty"`
}

// Request is something that the caller has created. Of an instance that is no form, the members of templates are empty, and Name is that
// of the workflow.
type Request struct {
	PagedForm
	WorkflowID string `json:"workflowId"` // "-" for a form without a workflow
	Category   string `json:"category"`
}

// PagedForm is a form of a page, with how people see its instance. The latter is nil for a form without a workflow, and where the caller
// may not read the instance any more.
type PagedForm struct {
	Form
	Title *string `json:"title"`
	// States are its positions.
	States  []Status      `json:"states"`
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
	// Submit is the event that submits the form; empty: none does.
	Submit string `json:"submit,omitempty"`
	// Digest is another one when what the form asks is.
	Digest string `json:"digest"`
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
