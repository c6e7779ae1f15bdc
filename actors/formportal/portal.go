// Package formportal is the form portal, group A of the interface, and the form runtime in which people fill in forms
// (gateway/INTERFACE.md, "Groups"). A form is a workflow instance with a record beside it (package form); one that is
// bound to no workflow is an instance of PlainWorkflow, so it has a history, a durable life and idempotency keys like
// any other. The form of a task is filled in the same way. Templates come from files by ParseTemplate and
// Templates.Publish.
//
// What a caller may not see is ErrNotFound, in the same words as what is not there. A list shows one moment and wakes
// no instance. The caller does AddPlainWorkflow before the catalog is used, then Start, any number of concurrent calls,
// and Stop before the router is stopped.
package formportal

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/supervise"
	"troupe/actors/message"
	"troupe/actors/trace"
	"troupe/actors/workflow"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Options configures a Portal. What has no default is required.
type Options struct {
	System    *actors.System
	Workflows *workflow.Router
	Templates *Templates
	Directory func() *identity.Directory // Directory returns the roles and users as of now
	// ArchiveAfter is how long a completed form stays among the submitted ones. Default 30 days (gateway/INTERFACE.md,
	// "Categories").
	ArchiveAfter time.Duration
	Clock        func() time.Time // Clock tells the time; nil: time.Now
	Log          zerolog.Logger
}

