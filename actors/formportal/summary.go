package formportal

import (
	"time"

	"troupe/actors/form"
)

// Category is one of the three lists that a form can be in.
type Category uint8

const (
	// Current: not submitted yet, or sent back to the start.
	Current Category = iota
	// Submitted: on its way, or completed not long ago.
	Submitted
	// Archived: completed for longer than Options.ArchiveAfter.
	Archived
)

// String returns the word of the interface.
func (c Category) String() string { return [...]string{"current", "submitted", "archived"}[c] }

// categoryOf decides the category of a form (gateway/INTERFACE.md, "Categories").
// It depends on the time: a form becomes archived without any write.
func categoryOf(f *form.Form, now time.Time, archiveAfter time.Duration) Category {
	switch {
	case !f.Moved():
		return Current
	case f.DoneAt != 0 && now.Sub(time.UnixMilli(f.DoneAt)) > archiveAfter:
		return Archived
	}
	return Submitted
}

// Summary is a form as the lists show it (gateway/INTERFACE.md, "Fields of a form").
type Summary struct {
	ID           string
	FormType     string // "Form", "WorkflowForm" or "Checklist"
	FormID       string
	SubmissionID string // a ULID; empty before the first submission
	Name         string
	FullPath     string // of the page, behind the base path, without a leading slash
	By           string
	When         int64 // Unix milliseconds
	Status       string
	Role         string
}

// summaryOf shows a form. nodes are the names of the instance's present nodes.
func summaryOf(f *form.Form, workflowID, nodes, instanceID string, when int64) *Summary {
	item := &Summary{
		ID: instanceID, FormType: "WorkflowForm", FormID: f.TemplateID, SubmissionID: f.SubmissionID, Name: f.Name,
		FullPath: "form-runtime/" + f.TemplateID + "/" + workflowID + "/" + instanceID + "/index.html",
		By:       f.By, When: when, Status: nodes, Role: f.Role,
	}
	if workflowID == PlainWorkflow {
		item.FormType, item.Status = "Form", ""
		if f.Moved() {
			item.Status = "submitted"
		}
	}
	if f.Kind == form.KindChecklist {
		item.FormType = "Checklist"
	}
	return item
}
