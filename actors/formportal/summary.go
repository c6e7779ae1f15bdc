package formportal

import (
	"time"

	"troupe/actors/form"
	"troupe/statemachine"
)

// archivedBefore returns the moment in Unix milliseconds such that what was completed before it is archived now.
func archivedBefore(now time.Time, archiveAfter time.Duration) int64 {
	moment := now.Add(-archiveAfter)
	ms := moment.UnixMilli()
	if moment.After(time.UnixMilli(ms)) {
		ms++
	}
	return max(0, ms)
}

// TypeInstance is the FormType of an instance that is no form.
const TypeInstance = "Instance"

// Summary is a form as the lists show it (gateway/INTERFACE.md, "Fields of a form").
type Summary struct {
	ID           string
	FormType     string // "Form", "WorkflowForm", "Checklist" or TypeInstance
	FormID       string
	SubmissionID string // a ULID; empty before the first submission
	Name         statemachine.Text
	FullPath     string // of the page, behind the base path, without a leading slash
	By           string
	When         int64 // Unix milliseconds
	Status       string
	Role         string
}

// nameOf is what a form is called: as when it was made, in all languages of the template while the template is called
// so.
func (p *Portal) nameOf(f *form.Form) statemachine.Text {
	if t := p.o.Templates.Get(f.Kind, f.TemplateID); t != nil && t.Name.For() == f.Name {
		return t.Name
	}
	return statemachine.Plain(f.Name)
}

func (p *Portal) summaryOf(f *form.Form, workflowID, nodes, instanceID string, when int64) *Summary {
	item := &Summary{
		ID: instanceID, FormType: "WorkflowForm", FormID: f.TemplateID, SubmissionID: f.SubmissionID, Name: p.nameOf(f),
		FullPath: "form-runtime/" + f.TemplateID + "/" + workflowID + "/" + instanceID + "/index.html",
		By:       f.By, When: when, Status: nodes, Role: f.Role,
	}
	if workflowID == PlainWorkflow {
		item.FormType, item.Status = "Form", ""
		if f.Moved() {
			item.Status = "submitted"
		}
	}
	switch f.Kind {
	case form.KindChecklist:
		item.FormType = "Checklist"
	case form.KindInstance:
		item.FormType, item.FullPath = TypeInstance, "instances/"+workflowID+"/"+instanceID
	}
	return item
}