// EnsureDefaults fills in what is zero.
func (o *Options) EnsureDefaults() {
	o.ArchiveAfter = cmp.Or(o.ArchiveAfter, 30*24*time.Hour)
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Portal is the way to the supervisor of group A.
type Portal struct {
	o          Options
	supervisor *supervise.Supervisor
}

// Start spawns the supervisor. Stop must be called.
func Start(o Options) *Portal {
	o.EnsureDefaults()
	return &Portal{o: o, supervisor: supervise.Start(supervise.Options{
		System: o.System, Name: "formportal", WaitMax: workerWaitMax, Log: o.Log,
	})}
}

// Stop refuses new requests and waits until the open ones are answered or ctx ends.
func (p *Portal) Stop(ctx context.Context) error { return p.supervisor.Stop(ctx) }

// Metrics are the supervisor's counters.
type Metrics = supervise.Metrics

// Metrics returns the counters as they are now.
func (p *Portal) Metrics() Metrics { return p.supervisor.Metrics() }

// workerWaitMax is how long a request waits for a worker: people rather wait than get an error.
const workerWaitMax = time.Minute

func (p *Portal) do(ctx context.Context, caller *identity.Principal, name string, work func(context.Context) error) error {
	return failure.In("form portal: "+name, "", p.supervisor.Do(ctx, caller.ID, name, work))
}

// RoleInfo is the caller's roles with which forms and checklists can be made, in the order of identity.yaml
// (gateway/INTERFACE.md, "Roles of the portal").
type RoleInfo struct{ Forms, Checklists []identity.Role }

// RoleInfo returns the roles with which the caller can make forms and checklists.
func (p *Portal) RoleInfo(ctx context.Context, caller *identity.Principal) (info RoleInfo, err error) {
	err = p.do(ctx, caller, "role-info", func(context.Context) error {
		for _, role := range p.o.Directory().Roles() {
			if !slices.Contains(caller.Roles, string(role.ID)) {
				continue
			}
			if slices.Contains(role.Privileges, identity.Form) {
				info.Forms = append(info.Forms, role)
			}
			if slices.Contains(role.Privileges, identity.Checklist) {
				info.Checklists = append(info.Checklists, role)
			}
		}
		return nil
	})
	return info, err
}

// Workflows returns the workflows that the caller may create, by id.
func (p *Portal) Workflows(ctx context.Context, caller *identity.Principal) (choices []catalog.Choice, err error) {
	err = p.do(ctx, caller, "workflows", func(context.Context) error {
		choices = p.o.Workflows.Choices(caller)
		return nil
	})
	return choices, err
}

// OfRole returns the templates that a role is offered, by name.
func (p *Portal) OfRole(ctx context.Context, caller *identity.Principal, kind form.Kind, role string) (found []*Template, err error) {
	err = p.do(ctx, caller, "templates", func(context.Context) error {
		if !slices.Contains(caller.Roles, role) {
			return failure.ErrNotFound
		}
		found = p.o.Templates.OfRole(kind, role)
		return nil
	})
	return found, err
}

// Template returns a template that the caller can make a form of, and those of the workflows that it names which the
// caller may create, in its order.
func (p *Portal) Template(ctx context.Context, caller *identity.Principal, kind form.Kind, id string) (template *Template, bound []catalog.Choice, err error) {
	err = p.do(ctx, caller, "template", func(context.Context) error {
		found := p.o.Templates.Enabled(kind, id)
		if found == nil {
			return failure.ErrNotFound
		}
		if _, visible := found.RoleOf(caller.Roles); !visible {
			return failure.ErrNotFound
		}
		for _, id := range found.Workflows {
			if choice, ok := p.o.Workflows.Choice(caller, id); ok {
				bound = append(bound, choice)
			}
		}
		template = found
		return nil
	})
	return template, bound, err
}

// ListRequest asks for the caller's forms of one kind in one category.
type ListRequest struct {
	Caller        *identity.Principal
	Kind          form.Kind
	WithInstances bool // WithInstances asks for instances that are not forms, too
	Category      form.Category
}

// List calls yield with each form, the newest first and those of the same millisecond by id. It sees one moment, with
// everything that was acknowledged before the call.
func (p *Portal) List(ctx context.Context, req *ListRequest, yield func(*Summary) error) error {
	return p.do(ctx, req.Caller, "list", func(ctx context.Context) error {
		list := p.listOf(req)
		return form.List(ctx, p.o.Workflows.Queries, &list, func(f form.Listed) error {
			return yield(p.summaryOf(&f.Form, f.WorkflowID, f.Nodes, f.InstanceID, f.When))
		})
	})
}

// PageRequest asks for a part of one of the caller's lists.
type PageRequest struct {
	ListRequest
	Sort                      form.Sort // What form.PageRequest has
	WorkflowID, Query, Cursor string
	Limit                     int
	Count                     bool
	Title                     form.TitleOf
	Languages                 []string
}

// Page is a part of a list.
type Page struct {
	Forms []Paged
	Next  string // the cursor of the next page; empty when there is none
	Count *int64 // nil when it was not asked, and when counting would take long

	of *form.Page
}

// NextBehind is the cursor of a page that begins behind a form of this one.
func (p *Page) NextBehind(n int) string { return p.of.NextBehind(n) }

// Paged is a form of a page.
type Paged struct {
	Summary
	WorkflowID string // PlainWorkflow for those without one
	Category   form.Category
}

// Page returns a part of a list, as form.ReadPage says.
func (p *Portal) Page(ctx context.Context, req *PageRequest) (page *Page, err error) {
	err = p.do(ctx, req.Caller, "page", func(ctx context.Context) error {
		list := p.listOf(&req.ListRequest)
		of, err := form.ReadPage(ctx, p.o.Workflows.Queries, &form.PageRequest{
			ListRequest: list, Sort: req.Sort, WorkflowID: req.WorkflowID, Query: req.Query,
			Limit: req.Limit, Cursor: req.Cursor, Count: req.Count, Title: req.Title, Name: p.nameOf, Languages: req.Languages,
		})
		if err != nil {
			return err
		}
		page = &Page{Next: of.Next, Count: of.Count, of: of}
		for _, f := range of.Forms {
			summary := p.summaryOf(&f.Form, f.WorkflowID, f.Nodes, f.InstanceID, f.When)
			page.Forms = append(page.Forms, Paged{*summary, f.WorkflowID, f.CategoryAt(list.ArchivedBefore)})
		}
		return nil
	})
	return page, err
}

func (p *Portal) listOf(req *ListRequest) form.ListRequest {
	return form.ListRequest{
		Kind: req.Kind, WithInstances: req.WithInstances, User: req.Caller.ID, Category: req.Category, ArchivedBefore: archivedBefore(p.o.Clock(), p.o.ArchiveAfter),
	}
}

// CreateRequest asks for a new form or checklist.
type CreateRequest struct {
	Caller     *identity.Principal
	Kind       form.Kind
	TemplateID string
	WorkflowID string // empty for a form without a workflow, and for checklists
	Retry      message.Retry
}

// Create makes a form and returns the instance's id, when it is durable. A template or workflow that does not exist, or
// that the caller may not use, is ErrNotFound; two that do not belong together are ErrInvalid (gateway/INTERFACE.md,
// "Creating forms").
func (p *Portal) Create(ctx context.Context, req *CreateRequest) (id string, err error) {
	err = p.do(ctx, req.Caller, "create", func(ctx context.Context) error {
		create, err := p.creation(req)
		create.Span = trace.Of(ctx)
		if err != nil && req.Retry.Key == "" {
			return err
		}
		create.Refusal = err // of all but a repetition
		reply, err := p.o.Workflows.Create(ctx, create)
		if errors.Is(err, failure.ErrForbidden) { // its workflow, which is invisible then
			return cmp.Or[error](create.Refusal, failure.ErrNotFound)
		}
		if err != nil {
			return err
		}
		id = reply.InstanceID
		return nil
	})
	return id, err
}

// With an error the request is only good for a repetition, which has its answer already.
func (p *Portal) creation(req *CreateRequest) (*message.Create, error) {
	create := &message.Create{Caller: req.Caller, WorkflowID: req.WorkflowID, Retry: req.Retry, NoQuota: true}
	if req.WorkflowID == "" {
		create.WorkflowID = PlainWorkflow
		create.Private = data.Value(append(data.AppendString([]byte(`{"owner":`), string(req.Caller.ID)), '}'))
	}
	template := p.o.Templates.Enabled(req.Kind, req.TemplateID)
	if template == nil {
		return create, failure.ErrNotFound
	}
	role, visible := template.RoleOf(req.Caller.Roles)
	if !visible {
		return create, failure.ErrNotFound
	}
	create.Form = &form.Form{
		Kind: req.Kind, TemplateID: template.ID, Name: template.Name.For(), By: string(req.Caller.ID), Role: role,
	}
	switch {
	case req.WorkflowID == "" && len(template.Workflows) > 0:
		return create, failure.Refuse(failure.ErrInvalid, "this form needs a workflow: %q is missing", "workflowId")
	case req.WorkflowID == "":
		return create, nil
	}
	if _, visible := p.o.Workflows.Choice(req.Caller, req.WorkflowID); !visible {
		return create, failure.ErrNotFound
	}
	declares := func(event string) bool { return p.o.Workflows.Declares(req.WorkflowID, event) }
	if !template.BoundTo(req.WorkflowID, declares) {
		return create, failure.Refuse(failure.ErrInvalid, "this form does not belong to that workflow")
	}
	return create, nil
}

// archivedBefore returns the moment in Unix milliseconds such that what was completed before it is archived now.
func archivedBefore(now time.Time, archiveAfter time.Duration) int64 {
	moment := now.Add(-archiveAfter)
	ms := moment.UnixMilli()
	if moment.After(time.UnixMilli(ms)) {
		ms++
	}
	return max(0, ms)
}

// TypeInstance is the FormType of an instance that is not a form.
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

// PlainWorkflow is the workflow of forms and checklists that have none of their own, as fullPath shows it
// (gateway/INTERFACE.md, "Fields of a form").
const PlainWorkflow = "-"

const plainSubmit = "submit"

//go:embed plain.yaml
var plainText []byte

// AddPlainWorkflow makes PlainWorkflow known to the catalog. It must be called before the catalog is used.
func AddPlainWorkflow(catalog *catalog.Catalog, parser *statemachine.Parser) error {
	parsed, err := parser.Parse(statemachine.Source{File: "plain.yaml", Text: plainText})
	if err != nil {
		return fmt.Errorf("built-in workflow: %w", err)
	}
	catalog.AddBuiltin(PlainWorkflow, parsed.Definition)
	return nil
}
